/** Deliveries that wait at the same time share one commit section: one flush, one COMMIT, positions in a row. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { archivePath } from '../../src/journal/archive.js';
import { deliveryId, type Micros, micros } from '../../src/journal/position.js';
import { adoptOrphans, findOrphans } from '../../src/journal/reconcile.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { tmpData } from '../support/tmp.js';
import {
  accepting,
  archived,
  at,
  BODY,
  type FileStep,
  incoming,
  NOON,
  platformError,
  stream,
  watchedFiles,
} from './support.js';

const DAY_FOLDER = '2026/11/30';

/** An acceptor whose folders are durable already, and the flushes of its day folders from then on. */
async function warm(
  deps: Parameters<typeof accepting>[0] = {},
  watch?: (step: FileStep, path: string) => void,
) {
  const folder = tmpData();
  const flushed: string[] = [];
  const opened = accepting({
    ...deps,
    folder,
    files: watchedFiles((step, path) => {
      watch?.(step, path);
      if (step === 'fsyncDirectory') flushed.push(relative(folder.archive, path));
    }),
  });
  await opened.accept(BODY);
  flushed.length = 0;
  return { ...opened, flushed };
}

/** Holds the journal's write lock until `count` uploads wait for it; so the next section takes them together. */
async function together<T>(
  { folder }: { folder: ReturnType<typeof tmpData> },
  count: number,
  start: (nth: number) => Promise<T>,
): Promise<PromiseSettledResult<T>[]> {
  const other = new BetterSqlite3(folder.journal);
  other.exec('BEGIN IMMEDIATE');
  const waiting = Promise.allSettled(Array.from({ length: count }, (_, nth) => start(nth)));
  const uploads = (): number => archived(folder).filter((name) => name.startsWith('incoming/')).length;
  while (uploads() < count) await new Promise((resolve) => setImmediate(resolve));
  // The last file is there before it is fsynced and closed: a few turns more, and it is in the queue.
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
  other.exec('ROLLBACK');
  other.close();
  return waiting;
}

function kinds(settled: readonly PromiseSettledResult<unknown>[]): string[] {
  return settled.map(({ status }) => status);
}

describe('deliveries that wait at the same time', () => {
  it('are recorded by few flushes and commits, one position after the other', async () => {
    const opened = await warm();
    const settled = await together(opened, 12, () => opened.accept(BODY));
    expect(kinds(settled)).toEqual(Array(12).fill('fulfilled'));
    expect(opened.flushed.length).toBeLessThan(12);
    expect(new Set(opened.flushed)).toEqual(new Set([DAY_FOLDER]));
    const rows = opened.journal.after(0, 100);
    expect(rows.map(({ receivedAt }) => receivedAt - NOON)).toEqual([...Array(13).keys()]);
    expect(opened.accepted).toEqual(rows);
    expect(archived(opened.folder)).toEqual(rows.map(({ archivePath: path }) => path));
  });

  it('are no more in one section than the limit', async () => {
    const opened = await warm({ commitGroupMax: 1 });
    await together(opened, 5, () => opened.accept(BODY));
    expect(opened.flushed).toEqual(Array(5).fill(DAY_FOLDER));
    expect(opened.journal.count()).toBe(6);
  });

  it('may belong to two days: both folders are flushed', async () => {
    const midnight = at('2026-12-01T00:00:00.000000Z');
    let now: Micros = NOON;
    const clock = { now: (): Micros => now };
    const opened = await warm({ clock });
    await together(opened, 3, async () => {
      now = micros(midnight - 2);
      return opened.accept(BODY);
    });
    const rows = opened.journal.after(1, 10);
    expect(rows.map(({ receivedAt }) => receivedAt - midnight)).toEqual([-2, -1, 0]);
    expect(opened.flushed.at(-2)).toBe('2026/11/30');
    expect(opened.flushed.at(-1)).toBe('2026/12/01');
  });

  it('do not suffer from one that cannot be put into its place', async () => {
    const state = { renames: 0 };
    const opened = await warm({}, (step) => {
      if (step === 'rename' && ++state.renames === 3) throw platformError('EIO');
    });
    const settled = await together(opened, 4, () => opened.accept(BODY));
    expect(kinds(settled).sort()).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
    const rows = opened.journal.after(0, 10);
    // NOON + 2 was the one that failed; its position is not given out again.
    expect(rows.map(({ receivedAt }) => receivedAt - NOON)).toEqual([0, 1, 3, 4]);
    expect(archived(opened.folder)).toEqual(rows.map(({ archivePath: path }) => path));
  });

  it('all fail when the folder cannot be flushed; their files stay and are adopted later', async () => {
    const state = { armed: false };
    const opened = await warm({}, (step) => {
      if (step !== 'fsyncDirectory' || !state.armed) return;
      state.armed = false;
      throw platformError('EIO');
    });
    state.armed = true;
    const settled = await together(opened, 4, () => opened.accept(BODY));
    const failed = settled.filter(({ status }) => status === 'rejected').length;
    expect(failed).toBeGreaterThan(0);
    expect(findOrphans(opened.folder, opened.journal).length).toBe(failed);
    const next = await opened.accept(BODY);
    expect(next.receivedAt).toBe(NOON + 5);
    const writing = Journal.open(opened.folder, 'write');
    onTestFinished(() => writing.close());
    expect(adoptOrphans({ folder: opened.folder, journal: writing }).adopted.length).toBe(failed);
    expect(opened.journal.count()).toBe(6);
  });
});

