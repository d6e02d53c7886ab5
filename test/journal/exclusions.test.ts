import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ExclusionStore } from '../../src/journal/exclusions.js';
import { nodeFiles } from '../../src/journal/files.js';
import type { DataFolder } from '../../src/journal/folder.js';
import { Journal } from '../../src/journal/store.js';
import { accepting, BODY, NOON, platformError, SetClock, watchedFiles } from './support.js';

const AT = '2026-11-30T12:00:00.000000Z';

/** A journal with two deliveries, and the store under test. */
async function twoDeliveries(files = nodeFiles) {
  const source = accepting();
  const [first, second] = [await source.accept(BODY), await source.accept('{}')];
  const journal = Journal.open(source.folder, 'write');
  onTestFinished(() => journal.close());
  const clock = new SetClock();
  return {
    folder: source.folder,
    journal,
    clock,
    first: first.id,
    second: second.id,
    exclusions: new ExclusionStore(journal, source.folder, files, clock),
  };
}

function lines(folder: DataFolder): unknown[] {
  return readFileSync(folder.exclusions, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

/** Whether somebody holds the write lock of the journal. */
function isLocked(folder: DataFolder): boolean {
  const other = new BetterSqlite3(folder.journal, { timeout: 0 });
  try {
    other.exec('BEGIN IMMEDIATE');
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 'SQLITE_BUSY' });
    return true;
  } finally {
    other.close();
  }
}

