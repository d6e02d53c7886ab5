/** `healthlog import` as a process of its own that a test can feed, watch and stop. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { type Outcome, stopAll } from './service.js';
import { tmpDir } from './tmp.js';

const PROGRAM = fileURLToPath(new URL('../../bin/healthlog', import.meta.url));

/** What a test started besides. */
export const children = new Set<ChildProcess>();
/** Ends what a test left running; for `afterEach`. */
export async function endAll(): Promise<void> {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  await stopAll();
}

export class Running {
  readonly child: ChildProcess;
  readonly #done: Promise<Outcome>;

  constructor(args: readonly string[], stdin?: Buffer) {
    const child = spawn(process.execPath, [PROGRAM, 'import', ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    children.add(child);
    this.child = child;
    this.#done = this.#collect(child);
    child.stdin.on('error', () => undefined).end(stdin);
  }

  async #collect(child: ChildProcess): Promise<Outcome> {
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    await once(child, 'close');
    return { code: child.exitCode, stdout, stderr };
  }

  ended(): Promise<Outcome> {
    return this.#done;
  }
}

export function newData(): string {
  return join(tmpDir(), 'data');
}

export function lines(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const summarySchema = z.object({ summary: z.record(z.string(), z.unknown()) });

export function summary(stdout: string): Record<string, unknown> {
  return summarySchema.parse(lines(stdout).at(-1)).summary;
}

/** One automation of days: a week, a single dense metric. */
export function week(steps: number, until: string): string {
  const last = Date.parse(`${until}T00:00:00Z`);
  const data = [6, 5, 4, 3, 2, 1, 0].map((back) => ({
    date: `${new Date(last - back * 86_400_000).toISOString().slice(0, 10)} 00:00:00 +0000`,
    qty: steps,
  }));
  return JSON.stringify({ data: { metrics: [{ name: 'step_count', units: 'count', data }] } });
}

export const WEEK_FLAGS = ['--aggregation', 'Days', '--period', 'Previous 7 Days'];
