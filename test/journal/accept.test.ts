import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Acceptor } from '../../src/journal/accept.js';
import { readArchive } from '../../src/journal/archive.js';
import { isDeliveryId } from '../../src/journal/position.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { tmpData } from '../support/tmp.js';
import { program } from './processes/run.js';
import { accepting, archived, at, BODY, incoming, NOON, SetClock, stream, watchedFiles } from './support.js';

function expectRising(rows: readonly JournalRow[]): void {
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    if (before !== undefined) expect(row.receivedAt).toBeGreaterThan(before.receivedAt);
  }
}

describe('an accepted delivery', () => {
  it('is one archive file and one journal row that say the same', async () => {
    const { folder, journal, accept, accepted } = accepting();
    const headers = { 'automation-id': 'A', 'automation-aggregation': 'Days', 'session-id': 'S' };
    const row = await accept(BODY, { headers });
    expect(isDeliveryId(row.id)).toBe(true);
    expect(row).toEqual({
      seq: 1,
      id: row.id,
      receivedAt: NOON,
      clockAt: NOON,
      profile: 'me',
      automation: { id: 'A', name: null, aggregation: 'Days', period: null },
      sessionId: 'S',
      contentType: 'application/json',
      source: 'http',
      adopted: false,
      bodyBytes: BODY.length,
      bodySha256: createHash('sha256').update(BODY).digest('hex'),
      archivePath: row.archivePath,
    });
    expect(journal.byId(row.id)).toEqual(row);
    expect(accepted).toEqual([row]);
    expect(archived(folder)).toEqual([row.archivePath]);
    const read = readArchive(folder.archive, row.archivePath, { bodyBytesHint: row.bodyBytes });
    expect(read.body.toString()).toBe(BODY);
    expect(read).toMatchObject({
      position: { receivedAt: row.receivedAt, id: row.id },
      header: { profile: 'me', source: 'http', clockAt: NOON, contentType: 'application/json', headers },
    });
  });

  it.each([1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 900_000])(
    'of %i bytes and more is kept byte for byte, however it is cut into pieces',
    async (bytes) => {
      const { folder, acceptor } = accepting();
      const body = Buffer.from(`  [${'1,'.repeat(bytes / 2)}1]\n`);
      const pieces = [body.subarray(0, 3), body.subarray(3, 70_000), body.subarray(70_000)];
      const row = await acceptor.accept(stream(...pieces), incoming({ declaredBytes: body.length }));
      expect(
        readArchive(folder.archive, row.archivePath, { bodyBytesHint: body.length }).body.equals(body),
      ).toBe(true);
    },
  );

  it.each([40, 300_000])('that travels compressed is kept decompressed (%i bytes)', async (bytes) => {
    const { folder, accept } = accepting();
    const body = `[${'1,'.repeat(bytes / 2)}1]`;
    const row = await accept(gzipSync(body), { contentCoding: 'GZIP' });
    const read = readArchive(folder.archive, row.archivePath);
    expect(read.body.toString()).toBe(body);
    expect(read.header.contentCoding).toBe('GZIP');
  });

  it.each(['{}', '[]', '"{}"', ' \n{"data":null}\t', '\ufeff{}'])('may be as small as %j', async (body) => {
    const { accept } = accepting();
    expect((await accept(body)).bodyBytes).toBe(Buffer.byteLength(body));
  });

  it('may be CSV of any shape', async () => {
    const { accept } = accepting();
    await expect(accept('Date,Steps\n2026-11-30,7', { kind: 'csv' })).resolves.toMatchObject({ seq: 1 });
  });

  it('of an import says when its body was made; its position is that of now', async () => {
    const { accept } = accepting();
    const clockAt = at('2024-02-29T08:00:00Z');
    expect(await accept(BODY, { source: 'import', clockAt })).toMatchObject({ receivedAt: NOON, clockAt });
  });
});

