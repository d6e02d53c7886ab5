import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ExclusionStore } from '../../src/journal/exclusions.js';
import { nodeFiles } from '../../src/journal/files.js';
import { metricAnswer } from '../../src/projections/answers/metric.js';
import { currentGeneration } from '../../src/projections/generations.js';
import type { Live } from '../../src/projections/live.js';
import { openGeneration } from '../../src/projections/readmodel.js';
import { type RebuildReport, rebuild } from '../../src/projections/rebuild.js';
import { rebuildLines } from '../../src/projections/rebuild-text.js';
import { facts, type Given, idOf, Lab, resultOf } from '../support/lab.js';
import { liveFacts, liveOf, settle } from '../support/live.js';
import { body, days, metric, minutes } from '../support/points.js';

let lab: Lab;
let live: Live | null = null;
const reasons: string[] = [];

beforeEach(() => {
  lab = new Lab();
  reasons.length = 0;
});
afterEach(() => {
  live?.close();
  live = null;
  lab.close();
});

const D = '2026-03-10';
const hourly = body(metric('step_count', 'count', minutes(D, 600, 720, 60)));
const later = body(
  metric(
    'step_count',
    'count',
    minutes(D, 600, 780, 60, () => 5),
  ),
);
const sparse = body(metric('protein', 'g', days([D])));

const store = (of: Lab = lab) => new ExclusionStore(of.journal, of.folder, nodeFiles, of.clock);

function exclude(id: string): void {
  store().exclude(id, 'a test');
}

function start(): Live {
  live = liveOf(lab, (reason) => reasons.push(reason));
  return live;
}

const generations = (): string[] =>
  readdirSync(lab.folder.readmodel).filter((name) => /^\d+\.db$/.test(name));

/** The facts without what the ledger says of these deliveries. */
function without(all: Record<string, unknown[]>, ids: ReadonlySet<string>): Record<string, unknown[]> {
  const ledger = (all.delivery_result ?? []) as { delivery_id: string }[];
  return { ...all, delivery_result: ledger.filter((row) => !ids.has(row.delivery_id)) };
}

