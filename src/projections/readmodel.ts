/**
 * Read model: one generation is one SQLite file, built by one fold version, and disposable as a whole.
 *
 * A generation file is only ever created, never altered: a new schema is a new generation. It may be lost to a
 * power cut, because it can be rebuilt: WAL with synchronous=NORMAL, never less, so that it is not torn either.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { migrationsDir } from '../journal/migrate.js';

/**
 * The version of everything that decides what rows a delivery becomes: parsing, layers, candidates, keys,
 * catalogue, and the schema of the read model. Raise it with any change of output; a golden digest of the
 * fixtures fails until that is done (law 11).
 */
export const FOLD_VERSION = 1;

/** Bits of `bucket.flags`. */
export const FLAG_MEASURED = 1;
export const FLAG_COMPLETE = 2;

/** Pages kept in memory by a writing connection, in KiB. */
const WRITE_CACHE_KIB = 32_768;

export interface GenerationMeta {
  readonly foldVersion: number;
  readonly journalEpoch: string;
  readonly enrolledSeq: number;
  readonly enrolledId: string;
  /** Why it must be rebuilt; null when it need not. */
  readonly stale: string | null;
}

/** Creates a generation file that must not exist yet, and leaves it open for writing. */
export function createGeneration(path: string, journalEpoch: string): Database.Database {
  const db = new Database(path);
  try {
    db.pragma('journal_mode = WAL');
    tune(db);
    db.transaction(() => {
      const dir = migrationsDir('readmodel');
      for (const file of readdirSync(dir).sort()) {
        if (file.endsWith('.sql')) db.exec(readFileSync(join(dir, file), 'utf8'));
      }
      db.prepare(
        "INSERT INTO generation (one, fold_version, journal_epoch, enrolled_seq, enrolled_id, stale) VALUES (1, ?, ?, 0, '', NULL)",
      ).run(FOLD_VERSION, journalEpoch);
    }).immediate();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens an existing generation. `read` never writes to it. Throws what SQLite throws. */
export function openGeneration(path: string, mode: 'read' | 'write'): Database.Database {
  const db = new Database(path, { fileMustExist: true });
  try {
    if (mode === 'read') db.pragma('query_only = ON');
    tune(db);
    readMeta(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function tune(db: Database.Database): void {
  // Readers never block a WAL writer; only a copy or a foreign program does, and the delivery then waits.
  db.pragma('busy_timeout = 2000');
  db.pragma('synchronous = NORMAL');
  db.pragma(`cache_size = -${WRITE_CACHE_KIB}`);
  db.pragma('temp_store = MEMORY');
}

interface MetaRow {
  fold_version: number;
  journal_epoch: string;
  enrolled_seq: number;
  enrolled_id: string;
  stale: string | null;
}

export function readMeta(db: Database.Database): GenerationMeta {
  const row = db
    .prepare<[], MetaRow>(
      'SELECT fold_version, journal_epoch, enrolled_seq, enrolled_id, stale FROM generation',
    )
    .get();
  if (row === undefined) throw new Error('the read model names no generation');
  return {
    foldVersion: row.fold_version,
    journalEpoch: row.journal_epoch,
    enrolledSeq: row.enrolled_seq,
    enrolledId: row.enrolled_id,
    stale: row.stale,
  };
}

/** Marks the generation for a rebuild; the first reason stays. */
export function markStale(db: Database.Database, reason: string): void {
  db.prepare('UPDATE generation SET stale = coalesce(stale, ?)').run(reason);
}
