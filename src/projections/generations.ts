/**
 * Generations: the files of the read model and the pointers between them (design §4.1, §8).
 *
 *     readmodel/000003.db   a generation, with its own -wal and -shm while it is open
 *     readmodel/CURRENT     the name of the live one, replaced by an atomic rename
 *     readmodel/READY       the name of a finished one that waits to be switched to
 *     readmodel/live.db     symlink to the live one, for other programs
 *     readmodel/build.lock  held while somebody builds
 *
 * A new generation gets a number above every number there is, leftovers of `-wal` and `-shm` included: a file is
 * never renamed while a log lies beside it, nor made where one lies. The switch: checkpoint with TRUNCATE
 * before the last writer closes, fsync file and directory, rename READY to CURRENT, move the symlink.
 * Only the owner of the data folder's lock switches. The previous generation stays until the next build and is
 * removed only as a whole, the database first: a log without its database is harmless, a database without its
 * log has lost what was in it.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { platformCode } from '../journal/errors.js';
import type { DataFolder } from '../journal/folder.js';
import { isCircumstance } from './failure.js';
import { createGeneration, FOLD_VERSION, openGeneration, readMeta } from './readmodel.js';

export interface GenerationFile {
  /** `000003.db` */
  readonly name: string;
  readonly path: string;
}

const NAME = /^(\d{6,})\.db$/;
const ANY_FILE = /^(\d{6,})\.db(?:-wal|-shm|-journal)?$/;

function fileOf(folder: DataFolder, name: string): GenerationFile {
  return { name, path: join(folder.readmodel, name) };
}

function entries(folder: DataFolder): string[] {
  try {
    return readdirSync(folder.readmodel);
  } catch (error) {
    if (platformCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function pointer(folder: DataFolder, which: 'CURRENT' | 'READY'): GenerationFile | null {
  let text: string;
  try {
    text = readFileSync(join(folder.readmodel, which), 'utf8');
  } catch (error) {
    if (platformCode(error) === 'ENOENT') return null;
    throw error;
  }
  const name = text.trim();
  if (!NAME.test(name)) return null;
  const file = fileOf(folder, name);
  return existsSync(file.path) ? file : null;
}

/** The live generation; null when there is none yet or its file is gone. */
export function currentGeneration(folder: DataFolder): GenerationFile | null {
  return pointer(folder, 'CURRENT');
}

/** A finished generation that waits to be switched to. */
export function readyGeneration(folder: DataFolder): GenerationFile | null {
  return pointer(folder, 'READY');
}

/** Names the next generation: its number is above every number seen. */
export function nextGeneration(folder: DataFolder): GenerationFile {
  mkdirSync(folder.readmodel, { recursive: true });
  let highest = 0;
  for (const entry of entries(folder)) highest = Math.max(highest, Number(ANY_FILE.exec(entry)?.[1] ?? 0));
  return fileOf(folder, `${String(highest + 1).padStart(6, '0')}.db`);
}

/** Creates the next generation and leaves it open for writing; generations before the live one go. */
export function startGeneration(
  folder: DataFolder,
  journalEpoch: string,
): { readonly file: GenerationFile; readonly db: Database.Database } {
  // Numbered before the old ones are removed, so that it is none of theirs.
  const file = nextGeneration(folder);
  removeOldGenerations(folder);
  return { file, db: createGeneration(file.path, journalEpoch) };
}

/** Removes one generation as a whole. */
export function removeGeneration(file: GenerationFile): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${file.path}${suffix}`, { force: true });
}

/** Removes every generation but the live one and the waiting one, with leftovers of logs. */
function removeOldGenerations(folder: DataFolder): void {
  const kept = new Set<string>();
  for (const file of [currentGeneration(folder), readyGeneration(folder)])
    if (file !== null) kept.add(file.name);
  const removed = new Set<string>();
  for (const entry of entries(folder)) {
    const number = ANY_FILE.exec(entry)?.[1];
    if (number === undefined || kept.has(`${number}.db`)) continue;
    removed.add(`${number}.db`);
  }
  for (const name of removed) removeGeneration(fileOf(folder, name));
}

/**
 * Gives a data folder that has received nothing yet its first, empty generation, so that its first delivery can be
 * asked for as soon as it is folded. Only for the owner of the data folder's lock.
 */
export function makeFirstGeneration(folder: DataFolder, journalEpoch: string): void {
  const { file, db } = startGeneration(folder, journalEpoch);
  sealGeneration(file, db);
  announceReady(folder, file);
  switchToReady(folder);
}

/** Moves all of the write-ahead log into the file and closes it: what lies on disk then is the file alone. */
export function sealGeneration(file: GenerationFile, db: Database.Database): void {
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
  syncPath(file.path);
}

/** Leaves a note that `file` is finished. The generation must be sealed. */
export function announceReady(folder: DataFolder, file: GenerationFile): void {
  const temporary = join(folder.readmodel, `READY.${process.pid}.tmp`);
  const handle = openSync(temporary, 'w');
  try {
    writeSync(handle, `${file.name}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, join(folder.readmodel, 'READY'));
  syncPath(folder.readmodel);
}

/**
 * Makes the waiting generation the live one. Only for the owner of the data folder's lock; the generation must
 * be sealed or not open for writing anywhere.
 */
export function switchToReady(folder: DataFolder): GenerationFile | null {
  const ready = readyGeneration(folder);
  if (ready === null) return null;
  renameSync(join(folder.readmodel, 'READY'), join(folder.readmodel, 'CURRENT'));
  syncPath(folder.readmodel);
  return ready;
}

/**
 * Makes `live.db` lead to the live generation: after every switch, and at every start in case a crash came in between.
 * Nothing of healthlog reads through it, so a caller may well go on when this throws.
 */
export function pointLiveAt(folder: DataFolder, file: GenerationFile): void {
  const link = join(folder.readmodel, 'live.db');
  if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(link) === file.name)
    return;
  const temporary = join(folder.readmodel, `live.${process.pid}.tmp`);
  rmSync(temporary, { force: true });
  symlinkSync(file.name, temporary);
  renameSync(temporary, link);
  syncPath(folder.readmodel);
}

function syncPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** The live generation, opened for reading, or why there is none to be read. */
export type LiveView =
  | { readonly kind: 'open'; readonly file: GenerationFile; readonly db: Database.Database }
  | { readonly kind: 'none' }
  /** Damaged, or built by another version of the fold, whose tables may be others. */
  | { readonly kind: 'unreadable'; readonly file: GenerationFile; readonly reason: string };

/** Throws only circumstances: no handles, no rights. */
export function openLive(folder: DataFolder): LiveView {
  const file = currentGeneration(folder);
  if (file === null) return { kind: 'none' };
  try {
    const db = openGeneration(file.path, 'read');
    const { foldVersion } = readMeta(db);
    if (foldVersion === FOLD_VERSION) return { kind: 'open', file, db };
    db.close();
    return {
      kind: 'unreadable',
      file,
      reason: `it was built by fold version ${foldVersion}, this is ${FOLD_VERSION}`,
    };
  } catch (error) {
    const code = platformCode(error);
    if (code?.startsWith('SQLITE_') !== true || isCircumstance(error)) throw error;
    return { kind: 'unreadable', file, reason: `its file is damaged (${code})` };
  }
}
