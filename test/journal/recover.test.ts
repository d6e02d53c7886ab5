import {
  appendFileSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ExclusionStore } from '../../src/journal/exclusions.js';
import { type FileLayer, nodeFiles } from '../../src/journal/files.js';
import type { DataFolder } from '../../src/journal/folder.js';
import { acquireLock } from '../../src/journal/lock.js';
import { type RecoverReport, recoverJournal } from '../../src/journal/recover.js';
import { putInPlace } from '../../src/journal/replace-journal.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { TokenStore } from '../../src/journal/tokens.js';
import { tmpData } from '../support/tmp.js';
import { accepting, BODY, SetClock, watchedFiles } from './support.js';

const clock = new SetClock();

function recover(folder: DataFolder, files: FileLayer = nodeFiles): RecoverReport {
  return recoverJournal({ folder, clock, files });
}

interface Lived {
  readonly folder: DataFolder;
  readonly rows: readonly JournalRow[];
  readonly epoch: string;
  /** Tokens that are valid, and one that is not. */
  readonly tokens: readonly string[];
  readonly revoked: string;
}

/** A data folder that was in use: four deliveries, one of them imported, three tokens, one exclusion. */
async function lived(): Promise<Lived> {
  const { folder, acceptor, accept, journal: reader } = accepting();
  const headers = { 'automation-id': 'A', 'automation-name': 'Steps', 'session-id': 'S' };
  const rows = [
    await accept(BODY, { headers }),
    await accept('{"data":{}}', { profile: 'her' }),
    await accept(BODY, { source: 'import' }),
    await accept('[]'),
  ];
  await acceptor.close();
  // The last to close moves the log into the database.
  reader.close();
  const journal = Journal.open(folder, 'write');
  const store = new TokenStore(journal, folder, nodeFiles, clock);
  const tokens = [
    store.add({ label: 'phone', scope: 'ingest', profile: 'me' }),
    store.add({ label: 'panel', scope: 'read', profile: 'her' }),
  ];
  const revoked = store.add({ label: 'old', scope: 'ingest', profile: 'me' });
  store.revoke('old');
  new ExclusionStore(journal, folder, nodeFiles, clock).exclude(rows[1]?.id ?? '', 'a test');
  const { epoch } = journal.meta();
  journal.close();
  return { folder, rows, epoch, tokens, revoked };
}

function opened(folder: DataFolder): { journal: Journal; tokens: TokenStore } {
  const journal = Journal.open(folder, 'write');
  onTestFinished(() => journal.close());
  return { journal, tokens: new TokenStore(journal, folder, nodeFiles, clock) };
}

/** Everything the archive gives back is there, in the old order. */
function expectAsBefore({ folder, rows, tokens, revoked }: Lived): Journal {
  const { journal, tokens: store } = opened(folder);
  expect(journal.after(0, 100)).toEqual(rows.map((row) => ({ ...row, adopted: true })));
  expect(tokens.map((token) => store.find(token)?.label)).toEqual(['phone', 'panel']);
  expect(store.find(revoked)).toBeNull();
  expect(journal.exclusions()).toEqual(new Map([[rows[1]?.id, 'a test']]));
  return journal;
}

function removeJournal({ root }: DataFolder): void {
  for (const name of readdirSync(root)) if (name.startsWith('journal')) rmSync(join(root, name));
}

const inRoot = ({ root }: DataFolder): string[] => readdirSync(root).sort();
const asides = (folder: DataFolder): string[] =>
  inRoot(folder).filter((name) => name.startsWith('set-aside'));

