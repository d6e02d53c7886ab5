/**
 * Find: from what was typed to files, in the order in which they go into the journal: arguments as given, folders
 * walked in sorted order.
 *
 * - A file that was named is taken whatever it is called; of what a folder holds, only what is called like an export.
 * - Names are kept as bytes: a file system holds names that are no text.
 * - The data folder itself, named or met on the way, is left out: its bodies are in the journal.
 */
import type { Dirent } from 'node:fs';
import { readdirSync, realpathSync, statSync } from 'node:fs';
import { sep } from 'node:path';
import { HealthlogError, platformCode } from '../../journal/errors.js';
import { leftOutByName } from './kind.js';
import { fileError } from './raw.js';

export type Found =
  | { readonly kind: 'file'; readonly path: string | Buffer; readonly shown: string }
  /** Standard input, a pipe, a device: read once, from its beginning to its end. */
  | { readonly kind: 'stream'; readonly path: string | null; readonly shown: string }
  | { readonly kind: 'left_out'; readonly shown: string; readonly reason: string }
  | { readonly kind: 'refused'; readonly shown: string; readonly error: HealthlogError };

export const STDIN_NAME = '-';

/**
 * @param dataRoot the data folder
 * @throws HealthlogError usage
 */
export function findFiles(args: readonly string[], dataRoot: string): Found[] {
  if (args.length === 0) {
    throw new HealthlogError('usage', {
      reason: 'No file was named: give files, folders, or - for standard input.',
    });
  }
  if (args.filter((arg) => arg === STDIN_NAME).length > 1) {
    throw new HealthlogError('usage', { reason: 'Standard input (-) can be read once.' });
  }
  const data = realPath(dataRoot);
  return args.flatMap((arg) => (arg === STDIN_NAME ? [stdin()] : [...named(arg, data)]));
}

function stdin(): Found {
  return { kind: 'stream', path: null, shown: STDIN_NAME };
}

function* named(path: string, data: string | null): Generator<Found> {
  try {
    const stats = statSync(path);
    if (stats.isDirectory() && realPath(path) === data) yield dataFolderItself(path);
    else if (stats.isDirectory()) yield* inFolder(Buffer.from(path), path, data);
    else yield { kind: stats.isFile() ? 'file' : 'stream', path, shown: path };
  } catch (error) {
    yield refused(path, error);
  }
}

function* inFolder(folder: Buffer, shown: string, data: string | null): Generator<Found> {
  let entries: Dirent<Buffer>[];
  try {
    entries = readdirSync(folder, { encoding: 'buffer', withFileTypes: true });
  } catch (error) {
    yield refused(shown, error);
    return;
  }
  entries.sort((a, b) => Buffer.compare(a.name, b.name));
  const separator = shown.endsWith(sep) || shown.endsWith('/') ? '' : sep;
  for (const entry of entries) {
    const path = Buffer.concat([folder, Buffer.from(separator), entry.name]);
    yield* entryOf(entry, path, `${shown}${separator}${entry.name.toString('utf8')}`, data);
  }
}

function* entryOf(entry: Dirent<Buffer>, path: Buffer, shown: string, data: string | null): Generator<Found> {
  const name = entry.name.toString('utf8');
  if (entry.isDirectory() && !name.startsWith('.')) {
    if (data !== null && realPath(path) === data) {
      yield dataFolderItself(shown);
    } else yield* inFolder(path, shown, data);
    return;
  }
  const reason = leftOutByName(name);
  if (reason !== null) {
    yield { kind: 'left_out', shown, reason };
    return;
  }
  try {
    // A link is what it leads to; a folder behind one could lead in a circle.
    const stats = statSync(path);
    if (stats.isFile()) yield { kind: 'file', path, shown };
    else yield { kind: 'left_out', shown, reason: 'it is no regular file' };
  } catch (error) {
    yield refused(shown, error);
  }
}

function dataFolderItself(shown: string): Found {
  return { kind: 'left_out', shown, reason: 'it is the data folder' };
}

function refused(shown: string, error: unknown): Found {
  const known = fileError(error);
  if (known instanceof HealthlogError) return { kind: 'refused', shown, error: known };
  throw known;
}

function realPath(path: string | Buffer): string | null {
  try {
    return realpathSync(path, 'utf8');
  } catch (error) {
    if (platformCode(error) !== null) return null;
    throw error;
  }
}
