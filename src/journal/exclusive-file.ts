/**
 * Exclusive file: a lock that the operating system frees when its holder dies, however it dies.
 *
 * It is an SQLite file in rollback mode held by BEGIN EXCLUSIVE. Nothing else in the holding process may open
 * the file: POSIX locks belong to the process, and closing any other handle drops them.
 */
import Database from 'better-sqlite3';
import { platformCode } from './errors.js';

export interface ExclusiveFile {
  release(): void;
}

/** Kept here because a handle that nobody refers to is closed by the garbage collector, and the lock with it. */
const held = new Set<Database.Database>();

/**
 * Null when another process holds it and has not let go within `waitMs`, which stops the thread that long.
 * Throws what SQLite throws for everything else.
 */
export function holdExclusively(path: string, waitMs = 0): ExclusiveFile | null {
  const db = new Database(path, { timeout: waitMs });
  try {
    db.pragma('journal_mode = DELETE');
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    db.close();
    if (platformCode(error)?.startsWith('SQLITE_BUSY') === true) return null;
    throw error;
  }
  held.add(db);
  return {
    release: () => {
      if (!held.delete(db)) return;
      db.exec('ROLLBACK');
      db.close();
    },
  };
}
