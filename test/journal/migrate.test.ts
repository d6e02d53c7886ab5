import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { MigrationError, migrate, migrationsDir } from '../../src/journal/migrate.js';
import { tmpDir } from '../support/tmp.js';

function folderWith(files: Record<string, string>): string {
  const dir = tmpDir();
  for (const [name, sql] of Object.entries(files)) writeFileSync(join(dir, name), sql);
  return dir;
}

const FIRST = { '0001_first.sql': 'CREATE TABLE a (x);' };

describe('migrations', () => {
  it('run once, in order, and are noted with a checksum', () => {
    const db = new BetterSqlite3(':memory:');
    const dir = folderWith({ ...FIRST, '0002_second.sql': 'ALTER TABLE a ADD COLUMN y;', 'README.md': '' });
    expect(migrate(db, dir)).toEqual([1, 2]);
    expect(migrate(db, dir)).toEqual([]);
    expect(db.prepare('SELECT number, name, length(checksum) AS digits FROM migration').all()).toEqual([
      { number: 1, name: 'first', digits: 64 },
      { number: 2, name: 'second', digits: 64 },
    ]);
  });

  it('go on where an older release stopped', () => {
    const db = new BetterSqlite3(':memory:');
    migrate(db, folderWith(FIRST));
    expect(migrate(db, folderWith({ ...FIRST, '0002_second.sql': 'CREATE TABLE b (x);' }))).toEqual([2]);
  });

  it('leave alone what a newer release has done', () => {
    const db = new BetterSqlite3(':memory:');
    migrate(db, folderWith({ ...FIRST, '0002_second.sql': 'CREATE TABLE b (x);' }));
    expect(migrate(db, folderWith(FIRST))).toEqual([]);
  });

  it('leave nothing of one that fails', () => {
    const db = new BetterSqlite3(':memory:');
    const dir = folderWith({ ...FIRST, '0002_bad.sql': 'CREATE TABLE b (x); CREATE TABLE a (x);' });
    expect(() => migrate(db, dir)).toThrow('already exists');
    expect(db.prepare("SELECT name FROM sqlite_master WHERE name = 'b'").all()).toEqual([]);
    expect(db.prepare('SELECT number FROM migration').pluck().all()).toEqual([1]);
  });

  it.each([
    [
      'a file changed after it ran',
      { '0001_first.sql': 'CREATE TABLE a (x, y);' },
      'Migration 1 (first) was changed',
    ],
    ['a number missing', { ...FIRST, '0003_third.sql': '' }, 'Migration 2 is missing'],
    ['a name that is no migration', { 'first.sql': '' }, 'not named like'],
  ])('are refused with %s', (_name, files, text) => {
    const db = new BetterSqlite3(':memory:');
    migrate(db, folderWith(FIRST));
    expect(() => migrate(db, folderWith(files))).toThrow(MigrationError);
    expect(() => migrate(db, folderWith(files))).toThrow(text);
  });

  it('are found beside the program', () => {
    for (const kind of ['journal', 'readmodel'] as const) {
      expect(existsSync(join(migrationsDir(kind), `0001_${kind}.sql`))).toBe(true);
    }
  });
});
