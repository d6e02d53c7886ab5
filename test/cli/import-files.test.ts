/** Which files become deliveries, which do not, and what is on the disk afterwards: real files, a real journal. */
import { mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { crc32 } from '../../src/cli/import/crc32.js';
import { findFiles } from '../../src/cli/import/find.js';
import { type ImportFlags, readFlags } from '../../src/cli/import/flags.js';
import { type Taken, takeAll } from '../../src/cli/import/take.js';
import { Acceptor, type AcceptorDeps } from '../../src/journal/accept.js';
import { readArchive } from '../../src/journal/archive.js';
import { type DataFolder, dataFolder } from '../../src/journal/folder.js';
import { formatMicros } from '../../src/journal/position.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { archived, NOON, platformError, SetClock, watchedFiles } from '../journal/support.js';
import { tmpData, tmpDir } from '../support/tmp.js';
import { type ZipPart, zipOf } from '../support/zip.js';

const clock = new SetClock(NOON);

/** A body with its newest date; every note makes another body. */
function body(note: string, date = '2026-03-10 00:00:00 +0100'): string {
  return JSON.stringify({
    data: { metrics: [{ name: 'step_count', units: note, data: [{ date, qty: 5 }] }] },
  });
}

type Files = Readonly<Record<string, string | Buffer>>;

function files(list: Files, modified?: string): string {
  const root = tmpDir();
  for (const [name, content] of Object.entries(list)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    if (modified !== undefined) utimesSync(path, new Date(modified), new Date(modified));
  }
  return root;
}

interface Import {
  readonly data: DataFolder;
  readonly taken: Taken[];
}

interface Options extends Partial<ImportFlags> {
  readonly data?: DataFolder;
  readonly stdin?: Buffer;
  readonly deps?: Partial<AcceptorDeps>;
  readonly bytesMax?: number;
  readonly stopped?: (taken: readonly Taken[]) => boolean;
}

async function imported(args: readonly string[], options: Options = {}): Promise<Import> {
  const { data = tmpData(), stdin, deps, bytesMax = 1_000_000, stopped, ...flags } = options;
  const acceptor = new Acceptor({
    folder: data,
    clock,
    bodyBytesMax: bytesMax,
    onAccepted: () => undefined,
    ...deps,
  });
  const taken: Taken[] = [];
  try {
    for await (const one of takeAll(findFiles(args, data.root), {
      acceptor: () => acceptor,
      said: readFlags({ again: false, wait: true, ...flags }, clock.now()),
      again: flags.again ?? false,
      stopped: () => stopped?.(taken) ?? false,
      stdin: Readable.from(stdin === undefined ? [] : [stdin]),
      now: () => clock.now(),
      bytesMax,
    })) {
      taken.push(one);
    }
  } finally {
    await acceptor.close();
  }
  expect(archived(data).filter((path) => path.startsWith('incoming/'))).toEqual([]);
  return { data, taken };
}

function rows(data: DataFolder): JournalRow[] {
  const journal = Journal.open(data, 'read');
  try {
    return journal.page({ limit: 1000 }).reverse();
  } finally {
    journal.close();
  }
}

/** Bodies in the order of the journal. */
function bodies(data: DataFolder): string[] {
  return rows(data).map(({ archivePath }) => readArchive(data.archive, archivePath).body.toString());
}

function told(taken: readonly Taken[], root: string): string[] {
  return taken.map((one) => {
    const why = one.result === 'refused' ? ` ${one.error.code}` : '';
    return `${one.result}${why} ${one.shown.replace(root, '').replace(/^\//, '')}`;
  });
}

describe('what is taken in', () => {
  it('is every file that was named, whatever it is called, byte for byte and in the order given', async () => {
    const list = {
      'b.txt': ` ${body('b')}\n`,
      'a.json': body('a'),
      '.hidden': `[${body('c')}]`,
      noname: '{}',
    };
    const root = files(list);
    const names = Object.keys(list);
    const { data, taken } = await imported(names.map((name) => join(root, name)));
    expect(told(taken, root)).toEqual(names.map((name) => `imported ${name}`));
    expect(bodies(data)).toEqual(Object.values(list));
    expect(rows(data).map(({ source, profile, contentType }) => [source, profile, contentType])).toEqual(
      names.map(() => ['import', 'me', 'application/json']),
    );
  });

  it('is of a folder what is called like an export, walked in sorted order; the rest is named', async () => {
    const root = files({
      'b/2.json': body('3'),
      'b/10.JSON': body('2'),
      'a.json': body('1'),
      'c.csv': 'Date,Steps\n2026-03-10,5\n',
      'd.json.gz': gzipSync(body('5')),
      'e.gz': gzipSync(body('6')),
      'f.zip': zipOf([{ name: 'in.json', data: body('7') }]),
      'notes.txt': 'hello',
      'logs.tar.gz': gzipSync('x'),
      '.DS_Store': 'x',
      '.git/x.json': body('no'),
    });
    const { data, taken } = await imported([root]);
    expect(told(taken, root)).toEqual([
      'left_out .DS_Store',
      'left_out .git',
      'imported a.json',
      'imported b/10.JSON',
      'imported b/2.json',
      'imported c.csv',
      'imported d.json.gz',
      'imported e.gz',
      'imported f.zip/in.json',
      'left_out logs.tar.gz',
      'left_out notes.txt',
    ]);
    expect(bodies(data).map((text) => JSON.stringify(text))).toEqual(
      ['1', '2', '3', 'csv', '5', '6', '7'].map((note) =>
        JSON.stringify(note === 'csv' ? 'Date,Steps\n2026-03-10,5\n' : body(note)),
      ),
    );
  });

  it('is not the data folder itself, met on the way, and nothing behind a link to a folder', async () => {
    const root = files({ 'data/lost.json': body('x'), 'a.json': body('a'), 'other/b.json': body('b') });
    symlinkSync(root, join(root, 'loop'));
    symlinkSync(join(root, 'loop'), join(root, 'loop.json'));
    symlinkSync(join(root, 'nowhere'), join(root, 'gone.json'));
    symlinkSync(join(root, 'other/b.json'), join(root, 'zlink.json'));
    const { taken } = await imported([root], {
      data: dataFolder(join(root, 'data')),
    });
    expect(told(taken, root)).toEqual([
      'imported a.json',
      'left_out data',
      'refused file_unreadable gone.json',
      'left_out loop',
      'left_out loop.json',
      'imported other/b.json',
      'known zlink.json',
    ]);
  });

  it('may have a name that is no text', async () => {
    const root = files({ 'a.json': body('a') });
    const name = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe]), Buffer.from('.json')]);
    writeFileSync(name, body('odd'));
    const { data, taken } = await imported([root]);
    expect(taken.map(({ result }) => result)).toEqual(['imported', 'imported']);
    expect(bodies(data)).toEqual([body('a'), body('odd')]);
  });

  it('may be compressed, in one gzip member or several, and is kept decompressed', async () => {
    const text = body('long '.repeat(30_000));
    const halves = [gzipSync(text.slice(0, 70_000)), gzipSync(text.slice(70_000))];
    const root = files({ 'a.json': gzipSync(body('a')), 'b.gz': Buffer.concat(halves) });
    const { data, taken } = await imported([join(root, 'a.json'), join(root, 'b.gz')]);
    expect(told(taken, root)).toEqual(['imported a.json', 'imported b.gz']);
    expect(bodies(data)).toEqual([body('a'), text]);
  });

  it.each([
    ['plain', Buffer.from(body('in'))],
    ['gzip', gzipSync(body('in'))],
  ])('may come from standard input, %s', async (_kind, stdin) => {
    const { data, taken } = await imported(['-'], { stdin });
    expect(told(taken, '')).toEqual(['imported -']);
    expect(bodies(data)).toEqual([body('in')]);
  });

  it('may be CSV: by its name, unless it is JSON after all', async () => {
    const root = files({
      'a.csv': '"Date","Steps"\n',
      'b.CSV.gz': gzipSync('Date\n'),
      'c.csv': ` ${body('c')}`,
    });
    const { data } = await imported([root]);
    expect(rows(data).map(({ contentType }) => contentType)).toEqual([
      'text/csv',
      'text/csv',
      'application/json',
    ]);
  });
});

