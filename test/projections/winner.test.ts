import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { facts, type Given, idOf, iso, Lab } from '../support/lab.js';
import { at, body, days, metric, minutes } from '../support/points.js';

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.close());

/** What the read model shows of one metric: start → [value, complete]. */
function shown(metricName: string, grain: string): Record<string, [number, boolean]> {
  const rows = lab
    .folded()
    .prepare<[string, string], { start: number; value: number; flags: number }>(
      'SELECT b.start, b.value, b.flags FROM bucket b JOIN series s ON s.id = b.series WHERE s.metric = ? AND s.grain = ? ORDER BY b.start',
    )
    .all(metricName, grain);
  const label = (start: number): string =>
    new Date(grain === 'day' ? start * 86_400_000 : start * 1000)
      .toISOString()
      .slice(0, grain === 'day' ? 10 : 16);
  return Object.fromEntries(
    rows.map(({ start, value, flags }) => [label(start), [value, (flags & 2) !== 0]]),
  );
}

const week = ['2026-03-08', '2026-03-09', '2026-03-10', '2026-03-11'];
const dense = (list: string[], qty: (i: number) => number) => [
  metric('step_count', 'count', days(list, qty)),
  metric('active_energy', 'kcal', days(list, qty)),
];

describe('the winner of a cumulative day', () => {
  it('is not lowered by a fragment that is stamped as the whole day', () => {
    lab.add({
      aggregation: 'Days',
      period: 'Previous 7 Days',
      at: '2026-03-12T06:00:00Z',
      body: body(...dense(week, () => 8000)),
    });
    lab.add({
      aggregation: 'Days',
      period: 'Since Last Sync',
      at: '2026-03-12T07:00:00Z',
      body: body(...dense(['2026-03-11'], () => 120)),
    });
    expect(shown('step_count', 'day')['2026-03-11']).toEqual([8000, true]);
  });

  it('is lowered by a later full window', () => {
    lab.add({
      aggregation: 'Days',
      period: 'Previous 7 Days',
      at: '2026-03-12T06:00:00Z',
      body: body(...dense(week, () => 8000)),
    });
    lab.add({
      aggregation: 'Days',
      period: 'Previous 7 Days',
      at: '2026-03-12T07:00:00Z',
      body: body(...dense(week, () => 7000)),
    });
    expect(shown('step_count', 'day')['2026-03-11']).toEqual([7000, true]);
  });

  it('grows while the day runs, and is never lowered by a shorter part of it', () => {
    for (const [hour, qty] of [
      [9, 900],
      [12, 4000],
      [10, 1000],
    ] as const) {
      lab.add({
        aggregation: 'Days',
        period: 'Since Last Sync',
        at: `2026-03-11T${String(hour).padStart(2, '0')}:00:00Z`,
        body: body(...dense(['2026-03-11'], () => qty)),
      });
    }
    expect(shown('step_count', 'day')['2026-03-11']).toEqual([4000, false]);
  });

  it('compares parts in one unit: 3 km are more than 1.5 mi', () => {
    const distance = (qty: number, units: string) =>
      body(
        metric(
          'walking_running_distance',
          units,
          days(['2026-03-11'], () => qty),
        ),
      );
    lab.add({ aggregation: 'Days', body: distance(3, 'km') });
    lab.add({ aggregation: 'Days', body: distance(1.5, 'mi') });
    expect(shown('walking_running_distance', 'day')['2026-03-11']).toEqual([3, false]);
  });

  it('lets the later of two complete imports win by the age of the file, not by the moment of the import', () => {
    const phone = lab.add({
      aggregation: 'Days',
      period: 'Previous 7 Days',
      at: '2026-03-12T06:00:00Z',
      body: body(...dense(week, () => 8000)),
    });
    lab.add({
      aggregation: 'Days',
      period: 'Previous 7 Days',
      source: 'import',
      at: '2026-04-20T06:00:00Z',
      clockAt: '2026-03-12T05:00:00Z',
      body: body(...dense(week, () => 1)),
    });
    expect(shown('step_count', 'day')['2026-03-11']).toEqual([8000, true]);
    expect(phone.source).toBe('http');
  });
});

describe('the winner of a discrete bucket', () => {
  it('is a reading rather than a 0 that means "not measured", whichever came later', () => {
    const spo2 = (qty: number) =>
      body(
        metric(
          'blood_oxygen_saturation',
          '%',
          days(['2026-03-10'], () => qty),
        ),
      );
    lab.add({ aggregation: 'Days', body: spo2(97) });
    lab.add({ aggregation: 'Days', body: spo2(0) });
    expect(shown('blood_oxygen_saturation', 'day')['2026-03-10']?.[0]).toBe(97);
  });

  it('is the later of two readings', () => {
    const weight = (qty: number) =>
      body(
        metric(
          'weight_body_mass',
          'kg',
          days(['2026-03-10'], () => qty),
        ),
      );
    lab.add({ aggregation: 'Days', body: weight(81) });
    lab.add({ aggregation: 'Days', body: weight(80) });
    expect(shown('weight_body_mass', 'day')['2026-03-10']?.[0]).toBe(80);
  });
});

