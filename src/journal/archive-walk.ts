/**
 * Walks the archive by its names alone. Only `YYYY/MM/DD/` is entered and only names the archive gives count:
 * `incoming/`, notes of the owner and leftovers of other programs are nobody's delivery.
 */
import { join } from 'node:path';
import { parseArchivePath } from './archive.js';
import { platformCode } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import { type Micros, micros, type Position } from './position.js';

const LEVELS = [/^\d{4}$/, /^\d{2}$/, /^\d{2}$/] as const;

/** Names in a folder, sorted; none when there is no such folder. */
function namesIn(files: FileLayer, path: string): string[] {
  try {
    return files.readdir(path).sort((a, b) => (a < b ? -1 : 1));
  } catch (error) {
    const code = platformCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw error;
  }
}

function* walk(
  root: string,
  files: FileLayer,
  inOrder: (names: string[]) => string[],
  rel: string[] = [],
): Generator<string> {
  const pattern = LEVELS[rel.length];
  for (const name of inOrder(namesIn(files, join(root, ...rel)))) {
    if (pattern === undefined) yield [...rel, name].join('/');
    else if (pattern.test(name)) yield* walk(root, files, inOrder, [...rel, name]);
  }
}

/** Paths of all archive files relative to the archive folder, in the order of their positions. */
export function* archivePaths(folder: DataFolder, files: FileLayer): Generator<string> {
  for (const rel of walk(folder.archive, files, (names) => names)) {
    if (parseArchivePath(rel) !== null) yield rel;
  }
}

/** The greatest position any archive name holds; null for an empty archive. */
export function newestArchived(folder: DataFolder, files: FileLayer): Position | null {
  for (const rel of walk(folder.archive, files, (names) => names.toReversed())) {
    const named = parseArchivePath(rel);
    if (named !== null) return named.position;
  }
  return null;
}

/** The day folder with the latest date, its full path and the instant the day begins in UTC; null when there is none. */
export function newestDayFolder(
  folder: DataFolder,
  files: FileLayer,
): { readonly path: string; readonly startsAt: Micros } | null {
  let path = folder.archive;
  const date: string[] = [];
  for (const pattern of LEVELS) {
    const newest = namesIn(files, path).findLast((name) => pattern.test(name));
    if (newest === undefined) return null;
    path = join(path, newest);
    date.push(newest);
  }
  const startsAtMs = Date.parse(`${date.join('-')}T00:00:00Z`);
  return Number.isNaN(startsAtMs) ? null : { path, startsAt: micros(startsAtMs * 1000) };
}
