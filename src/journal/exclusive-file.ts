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
  return {
    release: () => {
      if (!db.open) return;
      db.exec('ROLLBACK');
      db.close();
    },
  };
}
