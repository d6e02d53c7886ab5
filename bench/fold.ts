/**
 * `fold`: from a journal row to committed rows of the read model, for one delivery: one whole pass of the runner,
 * with enrolling it, reading and proving its archive file, parsing, layer, candidates, winners and outcome.
 * `fold-resent` is the same body delivered once more, which the app does all day long.
 *
 * The floor is `JSON.parse` of the same bytes and a bare prepared upsert of as many rows into a table `bucket` of
 * the same schema, in one transaction of a database with the same settings. No archive, no dates, no comparison.
 * Its text is decoded by `toString('utf8')`, as anybody would; the fold may know a faster way.
 * Both run in this process, in changing order, on a swept heap, each body on days of its own.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type Database from 'better-sqlite3';
import { Acceptor } from '../src/journal/accept.js';
import { systemClock } from '../src/journal/clock.js';
import { dataFolder } from '../src/journal/folder.js';
import { Journal } from '../src/journal/store.js';
import { dayOfYmd } from '../src/projections/dates.js';
import { createGeneration } from '../src/projections/readmodel.js';
import { Runner } from '../src/projections/runner.js';
import { daysOf, deliveryBody } from './body.js';
import { type BenchOptions, type BenchRow, benchRow, type Times, withFolder } from './harness.js';

const FIRST_DAY = dayOfYmd(2021, 1, 4);
const BODY_BYTES_MAX = 200 * 1024 * 1024;
/** Both sides are compiled while they run: each is warmed up with at least so many points, and three rounds. */
const WARM_UP_POINTS = 20_000;
const WARM_UP_ROUNDS_MIN = 3;

/** Points of a body, and how many bodies. */
const QUICK: readonly (readonly [number, number])[] = [
  [1_001, 9],
  [4_001, 9],
  [16_001, 11],
];
const FULL: readonly (readonly [number, number])[] = [
  [1_001, 51],
  [4_001, 51],
  [16_001, 31],
  [64_001, 15],
  [256_001, 7],
];

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Milliseconds of `work`, begun on a swept heap. */
function timed(work: () => void): number {
  collectGarbage();
  const startedMs = performance.now();
  work();
  return performance.now() - startedMs;
}

interface FloorPoint {
  readonly qty?: number;
  readonly Min?: number;
  readonly Avg?: number;
  readonly Max?: number;
}
interface FloorBody {
  readonly data: { readonly metrics: readonly { readonly data: readonly FloorPoint[] }[] };
}

/** Parses a body and writes a row for each of its points. */
class Floor {
  readonly #write: (body: FloorBody, firstStart: number, delivery: number) => void;

  constructor(db: Database.Database) {
    const put = db.prepare(`
      INSERT INTO bucket (series, start, value, min, max, label, delivery, named, flags, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (series, start) DO UPDATE SET value = excluded.value, min = excluded.min, max = excluded.max,
        label = excluded.label, delivery = excluded.delivery, named = excluded.named, flags = excluded.flags, extra = excluded.extra`);
    const write = db.transaction((body: FloorBody, firstStart: number, delivery: number) => {
      for (const [series, { data }] of body.data.metrics.entries()) {
        let start = firstStart;
        for (const { qty, Min, Avg, Max } of data) {
          put.run(
            series,
            start,
            qty ?? Avg ?? null,
            Min ?? null,
            Max ?? null,
            1,
            delivery,
            delivery,
            3,
            null,
          );
          start += 60;
        }
      }
    });
    this.#write = write.immediate;
  }

  fold(bytes: Buffer, firstDay: number, delivery: number): void {
    this.#write(JSON.parse(bytes.toString('utf8')), firstDay * 86_400, delivery);
  }
}

const HEADERS = {
  'automation-id': '3F2504E0-4F89-41D3-9A0C-0305E82C3301',
  'automation-name': 'Health Metrics',
  'automation-aggregation': 'Minutes',
  'automation-period': 'Since Last Sync',
};

