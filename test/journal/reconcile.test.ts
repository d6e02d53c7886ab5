import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { dataFolder } from '../../src/journal/folder.js';
import { adoptOrphans, findOrphans, sweepIncoming } from '../../src/journal/reconcile.js';
import { Journal } from '../../src/journal/store.js';
import { tmpData } from '../support/tmp.js';
import { program } from './processes/run.js';
import { accepting, archived, BODY, NOON } from './support.js';

/** A second data folder with the archive of the first and a journal that knows nothing. */
function withoutRows(source: ReturnType<typeof accepting>): {
  folder: ReturnType<typeof dataFolder>;
  journal: Journal;
} {
  const folder = tmpData();
  mkdirSync(folder.root, { recursive: true });
  renameSync(source.folder.archive, folder.archive);
  const journal = Journal.open(folder, 'write');
  onTestFinished(() => journal.close());
  return { folder, journal };
}

describe('orphans', () => {
  it('are adopted with the position in their name and everything else from their file', async () => {
    const source = accepting();
    const headers = { 'automation-id': 'A', 'automation-period': 'Today', 'session-id': 'S' };
    const rows = [await source.accept(BODY, { headers }), await source.accept('{}', { source: 'import' })];
    const { folder, journal } = withoutRows(source);
    expect(findOrphans(folder, journal)).toEqual(rows.map((row) => row.archivePath));

    const adoption = adoptOrphans({ folder, journal });
    expect(adoption).toEqual({ adopted: rows.map((row) => ({ ...row, adopted: true })), damaged: [] });
    expect(journal.after(0, 10)).toEqual(adoption.adopted);
    expect(findOrphans(folder, journal)).toEqual([]);
    expect(adoptOrphans({ folder, journal })).toEqual({ adopted: [], damaged: [] });
  });

  it('are files with a name the archive gives, in a day folder, and nothing else', async () => {
    const source = accepting();
    const row = await source.accept(BODY);
    const { folder, journal } = withoutRows(source);
    const stray = ['notes.txt', 'incoming/1-x.tmp', '2026/readme', `2026/11/30/copy of ${row.id}.json.gz`];
    for (const rel of stray) {
      mkdirSync(dirname(join(folder.archive, rel)), { recursive: true });
      writeFileSync(join(folder.archive, rel), '');
    }
    expect(findOrphans(folder, journal)).toEqual([row.archivePath]);
  });

  it('that are damaged are reported, left as they are, and do not hold up the others', async () => {
    const source = accepting();
    const damaged = await source.accept(BODY);
    const sound = await source.accept(BODY);
    const { folder, journal } = withoutRows(source);
    const path = join(folder.archive, damaged.archivePath);
    truncateSync(path, 150);
    const before = readFileSync(path);
    const adoption = adoptOrphans({ folder, journal });
    expect(adoption.adopted.map((row) => row.id)).toEqual([sound.id]);
    expect(adoption.damaged).toEqual([{ path: damaged.archivePath, reason: 'it is cut short' }]);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('are not deliveries that another process is just committing', async () => {
    const folder = tmpData();
    const journal = Journal.open(folder, 'write');
    onTestFinished(() => journal.close());
    const committer = program('slow-committer', folder.root);
    expect(await committer.line()).toBe('renamed');
    expect(adoptOrphans({ folder, journal })).toEqual({ adopted: [], damaged: [] });
    await committer.ended();
    expect(journal.after(0, 10)).toMatchObject([{ seq: 1, adopted: false }]);
  });

  it('wait for a journal that is locked no longer than the connection does', async () => {
    const source = accepting();
    await source.accept(BODY);
    const { folder, journal } = withoutRows(source);
    const other = new BetterSqlite3(folder.journal);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    journal.db.pragma('busy_timeout = 0');
    expect(() => adoptOrphans({ folder, journal })).toThrow(
      expect.objectContaining({ code: 'journal_busy' }),
    );
  });

  it('keep their place: a delivery accepted afterwards comes after them', async () => {
    const source = accepting();
    source.clock.set(NOON + 1_000_000);
    const orphan = await source.accept(BODY);
    const { folder } = withoutRows(source);
    const { accept } = accepting({ folder });
    expect((await accept(BODY)).receivedAt).toBe(orphan.receivedAt + 1);
  });
});

describe('leftovers of uploads', () => {
  it('of dead processes are swept; those of living ones, and what is no upload, stay', () => {
    const { folder } = accepting();
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    const id = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';
    const put = (name: string): string => {
      writeFileSync(join(folder.incoming, name), '');
      return name;
    };
    const swept = [put(`${dead}-${id}.tmp`), put(`${process.pid}-${id}.tmp`)];
    const kept = [put(`${process.ppid}-${id}.tmp`), put('notes.txt'), put(`0-${id}.tmp`)];
    expect(sweepIncoming(folder).toSorted()).toEqual(swept.toSorted());
    expect(readdirSync(folder.incoming).toSorted()).toEqual(kept.toSorted());
  });

  it('are not the uploads this process is at work on', async () => {
    const folder = tmpData();
    const opened = accepting({ folder });
    const other = new BetterSqlite3(folder.journal);
    other.exec('BEGIN IMMEDIATE');
    const pending = opened.accept(BODY);
    while (archived(folder).length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(sweepIncoming(folder)).toEqual([]);
    other.exec('ROLLBACK');
    other.close();
    await expect(pending).resolves.toMatchObject({ seq: 1 });
  });

  it('are none where there is no archive yet', () => {
    expect(sweepIncoming(tmpData())).toEqual([]);
  });
});
