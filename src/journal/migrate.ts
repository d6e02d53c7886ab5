/**
 * Schemas as plain numbered SQL files, `0001_name.sql`, `0002_…`: each runs once, in one transaction together
 * with the note that it ran. What ran is never edited: a checksum tells. A number the folder does not know was
 * written by a newer release and is left alone, since journal migrations are additive.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Database } from 'better-sqlite3';
import { systemClock } from './clock.js';

/** The files and what the database has seen of them do not fit together. The message is for people. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

interface MigrationFile {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

const FILE_PATTERN = /^(\d{4})_([a-z0-9_]+)\.sql$/;

/** The folder with the SQL files: beside `dist/` when installed, beside `src/` in a checkout. */
export function migrationsDir(kind: 'journal' | 'readmodel'): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new MigrationError('The folder "migrations" is not part of this installation.');
    folder = parent;
  }
  return join(folder, 'migrations', kind);
}

function migrationFiles(dir: string): MigrationFile[] {
  const files = readdirSync(dir)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name): MigrationFile => {
      const match = FILE_PATTERN.exec(name);
      if (match === null) throw new MigrationError(`The file ${name} is not named like 0001_name.sql.`);
      const sql = readFileSync(join(dir, name), 'utf8');
      return {
        number: Number(match[1]),
        name: match[2] ?? '',
        sql,
        checksum: createHash('sha256').update(sql).digest('hex'),
      };
    });
  for (const [index, file] of files.entries()) {
    if (file.number !== index + 1) {
      throw new MigrationError(`Migration ${index + 1} is missing: the next file has number ${file.number}.`);
    }
  }
  return files;
}

/**
 * Brings the database up to the files of `dir`.
 *
 * @returns the numbers applied now
 * @throws MigrationError when a file that ran was changed since, or a number is missing among the files
 */
export function migrate(db: Database, dir: string): number[] {
  const files = migrationFiles(dir);
  db.exec(
    `CREATE TABLE IF NOT EXISTS migration (
       number     INTEGER PRIMARY KEY,
       name       TEXT    NOT NULL,
       checksum   TEXT    NOT NULL,
       applied_at INTEGER NOT NULL -- microseconds UTC
     ) STRICT`,
  );
  const seen = db.prepare<[number], { checksum: string }>('SELECT checksum FROM migration WHERE number = ?');
  const note = db.prepare('INSERT INTO migration (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)');
  const wasApplied = (file: MigrationFile): boolean => {
    const applied = seen.get(file.number);
    if (applied === undefined) return false;
    if (applied.checksum === file.checksum) return true;
    throw new MigrationError(`Migration ${file.number} (${file.name}) was changed after it was applied.`);
  };
  const apply = db.transaction((file: MigrationFile): boolean => {
    // Looked up again inside the write lock: two processes may start at the same time.
    if (wasApplied(file)) return false;
    db.exec(file.sql);
    note.run(file.number, file.name, file.checksum, systemClock.now());
    return true;
  });
  return files.filter((file) => !wasApplied(file) && apply.immediate(file)).map((file) => file.number);
}
