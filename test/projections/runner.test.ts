import { closeSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { adoptOrphans } from '../../src/journal/reconcile.js';
import { PENDING_SQL } from '../../src/projections/ledger.js';
import { openGeneration, readMeta } from '../../src/projections/readmodel.js';
import type { RunnerOptions } from '../../src/projections/runner.js';
import { facts, idOf, Lab, resultOf } from '../support/lab.js';
import { body, days, metric, minutes } from '../support/points.js';

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.close());

const D = '2026-03-10';
const hourly = body(metric('step_count', 'count', minutes(D, 600, 720, 60)));
const minutely = body(metric('step_count', 'count', minutes(D, 601, 603, 1)));
const sparse = body(metric('protein', 'g', days([D])));
const A = 'AUTOMATION-A';

describe('a pass', () => {
  it('enrols what the journal holds and folds it in journal order', () => {
    const late = lab.add({ at: '2026-05-02T00:00:00Z', body: hourly });
    const early = lab.add({ at: '2026-05-01T00:00:00Z', body: hourly });
    const order: string[] = [];
    const report = lab.runner(lab.generation(), { afterFold: (id) => order.push(id) }).pass();
    expect(report).toMatchObject({ end: 'caught_up', enrolled: 2 });
    expect(order).toEqual([early.id, late.id]);
  });

  it('takes deliveries of one instant by their ids', () => {
    const order: string[] = [];
    lab.add({ id: idOf(9), at: '2026-05-02T00:00:00Z', body: body() });
    lab.add({ id: idOf(8), at: '2026-05-02T00:00:00Z', body: body() });
    lab.runner(lab.generation(), { afterFold: (id) => order.push(id) }).pass();
    expect(order).toEqual([idOf(8), idOf(9)]);
  });

  it('leaves a smaller position that arrives meanwhile to the next pass', () => {
    const generation = lab.generation();
    lab.add({ at: '2026-05-02T00:00:00Z', body: hourly });
    const runner = lab.runner(generation);
    runner.pass();
    const late = lab.add({ at: '2026-05-01T00:00:00Z', body: hourly });
    expect(runner.pass()).toMatchObject({ end: 'caught_up', outcomes: { deliveries: 1 } });
    expect(resultOf(generation, late.id).parse_status).toBe('parsed');
  });

  it('ends although some deliveries cannot record an outcome, and they have their turn in the next one', () => {
    const generation = lab.generation();
    const ids = Array.from({ length: 250 }, () => lab.add({ body: body() }).id);
    const bad = new Set([ids[0], ids[99], ids[100], ids[249]]);
    generation.exec('CREATE TABLE refused (id TEXT)');
    for (const id of bad) generation.prepare('INSERT INTO refused VALUES (?)').run(id);
    generation.exec(`CREATE TRIGGER refuse BEFORE UPDATE ON delivery_result WHEN NEW.delivery_id IN (SELECT id FROM refused)
      BEGIN SELECT RAISE(ABORT, 'no'); END`);
    const unrecorded: string[] = [];
    const runner = lab.runner(generation, {
      onFault: () => undefined,
      onUnrecorded: (id) => unrecorded.push(id),
    });
    const report = runner.pass();
    expect(report).toMatchObject({ end: 'caught_up', outcomes: { deliveries: 246 } });
    expect(new Set(report.unrecorded)).toEqual(bad);
    expect(unrecorded).toHaveLength(4);
    generation.exec('DROP TRIGGER refuse');
    expect(runner.pass()).toMatchObject({ outcomes: { deliveries: 4 }, unrecorded: [] });
  });

  it('looks at the stop flag between deliveries and leaves the rest pending', () => {
    const generation = lab.generation();
    for (let i = 0; i < 5; i++) lab.add({ body: hourly });
    let folds = 0;
    const report = lab
      .runner(generation, { stopped: () => folds >= 2, afterFold: () => void folds++ })
      .pass();
    expect(report).toMatchObject({ end: 'stopped', outcomes: { deliveries: 2 } });
    expect(lab.runner(generation).pass()).toMatchObject({ outcomes: { deliveries: 3 } });
  });

  it('folds nothing twice', () => {
    const generation = lab.generation();
    lab.add({ body: hourly });
    const runner = lab.runner(generation);
    runner.pass();
    expect(runner.pass()).toMatchObject({ end: 'caught_up', enrolled: 0, outcomes: { deliveries: 0 } });
  });

  it('asks for what is pending through the partial index, as a range behind the cursor', () => {
    const plan = lab
      .generation()
      .prepare<[number, string, number], { detail: string }>(`EXPLAIN QUERY PLAN ${PENDING_SQL}`)
      .all(0, '', 1);
    expect(plan.map(({ detail }) => detail)).toEqual([
      'SEARCH delivery_result USING COVERING INDEX delivery_result_pending ((received_at,delivery_id)>(?,?))',
    ]);
  });

  it('keeps synchronous at NORMAL on the read model after a first write', () => {
    lab.add({ body: hourly });
    expect(lab.folded().pragma('synchronous', { simple: true })).toBe(1);
  });
});