describe('a delivery that is set aside', () => {
  const whole = (day: string) => [
    metric('step_count', 'count', minutes(day, 0, 1440, 60)),
    metric('active_energy', 'kcal', minutes(day, 0, 1440, 60)),
  ];
  const bodies: Pick<Given, 'body' | 'aggregation' | 'period'>[] = [
    { body: hourly },
    { body: later, aggregation: 'Hours' },
    { body: sparse },
    { body: body(metric('step_count', 'count', days([D, '2026-03-11']))), period: 'Previous 7 Days' },
    { body: body(...whole(D)), aggregation: 'Hours', period: 'Yesterday' },
    { body: body(...whole('2026-03-11')), aggregation: 'Hours', period: 'Today' },
    { body: body(metric('protein', 'g', [{ date: `${D} 12:00:01 +0100`, qty: 5 }])) },
    { body: 'not json' },
  ];
  const given = fc.record({
    kind: fc.nat({ max: bodies.length - 1 }),
    automation: fc.constantFrom('A', 'B', null),
    session: fc.constantFrom('S', 'T', null),
    isExcluded: fc.boolean(),
  });

  it('leaves the read model of a journal that never had it, and comes back whole', () => {
    fc.assert(
      fc.property(fc.array(given, { minLength: 1, maxLength: 6 }), (list) => {
        const labs = [new Lab(), new Lab()] as const;
        const [withIt, withoutIt] = labs;
        try {
          const excluded = new Set<string>();
          for (const [n, { kind, automation, session, isExcluded }] of list.entries()) {
            const delivery: Given = {
              ...(bodies[kind] ?? { body: hourly }),
              id: idOf(n + 1),
              at: `2026-05-01T00:0${n}:00Z`,
              ...(automation === null ? {} : { automation }),
              ...(session === null ? {} : { session }),
            };
            withIt.add(delivery);
            if (isExcluded) excluded.add(idOf(n + 1));
            else withoutIt.add(delivery);
          }
          const before = facts(withIt.folded());
          for (const id of excluded) store(withIt).exclude(id, 'a test');
          const after = withIt.folded();
          expect(without(facts(after), excluded)).toEqual(facts(withoutIt.folded()));
          for (const id of excluded)
            expect(resultOf(after, id)).toMatchObject({ class: 'excluded', layer: null });
          for (const id of excluded) store(withIt).include(id);
          expect(facts(withIt.folded())).toEqual(before);
        } finally {
          for (const one of labs) one.close();
        }
      }),
      { numRuns: 40 },
    );
  });

  it('gives no layer to the deliveries behind it', () => {
    const giver = lab.add({ automation: 'A', body: hourly });
    const taker = lab.add({ automation: 'A', body: sparse });
    expect(resultOf(lab.folded(), taker.id)).toMatchObject({ layer: 'hour', layer_from: giver.id });
    exclude(giver.id);
    expect(resultOf(lab.folded(), taker.id).class).toBe('layer_unknown');
  });

  it('covers no day', () => {
    lab.add({
      aggregation: 'Hours',
      period: 'Yesterday',
      clockAt: '2026-03-11T08:00:00Z',
      body: body(metric('step_count', 'count', minutes(D, 0, 600, 60))),
    });
    const narrower = lab.add({
      aggregation: 'Hours',
      period: 'Yesterday',
      clockAt: '2026-03-11T09:00:00Z',
      body: body(metric('step_count', 'count', minutes(D, 0, 300, 60))),
    });
    const dayOf = () =>
      metricAnswer(lab.folded(), { profile: 'me', metric: 'step_count', bucket: 'day' }).items[0]?.value;
    expect(dayOf()).toBe(5);
    exclude(narrower.id);
    expect(dayOf()).toBe(10);
  });

  it('is no part of a session: the one that is left is whole', () => {
    const part = { automation: 'A', session: 'S', body: hourly };
    lab.add(part);
    const second = lab.add(part);
    const batches = () => facts(lab.folded()).automation;
    expect(batches()).toEqual([{ profile: 'me', automation_id: 'A', batches: 1 }]);
    exclude(second.id);
    expect(batches()).toEqual([]);
  });
});

describe('the running service', () => {
  it('builds the read model anew when something is set aside, and when it is taken back', () => {
    lab.add({ body: hourly });
    const wrong = lab.add({ body: later });
    const running = start();
    settle(running);
    const before = liveFacts(lab);
    exclude(wrong.id);
    settle(running);
    expect(reasons.at(-1)).toBe('a delivery was set aside or taken back by a person');
    expect(liveFacts(lab)).toEqual(facts(lab.folded()));
    expect(liveFacts(lab).bucket).toHaveLength(2);
    store().include(wrong.id);
    settle(running);
    expect(liveFacts(lab)).toEqual(before);
    expect(reasons).toHaveLength(3);
  });

  it('sees after a restart what was set aside while it was down', () => {
    const wrong = lab.add({ body: hourly });
    settle(start());
    live?.close();
    exclude(wrong.id);
    settle(start());
    expect(liveFacts(lab).bucket).toEqual([]);
  });

  it('builds nothing anew for a delivery that has not had its turn, or for another one of nobody', () => {
    lab.add({ body: hourly });
    const running = start();
    settle(running);
    const wrong = lab.add({ body: later });
    exclude(wrong.id);
    lab.journal.db.prepare('INSERT INTO exclusion VALUES (?, ?, 0)').run(idOf(99), 'its body is lost');
    settle(running);
    expect(reasons).toEqual(['there is no read model yet']);
    expect(liveFacts(lab).bucket).toHaveLength(2);
  });

  it('builds nothing anew when it was taken back before anybody looked', () => {
    const row = lab.add({ body: hourly });
    const running = start();
    settle(running);
    exclude(row.id);
    store().include(row.id);
    settle(running);
    expect(reasons).toHaveLength(1);
  });

  it('follows a reason that has changed', () => {
    const row = lab.add({ body: hourly });
    exclude(row.id);
    const running = start();
    settle(running);
    store().include(row.id);
    store().exclude(row.id, 'somebody else’s phone');
    settle(running);
    expect(liveFacts(lab).delivery_result).toMatchObject([
      { reasons: JSON.stringify(['set aside by a person: somebody else’s phone']) },
    ]);
  });

  it('looks through the ledger only when the list has changed', () => {
    const row = lab.add({ body: hourly });
    exclude(row.id);
    const generation = lab.generation();
    const runner = lab.runner(generation);
    runner.pass();
    // A change that only a look through the ledger can see.
    generation.exec("UPDATE delivery_result SET parse_status = 'failed', class = 'broken'");
    expect(runner.pass().end).toBe('caught_up');
    lab.journal.db.prepare('INSERT INTO exclusion VALUES (?, ?, 0)').run(idOf(99), 'nobody');
    expect(runner.pass()).toMatchObject({
      end: 'stale',
      reason: 'a delivery was set aside or taken back by a person',
    });
  });
});