describe('a ZIP file', () => {
  const parts: readonly ZipPart[] = [
    { name: 'Export/', data: '', stored: true },
    { name: 'Export/metrics.json', data: body('deflated') },
    { name: 'Export/workouts.json', data: body('stored'), stored: true },
    { name: 'Export/late.json', data: body('descriptor'), descriptor: true },
    { name: 'Export/steps.csv', data: 'Date,Steps\n', descriptor: true },
    { name: 'Export/packed.json.gz', data: gzipSync(body('gzip')), stored: true },
    { name: 'Export/route.gpx', data: '<gpx/>' },
    { name: 'Export/more.zip', data: zipOf([{ name: 'deep.json', data: body('deep') }]) },
    { name: '__MACOSX/Export/._metrics.json', data: 'x' },
    { name: '../../evil.json', data: body('evil') },
    { name: 'back\\slash.json', data: body('backslash') },
    { name: Buffer.from([0xff, 0x80, 0x2e, 0x6a, 0x73, 0x6f, 0x6e]), data: body('odd name') },
    { name: 'schön.json', data: body('umlaut') },
  ];
  const results = [
    'imported Export/metrics.json',
    'imported Export/workouts.json',
    'imported Export/late.json',
    'imported Export/steps.csv',
    'imported Export/packed.json.gz',
    'left_out Export/route.gpx',
    'left_out Export/more.zip',
    'left_out __MACOSX/Export/._metrics.json',
    'left_out ../../evil.json',
    'imported back/slash.json',
    'imported \u00a0Ç.json',
    'imported schön.json',
  ];

  it('gives a delivery for each entry that is JSON or CSV, and names the others', async () => {
    const root = files({ 'export.bin': zipOf(parts) });
    const zip = join(root, 'export.bin');
    const { data, taken } = await imported([zip]);
    expect(told(taken, `${zip}`)).toEqual(results);
    expect(bodies(data)).toEqual(
      ['deflated', 'stored', 'descriptor', 'csv', 'gzip', 'backslash', 'odd name', 'umlaut'].map((note) =>
        note === 'csv' ? 'Date,Steps\n' : body(note),
      ),
    );
  });

  it('may come from standard input', async () => {
    const { taken } = await imported(['-'], { stdin: zipOf(parts) });
    expect(told(taken, '-')).toEqual(results);
  });

  it('may be empty', async () => {
    const root = files({ 'a.zip': zipOf([]) });
    expect((await imported([join(root, 'a.zip')])).taken).toEqual([]);
  });

  it('refuses an entry that is not what the table of contents says, and takes the others', async () => {
    const bomb = Buffer.from(`[${' '.repeat(2_000_000)}]`);
    const root = files({
      'a.zip': zipOf([
        { name: 'crc.json', data: body('1'), claims: { crc: 1 } },
        { name: 'crc-big.json', data: body('x'.repeat(100_000)), claims: { crc: 1 } },
        { name: 'longer.json', data: body('2'), claims: { size: 20 } },
        { name: 'shorter.json', data: body('3'), claims: { size: 2000 } },
        { name: 'method.json', data: body('4'), claims: { method: 12 } },
        { name: 'secret.json', data: body('5'), claims: { flags: 1 } },
        { name: 'announced.json', data: bomb },
        { name: 'hidden.json', data: bomb, claims: { size: 1000 } },
        { name: 'twice.json.gz', data: gzipSync(bomb), stored: true },
        { name: 'noise.json', data: body('6'), claims: { method: 8 }, stored: true },
        { name: 'good.json', data: body('good') },
      ]),
    });
    const zip = join(root, 'a.zip');
    const { data, taken } = await imported([zip]);
    expect(told(taken, zip)).toEqual([
      'refused file_damaged crc.json',
      'refused file_damaged crc-big.json',
      'refused file_damaged longer.json',
      'refused file_damaged shorter.json',
      'refused file_unreadable method.json',
      'refused file_unreadable secret.json',
      'refused too_large announced.json',
      'refused file_damaged hidden.json',
      'refused too_large twice.json.gz',
      'refused file_damaged noise.json',
      'imported good.json',
    ]);
    expect(bodies(data)).toEqual([body('good')]);
  });

  it.each([0.3, 0.6, 0.99])('that was cut at %d of its length is refused as a whole', async (part) => {
    const whole = zipOf(parts);
    const root = files({ 'a.zip': whole.subarray(0, Math.floor(whole.length * part)), 'b.json': body('b') });
    const { taken } = await imported([root]);
    expect(told(taken, root)).toEqual(['refused file_damaged a.zip', 'imported b.json']);
  });
});