describe('what waits', () => {
  it('a delivery that needs an inherited layer waits for an earlier one of its automation that is still pending', () => {
    const earlier = lab.add({ automation: A, body: hourly });
    const taker = lab.add({ automation: A, body: sparse });
    const other = lab.add({ automation: 'AUTOMATION-B', body: hourly });
    const generation = lab.generation();
    const report = lab.runner(generation, lockedDuring(generation, earlier.id)).pass();
    expect(report.deferred).toEqual([earlier.id, taker.id]);
    expect(resultOf(generation, other.id).parse_status).toBe('parsed');
    expect(resultOf(generation, taker.id)).toMatchObject({ parse_status: 'pending', class: null });
    expect(lab.runner(generation).pass()).toMatchObject({ end: 'caught_up', deferred: [] });
    expect(resultOf(generation, taker.id)).toMatchObject({ layer: 'hour', layer_from: earlier.id });
  });

  it('a delivery with a layer of its own does not wait', () => {
    const earlier = lab.add({ automation: A, body: hourly });
    const own = lab.add({ automation: A, body: minutely });
    const generation = lab.generation();
    lab.runner(generation, lockedDuring(generation, earlier.id)).pass();
    expect(resultOf(generation, own.id).parse_status).toBe('parsed');
  });

  it('a busy database leaves the delivery pending and counts as no attempt', () => {
    const row = lab.add({ body: hourly });
    const generation = lab.generation();
    const report = lab.runner(generation, lockedDuring(generation, row.id)).pass();
    expect(report).toMatchObject({
      end: 'caught_up',
      deferred: [row.id],
      outcomes: { byClass: { deferred: 1 } },
    });
    expect(resultOf(generation, row.id)).toMatchObject({ parse_status: 'pending', counters: null });
  });
});

/** Another program holds the write lock of the read model for the length of one fold. */
function lockedDuring(generation: Database.Database, id: string): Partial<RunnerOptions> {
  const foreign = new Database(generation.name);
  generation.pragma('busy_timeout = 0');
  return {
    beforeFold: (folding) => {
      if (folding === id) foreign.exec('BEGIN IMMEDIATE');
    },
    afterFold: (folded) => {
      if (folded === id) foreign.close();
    },
  };
}

describe('the inheritance check', () => {
  /** Without the early one, the taker finds nothing; the early one is in the archive alone. */
  function twoInTheOtherOrder() {
    const giver = lab.add({ automation: A, at: '2026-05-01T00:00:00Z', body: hourly, orphan: true });
    const taker = lab.add({ automation: A, at: '2026-05-02T00:00:00Z', body: sparse });
    return { giver, taker };
  }

  it('sees that an adopted earlier delivery changes a layer that was settled without it', () => {
    const { giver, taker } = twoInTheOtherOrder();
    const generation = lab.generation();
    const runner = lab.runner(generation);
    runner.pass();
    expect(resultOf(generation, taker.id).class).toBe('layer_unknown');
    expect(adoptOrphans({ folder: lab.folder, journal: lab.journal }).adopted.map(({ id }) => id)).toEqual([
      giver.id,
    ]);
    const report = runner.pass();
    expect(report).toMatchObject({
      end: 'stale',
      mismatches: [{ id: taker.id, recordedLayer: null, layer: 'hour', from: giver.id }],
    });
    expect(readMeta(generation).stale).toContain('turned up late');
    expect(resultOf(lab.folded(), taker.id)).toMatchObject({ layer: 'hour', layer_from: giver.id });
  });

  it('is content when the late delivery changes nothing', () => {
    lab.add({ automation: A, at: '2026-05-02T00:00:00Z', body: hourly });
    lab.add({ automation: A, at: '2026-05-03T00:00:00Z', body: sparse });
    const generation = lab.generation();
    const runner = lab.runner(generation);
    runner.pass();
    lab.add({ automation: A, at: '2026-05-01T00:00:00Z', body: minutely });
    expect(runner.pass()).toMatchObject({ end: 'caught_up', mismatches: [] });
  });

  it('finds a layer that was changed by hand', () => {
    lab.add({ automation: A, body: hourly });
    const taker = lab.add({ automation: A, body: sparse });
    const generation = lab.generation();
    const runner = lab.runner(generation);
    runner.pass();
    expect(runner.inheritance.mismatches()).toEqual([]);
    generation.prepare("UPDATE delivery_result SET layer = 'day' WHERE delivery_id = ?").run(taker.id);
    expect(runner.inheritance.mismatches()).toMatchObject([
      { id: taker.id, recordedLayer: 'day', layer: 'hour' },
    ]);
  });
});