describe('recovering a lost journal', () => {
  it('gives every delivery at its position, every token and every exclusion back, in a new epoch', async () => {
    const before = await lived();
    removeJournal(before.folder);
    const report = recover(before.folder);
    expect(report).toMatchObject({
      journal: 'anew',
      damage: null,
      setAside: null,
      deliveries: 4,
      adopted: 4,
      tokens: 3,
      exclusions: 1,
      notes: { unreadable: [] },
      damaged: [],
    });
    const journal = expectAsBefore(before);
    expect(journal.meta().epoch).not.toBe(before.epoch);
    expect(asides(before.folder)).toEqual([]);
  });

  it('leaves a journal that is the file alone: sealed, without a log', async () => {
    const { folder } = await lived();
    removeJournal(folder);
    recover(folder);
    expect(inRoot(folder)).toEqual(['archive', 'journal.db', 'lock']);
  });

  it('tells how far it is', async () => {
    const { folder } = await lived();
    removeJournal(folder);
    const told: string[] = [];
    recoverJournal({ folder, clock, onProgress: (done, total) => told.push(`${done}/${total}`) });
    expect(told).toEqual(['1/4', '2/4', '3/4', '4/4']);
  });

  it('names bodies that are damaged, and takes the others', async () => {
    const { folder, rows } = await lived();
    removeJournal(folder);
    const path = rows[2]?.archivePath ?? '';
    truncateSync(join(folder.archive, path), 120);
    const report = recover(folder);
    expect(report).toMatchObject({ deliveries: 3, damaged: [{ path, reason: 'it is cut short' }] });
    expect(existsSync(join(folder.archive, path))).toBe(true);
  });

  it('names lines of the notes that it cannot read', async () => {
    const { folder } = await lived();
    removeJournal(folder);
    appendFileSync(folder.tokens, '{"event":"add');
    appendFileSync(folder.exclusions, 'x\n');
    expect(recover(folder)).toMatchObject({
      tokens: 3,
      notes: {
        unreadable: [
          { file: 'tokens.jsonl', line: 5 },
          { file: 'exclusions.jsonl', line: 2 },
        ],
      },
    });
  });

  it('does not mind the mark that editors put in front of a file', async () => {
    const before = await lived();
    removeJournal(before.folder);
    for (const path of [before.folder.tokens, before.folder.exclusions])
      writeFileSync(path, `\uFEFF${readFileSync(path, 'utf8')}`);
    expect(recover(before.folder)).toMatchObject({ tokens: 3, exclusions: 1, notes: { unreadable: [] } });
    expectAsBefore(before);
  });

  it('needs an archive', () => {
    const folder = tmpData();
    expect(() => recover(folder)).toThrow(expect.objectContaining({ code: 'not_found' }));
    expect(existsSync(folder.root)).toBe(false);
  });

  it('is refused beside a service, and names it', async () => {
    const { folder } = await lived();
    const lock = acquireLock(folder, clock);
    onTestFinished(() => lock.release());
    expect(() => recover(folder)).toThrow(expect.objectContaining({ code: 'locked' }));
  });
});

describe('recovering a journal that is sound', () => {
  it('does not replace it, and has nothing to do', async () => {
    const { folder, rows, epoch } = await lived();
    const before = readFileSync(folder.journal);
    expect(recover(folder)).toMatchObject({
      journal: 'completed',
      adopted: 0,
      setAside: null,
      deliveries: 4,
    });
    expect(readFileSync(folder.journal)).toEqual(before);
    const { journal } = opened(folder);
    expect(journal.meta().epoch).toBe(epoch);
    expect(journal.after(0, 100)).toEqual(rows);
  });

  it('brings in what the archive has and an older copy lacks', async () => {
    const lost = await lived();
    const copy = readFileSync(lost.folder.journal);
    const { accept, acceptor, journal: reader } = accepting({ folder: lost.folder });
    const late = await accept(BODY);
    await acceptor.close();
    reader.close();
    const { journal, tokens } = opened(lost.folder);
    const token = tokens.add({ label: 'new', scope: 'read', profile: 'me' });
    tokens.revoke('panel');
    new ExclusionStore(journal, lost.folder, nodeFiles, clock).include(lost.rows[1]?.id ?? '');
    journal.close();
    removeJournal(lost.folder);
    writeFileSync(lost.folder.journal, copy);

    expect(recover(lost.folder)).toMatchObject({
      journal: 'completed',
      adopted: 1,
      notes: { tokens: { restored: 1, revoked: 1 }, exclusions: { included: 1 } },
    });
    const after = opened(lost.folder);
    expect(after.journal.after(0, 100)).toEqual([...lost.rows, { ...late, adopted: true }]);
    expect(after.tokens.find(token)).toMatchObject({ label: 'new' });
    expect(after.tokens.find(lost.tokens[1] ?? '')).toBeNull();
    expect(after.journal.exclusions().size).toBe(0);
  });
});

/** Overwrites one page (counted from 1) with noise. */
function damagePage(path: string, page: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(4096, 7), 0, 4096, (page - 1) * 4096);
  closeSync(file);
}