describe('what is refused is named, leaves nothing, and the rest goes on', () => {
  const wide = body('w'.repeat(1_100_000));
  const packed = gzipSync(body('noise'.repeat(50_000)));
  it.each<[string, Files, string]>([
    ['empty', { 'x.json': '' }, 'empty_body'],
    ['blank', { 'x.json': ' \n' }, 'empty_body'],
    ['no JSON', { 'x.json': 'hello' }, 'shapeless_body'],
    ['half', { 'x.json': '{"data":' }, 'truncated'],
    ['too large', { 'x.json': wide }, 'too_large'],
    ['too large when decompressed', { 'x.json.gz': gzipSync(wide) }, 'too_large'],
    ['a cut gzip', { 'x.json.gz': packed.subarray(0, packed.length - 20) }, 'file_damaged'],
    [
      'a broken gzip',
      { 'x.json.gz': Buffer.concat([packed.subarray(0, 40), Buffer.alloc(400)]) },
      'file_damaged',
    ],
    ['a gzip of nothing', { 'x.json.gz': gzipSync('') }, 'empty_body'],
  ])('%s', async (_name, list, code) => {
    const root = files({ ...list, 'z.json': body('z') });
    const { data, taken } = await imported([root]);
    const [name = ''] = Object.keys(list);
    expect(told(taken, root)).toEqual([`refused ${code} ${name}`, 'imported z.json']);
    expect(archived(data).length).toBe(1);
  });

  it('a name that does not exist', async () => {
    const root = files({ 'a.json': body('a') });
    const { taken } = await imported([join(root, 'nope.json'), join(root, 'a.json/b'), root]);
    expect(told(taken, root)).toEqual([
      'refused file_unreadable nope.json',
      'refused file_unreadable a.json/b',
      'imported a.json',
    ]);
  });

  it('a device is read as a stream, to its end or to the limit', async () => {
    const { taken } = await imported(['/dev/null', '/dev/zero']);
    expect(told(taken, '/dev')).toEqual(['refused empty_body null', 'refused too_large zero']);
  });

  it('standard input named twice is a mistake of the one who typed', () => {
    expect(() => findFiles(['-', '-'], '/nowhere')).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(() => findFiles([], '/nowhere')).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});

describe('when the file was made', () => {
  const clockOf = async (
    list: Files,
    modified: string,
    flags: Partial<ImportFlags> = {},
  ): Promise<string> => {
    const { data } = await imported([files(list, modified)], flags);
    const [row] = rows(data);
    if (row === undefined) throw new Error('nothing was taken in');
    expect(row.receivedAt).toBe(NOON);
    expect(readArchive(data.archive, row.archivePath).header.clockAt).toBe(row.clockAt);
    return formatMicros(row.clockAt);
  };
  const STAMP = '2026-03-09T23:00:00.000000Z';

  it('is the newest date in its body', async () => {
    expect(await clockOf({ 'a.json': body('a') }, '2026-04-01T00:00:00Z')).toBe(STAMP);
    expect(await clockOf({ 'a.json.gz': gzipSync(body('a')) }, '2026-04-01T00:00:00Z')).toBe(STAMP);
  });

  it.each<[string, Files]>([
    ['the body speaks of later', { 'a.json': body('a') }],
    ['the body cannot be parsed', { 'a.json': '{"date":"2026-03-10",}' }],
    ['the body holds no date', { 'a.json': '{}' }],
    ['it is CSV', { 'a.csv': 'Date,Steps\n2020-01-01,1\n' }],
  ])('is the time of the file when %s', async (_name, list) => {
    expect(await clockOf(list, '2026-02-01T10:00:00Z')).toBe('2026-02-01T10:00:00.000000Z');
  });

  it('is not later than now, and a file without a time of its own has none', async () => {
    const future = body('f', '2199-01-01 00:00:00 +0000');
    for (const modified of ['2190-01-01T00:00:00Z', '1970-01-01T00:00:00Z'])
      expect(await clockOf({ 'a.json': future }, modified)).toBe(formatMicros(NOON));
  });

  it('is of an entry of a ZIP at most its own time, if it has one', async () => {
    const old = { name: 'old.json', data: '{}', modified: new Date(2025, 5, 1, 12, 30) };
    const none = { name: 'none.json', data: '[]' };
    const { data } = await imported([files({ 'a.zip': zipOf([old, none]) }, '2026-02-01T10:00:00Z')]);
    expect(rows(data).map(({ clockAt }) => clockAt)).toEqual([
      old.modified.getTime() * 1000,
      Date.parse('2026-02-01T10:00:00Z') * 1000,
    ]);
  });

  it('is what --as-of says, whatever the file says', async () => {
    const asOf = '2026-05-01T00:00:00Z';
    expect(await clockOf({ 'a.json': body('a') }, '2026-04-01T00:00:00Z', { asOf })).toBe(
      '2026-05-01T00:00:00.000000Z',
    );
  });
});

describe("a file of healthlog's own archive", () => {
  async function kept(): Promise<{ name: string; file: Buffer; row: JournalRow }> {
    const { data } = await imported([files({ 'a.json': body('a') })], {
      automation: 'A',
      aggregation: 'Days',
      profile: 'anna',
      asOf: '2026-03-11T08:00:00Z',
    });
    const [row] = rows(data);
    if (row === undefined) throw new Error('nothing was taken in');
    const name = row.archivePath.split('/').at(-1) ?? '';
    return { name, file: readFileSync(join(data.archive, row.archivePath)), row };
  }

  it('brings its own headers, profile and clock, under its own name or another, compressed or not', async () => {
    const { name, file, row } = await kept();
    for (const list of [{ [name]: file }, { 'x.json.gz': file }, { 'x.json': gunzipSync(file) }]) {
      const { data } = await imported([files(list)]);
      expect(rows(data)).toMatchObject([
        { profile: 'anna', automation: row.automation, clockAt: row.clockAt, source: 'import' },
      ]);
      expect(bodies(data)).toEqual([body('a')]);
    }
  });

  it('loses to what is said', async () => {
    const { name, file } = await kept();
    const { data } = await imported([files({ [name]: file })], {
      aggregation: 'Hours',
      profile: 'me',
      asOf: '2026-03-12T00:00:00Z',
    });
    expect(rows(data)).toMatchObject([
      {
        profile: 'me',
        automation: { id: 'A', aggregation: 'Hours' },
        clockAt: Date.parse('2026-03-12T00:00:00Z') * 1000,
      },
    ]);
  });

  it('is refused when its body is not the one its name speaks of, though it decompresses well', async () => {
    const { name, file } = await kept();
    const other = gzipSync(body('other'));
    // Two members: the second one begins with the magic bytes of gzip.
    const second = file.indexOf(Buffer.from([0x1f, 0x8b, 0x08]), 2);
    for (const damaged of [
      file.subarray(0, second),
      Buffer.concat([file.subarray(0, second), other]),
      other,
    ]) {
      const root = files({ [name]: damaged });
      const { data, taken } = await imported([root]);
      expect(taken.map((one) => one.result === 'refused' && one.error.status)).not.toEqual([false]);
      expect(archived(data)).toEqual([]);
    }
  });
});

describe('a body that is in the journal already', () => {
  it('is known, with the delivery it is, and is not recorded again', async () => {
    const root = files({ 'a.json': body('a'), 'copy.json.gz': gzipSync(body('a')) });
    const { data, taken } = await imported([root]);
    expect(told(taken, root)).toEqual(['imported a.json', 'known copy.json.gz']);
    const again = await imported([root], { data });
    expect(again.taken).toMatchObject(rows(data).flatMap((row) => [{ row }, { row }]));
    expect(rows(data).length).toBe(1);
  });

  it('is recorded once more for another profile, when a flag says otherwise, and with --again', async () => {
    const args = [files({ 'a.json': body('a') })];
    const { data } = await imported(args);
    const counts: number[] = [];
    for (const flags of [
      { aggregation: 'Days' },
      { aggregation: 'days' },
      {},
      { profile: 'anna' },
      { automation: 'A', aggregation: 'Days' },
      { asOf: '2026-03-12T00:00:00Z' },
      { asOf: '2026-03-12T00:00:00Z' },
      { again: true },
    ]) {
      await imported(args, { data, ...flags });
      counts.push(rows(data).length);
    }
    expect(counts).toEqual([2, 2, 2, 3, 4, 5, 5, 6]);
  });
});

describe('a run that cannot go on', () => {
  const list = {
    'a.json': body('a'),
    'b.zip': zipOf([1, 2, 3].map((n) => ({ name: `${n}.json`, data: body(`${n}`) }))),
    'c.json': body('c'),
  };

  it('because the disk is full names what is not in', async () => {
    const root = files(list);
    let writes = 0;
    const full = watchedFiles((step) => {
      if (step === 'write' && ++writes === 3) throw platformError('ENOSPC');
    });
    const { data, taken } = await imported([root], { deps: { files: full } });
    expect(told(taken, root)).toEqual([
      'imported a.json',
      'imported b.zip/1.json',
      'not_imported b.zip/2.json',
      'not_imported b.zip/3.json',
      'not_imported c.json',
    ]);
    expect(taken[2]).toMatchObject({ error: { code: 'disk_full' } });
    expect(rows(data).length).toBe(2);
  });

  it('because the journal stays locked', async () => {
    const root = files(list);
    const data = tmpData();
    Journal.open(data, 'write').close();
    const other = new BetterSqlite3(data.journal);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    const { taken } = await imported([root], { data, deps: { busyWaitMs: 20 } });
    expect(told(taken, root)).toEqual(['not_imported a.json', 'not_imported b.zip', 'not_imported c.json']);
    expect(taken[0]).toMatchObject({ error: { code: 'journal_busy' } });
  });

  it('because it was told to stop ends after the file at hand', async () => {
    const root = files(list);
    const { data, taken } = await imported([root], { stopped: (so) => so.length >= 2 });
    expect(told(taken, root)).toEqual([
      'imported a.json',
      'imported b.zip/1.json',
      'not_imported b.zip/2.json',
      'not_imported b.zip/3.json',
      'not_imported c.json',
    ]);
    const rest = await imported([root], { data });
    expect(told(rest.taken, root)).toEqual([
      'known a.json',
      'known b.zip/1.json',
      'imported b.zip/2.json',
      'imported b.zip/3.json',
      'imported c.json',
    ]);
  });
});

describe('the checksum of ZIP files', () => {
  it('is CRC-32, in one piece or several', () => {
    expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926);
    expect(crc32(Buffer.from('6789'), crc32(Buffer.from('12345')))).toBe(0xcbf43926);
    expect(crc32(Buffer.alloc(0))).toBe(0);
  });
});