describe('setting a delivery aside', () => {
  it('keeps the reason, and taking it back ends that; both are in the archive', async () => {
    const { exclusions, journal, folder, first } = await twoDeliveries();
    expect(exclusions.exclude(first, ' a test ')).toEqual({ changed: true, reason: 'a test' });
    expect(journal.exclusions()).toEqual(new Map([[first, 'a test']]));
    expect(exclusions.include(first)).toEqual({ changed: true, reason: 'a test' });
    expect(journal.exclusions()).toEqual(new Map());
    expect(lines(folder)).toEqual([
      { event: 'excluded', at: AT, delivery_id: first, reason: 'a test' },
      { event: 'included', at: AT, delivery_id: first },
    ]);
  });

  it('twice changes nothing and writes nothing, and so does taking back what was not set aside', async () => {
    const { exclusions, folder, first, second } = await twoDeliveries();
    exclusions.exclude(first, 'a test');
    expect(exclusions.exclude(first, 'another reason')).toEqual({ changed: false, reason: 'a test' });
    expect(exclusions.include(second)).toEqual({ changed: false, reason: null });
    expect(lines(folder)).toHaveLength(1);
  });

  it('needs a delivery and a reason', async () => {
    const { exclusions, folder, first } = await twoDeliveries();
    expect(() => exclusions.exclude('3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'x')).toThrow('There is no');
    expect(() => exclusions.exclude(first, ' ')).toThrow('why');
    expect(() => exclusions.exclude(first, 'x'.repeat(501))).toThrow('500 characters');
    expect(existsSync(folder.exclusions)).toBe(false);
  });

  it('is noted and durable before the row is there, and inside the write lock', async () => {
    const { folder, journal, clock, first } = await twoDeliveries();
    const seen: string[] = [];
    const files = watchedFiles((step, path) => {
      const reader = Journal.open(folder, 'read');
      const rows = reader.exclusions().size;
      reader.close();
      seen.push(
        `${step} ${relative(folder.root, path)}, ${rows} rows, ${isLocked(folder) ? 'locked' : 'free'}`,
      );
    });
    new ExclusionStore(journal, folder, files, clock).exclude(first, 'a test');
    expect(seen.slice(-2)).toEqual([
      'appendLine archive/exclusions.jsonl, 0 rows, locked',
      'fsyncDirectory archive, 0 rows, locked',
    ]);
  });

  it('that cannot be noted leaves no row', async () => {
    const { exclusions, journal, first } = await twoDeliveries(
      watchedFiles((step) => {
        if (step === 'appendLine') throw platformError('EIO');
      }),
    );
    expect(() => exclusions.exclude(first, 'a test')).toThrow('EIO');
    expect(journal.exclusions().size).toBe(0);
  });

  it('waits for another writer, and says so when that takes too long', async () => {
    const { exclusions, journal, folder, first } = await twoDeliveries();
    const other = new BetterSqlite3(folder.journal);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    journal.db.pragma('busy_timeout = 0');
    expect(() => exclusions.exclude(first, 'a test')).toThrow(
      expect.objectContaining({ code: 'journal_busy' }),
    );
    expect(existsSync(folder.exclusions)).toBe(false);
  });
});

describe('putting notes and rows together', () => {
  it('makes the row whose event is there, and writes the event whose row is there', async () => {
    const { exclusions, journal, folder, first, second } = await twoDeliveries();
    exclusions.exclude(first, 'a test');
    journal.db.exec('DELETE FROM exclusion');
    journal.db.prepare('INSERT INTO exclusion VALUES (?, ?, ?)').run(second, 'by hand', NOON);
    expect(exclusions.reconcile()).toEqual({ excluded: 1, included: 0, noted: 1, unreadable: [] });
    expect(journal.exclusions()).toEqual(
      new Map([
        [first, 'a test'],
        [second, 'by hand'],
      ]),
    );
    expect(lines(folder)[1]).toEqual({ event: 'excluded', at: AT, delivery_id: second, reason: 'by hand' });
    expect(exclusions.reconcile()).toEqual({ excluded: 0, included: 0, noted: 0, unreadable: [] });
  });

  it('lets the latest event decide, by its place and not by its time', async () => {
    const { exclusions, journal, clock, first, second } = await twoDeliveries();
    exclusions.exclude(first, 'one');
    clock.set(NOON - 5_000_000);
    exclusions.include(first);
    exclusions.exclude(second, 'one');
    exclusions.include(second);
    exclusions.exclude(second, 'two');
    // An older copy of the journal.
    journal.db.exec(
      `DELETE FROM exclusion; INSERT INTO exclusion VALUES ('${first}', 'one', 0), ('${second}', 'one', 0)`,
    );
    expect(exclusions.reconcile()).toEqual({ excluded: 1, included: 1, noted: 0, unreadable: [] });
    expect(journal.exclusions()).toEqual(new Map([[second, 'two']]));
  });

  it('reports each line that cannot be read, and takes the others', async () => {
    const { exclusions, journal, folder, first, second } = await twoDeliveries();
    exclusions.exclude(first, 'a test');
    appendFileSync(
      folder.exclusions,
      `nonsense\n{"event":"renamed"}\n{"event":"excluded","at":"yesterday","delivery_id":"${second}","reason":"x"}\n{"event":"exclu`,
    );
    const before = readFileSync(folder.exclusions);
    journal.db.exec('DELETE FROM exclusion');
    expect(exclusions.reconcile()).toEqual({
      excluded: 1,
      included: 0,
      noted: 0,
      unreadable: [
        { file: 'exclusions.jsonl', line: 2, reason: 'it is not JSON' },
        { file: 'exclusions.jsonl', line: 3, reason: 'it is no event that this version knows' },
        { file: 'exclusions.jsonl', line: 4, reason: 'it is no event that this version knows' },
        { file: 'exclusions.jsonl', line: 5, reason: 'it was cut short by a crash' },
      ],
    });
    expect(readFileSync(folder.exclusions)).toEqual(before);
    exclusions.exclude(second, 'after the torn line');
    expect(readFileSync(folder.exclusions, 'utf8').split('\n').at(-2)).toContain('after the torn line');
  });

  it('takes a last line that lacks only its line end', async () => {
    const { exclusions, journal, folder, first } = await twoDeliveries();
    exclusions.exclude(first, 'a test');
    writeFileSync(folder.exclusions, readFileSync(folder.exclusions, 'utf8').trimEnd());
    journal.db.exec('DELETE FROM exclusion');
    expect(exclusions.reconcile()).toMatchObject({ excluded: 1, unreadable: [] });
  });

  it('writes all notes anew when they are gone', async () => {
    const { exclusions, folder, first } = await twoDeliveries();
    exclusions.exclude(first, 'a test');
    rmSync(folder.exclusions);
    expect(exclusions.reconcile()).toMatchObject({ noted: 1 });
    expect(lines(folder)).toEqual([{ event: 'excluded', at: AT, delivery_id: first, reason: 'a test' }]);
  });
});
