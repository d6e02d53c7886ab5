/**
 * Recover: journal.db once more from the archive alone.
 *
 * The archive holds everything: every body at its position, what became of every token, and every delivery that was
 * set aside. So a journal that is lost or damaged is made anew, and no phone is locked out.
 *
 * - A journal that is sound is never replaced; what the archive has and it lacks is brought in.
 * - One that is damaged is set aside, not deleted (replace-journal.ts). It is not read: what it holds and the archive
 *   does not is when each token was used last, and whether folding was paused.
 * - The new journal has a new epoch, so the service builds the read model anew.
 * - One body is in memory at a time.
 */
import { existsSync, statSync } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';
import { parseArchivePath } from './archive.js';
import type { Clock } from './clock.js';
import { HealthlogError, platformCode } from './errors.js';
import { type FileLayer, nodeFiles } from './files.js';
import type { DataFolder } from './folder.js';
import { acquireLock } from './lock.js';
import { type Adoption, adoptInBatches } from './reconcile.js';
import { type NotesReconciled, reconcileNotes } from './reconcile-notes.js';
import { declareFinished, discardUnfinished, putInPlace, underConstruction } from './replace-journal.js';
import { Journal } from './store.js';

export interface RecoverDeps {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly files?: FileLayer;
  /** Bodies that were looked at, of how many. */
  readonly onProgress?: (done: number, total: number) => void;
}

export interface RecoverReport {
  /** `anew`: there is a new journal. `completed`: the old one is sound. `finished`: as begun by an earlier attempt. */
  readonly journal: 'anew' | 'completed' | 'finished';
  /** What is wrong with the old journal, in plain words; null when it is sound or there is none. */
  readonly damage: string | null;
  /** Folder inside the data folder that holds the old journal now; null when nothing was moved. */
  readonly setAside: string | null;
  /** What the journal holds now. */
  readonly deliveries: number;
  readonly tokens: number;
  readonly exclusions: number;
  /** How many of the deliveries were brought in. */
  readonly adopted: number;
  readonly notes: NotesReconciled;
  /** Bodies that cannot be read, and are no deliveries therefore. They stay where they are. */
  readonly damaged: Adoption['damaged'];
}

/**
 * @throws HealthlogError not_found when there is nothing to recover from, locked, journal_busy; what SQLite and the
 *   file system throw, because a disk that cannot be read says nothing about the journal
 */
export function recoverJournal(deps: RecoverDeps): RecoverReport {
  const { folder, clock, files = nodeFiles } = deps;
  if (!existsSync(folder.archive) && !existsSync(folder.journal)) {
    throw new HealthlogError('not_found', { what: `archive and no journal in ${folder.root}` });
  }
  const lock = acquireLock(folder, clock);
  try {
    const begun = putInPlace(folder, files, clock);
    discardUnfinished(folder, files);
    const state = examine(folder);
    const filled = state.kind === 'sound' ? complete(folder, deps) : state;
    if (filled.kind === 'completed') {
      const kind = begun === null ? 'completed' : 'finished';
      return { journal: kind, damage: null, setAside: begun?.setAside ?? null, ...filled.what };
    }
    const made = fill(underConstruction(folder), deps);
    declareFinished(folder, files);
    const replaced = putInPlace(folder, files, clock);
    return { journal: 'anew', damage: filled.damage, setAside: replaced?.setAside ?? null, ...made };
  } finally {
    lock.release();
  }
}

type Filled = Omit<RecoverReport, 'journal' | 'damage' | 'setAside'>;

/** Completes a sound journal; one that cannot take what it lacks was not sound after all. */
function complete(
  folder: DataFolder,
  deps: RecoverDeps,
): { readonly kind: 'completed'; readonly what: Filled } | Unusable {
  try {
    return { kind: 'completed', what: fill(folder, deps) };
  } catch (error) {
    if (platformCode(error)?.startsWith('SQLITE_CONSTRAINT') === true)
      return { kind: 'unusable', damage: 'its indexes and its rows do not fit together' };
    return { kind: 'unusable', damage: damageText(error) };
  }
}

