/** What an import says of a file besides its bytes, when it is known already, and runs that end early. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ImportFlags } from '../../src/cli/import/flags.js';
import { readArchive } from '../../src/journal/archive.js';
import { formatMicros } from '../../src/journal/position.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { archived, NOON, platformError, watchedFiles } from '../journal/support.js';
import { bodies, body, type Files, files, imported, rows, told } from '../support/importing.js';
import { tmpData } from '../support/tmp.js';
import { zipOf } from '../support/zip.js';

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

  /** As the archive of another machine might hold it. */
  function archiveFile(text: string, clockAt: string, headers: Record<string, string> = {}): Buffer {
    const line = {
      format: 1,
      profile: 'me',
      source: 'http',
      clock_at: clockAt,
      content_type: 'application/json',
      content_coding: null,
      headers,
    };
    return Buffer.concat([gzipSync(`${JSON.stringify(line)}\n`), gzipSync(text)]);
  }

  it('of a machine whose clock ran ahead was made now at the latest', async () => {
    const root = files({ 'x.json.gz': archiveFile(body('x'), '2091-01-01T00:00:00.000000Z') });
    const { data } = await imported([root]);
    const [row] = rows(data);
    expect(row?.clockAt).toBeLessThan(Date.parse('2091-01-01T00:00:00Z') * 1000);
  });

  it.each(['2300-01-01T00:00:00.000000Z', '0001-01-01T00:00:00.000000Z'])(
    'with the impossible clock %s is no archive file',
    async (clockAt) => {
      const root = files({ 'x.json.gz': archiveFile(body('x'), clockAt) });
      const { data } = await imported([root]);
      // Its line is then a part of the body, as in any other file.
      expect(rows(data).map((row) => row.automation.id)).toEqual([null]);
      expect(bodies(data).join('')).toContain('"clock_at"');
    },
  );

  it('is known only when the journal has a delivery of the same grouping and time', async () => {
    const at = (day: number, headers?: Record<string, string>): Buffer =>
      archiveFile(body('x'), `2026-03-0${day}T00:00:00.000000Z`, headers);
    const root = files({
      '1-plain.json': body('x'),
      '2-days.json.gz': at(1, { 'automation-aggregation': 'Days' }),
      '3-later.json.gz': at(3, { 'automation-aggregation': 'Days' }),
      '4-again.json.gz': at(1, { 'automation-aggregation': 'Days' }),
    });
    const { data, taken } = await imported([root]);
    expect(told(taken, root)).toEqual([
      'imported 1-plain.json',
      'imported 2-days.json.gz',
      'imported 3-later.json.gz',
      'known 4-again.json.gz',
    ]);
    expect(taken[3]).toMatchObject({ row: { id: rows(data)[1]?.id } });
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
      expect(told(taken, root)).toEqual([`refused file_damaged ${name}`]);
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

  it('comes back when the archive has lost it', async () => {
    const root = files({ 'a.json': body('a') });
    const { data } = await imported([root]);
    rmSync(join(data.archive, rows(data)[0]?.archivePath ?? ''));
    const { taken } = await imported([root], { data });
    expect(told(taken, root)).toEqual(['imported a.json']);
    expect(told((await imported([root], { data })).taken, root)).toEqual(['known a.json']);
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