const DAMAGES: [string, (folder: DataFolder) => void][] = [
  ['no database', ({ journal }) => writeFileSync(journal, 'x'.repeat(10_000))],
  ['empty', ({ journal }) => truncateSync(journal, 0)],
  ['cut in half', ({ journal }) => truncateSync(journal, 3 * 4096)],
  ['cut by its last byte', ({ journal }) => truncateSync(journal, readFileSync(journal).length - 1)],
  ['damaged in one page', ({ journal }) => damagePage(journal, rootPage(journal, 'delivery'))],
  ['the database of another program', replaceByAnother],
  [
    'of a release whose schema was tampered with',
    ({ journal }) => edit(journal, "UPDATE migration SET checksum = 'x'"),
  ],
];

/** Where a text stands in a file: a row, and each index that holds it. */
function placesOf(bytes: Buffer, text: string): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) places.push(at);
  return places;
}

function rootPage(path: string, table: string): number {
  const db = new BetterSqlite3(path);
  const page = db.prepare<[string], number>('SELECT rootpage FROM sqlite_master WHERE name = ?').pluck();
  const found = page.get(table) ?? 0;
  db.close();
  return found;
}

function edit(path: string, sql: string): void {
  const db = new BetterSqlite3(path);
  db.exec(sql);
  db.close();
}

function replaceByAnother({ journal }: DataFolder): void {
  rmSync(journal);
  edit(journal, 'CREATE TABLE delivery (parcel TEXT)');
}

describe('recovering a damaged journal', () => {
  it.each(DAMAGES)('that is %s sets it aside and makes a new one', async (_what, damage) => {
    const before = await lived();
    damage(before.folder);
    const old = readFileSync(before.folder.journal);
    const report = recover(before.folder);
    expect(report).toMatchObject({ journal: 'anew', deliveries: 4, tokens: 3, exclusions: 1 });
    if (old.length > 0) expect(report.damage).toEqual(expect.any(String));
    expect(asides(before.folder)).toEqual([report.setAside]);
    expect(readFileSync(join(before.folder.root, report.setAside ?? '', 'journal.db'))).toEqual(old);
    expectAsBefore(before);
  });

  it('finds a single flipped bit of a delivery, in its row or in any index', async () => {
    const before = await lived();
    const whole = readFileSync(before.folder.journal);
    const { id = '', archivePath = '', bodySha256 = '' } = before.rows[2] ?? {};
    const places = [id, archivePath, bodySha256].flatMap((text) => placesOf(whole, text));
    expect(places.length).toBeGreaterThan(5);
    for (const place of places) {
      const bytes = Buffer.from(whole);
      bytes[place + 3] = (bytes[place + 3] ?? 0) ^ 1;
      writeFileSync(before.folder.journal, bytes);
      expect(recover(before.folder)).toMatchObject({ journal: 'anew', damage: expect.any(String) });
      expectAsBefore(before).close();
    }
  });

  it('that is a folder is told, and left to a person', async () => {
    const { folder } = await lived();
    removeJournal(folder);
    mkdirSync(folder.journal);
    expect(() => recover(folder)).toThrow(
      expect.objectContaining({ code: 'files_unusable', message: expect.stringContaining('is a folder') }),
    );
  });

  it('keeps its log beside it, as it was', async () => {
    const before = await lived();
    const { folder } = before;
    damagePage(folder.journal, rootPage(folder.journal, 'delivery'));
    const log = Buffer.from('what had not been moved into the database');
    writeFileSync(`${folder.journal}-wal`, log);
    const { setAside } = recover(folder);
    expect(readFileSync(join(folder.root, setAside ?? '', 'journal.db-wal'))).toEqual(log);
    expect(existsSync(`${folder.journal}-wal`)).toBe(false);
    expectAsBefore(before);
  });

  it('twice within a microsecond sets both aside', async () => {
    const { folder } = await lived();
    for (let i = 0; i < 2; i++) {
      writeFileSync(folder.journal, `no journal ${i}`);
      recover(folder);
    }
    expect(asides(folder).map((name) => readFileSync(join(folder.root, name, 'journal.db'), 'utf8'))).toEqual(
      ['no journal 0', 'no journal 1'],
    );
  });
});