/** A journal, a generation and a runner in a folder of their own. */
class Service {
  readonly #acceptor: Acceptor;
  readonly #journal: Journal;
  readonly #generation: Database.Database;
  readonly #runner: Runner;

  constructor(root: string) {
    mkdirSync(join(root, 'readmodel'), { recursive: true });
    const folder = dataFolder(root);
    this.#acceptor = new Acceptor({
      folder,
      clock: systemClock,
      bodyBytesMax: BODY_BYTES_MAX,
      onAccepted: () => undefined,
    });
    this.#journal = Journal.open(folder, 'read');
    this.#generation = createGeneration(join(folder.readmodel, '000001.db'), this.#journal.meta().epoch);
    this.#runner = new Runner({
      journal: this.#journal,
      generation: this.#generation,
      archiveRoot: folder.archive,
      clock: systemClock,
    });
  }

  async accept(body: Buffer): Promise<void> {
    await this.#acceptor.accept(Readable.from([body]), {
      profile: 'me',
      source: 'http',
      contentType: 'application/json',
      contentCoding: null,
      headers: HEADERS,
      declaredBytes: body.length,
      kind: 'json',
      complete: () => true,
    });
  }

  /** Folds what was accepted. Throws unless that was one delivery, and all of its points were read. */
  fold(points: number): void {
    const { end, outcomes } = this.#runner.pass();
    if (end !== 'caught_up' || outcomes.counters.points !== points) {
      throw new Error(`${outcomes.counters.points} of ${points} points were folded, the pass ended: ${end}`);
    }
  }

  async close(): Promise<void> {
    await this.#acceptor.close();
    this.#generation.close();
    this.#journal.close();
  }
}

interface Results {
  readonly first: { readonly times: Times; readonly floor: Times };
  readonly resent: { readonly times: Times; readonly floor: Times };
  bytes: number;
}

async function measure(points: number, rounds: number, service: Service, floor: Floor): Promise<Results> {
  const results: Results = {
    first: { times: [], floor: [] },
    resent: { times: [], floor: [] },
    bytes: 0,
  };
  const warmUp = Math.max(WARM_UP_ROUNDS_MIN, Math.ceil(WARM_UP_POINTS / points));
  for (let round = -warmUp; round < rounds; round++) {
    const place = round + warmUp;
    const firstDay = FIRST_DAY + place * (daysOf(points) + 1);
    const body = deliveryBody({ points, seed: points + place, firstDay });
    results.bytes = body.length;
    for (const [at, { times, floor: floorTimes }] of [results.first, results.resent].entries()) {
      await service.accept(body);
      const foldOne = (): number => timed(() => service.fold(points));
      const floorOne = (): number => timed(() => floor.fold(body, firstDay, place * 2 + at));
      const serviceFirst = round % 2 === 0;
      const early = serviceFirst ? foldOne() : floorOne();
      const late = serviceFirst ? floorOne() : foldOne();
      if (round < 0) continue;
      times.push(serviceFirst ? early : late);
      floorTimes.push(serviceFirst ? late : early);
    }
  }
  return results;
}

export async function* fold({ quick, note }: BenchOptions): AsyncGenerator<BenchRow> {
  yield* withFolder(async function* (folder) {
    for (const [points, rounds] of quick ? QUICK : FULL) {
      note(`fold: ${points} points, ${rounds} rounds`);
      const root = join(folder, String(points));
      const service = new Service(join(root, 'data'));
      const floorDb = createGeneration(join(root, 'floor.db'), 'floor');
      try {
        const { first, resent, bytes } = await measure(points, rounds, service, new Floor(floorDb));
        yield benchRow({ bench: 'fold', points, bytes }, first.times, first.floor);
        yield benchRow({ bench: 'fold-resent', points, bytes }, resent.times, resent.floor);
      } finally {
        await service.close();
        floorDb.close();
      }
    }
  });
}