describe('completeness, by period and run date', () => {
  const DAY = '2026-03-11';
  const hours = (from: number, to: number, day = DAY) => [
    metric('step_count', 'count', minutes(day, from * 60, to * 60, 60)),
    metric('active_energy', 'kcal', minutes(day, from * 60, to * 60, 60)),
  ];
  const complete = (): string[] =>
    Object.entries(shown('step_count', 'hour'))
      .filter(([, [, whole]]) => whole)
      .map(([start]) => start.slice(11, 13));

  it('Today: from midnight on up to the last bucket but one', () => {
    lab.add({
      aggregation: 'Hours',
      period: 'Today',
      at: '2026-03-11T09:30:00Z',
      body: body(...hours(0, 10)),
    });
    // 00:00 at +0100 is 23:00 UTC
    expect(complete()).toEqual(['23', '00', '01', '02', '03', '04', '05', '06', '07']);
  });

  it('Since Last Sync: neither the first bucket nor the last', () => {
    lab.add({
      aggregation: 'Hours',
      period: 'Since Last Sync',
      at: '2026-03-11T09:30:00Z',
      body: body(...hours(5, 10)),
    });
    expect(complete()).toEqual(['05', '06', '07']);
  });

  it('Yesterday: the last bucket as well', () => {
    lab.add({
      aggregation: 'Hours',
      period: 'Yesterday',
      at: '2026-03-12T07:00:00Z',
      body: body(...hours(0, 24)),
    });
    expect(complete()).toHaveLength(24);
  });

  it('a bucket in front of the window is not complete', () => {
    lab.add({
      aggregation: 'Days',
      period: 'Previous 2 Days',
      at: '2026-03-12T07:00:00Z',
      body: body(...dense(week, () => 5)),
    });
    expect(shown('step_count', 'day')).toEqual({
      '2026-03-08': [5, false],
      '2026-03-09': [5, false],
      '2026-03-10': [5, true],
      '2026-03-11': [5, true],
    });
  });

  it('a replay months later takes its run date from its newest point', () => {
    lab.add({
      aggregation: 'Days',
      period: 'Previous 2 Days',
      at: '2026-06-12T07:00:00Z',
      body: body(...dense(week, () => 5)),
    });
    expect(shown('step_count', 'day')['2026-03-10']).toEqual([5, true]);
    expect(shown('step_count', 'day')['2026-03-09']).toEqual([5, false]);
  });

  it('without dense metrics only a day-aligned header with a live run date promises whole days', () => {
    const food = body(
      metric(
        'protein',
        'g',
        days(['2026-03-10', '2026-03-11'], () => 9),
      ),
    );
    lab.add({ aggregation: 'Days', period: 'Default', at: '2026-03-11T12:00:00Z', body: food });
    expect(shown('protein', 'day')).toEqual({ '2026-03-10': [9, true], '2026-03-11': [9, false] });
  });

  it('nor does it promise anything when it is replayed later, or without a header', () => {
    const food = body(
      metric(
        'protein',
        'g',
        days(['2026-03-10', '2026-03-11'], () => 9),
      ),
    );
    lab.add({ aggregation: 'Days', period: 'Default', at: '2026-05-11T12:00:00Z', body: food });
    lab.add({ aggregation: 'Days', at: '2026-05-12T12:00:00Z', body: food });
    expect(Object.values(shown('protein', 'day')).map(([, whole]) => whole)).toEqual([false, false]);
  });
});

describe('raw samples', () => {
  const food = (qty: number[], source = 'Diary') =>
    body(
      metric(
        'protein',
        'g',
        qty.map((q) => ({ date: at('2026-03-10', '12:30:05'), qty: q, source })),
      ),
    );
  const samples = () =>
    lab
      .folded()
      .prepare<[], { value: number; names: string }>(
        'SELECT t.value, s.names FROM sample t JOIN source_set s ON s.id = t.source_set ORDER BY s.names, t.n',
      )
      .all()
      .map(({ value, names }) => [names, value]);

  it('keeps two foods of one minute apart, and does not double them when they are sent again', () => {
    lab.add({ body: food([20, 5]) });
    lab.add({ body: food([5, 20]) });
    expect(samples()).toEqual([
      ['Diary', 5],
      ['Diary', 20],
    ]);
  });

  it('replaces the multiset of one instant and source as a whole', () => {
    lab.add({ body: food([20, 5]) });
    lab.add({ body: food([7]) });
    lab.add({ body: food([3], 'Scale') });
    expect(samples()).toEqual([
      ['Diary', 7],
      ['Scale', 3],
    ]);
  });
});

