/**
 * What all benches share: the shape of a result, the statistics, and processes that are started and ended.
 *
 * Every measurement stands beside a *floor*: the barest program that does the same physical work, measured in
 * the same run in interleaved rounds. The ratio then means something on any machine; the milliseconds do not.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface BenchRow {
  readonly bench: string;
  readonly points: number;
  /** Of one body. */
  readonly bytes: number;
  readonly rounds: number;
  readonly median_ms: number;
  readonly floor_median_ms: number;
  readonly ratio: number;
  readonly p99_ms: number;
  readonly floor_p99_ms: number;
  /** Time of one bare COMMIT with synchronous = FULL, which the floor of `ack` does without. */
  readonly commit_ms?: number;
  /** Of `accept-rate`, whose ratio is that of the rates: the greater, the better. */
  readonly connections?: number;
  readonly per_second?: number;
  readonly floor_per_second?: number;
}

export interface BenchOptions {
  readonly quick: boolean;
  /** Told what is going on, for a person who waits. */
  readonly note: (text: string) => void;
}

/** A bench gives its rows one by one, as they are measured. */
export type Bench = (options: BenchOptions) => AsyncGenerator<BenchRow>;

/** Times of one program, in milliseconds. */
export type Times = number[];

function quantile(times: Times, share: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

export function median(times: Times): number {
  return quantile(times, 0.5);
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

export function benchRow(
  what: {
    readonly bench: string;
    readonly points: number;
    readonly bytes: number;
    readonly commitMs?: number;
  },
  times: Times,
  floor: Times,
): BenchRow {
  return {
    bench: what.bench,
    points: what.points,
    bytes: what.bytes,
    rounds: times.length,
    median_ms: rounded(median(times)),
    floor_median_ms: rounded(median(floor)),
    ratio: rounded(median(times) / median(floor)),
    p99_ms: rounded(quantile(times, 0.99)),
    floor_p99_ms: rounded(quantile(floor, 0.99)),
    ...(what.commitMs === undefined ? {} : { commit_ms: rounded(what.commitMs) }),
  };
}

/**
 * A new folder for one run. It is removed when the run is over and nothing is measured any more: a file system
 * that has just deleted thousands of files creates new ones many times slower.
 */
export async function* withFolder<T>(run: (folder: string) => AsyncGenerator<T>): AsyncGenerator<T> {
  const folder = mkdtempSync(join(tmpdir(), 'healthlog-bench-'));
  folders.add(folder);
  try {
    yield* run(folder);
  } finally {
    removeFolder(folder);
  }
}

const START_MS_MAX = 30_000;
const STOP_MS_MAX = 10_000;

export interface StartedServer {
  readonly url: URL;
  /** Asks it to end, and ends it when it does not. */
  stop(): Promise<void>;
}

/** Whatever way this process ends, what it started and made ends with it. */
const running = new Set<ChildProcess>();
const folders = new Set<string>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const folder of folders) removeFolder(folder);
});

function removeFolder(folder: string): void {
  // A process that was just killed may still be writing its last file into it.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  folders.delete(folder);
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => process.exit(code));
}

/** Starts a program of this runtime and waits for its line `listening on http://HOST:PORT`. */
export async function startServer(args: readonly string[]): Promise<StartedServer> {
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      running.delete(child);
      resolve();
    });
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-2000);
  });
  const lines = createInterface({ input: child.stdout });
  const listening = new Promise<URL>((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${args.join(' ')} was not listening after ${START_MS_MAX / 1000} s`)),
      START_MS_MAX,
    );
    lines.on('line', (line) => {
      const url = /^listening on (http:\/\/\S+)$/.exec(line)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(new URL(url));
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      reject(new Error(`${args.join(' ')} ended with code ${code}: ${complaints.trim()}`));
    });
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS_MAX);
    await ended;
    clearTimeout(timer);
  };
  try {
    return { url: await listening, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