describe('a recovery that a crash cuts short', () => {
  const STEPS = ['mkdir', 'rename', 'fsyncDirectory', 'fsyncFile', 'unlink'];

  /** A damaged journal with a log, and what an earlier attempt has left. */
  async function damagedAndBegun(): Promise<Lived> {
    const before = await lived();
    const { folder } = before;
    damagePage(folder.journal, rootPage(folder.journal, 'delivery'));
    writeFileSync(`${folder.journal}-wal`, 'the log');
    writeFileSync(`${folder.journal}-shm`, 'the index of the log');
    writeFileSync(join(folder.root, 'journal.recovering.db'), 'half');
    writeFileSync(join(folder.root, 'journal.recovering.db-wal'), 'half a log');
    return before;
  }

  function copyOf(source: DataFolder): DataFolder {
    const folder = tmpData();
    cpSync(source.root, folder.root, { recursive: true });
    return folder;
  }

  /** Runs it on a copy and stops before step `n`, counted from 0; gives the step's name, null behind the last. */
  function cutAt(source: DataFolder, n: number): { folder: DataFolder; step: string | null } {
    const folder = copyOf(source);
    let count = 0;
    let cut: string | null = null;
    const files = watchedFiles((step) => {
      if (!STEPS.includes(step) || count++ !== n) return;
      cut = step;
      throw new Error('the power is gone');
    });
    try {
      recover(folder, files);
    } catch (error) {
      expect(error).toMatchObject({ message: 'the power is gone' });
    }
    return { folder, step: cut };
  }

  /** The old set, wherever it is, all in one place. */
  function expectOldSetWhole(source: DataFolder, folder: DataFolder): void {
    const [aside, ...others] = asides(folder);
    expect(others).toEqual([]);
    for (const name of ['journal.db', 'journal.db-wal'])
      expect(readFileSync(join(folder.root, aside ?? '', name))).toEqual(
        readFileSync(join(source.root, name)),
      );
    expect(existsSync(join(folder.root, aside ?? '', 'journal.db-shm'))).toBe(true);
  }

  it('is finished by the next one, or by a service that starts, wherever that was', async () => {
    const before = await damagedAndBegun();
    const journals = new Set<string>();
    for (let n = 0; ; n++) {
      const { folder, step } = cutAt(before.folder, n);
      expectStartable(before, copyOf(folder));
      const report = recover(folder);
      journals.add(report.journal);
      expect(report, `cut before step ${n}, ${step}`).toMatchObject({
        deliveries: 4,
        tokens: 3,
        exclusions: 1,
      });
      expectAsBefore({ ...before, folder });
      expectOldSetWhole(before.folder, folder);
      expect(inRoot(folder).filter((name) => name.startsWith('journal.recover'))).toEqual([]);
      if (step === null) break;
    }
    expect([...journals].sort()).toEqual(['anew', 'completed', 'finished']);
  });

  /** What a service finds after its first step: the old journal with its log, or the new one. */
  function expectStartable(before: Lived, folder: DataFolder): void {
    putInPlace(folder, nodeFiles, clock);
    if (readFileSync(folder.journal).equals(readFileSync(before.folder.journal))) {
      expect(readFileSync(`${folder.journal}-wal`, 'utf8')).toBe('the log');
      return;
    }
    expectAsBefore({ ...before, folder });
    expectOldSetWhole(before.folder, folder);
  }

  it('sets aside a fresh journal that another command made in between, and takes in what that was given', async () => {
    const before = await damagedAndBegun();
    let moved = false;
    const files = watchedFiles((step, path) => {
      if (moved && step === 'rename') throw new Error('the power is gone');
      if (step === 'rename' && path === before.folder.journal) moved = true;
    });
    expect(() => recover(before.folder, files)).toThrow('the power is gone');
    expect(existsSync(before.folder.journal)).toBe(false);
    const { journal, tokens } = opened(before.folder);
    const token = tokens.add({ label: 'in between', scope: 'read', profile: 'me' });
    const { accept, acceptor, journal: reader } = accepting({ folder: before.folder });
    const row = await accept(BODY);
    await acceptor.close();
    reader.close();
    journal.close();

    expect(recover(before.folder)).toMatchObject({ journal: 'finished', deliveries: 5, tokens: 4 });
    const after = opened(before.folder);
    expect(after.tokens.find(token)).toMatchObject({ label: 'in between' });
    expect(after.journal.byId(row.id)).toMatchObject({ receivedAt: row.receivedAt });
    expect(asides(before.folder)).toHaveLength(2);
  });
});