describe('a body that may be known already', () => {
  const first = (rows: readonly JournalRow[]): JournalRow | null => rows[0] ?? null;

  it('is recorded once, and named the second time', async () => {
    const { acceptor, accepted, folder } = accepting();
    const once = await acceptor.acceptUnlessKnown(stream(BODY), incoming(), first);
    const twice = await acceptor.acceptUnlessKnown(stream(BODY), incoming(), first);
    expect(once.kind).toBe('recorded');
    expect(twice).toEqual({ kind: 'known', row: once.row });
    expect(accepted).toEqual([once.row]);
    expect(archived(folder)).toEqual([once.row.archivePath]);
  });

  it('is recorded once even when both come at the same moment', async () => {
    const opened = await warm();
    const other = '{"data":{"workouts":[]}}';
    const settled = await together(opened, 5, () =>
      opened.acceptor.acceptUnlessKnown(stream(other), incoming(), first),
    );
    const found = settled.map((one) => (one.status === 'fulfilled' ? one.value.kind : 'failed'));
    expect(found.sort()).toEqual(['known', 'known', 'known', 'known', 'recorded']);
    expect(opened.journal.count()).toBe(2);
    expect(archived(opened.folder).length).toBe(2);
  });

  it('of another profile is another one', async () => {
    const { acceptor, journal } = accepting();
    await acceptor.acceptUnlessKnown(stream(BODY), incoming(), first);
    const other = await acceptor.acceptUnlessKnown(stream(BODY), incoming({ profile: 'ada' }), first);
    expect(other.kind).toBe('recorded');
    expect(journal.count()).toBe(2);
  });
});

describe('a position', () => {
  it('is above a name that another process left in the archive while its clock ran ahead', async () => {
    const { accept, folder } = accepting();
    await accept(BODY);
    const ahead = at('2026-12-03T00:00:00.000000Z');
    const orphan = archivePath(
      { receivedAt: ahead, id: deliveryId('00000000-0000-4000-8000-000000000001') },
      'ab'.repeat(32),
    );
    mkdirSync(dirname(join(folder.archive, orphan)), { recursive: true });
    writeFileSync(join(folder.archive, orphan), 'another process is at work on its row');
    expect((await accept(BODY)).receivedAt).toBe(ahead + 1);
  });
});

describe('whatever step fails, in whatever company', () => {
  const STEPS: readonly FileStep[] = ['create', 'write', 'fsync', 'mkdir', 'rename', 'fsyncDirectory'];

  it('each delivery is recorded with its body, or left as an orphan, or leaves nothing', async () => {
    const failures = fc.array(
      fc.constantFrom(...STEPS).chain((step) => fc.tuple(fc.constant(step), fc.nat(8))),
      {
        maxLength: 4,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        failures,
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 5 }),
        async (plan, count, groupMax) => {
          const counts = new Map<FileStep, number>();
          const state = { armed: false };
          const folder = tmpData();
          const opened = accepting({
            folder,
            commitGroupMax: groupMax,
            files: watchedFiles((step) => {
              if (!state.armed) return;
              const nth = counts.get(step) ?? 0;
              counts.set(step, nth + 1);
              if (plan.some(([wanted, at]) => wanted === step && at === nth)) throw platformError('EIO');
            }),
          });
          state.armed = true;
          const settled = await Promise.allSettled(Array.from({ length: count }, () => opened.accept(BODY)));
          state.armed = false;
          const recorded = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
          const rows = opened.journal.after(0, 100);
          expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(recorded.map(({ id }) => id)));
          expect(
            rows.every((row, nth) => nth === 0 || row.receivedAt > (rows[nth - 1]?.receivedAt ?? 0)),
          ).toBe(true);
          const orphans = findOrphans(folder, opened.journal);
          expect(orphans.length).toBeLessThanOrEqual(count - recorded.length);
          expect(archived(folder)).toEqual([...rows.map(({ archivePath: path }) => path), ...orphans].sort());
          const next = await opened.accept(BODY);
          expect(archivePath(next, next.bodySha256) > (archived(folder).at(-2) ?? '')).toBe(true);
        },
      ),
      { numRuns: 40 },
    );
  });
});
