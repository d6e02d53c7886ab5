import { mkdirSync, writeFileSync } from 'node:fs';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { DataFolder } from '../../src/journal/folder.js';
import { deliveryId, micros } from '../../src/journal/position.js';
import { Journal, type JournalRow, toRecorded } from '../../src/journal/store.js';
import { tmpData } from '../support/tmp.js';
import { NOON } from './support.js';

function opened(folder: DataFolder, mode: 'write' | 'read'): Journal {
  const journal = Journal.open(folder, mode);
  onTestFinished(() => journal.close());
  return journal;
}

function row(n: number, changes: Partial<JournalRow> = {}): Omit<JournalRow, 'seq'> {
  const id = deliveryId(`00000000-0000-4000-8000-${String(n).padStart(12, '0')}`);
  return {
    id,
    receivedAt: micros(NOON + n),
    clockAt: NOON,
    profile: 'me',
    automation: { id: 'A', name: 'Steps', aggregation: 'Days', period: 'Today' },
    sessionId: null,
    contentType: 'application/json',
    source: 'http',
    adopted: false,
    bodyBytes: 2,
    bodySha256: 'ab'.repeat(32),
    archivePath: `somewhere/${n}`,
    ...changes,
  };
}

function append(journal: Journal, ...rows: Omit<JournalRow, 'seq'>[]): void {
  journal.db.transaction(() => rows.forEach((each) => void journal.insert(each))).immediate();
}

describe('journal.db', () => {
  it('keeps synchronous = FULL after its first write, which WAL would quietly lower', () => {
    const journal = opened(tmpData(), 'write');
    append(journal, row(1));
    expect(journal.db.pragma('synchronous', { simple: true })).toBe(2);
    expect(journal.db.pragma('journal_mode', { simple: true })).toBe('wal');
    append(journal, row(2));
    expect(journal.db.pragma('synchronous', { simple: true })).toBe(2);
  });

  it('keeps its epoch when it is opened again, and another file has another', () => {
    const folder = tmpData();
    const { epoch } = opened(folder, 'write').meta();
    expect(opened(folder, 'write').meta()).toMatchObject({ epoch, paused: false });
    expect(opened(tmpData(), 'write').meta().epoch).not.toBe(epoch);
  });

  it('refuses to change or remove a row', () => {
    const journal = opened(tmpData(), 'write');
    append(journal, row(1));
    expect(() => journal.db.exec("UPDATE delivery SET profile = 'you'")).toThrow('never updated');
    expect(() => journal.db.exec('DELETE FROM delivery')).toThrow('never deleted');
    expect(() => journal.db.exec('INSERT OR REPLACE INTO delivery SELECT * FROM delivery')).toThrow(
      'never replaced',
    );
    expect(journal.count()).toBe(1);
  });

  it('takes a row only inside a transaction', () => {
    const journal = opened(tmpData(), 'write');
    expect(() => journal.insert(row(1))).toThrow('inside the write lock');
  });

  it('gives back the rows it was given, by seq, by id and as events', () => {
    const journal = opened(tmpData(), 'write');
    expect([journal.last(), journal.lastSeq(), journal.count()]).toEqual([null, 0, 0]);
    const adopted = row(2, { adopted: true, sessionId: 'S', source: 'import', contentType: null });
    append(journal, row(3), adopted);
    expect(journal.bySeq(2)).toEqual({ seq: 2, ...adopted });
    expect(journal.byId(adopted.id)).toEqual({ seq: 2, ...adopted });
    expect([journal.bySeq(9), journal.byId('none')]).toEqual([null, null]);
    expect(journal.last()).toEqual({ receivedAt: row(3).receivedAt, id: row(3).id });
    expect([journal.lastSeq(), journal.count()]).toEqual([2, 2]);
    expect(journal.after(1, 10).map((each) => each.seq)).toEqual([2]);

    const recorded = toRecorded({ seq: 2, ...adopted });
    expect(recorded).toMatchObject({ type: 'DeliveryAccepted', data: adopted });
    expect(recorded.metadata.globalPosition).toEqual({ receivedAt: adopted.receivedAt, id: adopted.id });
  });

  it('pages by position, newest first, or oldest first after a position', () => {
    const journal = opened(tmpData(), 'write');
    append(
      journal,
      row(2),
      row(1),
      row(3, { profile: 'you' }),
      row(4, { automation: { ...row(4).automation, id: null } }),
    );
    const pathsOf = (query: Parameters<Journal['page']>[0]): string =>
      journal
        .page(query)
        .map((each) => each.archivePath.slice('somewhere/'.length))
        .join('');
    const position = (n: number) => ({ receivedAt: row(n).receivedAt, id: row(n).id });
    expect(pathsOf({ limit: 9 })).toBe('4321');
    expect(pathsOf({ limit: 2 })).toBe('43');
    expect(pathsOf({ limit: 9, before: position(3) })).toBe('21');
    expect(pathsOf({ limit: 9, after: position(2) })).toBe('34');
    expect(pathsOf({ limit: 9, profile: 'you' })).toBe('3');
    expect(pathsOf({ limit: 9, profile: 'me', automationId: 'A' })).toBe('21');
    expect(pathsOf({ limit: 9, since: row(2).receivedAt, until: row(4).receivedAt })).toBe('32');
  });

  it('tells why a delivery was set aside', () => {
    const journal = opened(tmpData(), 'write');
    journal.db.prepare('INSERT INTO exclusion VALUES (?, ?, 0)').run('x', 'test data');
    expect([journal.exclusion('x'), journal.exclusion('y')]).toEqual(['test data', null]);
  });
});

describe('a reader of journal.db', () => {
  it('cannot write', () => {
    const folder = tmpData();
    opened(folder, 'write');
    expect(() => append(opened(folder, 'read'), row(1))).toThrow(
      expect.objectContaining({ code: 'SQLITE_READONLY' }),
    );
  });

  it('is told in plain words that there is no journal yet, and makes none', () => {
    const folder = tmpData();
    expect(() => Journal.open(folder, 'read')).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(() => Journal.open(folder, 'read')).toThrow('healthlog serve');
  });

  it('is told when the file is something else', () => {
    const folder = tmpData();
    mkdirSync(folder.root, { recursive: true });
    writeFileSync(folder.journal, 'not a database, but long enough to look at');
    expect(() => Journal.open(folder, 'read')).toThrow(expect.objectContaining({ code: 'bad_journal' }));
    expect(() => Journal.open(folder, 'write')).toThrow(expect.objectContaining({ code: 'bad_journal' }));
    writeFileSync(folder.journal, '');
    expect(() => Journal.open(folder, 'read')).toThrow(expect.objectContaining({ code: 'bad_journal' }));
  });

  it('reads a file that a newer release has migrated further', () => {
    const folder = tmpData();
    append(opened(folder, 'write'), row(1));
    const newer = new BetterSqlite3(folder.journal);
    newer.exec(`ALTER TABLE delivery ADD COLUMN mood TEXT;
      INSERT INTO migration VALUES (9000, 'mood', 'unknown here', 0)`);
    newer.close();
    expect(opened(folder, 'read').bySeq(1)).toEqual({ seq: 1, ...row(1) });
    expect(opened(folder, 'write').count()).toBe(1);
  });
});