/** Brings everything into the journal that the archive has and it lacks, and seals it. */
function fill(folder: DataFolder, { clock, files = nodeFiles, onProgress }: RecoverDeps): Filled {
  const journal = Journal.open(folder, 'write');
  try {
    let adopted = 0;
    const damaged = adoptInBatches(
      { folder, journal, files, ...(onProgress === undefined ? {} : { onProgress }) },
      (rows) => {
        adopted += rows.length;
      },
    );
    const notes = reconcileNotes(journal, folder, files, clock);
    const filled: Filled = {
      deliveries: journal.count(),
      tokens: countOf(journal, 'token'),
      exclusions: countOf(journal, 'exclusion'),
      adopted,
      notes,
      damaged,
    };
    journal.db.pragma('wal_checkpoint(TRUNCATE)');
    return filled;
  } finally {
    journal.close();
  }
}

function countOf(journal: Journal, table: 'token' | 'exclusion'): number {
  return journal.db.prepare<[], { n: number }>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
}

interface Unusable {
  readonly kind: 'unusable';
  /** Null when there is no journal. */
  readonly damage: string | null;
}

type State = { readonly kind: 'sound' } | Unusable;

/** Looks without writing: closing an ordinary connection would move the log of a damaged database into it. */
function examine(folder: DataFolder): State {
  if (!existsSync(folder.journal)) return { kind: 'unusable', damage: null };
  const folderLike = [folder.journal, `${folder.journal}-wal`].find((path) => isFolder(path));
  if (folderLike !== undefined)
    throw new HealthlogError('files_unusable', { reason: `${folderLike} is a folder and no file` });
  const size = statSync(folder.journal).size;
  const db = new BetterSqlite3(folder.journal, { readonly: true, fileMustExist: true });
  try {
    // Unlike quick_check it compares indexes with rows.
    const found = db.pragma('integrity_check(1)', { simple: true });
    if (found !== 'ok') return { kind: 'unusable', damage: `it is damaged (${lastLine(String(found))})` };
    // A file that ends in the middle of a page has lost something, even if nobody has missed it yet.
    const pageBytes = Number(db.pragma('page_size', { simple: true }));
    if (size % pageBytes !== 0) return { kind: 'unusable', damage: 'it is cut short' };
    const known = db
      .prepare<[], number>(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('meta', 'delivery', 'exclusion', 'token')",
      )
      .pluck()
      .get();
    if (known !== 4) return { kind: 'unusable', damage: 'it is no journal of healthlog' };
    const odd = oddRow(db);
    if (odd !== null) return { kind: 'unusable', damage: `the row of delivery ${odd} was altered` };
  } catch (error) {
    return { kind: 'unusable', damage: damageText(error) };
  } finally {
    db.close();
  }
  return openable(folder);
}

/** Its pages are right, but is it a journal that this version can work with? */
function openable(folder: DataFolder): State {
  try {
    Journal.open(folder, 'write').close();
    return { kind: 'sound' };
  } catch (error) {
    if (!(error instanceof HealthlogError) || error.code !== 'bad_journal') throw error;
    return { kind: 'unusable', damage: error.message };
  }
}

interface RowNames {
  readonly id: string;
  readonly received_at: number;
  readonly body_sha256: string;
  readonly archive_path: string;
}

/** A row says the same twice: its position and hash stand in the name of its body. Its id when they differ. */
function oddRow(db: BetterSqlite3.Database): string | null {
  const rows = db.prepare<[], RowNames>('SELECT id, received_at, body_sha256, archive_path FROM delivery');
  for (const { id, received_at, body_sha256, archive_path } of rows.iterate()) {
    const named = parseArchivePath(archive_path);
    const fits =
      named !== null &&
      named.position.id === id &&
      named.position.receivedAt === received_at &&
      body_sha256.startsWith(named.sha16);
    if (!fits) return id;
  }
  return null;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The first lines of what SQLite finds only name the database. */
function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? text;
}

/** @throws the error itself when it does not speak of the file's content */
function damageText(error: unknown): string {
  const code = platformCode(error);
  if (code === 'SQLITE_NOTADB') return 'it is no database';
  if (code?.startsWith('SQLITE_CORRUPT') === true) return `it is damaged (${code})`;
  throw error;
}
