/**
 * `ack`: how long a phone waits for its 200, from the first byte sent to the last byte of the answer.
 *
 * The service and the floor (ack-floor.ts) are two processes on the loopback interface. Each round posts the same
 * body once to each, in changing order, over a connection that is already open. Between rounds the service may
 * finish folding, so that what is measured is the answer and not the fold on a shared machine.
 *
 * `ack-same-bytes` posts bodies of one length with ten times fewer points, the rest being one long text: when the
 * answer follows the bytes, its rows show the same time.
 */
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { dayOfYmd } from '../src/projections/dates.js';
import { bodyOfBytes, deliveryBody, EMPTY_RUN } from './body.js';
import {
  type BenchOptions,
  type BenchRow,
  benchRow,
  median,
  startServer,
  type Times,
  withFolder,
} from './harness.js';
import { compile, makeToken, phoneHeaders, startService, untilIdle } from './service.js';

const FIRST_DAY = dayOfYmd(2025, 3, 10);
const ANSWER_MS_MAX = 120_000;
const POLL_MS = 15;
const WARM_UP_ROUNDS = 3;

/** Points of a body, and how often it is posted. */
const QUICK: readonly (readonly [number, number])[] = [
  [0, 15],
  [1_001, 15],
  [4_001, 15],
  [16_001, 11],
  [64_001, 5],
];
const FULL: readonly (readonly [number, number])[] = [
  [0, 101],
  [1_001, 101],
  [4_001, 101],
  [16_001, 51],
  [64_001, 25],
  [256_001, 11],
  [1_000_000, 7],
];
const SAME_BYTES_POINTS = [1_601, 16_001] as const;

interface Target {
  readonly url: URL;
  readonly agent: Agent;
  readonly headers: Readonly<Record<string, string>>;
}

/** Milliseconds until the whole answer is read. Throws when it is not a 200. */
function post({ url, agent, headers }: Target, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const sent = request(
      url,
      {
        method: 'POST',
        agent,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
        timeout: ANSWER_MS_MAX,
      },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        answer.once('error', reject);
        answer.once('end', () => {
          const ms = performance.now() - startedMs;
          if (answer.statusCode === 200) resolve(ms);
          else reject(new Error(`${url.pathname} answered ${answer.statusCode}: ${text.slice(0, 300)}`));
        });
      },
    );
    sent.once('timeout', () => sent.destroy(new Error(`no answer within ${ANSWER_MS_MAX / 1000} s`)));
    sent.once('error', reject);
    sent.end(body);
  });
}

interface Pair {
  readonly service: Target;
  readonly floor: Target;
  /** Waits until the service does nothing but wait. */
  readonly settle: () => Promise<void>;
}

interface Case {
  readonly bench: string;
  readonly points: number;
  readonly body: Buffer;
}

/** Interleaved rounds over all cases and both programs. */
async function measure(
  cases: readonly Case[],
  rounds: number,
  { service, floor, settle }: Pair,
): Promise<{ times: Times; floorTimes: Times }[]> {
  const results = cases.map((): { times: Times; floorTimes: Times } => ({ times: [], floorTimes: [] }));
  // Making a body held the event loop up: connections that were closed meanwhile have to be noticed first.
  await delay(POLL_MS);
  const warmUp = Math.min(WARM_UP_ROUNDS, rounds);
  for (let round = -warmUp; round < rounds; round++) {
    for (const [at, { body }] of cases.entries()) {
      const serviceFirst = round % 2 === 0;
      const early = await post(serviceFirst ? service : floor, body);
      // The floor does not fold, and the service must not while the floor is measured.
      await settle();
      const late = await post(serviceFirst ? floor : service, body);
      await settle();
      if (round < 0) continue;
      results[at]?.times.push(serviceFirst ? early : late);
      results[at]?.floorTimes.push(serviceFirst ? late : early);
    }
  }
  return results;
}

/** Median of one small INSERT and its COMMIT in WAL with synchronous = FULL, milliseconds. */
function bareCommitMs(folder: string): number {
  const db = new Database(join(folder, 'commit.db'));
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT)');
  const insert = db.prepare('INSERT INTO row (text) VALUES (?)');
  const commit = db.transaction(() => insert.run('x'.repeat(300)));
  const times: Times = [];
  for (let round = 0; round < 60; round++) {
    const startedMs = performance.now();
    commit.immediate();
    if (round >= 10) times.push(performance.now() - startedMs);
  }
  db.close();
  return median(times);
}

async function* rows(pair: Pair, commitMs: number, { quick, note }: BenchOptions): AsyncGenerator<BenchRow> {
  for (const [points, rounds] of quick ? QUICK : FULL) {
    note(`ack: ${points} points, ${rounds} rounds`);
    const body = points === 0 ? EMPTY_RUN : deliveryBody({ points, seed: points, firstDay: FIRST_DAY });
    const [result] = await measure([{ bench: 'ack', points, body }], rounds, pair);
    if (result === undefined) continue;
    yield benchRow({ bench: 'ack', points, bytes: body.length, commitMs }, result.times, result.floorTimes);
  }
  const [few, many] = SAME_BYTES_POINTS;
  const whole = deliveryBody({ points: many, seed: 7, firstDay: FIRST_DAY });
  const cases: Case[] = [
    {
      bench: 'ack-same-bytes',
      points: few,
      body: bodyOfBytes({ points: few, seed: 7, firstDay: FIRST_DAY }, whole.length),
    },
    { bench: 'ack-same-bytes', points: many, body: whole },
  ];
  const rounds = quick ? 7 : 31;
  note(`ack: ${few} and ${many} points in the same number of bytes, ${rounds} rounds`);
  for (const [at, { times, floorTimes }] of (await measure(cases, rounds, pair)).entries()) {
    const { bench = '', points = 0 } = cases[at] ?? {};
    yield benchRow({ bench, points, bytes: whole.length, commitMs }, times, floorTimes);
  }
}

export async function* ack(options: BenchOptions): AsyncGenerator<BenchRow> {
  compile();
  yield* withFolder(async function* (folder) {
    const data = join(folder, 'data');
    const agents = [0, 1].map(() => new Agent({ keepAlive: true, maxSockets: 1, timeout: ANSWER_MS_MAX }));
    const [serviceAgent = new Agent(), floorAgent = new Agent()] = agents;
    const floor = await startServer(['--import', 'tsx', 'bench/ack-floor.ts', join(folder, 'floor')]);
    try {
      const service = await startService(data);
      try {
        const ingest = await makeToken(data, 'bench', 'ingest');
        const read = await makeToken(data, 'bench-status', 'read');
        const pair: Pair = {
          service: {
            url: new URL('/v1/ingest', service.url),
            agent: serviceAgent,
            headers: phoneHeaders(ingest),
          },
          floor: { url: new URL('/v1/ingest', floor.url), agent: floorAgent, headers: {} },
          settle: () => untilIdle(service.url, read),
        };
        yield* rows(pair, bareCommitMs(folder), options);
      } finally {
        for (const agent of agents) agent.destroy();
        await service.stop();
      }
    } finally {
      await floor.stop();
    }
  });
}
