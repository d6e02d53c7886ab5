/** The runner in its worker thread: real thread, real files. What is waited for is an answer, never a time. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deliveryId } from '../../src/journal/position.js';
import { currentGeneration } from '../../src/projections/generations.js';
import { openGeneration } from '../../src/projections/readmodel.js';
import { type RunnerThread, startRunner } from '../../src/projections/thread.js';
import { idOf, Lab, resultOf } from '../support/lab.js';
import { body, metric, minutes } from '../support/points.js';

let lab: Lab;
let thread: RunnerThread | null = null;
const lines: string[] = [];
const log = {
  info: (_fields: object, text: string) => void lines.push(`info ${text}`),
  warn: (_fields: object, text: string) => void lines.push(`warn ${text}`),
  error: (fields: object, text: string) => void lines.push(`error ${text} ${JSON.stringify(fields)}`),
};

beforeEach(() => {
  lab = new Lab();
  lines.length = 0;
});
afterEach(async () => {
  await thread?.stop(10_000);
  thread = null;
  lab.close();
});

const WAIT_MS = 30_000;
const hourly = body(metric('step_count', 'count', minutes('2026-03-10', 600, 720, 60)));

function start(): RunnerThread {
  thread = startRunner({ folder: lab.folder, log });
  return thread;
}

describe('the runner thread', () => {
  it('folds what was pending before it started, and what it is woken for', async () => {
    const before = lab.add({ body: hourly });
    const runner = start();
    expect(await runner.waitFolded(before.id, WAIT_MS)).toMatchObject({
      parseStatus: 'parsed',
      layer: 'hour',
      layerOrigin: 'content',
    });
    const after = lab.add({ body: hourly });
    runner.wake();
    expect(await runner.waitFolded(after.id, WAIT_MS)).toMatchObject({
      class: 'folded',
      counters: { points: 2 },
    });
    expect(runner.state()).toMatchObject({ begun: true, restarts: 0 });
  });

  it('tells that the generation was switched', async () => {
    const row = lab.add({ body: hourly });
    const runner = start();
    await runner.waitFolded(row.id, WAIT_MS);
    expect(await runner.stop(WAIT_MS)).toBe(true);
    expect(runner.generationCounter[0]).toBe(1);
    expect(existsSync(join(lab.folder.readmodel, 'live.db'))).toBe(true);
  });

  it('answers null for a delivery that nobody folds', async () => {
    const runner = start();
    expect(await runner.waitFolded(deliveryId(idOf(99)), 1)).toBeNull();
  });

  it('stops between deliveries: what is folded is whole, the rest is pending', async () => {
    const rows = Array.from({ length: 40 }, () => lab.add({ body: hourly }));
    const runner = start();
    await runner.waitFolded(rows[0]?.id ?? idOf(1), WAIT_MS);
    expect(await runner.stop(WAIT_MS)).toBe(true);
    const file = currentGeneration(lab.folder);
    // The first generation is switched to when it has caught up; stopped before that, the next start builds anew.
    if (file !== null) {
      const db = openGeneration(file.path, 'read');
      for (const { id } of rows) expect(['parsed', 'pending']).toContain(resultOf(db, id).parse_status);
      db.close();
    }
    const next = start();
    expect(await next.waitFolded(rows.at(-1)?.id ?? idOf(1), WAIT_MS)).not.toBeNull();
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });
});
