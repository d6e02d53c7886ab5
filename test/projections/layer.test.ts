import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SPEAKING_SQL } from '../../src/projections/inheritance.js';
import { coarserThan, declaredLayer, grainOf, LAYERS } from '../../src/projections/layer.js';
import { Lab, resultOf } from '../support/lab.js';
import { at, body, days, metric, minutes, type PointSpec } from '../support/points.js';

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.close());

const D = '2026-03-10';
const steps = (points: PointSpec[]) => metric('step_count', 'count', points);
const energy = (points: PointSpec[]) => metric('active_energy', 'kcal', points);
const distance = (points: PointSpec[]) => metric('walking_running_distance', 'km', points);
const protein = (points: PointSpec[]) => metric('protein', 'g', points);
const heart = (points: { date: string }[]) =>
  metric(
    'heart_rate',
    'count/min',
    points.map(({ date }) => ({ date, Min: 50, Avg: 60, Max: 70 })),
  );

describe('the words of the header', () => {
  it.each([
    ['Default', 'default'],
    ['Seconds', 'second'],
    ['minutes', 'minute'],
    ['HOURS', 'hour'],
    ['Days', 'day'],
    ['weeks', 'week'],
    ['Months', 'month'],
    ['Year s', 'year'],
    ['Tage', null],
    ['none', null],
    ['', null],
    [null, null],
  ])('%s is read as %s', (header, layer) => {
    expect(declaredLayer(header)).toBe(layer);
  });

  it('orders the layers from raw to year', () => {
    for (const [i, a] of LAYERS.entries()) {
      for (const [j, b] of LAYERS.entries()) expect(coarserThan(a, b)).toBe(i > j);
    }
  });

  it('gives Default seconds for heart_rate and minutes for the rest', () => {
    expect(grainOf('default', 'heart_rate')).toBe('second');
    expect(grainOf('default', 'step_count')).toBe('minute');
    expect(grainOf('hour', 'heart_rate')).toBe('hour');
  });
});