describe('positions', () => {
  it('follow the order of the commits under concurrent requests', async () => {
    const { accept, accepted, journal } = accepting();
    const rows = await Promise.all(Array.from({ length: 40 }, () => accept(BODY)));
    expectRising(accepted);
    expect(journal.after(0, 100)).toEqual(accepted);
    expect(new Set(rows.map((row) => row.receivedAt)).size).toBe(40);
  });

  it('rise strictly whatever the clock does', async () => {
    const day = 86_400_000_000;
    const instants = fc.array(fc.integer({ min: NOON - 400 * day, max: NOON + 400 * day }), {
      minLength: 2,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(instants, async (clockReadings) => {
        const folder = tmpData();
        const clock = new SetClock();
        const accepted: JournalRow[] = [];
        const acceptor = new Acceptor({
          folder,
          clock,
          bodyBytesMax: 1000,
          onAccepted: (row) => accepted.push(row),
        });
        for (const reading of clockReadings) {
          clock.set(reading);
          const row = await acceptor.accept(stream(BODY), incoming());
          expect(row.clockAt).toBe(reading);
          expect(row.receivedAt).toBeGreaterThanOrEqual(reading);
        }
        expectRising(accepted);
        await acceptor.close();
      }),
      { numRuns: 15 },
    );
  });

  it('rise strictly over restarts and over archive names that have no row', async () => {
    const folder = tmpData();
    const first = accepting({ folder });
    first.clock.set(NOON + 5_000_000);
    const before = await first.accept(BODY);
    const again = accepting({ folder });
    expect((await again.accept(BODY)).receivedAt).toBe(before.receivedAt + 1);
  });

  it('rise strictly in the order of the commits of two processes', async () => {
    const folder = tmpData();
    Journal.open(folder, 'write').close();
    const writers = [program('writer', folder.root, '60'), program('writer', folder.root, '60')];
    await Promise.all(writers.map((writer) => writer.ended()));
    const journal = Journal.open(folder, 'read');
    onTestFinished(() => journal.close());
    const rows = journal.after(0, 1000);
    expect(rows.length).toBe(120);
    expectRising(rows);
  });

  it('that run more than a minute ahead of the clock are told once, and shown until the clock caught up', async () => {
    const skews: number[] = [];
    const { accept, clock, acceptor } = accepting({ onClockSkew: (ahead) => skews.push(ahead) });
    expect(acceptor.clockSkewMicros()).toBe(0);
    await accept(BODY);
    clock.set(NOON - 61_000_000);
    await accept(BODY);
    await accept(BODY);
    expect(skews).toEqual([61_000_001]);
    expect(acceptor.clockSkewMicros()).toBe(61_000_002);
    clock.set(NOON + 10);
    await accept(BODY);
    expect(acceptor.clockSkewMicros()).toBe(0);
    clock.set(NOON - 120_000_000);
    await accept(BODY);
    expect(skews).toEqual([61_000_001, 120_000_011]);
  });
});

describe('a journal that another program keeps locked', () => {
  function locked(): { accepting: ReturnType<typeof accepting>; release: () => void } {
    const opened = accepting({ busyWaitMs: 20 });
    const other = new BetterSqlite3(opened.folder.journal);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    return { accepting: opened, release: () => other.exec('ROLLBACK') };
  }

  it('costs the delivery that waited too long, and leaves nothing of it', async () => {
    const { accepting: opened, release } = locked();
    await expect(opened.accept(BODY)).rejects.toMatchObject({ code: 'journal_busy', status: 503 });
    expect(archived(opened.folder)).toEqual([]);
    release();
    await expect(opened.accept(BODY)).resolves.toMatchObject({ seq: 1, receivedAt: NOON });
  });

  it('is waited for without stopping the process', async () => {
    const folder = tmpData();
    const opened = accepting({ folder });
    const other = new BetterSqlite3(folder.journal);
    other.exec('BEGIN IMMEDIATE');
    const pending = Promise.all([opened.accept(BODY), opened.accept(BODY)]);
    // The upload is done when its file is there; from then on the section is being tried.
    while (archived(folder).length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(opened.journal.count()).toBe(0);
    other.exec('ROLLBACK');
    other.close();
    await pending;
    expectRising(opened.accepted);
    expect(opened.accepted.length).toBe(2);
  });
});

describe('closing', () => {
  it('lets the running commit section end, and refuses what comes later', async () => {
    const closing: Promise<void>[] = [];
    const opened: ReturnType<typeof accepting> = accepting({
      files: watchedFiles((step) => {
        if (step === 'rename') closing.push(opened.acceptor.close());
      }),
    });
    await expect(opened.accept(BODY)).resolves.toMatchObject({ seq: 1 });
    await Promise.all(closing);
    await expect(opened.accept(BODY)).rejects.toMatchObject({ code: 'stopping' });
    expect(archived(opened.folder).length).toBe(1);
  });

  it('refuses an upload that is not finished, and leaves nothing of it', async () => {
    const closing: Promise<void>[] = [];
    const opened: ReturnType<typeof accepting> = accepting({
      files: watchedFiles((step) => {
        if (step === 'fsync') closing.push(opened.acceptor.close());
      }),
    });
    await expect(opened.accept(BODY)).rejects.toMatchObject({ code: 'stopping' });
    await Promise.all(closing);
    expect(archived(opened.folder)).toEqual([]);
  });
});