describe('a generation that does not belong to this journal', () => {
  it('is stale when the epoch is another', () => {
    lab.add({ body: hourly });
    const generation = lab.folded();
    generation.exec("UPDATE generation SET journal_epoch = 'another'");
    expect(lab.runner(generation).pass()).toMatchObject({
      end: 'stale',
      reason: expect.stringContaining('another one'),
    });
  });

  it('is stale when another delivery stands at the seq it has enrolled up to', () => {
    lab.add({ body: hourly });
    const generation = lab.folded();
    generation.exec(`UPDATE generation SET enrolled_id = '${idOf(77)}'`);
    expect(lab.runner(generation).pass()).toMatchObject({
      end: 'stale',
      reason: expect.stringContaining('restored'),
    });
  });

  it('is stale when it was built by another fold version', () => {
    lab.add({ body: hourly });
    const generation = lab.folded();
    generation.exec('UPDATE generation SET fold_version = 0');
    expect(lab.runner(generation).pass()).toMatchObject({
      end: 'stale',
      reason: expect.stringContaining('version 0'),
    });
  });
});

describe('outcomes of deliveries that cannot be folded', () => {
  it.each([
    ['not JSON', '{"data": nonsense}', 'malformed'],
    ['a number', '12', 'malformed'],
    ['an object without any section', '{"hello": []}', 'malformed'],
    ['a list of nothing that is an export', '[1, 2]', 'malformed'],
  ])('%s is %s', (_what, text, name) => {
    const row = lab.add({ body: text });
    expect(resultOf(lab.folded(), row.id)).toMatchObject({ parse_status: 'failed', class: name });
  });

  it('a missing body is unreadable, and so is one whose hash is wrong', () => {
    const gone = lab.add({ body: hourly });
    const other = lab.add({ body: minutely });
    const third = lab.add({ body: sparse });
    rmSync(join(lab.folder.archive, gone.archivePath));
    renameSync(join(lab.folder.archive, other.archivePath), join(lab.folder.archive, third.archivePath));
    const generation = lab.folded();
    for (const { id } of [gone, other, third]) {
      expect(resultOf(generation, id)).toMatchObject({ parse_status: 'failed', class: 'unreadable' });
    }
  });

  it('an excluded one is excluded, with the reason a person gave', () => {
    const row = lab.add({ body: hourly });
    lab.journal.db.prepare('INSERT INTO exclusion VALUES (?, ?, 0)').run(row.id, 'a test');
    const generation = lab.folded();
    expect(resultOf(generation, row.id)).toMatchObject({ parse_status: 'excluded', class: 'excluded' });
    expect(resultOf(generation, row.id).reasons).toContain('a test');
    expect(facts(generation).bucket).toEqual([]);
  });

  it('one that takes too long is given up with nothing half written', () => {
    const row = lab.add({ body: hourly });
    let ms = 0;
    const generation = lab.folded({ deadlineMs: 10, monotonicMs: () => (ms += 6) });
    expect(resultOf(generation, row.id)).toMatchObject({ parse_status: 'failed', class: 'deadline' });
    expect(facts(generation).bucket).toEqual([]);
  });

  it('one beyond the size the fold takes is too_large', () => {
    const row = lab.add({ body: hourly });
    expect(resultOf(lab.folded({ bodyBytesMax: 10 }), row.id)).toMatchObject({ class: 'too_large' });
  });

  it('one with more values than the heap can take is too_large before it is parsed', () => {
    const row = lab.add({ body: `{"data":{"metrics":[${'{},'.repeat(50_000)}{}]}}` });
    const other = lab.add({ body: hourly });
    const generation = lab.folded({ heapBytes: 5_000_000 });
    expect(resultOf(generation, row.id)).toMatchObject({ parse_status: 'failed', class: 'too_large' });
    expect(resultOf(generation, other.id)).toMatchObject({ parse_status: 'parsed' });
  });

  it('a fault of ours is broken, is told with its delivery, and writes no rows', () => {
    const row = lab.add({ body: hourly });
    const generation = lab.generation();
    generation.exec("CREATE TRIGGER fault BEFORE INSERT ON bucket BEGIN SELECT RAISE(ABORT, 'boom'); END");
    const faults: string[] = [];
    lab.runner(generation, { onFault: (id) => faults.push(id) }).pass();
    expect(faults).toEqual([row.id]);
    expect(resultOf(generation, row.id)).toMatchObject({ parse_status: 'failed', class: 'broken' });
  });

  it('a damaged read model is nobody’s outcome: the pass ends and the delivery stays pending', () => {
    const row = lab.add({ body: hourly });
    const made = lab.generation();
    const page = made
      .prepare<[], { rootpage: number }>("SELECT rootpage FROM sqlite_master WHERE name = 'bucket'")
      .get();
    made.close();
    damagePage(made.name, page?.rootpage ?? 0);
    const generation = openGeneration(made.name, 'write');
    const report = lab.runner(generation).pass();
    expect(report).toMatchObject({ end: 'damaged', outcomes: { deliveries: 0 } });
    expect(resultOf(generation, row.id).parse_status).toBe('pending');
    generation.close();
  });
});

/** Overwrites one page (counted from 1) of a closed database with noise. */
function damagePage(path: string, page: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(4096, 7), 0, 4096, (page - 1) * 4096);
  closeSync(file);
}
