/**
 * Pieces: from files to what becomes one delivery each. A ZIP gives one piece for every entry that is an export, any
 * other file gives one.
 *
 * A piece can be read more than once: a file is opened anew, standard input was read into memory.
 */
import { statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { HealthlogError } from '../../journal/errors.js';
import type { Micros } from '../../journal/position.js';
import { fileTime } from './file-time.js';
import type { Found } from './find.js';
import { firstBytes, isZip } from './kind.js';
import { fileBytes, fileError, readAll, streamBytes } from './raw.js';
import { type OpenZip, openZipBuffer, openZipFile } from './zip.js';

export interface Piece {
  readonly kind: 'piece';
  /** How people know it: a path, and for an entry of a ZIP `/` and its name behind it. */
  readonly shown: string;
  /** It cannot have been made after this. */
  readonly madeBefore: Micros;
  /** As they lie there. @throws HealthlogError file_unreadable, file_damaged, too_large */
  bytes(): AsyncGenerator<Buffer>;
}

export type Met = Piece | Extract<Found, { kind: 'left_out' | 'refused' }>;

export interface PieceDeps {
  readonly stdin: Readable;
  readonly now: () => Micros;
  /** Limit for a body, in bytes. */
  readonly bytesMax: number;
}

/** What there is in one file, in order. The file is open as long as this runs. */
export async function* piecesIn(found: Found, deps: PieceDeps): AsyncGenerator<Met> {
  if (found.kind === 'left_out' || found.kind === 'refused') {
    yield found;
    return;
  }
  const { shown } = found;
  try {
    if (found.kind === 'file') yield* piecesOfFile(found.path, shown, deps);
    else yield* piecesOfStream(found.path, shown, deps);
  } catch (error) {
    if (!(error instanceof HealthlogError)) throw error;
    yield { kind: 'refused', shown, error };
  }
}

async function* piecesOfFile(
  path: string | Buffer,
  shown: string,
  { now, bytesMax }: PieceDeps,
): AsyncGenerator<Met> {
  const madeBefore = earlier(modifiedAt(path), now());
  if (isZip(await firstBytes(path))) {
    yield* entriesOf(await openZipFile(path, bytesMax), shown, madeBefore);
  } else yield { kind: 'piece', shown, madeBefore, bytes: () => fileBytes(path) };
}

async function* piecesOfStream(
  path: string | null,
  shown: string,
  { stdin, now, bytesMax }: PieceDeps,
): AsyncGenerator<Met> {
  const whole = await readAll(path === null ? streamBytes(stdin) : fileBytes(path), bytesMax);
  if (isZip(whole)) yield* entriesOf(await openZipBuffer(whole, bytesMax), shown, now());
  else yield { kind: 'piece', shown, madeBefore: now(), bytes: () => once(whole) };
}

async function* entriesOf(zip: OpenZip, shown: string, zipMadeBefore: Micros): AsyncGenerator<Met> {
  try {
    for (const { name, modifiedAt, leftOut, bytes } of zip.entries) {
      const entry = `${shown}/${name}`;
      if (leftOut !== null) yield { kind: 'left_out', shown: entry, reason: leftOut };
      else {
        const madeBefore = earlier(modifiedAt, zipMadeBefore);
        yield { kind: 'piece', shown: entry, madeBefore, bytes };
      }
    }
  } finally {
    zip.close();
  }
}

async function* once(whole: Buffer): AsyncGenerator<Buffer> {
  yield whole;
}

/** Null when it has no time of its own. */
function modifiedAt(path: string | Buffer): Micros | null {
  try {
    return fileTime(statSync(path).mtimeMs);
  } catch (error) {
    throw fileError(error);
  }
}

function earlier(a: Micros | null, b: Micros): Micros {
  return a !== null && a < b ? a : b;
}
