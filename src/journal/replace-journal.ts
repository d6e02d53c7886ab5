/**
 * Replacing journal.db by one that was made anew, so that a crash at any step leaves the old one, the new one, or
 * something that the next start finishes.
 *
 *     DATA/journal.recovering.db      being made; of no use to anybody, removed by the next attempt
 *     DATA/journal.recovered.db       complete, sealed and durable: from here on there is only forward
 *     DATA/set-aside-<stamp>/         the old journal.db with its -wal and -shm, under their own names
 *     DATA/journal.db
 *
 *  1. The new one is made under the first name, sealed (no -wal beside it) and fsynced.
 *  2. It gets the second name: this rename is the decision.
 *  3. The old set moves into a folder of its own, journal.db first. Its files are not renamed: what is left of a
 *     database is only readable together with the log of its name.
 *  4. The new one becomes journal.db.
 *
 * Steps 3 and 4 are taken up wherever they ended, by whoever holds the lock of the data folder next. A program that
 * works without that lock may have made a fresh journal.db in between: it moves aside like the old one, and what it
 * was given lies in the archive.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from './clock.js';
import { platformCode } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import { fileStamp, micros } from './position.js';

const UNFINISHED = 'journal.recovering.db';
const FINISHED = 'journal.recovered.db';
const DATABASE = 'journal.db';
const LOGS = ['-wal', '-shm', '-journal'] as const;
const SET_ASIDE = /^set-aside-\d{8}T\d{6}\.\d{6}Z$/;

/** The data folder as seen by whoever makes the new journal: the same archive, another journal. */
export function underConstruction(folder: DataFolder): DataFolder {
  return { ...folder, journal: join(folder.root, UNFINISHED) };
}

/** Removes what an attempt that was cut short has left. */
export function discardUnfinished(folder: DataFolder, files: FileLayer): void {
  for (const name of setOf(UNFINISHED)) {
    const path = join(folder.root, name);
    if (existsSync(path)) files.unlink(path);
  }
}

/**
 * Makes the journal that was made the one that will be. It must be closed.
 *
 * @throws Error when a log lies beside it: renamed without it, the database would have lost what is in it
 */
export function declareFinished(folder: DataFolder, files: FileLayer): void {
  const path = join(folder.root, UNFINISHED);
  const log = setOf(UNFINISHED).find((name) => name !== UNFINISHED && existsSync(join(folder.root, name)));
  if (log !== undefined) throw new Error(`the journal made anew is not sealed: there is ${log}`);
  files.fsyncFile(path);
  files.rename(path, join(folder.root, FINISHED));
  files.fsyncDirectory(folder.root);
}

/** Where a replacement ended. */
export interface Replaced {
  /** Name of the folder in the data folder that holds the old set; null when there was none. */
  readonly setAside: string | null;
}

/**
 * Puts a finished journal in place; null when none waits. Only for the holder of the data folder's lock, before the
 * journal is opened.
 */
export function putInPlace(folder: DataFolder, files: FileLayer, clock: Clock): Replaced | null {
  if (!existsSync(join(folder.root, FINISHED))) return null;
  const old = setOf(DATABASE).filter((name) => existsSync(join(folder.root, name)));
  const setAside = old.length === 0 ? null : moveAside(folder, files, clock, old);
  files.rename(join(folder.root, FINISHED), folder.journal);
  files.fsyncDirectory(folder.root);
  return { setAside };
}

function moveAside(folder: DataFolder, files: FileLayer, clock: Clock, old: readonly string[]): string {
  const name = begunFolder(folder, files, old) ?? newFolder(folder, files, clock);
  for (const part of old) files.rename(join(folder.root, part), join(folder.root, name, part));
  files.fsyncDirectory(join(folder.root, name));
  files.fsyncDirectory(folder.root);
  return name;
}

/** The folder into which a move that was cut short has begun to put this set; null when there is none. */
function begunFolder(folder: DataFolder, files: FileLayer, left: readonly string[]): string | null {
  const newest = files
    .readdir(folder.root)
    .filter((name) => SET_ASIDE.test(name))
    .sort((a, b) => (a < b ? -1 : 1))
    .at(-1);
  if (newest === undefined) return null;
  const inside = files.readdir(join(folder.root, newest));
  if (left.some((name) => inside.includes(name))) return null;
  const isBegun = left.includes(DATABASE) ? inside.length === 0 : inside.includes(DATABASE);
  return isBegun ? newest : null;
}

function newFolder(folder: DataFolder, files: FileLayer, clock: Clock): string {
  for (let at = clock.now(); ; at = micros(at + 1)) {
    const name = `set-aside-${fileStamp(at)}`;
    try {
      files.mkdir(join(folder.root, name));
    } catch (error) {
      if (platformCode(error) === 'EEXIST') continue;
      throw error;
    }
    files.fsyncDirectory(folder.root);
    return name;
  }
}

function setOf(database: string): string[] {
  return [database, ...LOGS.map((suffix) => `${database}${suffix}`)];
}