describe('the layer of one delivery, by its header and its stamps', () => {
  const midnight = at(D);
  const twoNights = [at(D), at('2026-03-11')];
  const rows: [string, string | undefined, Record<string, unknown>, string | null, string][] = [
    ['an Hours delivery whose only stamps are midnight', 'Hours', body(steps(days([D]))), 'hour', 'declared'],
    ['a Minutes delivery at 00:00', 'Minutes', body(steps(days([D]))), 'minute', 'declared'],
    [
      'a nutrition-only delivery under Default',
      'Default',
      body(protein([{ date: at(D, '12:30:00'), qty: 20 }])),
      'default',
      'declared',
    ],
    ['Days with two nights', 'Days', body(steps(days([D, '2026-03-11']))), 'day', 'declared'],
    ['Weeks', 'Weeks', body(steps(days([D]))), 'week', 'declared'],
    ['Days, but with minutes', 'Days', body(steps(minutes(D, 600, 620, 1))), 'minute', 'bound'],
    ['Days, but with an hour', 'Days', body(steps([{ date: at(D, '10:00:00'), qty: 1 }])), 'hour', 'bound'],
    ['Hours, but with seconds', 'Hours', body(steps([{ date: at(D, '10:00:01'), qty: 1 }])), 'raw', 'bound'],
    [
      'Seconds with seconds',
      'Seconds',
      body(steps([{ date: at(D, '10:00:01'), qty: 1 }])),
      'second',
      'declared',
    ],
    [
      'Seconds whose stamps happen to be full minutes',
      'Seconds',
      body(steps([{ date: at(D, '10:01:00'), qty: 1 }])),
      'second',
      'declared',
    ],
    [
      'Default with seconds in heart_rate alone',
      'Default',
      body(heart([{ date: at(D, '10:00:07') }]), steps(minutes(D, 600, 601, 1))),
      'default',
      'declared',
    ],
    [
      'Default with seconds in steps',
      'Default',
      body(steps([{ date: at(D, '10:00:07'), qty: 1 }])),
      'raw',
      'bound',
    ],
    [
      'Minutes with seconds in heart_rate alone',
      'Minutes',
      body(heart([{ date: at(D, '10:00:07') }])),
      'default',
      'bound',
    ],
    ['no header, seconds', undefined, body(steps([{ date: at(D, '10:00:07'), qty: 1 }])), 'raw', 'content'],
    [
      'no header, seconds in heart_rate alone',
      undefined,
      body(heart([{ date: at(D, '10:00:07') }])),
      'default',
      'content',
    ],
    ['no header, minutes', undefined, body(steps(minutes(D, 601, 603, 1))), 'minute', 'content'],
    [
      'a header in another language, minutes',
      'Minuten',
      body(steps(minutes(D, 601, 603, 1))),
      'minute',
      'content',
    ],
    [
      'no header, dense metrics at two hours',
      undefined,
      body(steps(minutes(D, 600, 720, 60))),
      'hour',
      'content',
    ],
    [
      'no header, dense metrics at two hours and at midnight',
      undefined,
      body(steps([...days([D]), ...minutes(D, 600, 720, 60)])),
      'hour',
      'content',
    ],
    [
      'no header, dense metrics at one hour',
      undefined,
      body(steps([{ date: at(D, '10:00:00'), qty: 1 }])),
      null,
      'unknown',
    ],
    [
      'no header, sparse metrics at two hours',
      undefined,
      body(protein(minutes(D, 600, 720, 60))),
      null,
      'unknown',
    ],
    [
      'no header, dense metrics at two midnights',
      undefined,
      body(steps(twoNights.map((date) => ({ date, qty: 1 })))),
      'day',
      'content',
    ],
    [
      'no header, dense metrics at two midnights but another one at an hour',
      undefined,
      body(steps(days([D, '2026-03-11'])), protein([{ date: at(D, '10:00:00'), qty: 1 }])),
      null,
      'unknown',
    ],
    [
      'no header, Mondays',
      undefined,
      body(steps(days(['2026-03-02', '2026-03-09', '2026-03-23']))),
      'week',
      'content',
    ],
    [
      'no header, firsts of months',
      undefined,
      body(steps(days(['2026-02-01', '2026-03-01']))),
      'month',
      'content',
    ],
    [
      'no header, new year days',
      undefined,
      body(steps(days(['2025-01-01', '2026-01-01']))),
      'year',
      'content',
    ],
    [
      'no header, three dense metrics at one midnight',
      undefined,
      body(
        steps([{ date: midnight, qty: 1 }]),
        energy([{ date: midnight, qty: 1 }]),
        distance([{ date: midnight, qty: 1 }]),
      ),
      'day',
      'midnight',
    ],
    [
      'no header, two dense metrics at one midnight',
      undefined,
      body(steps([{ date: midnight, qty: 1 }]), energy([{ date: midnight, qty: 1 }])),
      null,
      'unknown',
    ],
    [
      'no header, three dense metrics at one midnight and a sparse one at an hour',
      undefined,
      body(
        steps([{ date: midnight, qty: 1 }]),
        energy([{ date: midnight, qty: 1 }]),
        distance([{ date: midnight, qty: 1 }]),
        protein([{ date: at(D, '10:00:00'), qty: 1 }]),
      ),
      null,
      'unknown',
    ],
    [
      'no header, sparse metrics at two midnights',
      undefined,
      body(protein(days([D, '2026-03-11']))),
      null,
      'unknown',
    ],
  ];

  it.each(rows)('%s', (_what, aggregation, sent, layer, origin) => {
    const row = lab.add({ body: sent, ...(aggregation === undefined ? {} : { aggregation }) });
    const result = resultOf(lab.folded(), row.id);
    expect([result.layer, result.layer_origin]).toEqual([layer, origin]);
    expect(result.parse_status).toBe(layer === null ? 'failed' : 'parsed');
    expect(result.class).toBe(layer === null ? 'layer_unknown' : 'folded');
  });

  const chile = (aggregation?: string) =>
    lab.add({
      ...(aggregation === undefined ? {} : { aggregation }),
      body: body(
        steps([
          { date: '2025-09-06 00:00:00 -0400', qty: 1 },
          { date: '2025-09-07 01:00:00 -0300', qty: 2 },
          { date: '2025-09-08 00:00:00 -0300', qty: 3 },
        ]),
      ),
    });

  it('takes 01:00 for the midnight of a day on which the clocks go forward at midnight', () => {
    const declared = chile('Days');
    const content = chile();
    const generation = lab.folded();
    expect(resultOf(generation, declared.id)).toMatchObject({ layer: 'day', layer_origin: 'declared' });
    expect(resultOf(generation, content.id)).toMatchObject({ layer: 'day', layer_origin: 'content' });
  });

  it('takes 01:00 for an hour when the clocks did not change, or when the day holds more', () => {
    const plain = lab.add({
      aggregation: 'Days',
      body: body(
        steps([
          { date: at(D), qty: 1 },
          { date: at('2026-03-11', '01:00:00'), qty: 2 },
        ]),
      ),
    });
    const more = lab.add({
      aggregation: 'Days',
      body: body(
        steps(
          ['00:00:00 -0400', '01:00:00 -0300', '02:00:00 -0300'].map((time, i) => ({
            date: `2025-09-0${i === 0 ? 6 : 7} ${time}`,
            qty: 1,
          })),
        ),
      ),
    });
    const generation = lab.folded();
    expect([plain, more].map(({ id }) => resultOf(generation, id).layer)).toEqual(['hour', 'hour']);
  });

  it('reads the clock as written: an hour at +0530 is a full hour', () => {
    const row = lab.add({
      body: body(steps(['10:00:00', '11:00:00'].map((time) => ({ date: at(D, time, '+0530'), qty: 1 })))),
    });
    expect(resultOf(lab.folded(), row.id).layer).toBe('hour');
  });

  it('does not look at the stamps of sleep', () => {
    const sleep = metric('sleep_analysis', 'hr', [
      { date: at(D, '06:50:16'), asleep: 7, sleepEnd: at(D, '06:50:16') },
    ]);
    const row = lab.add({ body: body(sleep, steps(days([D, '2026-03-11']))) });
    expect(resultOf(lab.folded(), row.id).layer).toBe('day');
  });

  it('needs no layer when there are no points', () => {
    const row = lab.add({ body: body() });
    const result = resultOf(lab.folded(), row.id);
    expect([result.parse_status, result.layer, result.layer_origin]).toEqual(['parsed', null, null]);
  });

  it('refuses only the metrics: a refusal names what to change on the phone', () => {
    const row = lab.add({ body: body(protein(days([D]))) });
    const result = resultOf(lab.folded(), row.id);
    expect(result.reasons).toContain('Time Grouping');
    expect(JSON.parse(result.counters ?? '')).toMatchObject({ points: 0, partial: 1 });
  });
});