describe('two exports that disagree about devices', () => {
  it('are counted as incomparable', () => {
    const from = (source: string) =>
      body(
        metric(
          'step_count',
          'count',
          days(week, () => 5, source),
        ),
        metric(
          'active_energy',
          'kcal',
          days(week, () => 5, source),
        ),
      );
    const send = (source: string) =>
      lab.add({ aggregation: 'Days', period: 'Previous 4 Days', body: from(source) });
    send('Watch|iPhone');
    send('Ring');
    const counters = lab
      .folded()
      .prepare<[], { n: number }>(
        "SELECT sum(json_extract(counters, '$.incomparable')) AS n FROM delivery_result",
      )
      .get();
    expect(counters?.n).toBeGreaterThan(0);
  });
});

/** Deliveries with a fixed layer: their header names it, so nothing depends on what came before. */
const delivery = fc.record({
  aggregation: fc.constantFrom('Hours', 'Days', 'Minutes'),
  period: fc.constantFrom('Today', 'Since Last Sync', 'Previous 7 Days', 'Default', undefined),
  source: fc.constantFrom('http' as const, 'import' as const),
  automation: fc.constantFrom('A', 'B', undefined),
  session: fc.constantFrom('S1', 'S2', undefined),
  metrics: fc.array(
    fc.record({
      name: fc.constantFrom(
        'step_count',
        'active_energy',
        'heart_rate',
        'blood_oxygen_saturation',
        'protein',
      ),
      units: fc.constantFrom('count', 'kcal', 'kJ', ''),
      points: fc.array(
        fc.record({
          day: fc.integer({ min: 8, max: 12 }),
          hour: fc.integer({ min: 0, max: 3 }),
          qty: fc.constantFrom(0, 1, 2, 500),
          source: fc.constantFrom('Watch', 'iPhone|Watch', 'Ring', ''),
        }),
        { maxLength: 6 },
      ),
    }),
    { maxLength: 3 },
  ),
});

describe('law 7: the winner is a function of the set of candidates', () => {
  it('any order and any repetition of deliveries with fixed layers gives identical rows', () => {
    fc.assert(
      fc.property(
        fc.array(delivery, { minLength: 1, maxLength: 5 }).chain((list) =>
          fc.record({
            list: fc.constant(list),
            order: fc.shuffledSubarray(
              list.map((_, i) => i),
              { minLength: list.length },
            ),
            repeated: fc.array(fc.nat(list.length - 1), { maxLength: 3 }),
          }),
        ),
        ({ list, order, repeated }) => {
          const given = list.map(
            (d, i): Given => ({
              id: idOf(i + 1),
              at: `2026-03-1${i}T12:00:00Z`,
              aggregation: d.aggregation,
              source: d.source,
              ...(d.period === undefined ? {} : { period: d.period }),
              ...(d.automation === undefined ? {} : { automation: d.automation }),
              ...(d.session === undefined ? {} : { session: d.session }),
              body: body(
                ...d.metrics.map(({ name, units, points }) =>
                  metric(
                    name,
                    units,
                    points.map((p) => ({
                      date: at(
                        `2026-03-${String(p.day).padStart(2, '0')}`,
                        d.aggregation === 'Days' ? '00:00:00' : `0${p.hour}:00:00`,
                      ),
                      qty: p.qty,
                      source: p.source,
                    })),
                  ),
                ),
              ),
            }),
          );
          const inOrder = foldedIn(
            given,
            given.map((_, i) => i),
            [],
          );
          expect(foldedIn(given, order, repeated)).toEqual(inOrder);
        },
      ),
      { numRuns: 30 },
    );
  });
});

/** Folds the deliveries in the given order by taking them in one by one, then some of them once more. */
function foldedIn(
  given: readonly Given[],
  order: readonly number[],
  repeated: readonly number[],
): Record<string, unknown[]> {
  const own = new Lab();
  try {
    const generation = own.generation();
    const runner = own.runner(generation);
    for (const index of order) {
      const item = given[index];
      if (item === undefined) throw new Error('no such delivery');
      own.add(item);
      expect(runner.pass().end).toBe('caught_up');
    }
    for (const index of repeated) {
      generation
        .prepare("UPDATE delivery_result SET parse_status = 'pending', class = NULL WHERE delivery_id = ?")
        .run(idOf(index + 1));
      expect(runner.pass().end).toBe('caught_up');
    }
    return facts(generation);
  } finally {
    own.close();
  }
}

describe('evidence', () => {
  it('of a phone is the position, of an import the age of the file', () => {
    const a = lab.add({ at: '2026-03-10T12:00:00Z', clockAt: '2026-03-09T12:00:00Z', body: body() });
    const b = lab.add({
      at: '2026-03-11T12:00:00Z',
      clockAt: '2026-01-01T00:00:00Z',
      source: 'import',
      body: body(),
    });
    const evidence = lab
      .folded()
      .prepare<[string], { evidence: number }>('SELECT evidence FROM delivery_result WHERE delivery_id = ?');
    expect(evidence.get(a.id)?.evidence).toBe(iso('2026-03-10T12:00:00Z'));
    expect(evidence.get(b.id)?.evidence).toBe(iso('2026-01-01T00:00:00Z'));
  });
});
