/**
 * Notes in the archive: `tokens.jsonl` and `exclusions.jsonl`, one event per line, so that journal.db can be made anew
 * from the archive alone.
 *
 * - An event is appended, and fsynced with its folder, *before* the row it speaks of is written. So an event may be
 *   without its row, never a row without its event; every start puts the two together again (reconcile-notes.ts).
 * - A crash can tear the last line. It is never continued: the next event begins on a line of its own.
 * - A line that cannot be read costs that line alone. It is reported every time, and stays where it is.
 */
import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { platformCode } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import { ArchiveFolders } from './folders.js';
import { parseMicros } from './position.js';

/** A line that holds no event; `reason` is in plain words. */
export interface UnreadableLine {
  /** Name of the file inside the archive folder. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly reason: string;
}

export interface Notes<E> {
  /** In the order of the file, which is the order in which things happened. */
  readonly events: readonly E[];
  readonly unreadable: readonly UnreadableLine[];
}

/** A time in a note: ISO 8601 with microseconds, read as microseconds since 1970. */
export const noteTime = z.string().transform((text, context) => {
  const at = parseMicros(text);
  if (at !== null) return at;
  context.addIssue({ code: 'custom', message: 'not a time' });
  return z.NEVER;
});

/**
 * Appends one event; when this returns, it is durable.
 *
 * @param path a file in the archive folder
 */
export function appendNote(
  folder: DataFolder,
  files: FileLayer,
  path: string,
  event: Readonly<Record<string, string>>,
): void {
  new ArchiveFolders(folder, files).ensureIncoming();
  files.appendLine(path, JSON.stringify(event));
  // Every time: a process that died between the first line and this leaves a file whose name is not durable yet.
  files.fsyncDirectory(dirname(path));
}

/**
 * Reads all events of a file; none when there is no such file.
 *
 * @throws every error of the platform: a file that cannot be read says nothing about what is in it
 */
export function readNotes<E>(path: string, schema: z.ZodType<E>): Notes<E> {
  const lines = textOf(path).split('\n');
  const events: E[] = [];
  const unreadable: UnreadableLine[] = [];
  for (const [index, text] of lines.entries()) {
    if (text.trim() === '') continue;
    const isLast = index === lines.length - 1;
    const read = readLine(text, schema, isLast);
    if (typeof read === 'string') unreadable.push({ file: basename(path), line: index + 1, reason: read });
    else events.push(read.event);
  }
  return { events, unreadable };
}

function textOf(path: string): string {
  try {
    // Editors put a byte order mark in front, which is no part of the first event.
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    if (platformCode(error) === 'ENOENT') return '';
    throw error;
  }
}

/** A text says why the line is no event. */
function readLine<E>(text: string, schema: z.ZodType<E>, isLast: boolean): { readonly event: E } | string {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    // What the parser says would repeat the line, and a label is nobody's business.
    return isLast ? 'it was cut short by a crash' : 'it is not JSON';
  }
  const parsed = schema.safeParse(raw);
  return parsed.success ? { event: parsed.data } : 'it is no event that this version knows';
}