describe('inheritance', () => {
  const A = 'AUTOMATION-A';
  const sparse = body(protein(days([D])));
  const hourly = body(steps(minutes(D, 600, 720, 60)));

  it('takes the layer of the nearest preceding delivery of the same automation and names it', () => {
    lab.add({ automation: A, body: body(steps(minutes(D, 601, 603, 1))) });
    const giver = lab.add({ automation: A, body: hourly });
    lab.add({ automation: 'AUTOMATION-B', body: body(steps(days([D, '2026-03-11']))) });
    const taker = lab.add({ automation: A, body: sparse });
    const result = resultOf(lab.folded(), taker.id);
    expect([result.layer, result.layer_origin, result.layer_from]).toEqual(['hour', 'inherited', giver.id]);
  });

  it('finds nothing before it', () => {
    const taker = lab.add({ automation: A, body: sparse });
    lab.add({ automation: A, body: hourly });
    expect(resultOf(lab.folded(), taker.id).class).toBe('layer_unknown');
  });

  it('does not take from what was itself inherited, and reaches behind it', () => {
    const giver = lab.add({ automation: A, aggregation: 'Days', body: body(steps(days([D]))) });
    lab.add({ automation: A, body: sparse });
    const taker = lab.add({ automation: A, body: sparse });
    expect(resultOf(lab.folded(), taker.id).layer_from).toBe(giver.id);
  });

  it('neither gives nor takes without an automation id, nor across profiles', () => {
    lab.add({ body: hourly });
    lab.add({ automation: A, profile: 'anna', body: hourly });
    const nameless = lab.add({ body: sparse });
    const named = lab.add({ automation: A, body: sparse });
    const generation = lab.folded();
    expect(resultOf(generation, nameless.id).class).toBe('layer_unknown');
    expect(resultOf(generation, named.id).class).toBe('layer_unknown');
  });

  it('ends at a nearer delivery that declares another grouping', () => {
    lab.add({ automation: A, aggregation: 'Hours', body: hourly });
    lab.add({ automation: A, aggregation: 'Days', body: body() });
    const taker = lab.add({ automation: A, body: sparse });
    expect(resultOf(lab.folded(), taker.id).class).toBe('layer_unknown');
  });

  it('passes an empty run that declares the same grouping', () => {
    const giver = lab.add({ automation: A, aggregation: 'Hours', body: hourly });
    lab.add({ automation: A, aggregation: 'Hours', body: body() });
    const taker = lab.add({ automation: A, body: sparse });
    expect(resultOf(lab.folded(), taker.id).layer_from).toBe(giver.id);
  });

  it('never takes a layer that could not have made the stamps', () => {
    lab.add({ automation: A, aggregation: 'Days', body: body(steps(days([D]))) });
    const taker = lab.add({ automation: A, body: body(protein([{ date: at(D, '10:00:00'), qty: 1 }])) });
    expect(resultOf(lab.folded(), taker.id).class).toBe('layer_unknown');
  });

  it('prefers what it inherits to three metrics at one midnight', () => {
    const one = [{ date: at(D), qty: 1 }];
    const triple = body(steps(one), energy(one), distance(one));
    const giver = lab.add({ automation: A, aggregation: 'Hours', body: hourly });
    const taker = lab.add({ automation: A, body: triple });
    expect(resultOf(lab.folded(), taker.id)).toMatchObject({
      layer: 'hour',
      layer_origin: 'inherited',
      layer_from: giver.id,
    });
  });

  it('searches a long row of sparse deliveries through the index', () => {
    const generation = lab.folded();
    const plan = generation
      .prepare<[string, string, number, string], { detail: string }>(`EXPLAIN QUERY PLAN ${SPEAKING_SQL}`)
      .all('me', 'A', 1, 'x');
    expect(plan.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(
        /SEARCH delivery_result USING INDEX delivery_result_speaks \(profile=\? AND automation_id=\? AND \(received_at,delivery_id\)<\(\?,\?\)\)/,
      ),
    ]);
  });
});
