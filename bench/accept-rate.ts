/**
 * `accept-rate`: how many deliveries of 10 KB a second the service takes in over 1, 16 and 64 connections, with
 * group commit and (`accept-rate-single`) with one delivery per commit section.
 *
 * The floor is what must be on the disk for each, done one after another by a bare program in one process: body
 * fsynced, renamed, folder fsynced, row committed. It parses no HTTP, checks nothing and answers nobody, but it cannot
 * let deliveries share a flush. `ratio` is deliveries a second of the service by those of the floor.
 *
 * The service folds while it takes in, as it always does; before the floor has its turn it may finish.
 */
import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { dayOfYmd } from '../src/projections/dates.js';
import { deliveryBody } from './body.js';
import { Connection, postBytes } from './connection.js';
import {
  type BenchOptions,
  type BenchRow,
  benchRow,
  median,
  type StartedServer,
  type Times,
  withFolder,
} from './harness.js';
import { compile, makeToken, phoneHeaders, startService, untilIdle } from './service.js';

const FIRST_DAY = dayOfYmd(2025, 3, 10);
/** A delivery of about 10 KB in the app's layout. */
const POINTS = 60;
/** Different bodies, so that no two neighbours are the same. */
const BODIES = 97;
/** Connections, and deliveries of one round over all of them. */
const QUICK: readonly (readonly [number, number])[] = [
  [1, 300],
  [16, 800],
  [64, 1600],
];
const FULL: readonly (readonly [number, number])[] = [
  [1, 1000],
  [16, 4000],
  [64, 8000],
];
const FLOOR_DELIVERIES = 300;

interface Round {
  readonly times: Times;
  readonly perSecond: number;
}

interface Target {
  readonly bench: string;
  readonly server: StartedServer;
  readonly requests: readonly Buffer[];
  readonly settle: () => Promise<void>;
}

/** Every connection sends its share, one after another. */
async function load({ server, requests }: Target, connections: number, deliveries: number): Promise<Round> {
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(server.url)));
  const times: Times = [];
  const startedMs = performance.now();
  let sent = 0;
  try {
    await Promise.all(
      open.map(async (connection) => {
        while (sent < deliveries) {
          const request = requests[sent++ % requests.length];
          if (request === undefined) throw new Error('there is no request to send');
          const { status, body, ms } = await connection.ask(request);
          if (status !== 200) throw new Error(`the service answered ${status}: ${body}`);
          times.push(ms);
        }
      }),
    );
    return { times, perSecond: (deliveries * 1000) / (performance.now() - startedMs) };
  } finally {
    for (const connection of open) connection.close();
  }
}

/** Body fsync, rename, folder fsync, COMMIT: one delivery after another. */
class SerialFloor {
  readonly #db: Database.Database;
  readonly #day: string;
  readonly #incoming: string;
  readonly #store: Database.Transaction<(body: Buffer) => void>;

  constructor(folder: string) {
    this.#day = join(folder, 'day');
    this.#incoming = join(folder, 'incoming');
    for (const made of [this.#day, this.#incoming]) mkdirSync(made, { recursive: true });
    this.#db = new Database(join(folder, 'floor.db'));
    this.#db.pragma('journal_mode = WAL');
    this.#db.pragma('synchronous = FULL');
    this.#db.exec('CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT)');
    const insert = this.#db.prepare('INSERT INTO row (text) VALUES (?)');
    this.#store = this.#db.transaction((body: Buffer) => {
      const name = `${randomUUID()}.json.gz`;
      const file = openSync(join(this.#incoming, name), 'wx');
      writeSync(file, gzipSync(body, { level: 1 }));
      fsyncSync(file);
      closeSync(file);
      renameSync(join(this.#incoming, name), join(this.#day, name));
      const folderHandle = openSync(this.#day, 'r');
      fsyncSync(folderHandle);
      closeSync(folderHandle);
      insert.run('x'.repeat(300));
    });
  }

  run(bodies: readonly Buffer[], deliveries: number): Round {
    const times: Times = [];
    const startedMs = performance.now();
    for (let at = 0; at < deliveries; at++) {
      const body = bodies[at % bodies.length];
      if (body === undefined) throw new Error('there is no body to store');
      const beganMs = performance.now();
      this.#store.immediate(body);
      times.push(performance.now() - beganMs);
    }
    return { times, perSecond: (deliveries * 1000) / (performance.now() - startedMs) };
  }

  close(): void {
    this.#db.close();
  }
}

async function* rows(
  targets: readonly Target[],
  floor: SerialFloor,
  bodies: readonly Buffer[],
  { quick, note }: BenchOptions,
): AsyncGenerator<BenchRow> {
  for (const target of targets) await load(target, 4, 200);
  for (const [connections, deliveries] of quick ? QUICK : FULL) {
    const rounds = quick ? 3 : 5;
    note(`accept-rate: ${connections} connections, ${rounds} rounds of ${deliveries} deliveries`);
    const measured = targets.map((target) => ({ target, times: [] as Times, rates: [] as Times }));
    const floorTimes: Times = [];
    const floorRates: Times = [];
    for (let round = 0; round < rounds; round++) {
      for (const one of round % 2 === 0 ? measured : measured.toReversed()) {
        await one.target.settle();
        const { times, perSecond } = await load(one.target, connections, deliveries);
        one.times.push(...times);
        one.rates.push(perSecond);
      }
      for (const { settle } of targets) await settle();
      const { times, perSecond } = floor.run(bodies, FLOOR_DELIVERIES);
      floorTimes.push(...times);
      floorRates.push(perSecond);
    }
    for (const { target, times, rates } of measured) {
      const perSecond = median(rates);
      const floorPerSecond = median(floorRates);
      yield {
        ...benchRow(
          { bench: target.bench, points: POINTS, bytes: bodies[0]?.length ?? 0 },
          times,
          floorTimes,
        ),
        connections,
        per_second: Math.round(perSecond),
        floor_per_second: Math.round(floorPerSecond),
        ratio: Math.round((perSecond / floorPerSecond) * 1000) / 1000,
      };
    }
  }
}

async function startTarget(
  bench: string,
  data: string,
  bodies: readonly Buffer[],
  ...settings: string[]
): Promise<Target> {
  const server = await startService(data, '--log-level', 'warn', ...settings);
  const ingest = await makeToken(data, 'bench', 'ingest');
  const read = await makeToken(data, 'bench-status', 'read');
  const headers = phoneHeaders(ingest);
  return {
    bench,
    server,
    requests: bodies.map((body) => postBytes('/v1/ingest', headers, body)),
    settle: () => untilIdle(server.url, read),
  };
}

export async function* acceptRate(options: BenchOptions): AsyncGenerator<BenchRow> {
  compile();
  const bodies = Array.from({ length: BODIES }, (_, seed) =>
    deliveryBody({ points: POINTS, seed, firstDay: FIRST_DAY + seed }),
  );
  yield* withFolder(async function* (folder) {
    const targets: Target[] = [];
    const floor = new SerialFloor(join(folder, 'floor'));
    try {
      targets.push(await startTarget('accept-rate', join(folder, 'group'), bodies));
      const single = join(folder, 'single');
      targets.push(await startTarget('accept-rate-single', single, bodies, '--commit-group', '1'));
      yield* rows(targets, floor, bodies, options);
    } finally {
      for (const { server } of targets) await server.stop();
      floor.close();
    }
  });
}