describe('rebuild and verify', () => {
  const run = (dryRun: boolean): Promise<RebuildReport> =>
    rebuild({ folder: lab.folder, clock: lab.clock, dryRun, acceptLoss: false });

  it('a rebuild compares with what was shown, and then builds with what is set aside now', async () => {
    lab.add({ body: hourly });
    const wrong = lab.add({ body: later });
    await run(false);
    exclude(wrong.id);
    const report = await run(false);
    expect(generations()).toHaveLength(2);
    expect(report).toMatchObject({
      exitCode: 0,
      result: 'switched',
      compared: true,
      differences: [],
      drifted: [wrong.id],
    });
    expect(rebuildLines(report, false).join('\n')).toContain('as it was before that');
    expect(liveFacts(lab)).toEqual(facts(lab.folded()));
    expect(liveFacts(lab).delivery_result).toHaveLength(2);
    expect(await run(true)).toMatchObject({ exitCode: 0, differences: [], drifted: [] });
  });

  it('a rebuild takes back what was set aside', async () => {
    const row = lab.add({ body: hourly });
    exclude(row.id);
    await run(false);
    store().include(row.id);
    expect(await run(false)).toMatchObject({ exitCode: 0, differences: [], drifted: [row.id] });
    expect(liveFacts(lab).bucket).toHaveLength(2);
  });

  it('a verify says that the live one does not follow yet, and is clean', async () => {
    const row = lab.add({ body: hourly });
    await run(false);
    exclude(row.id);
    const report = await run(true);
    expect(report).toMatchObject({ exitCode: 0, compared: true, differences: [], drifted: [row.id] });
    expect(rebuildLines(report, true).join('\n')).toMatch(
      /does not follow yet[\s\S]*healthlog rebuild[\s\S]*/,
    );
    expect(liveFacts(lab).bucket).toHaveLength(2);
  });

  it('still find a wrong row when something was set aside', async () => {
    const wrong = lab.add({ body: hourly });
    lab.add({ body: later });
    await run(false);
    exclude(wrong.id);
    const db = openGeneration(currentGeneration(lab.folder)?.path ?? '', 'write');
    db.exec('UPDATE bucket SET value = value + 1 WHERE start = (SELECT min(start) FROM bucket)');
    db.close();
    expect(await run(true)).toMatchObject({ exitCode: 3, differences: [{ table: 'bucket', onlyLive: 1 }] });
    expect(await run(false)).toMatchObject({ exitCode: 3, result: 'switched' });
    expect(liveFacts(lab)).toEqual(facts(lab.folded()));
  });
});
