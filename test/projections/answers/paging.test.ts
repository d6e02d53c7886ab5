import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HealthlogError } from '../../../src/journal/errors.js';
import {
  BUCKETS,
  type MetricAnswer,
  type MetricItem,
  type MetricQuestion,
  metricAnswer,
} from '../../../src/projections/answers/metric.js';
import { listMetrics } from '../../../src/projections/answers/metrics.js';
import { ReadModelBuilder } from '../../support/readmodel.js';

let model: ReadModelBuilder;

beforeEach(() => {
  model = new ReadModelBuilder();
});
afterEach(() => {
  model.db.close();
});

function ask(q: Partial<MetricQuestion>): MetricAnswer {
  return metricAnswer(model.db, { profile: 'me', metric: 'step_count', ...q });
}

function starts(q: Partial<MetricQuestion>): string[] {
  return ask(q).items.map(({ start }) => start);
}

/** All pages of a question, one after the other. */
function allPages(q: Partial<MetricQuestion>, limit: number): MetricItem[] {
  const items: MetricItem[] = [];
  let cursor: string | null = null;
  do {
    const page: MetricAnswer = ask({ ...q, limit, cursor });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return items;
}

describe('the range of a question', () => {
  beforeEach(() => {
    for (const time of ['09T23:59:00', '10T00:00:00', '10T12:00:00', '10T23:59:00', '11T00:00:00']) {
      model.bucket('step_count', 'minute', `2026-03-${time}-08:00`, { value: 1 });
    }
  });

  it.each<[string, Partial<MetricQuestion>, string[]]>([
    [
      'a bare date in both places is that whole local day',
      { from: '2026-03-10', to: '2026-03-10' },
      ['10T00:00', '10T12:00', '10T23:59'],
    ],
    ['a bare date alone leaves the other side open', { from: '2026-03-11' }, ['11T00:00']],
    [
      '`from` is inclusive and `to` exclusive',
      { from: '2026-03-10T00:00:00-08:00', to: '2026-03-10T23:59:00-08:00' },
      ['10T00:00', '10T12:00'],
    ],
    [
      'a time with an offset is an instant',
      { from: '2026-03-10T20:00:00Z', to: '2026-03-11T07:59:01Z' },
      ['10T12:00', '10T23:59'],
    ],
    [
      'a plus sign that an address lost is understood',
      { from: '2026-03-10T21:00:00 01:00', to: '2026-03-11T08:59:01 01:00' },
      ['10T12:00', '10T23:59'],
    ],
    [
      'a time without an offset is local time as written',
      { from: '2026-03-10T12:00:00', to: '2026-03-11T00:00:00' },
      ['10T12:00', '10T23:59'],
    ],
    ['a range that ends before it begins is empty', { from: '2026-03-11', to: '2026-03-09' }, []],
  ])('%s', (_, q, expected) => {
    expect(starts({ ...q, bucket: 'minute' })).toEqual(expected.map((time) => `2026-03-${time}:00-08:00`));
  });

  it('holds the days whose local midnight is in it', () => {
    expect(starts({ from: '2026-03-10', to: '2026-03-10', bucket: 'day' })).toEqual(['2026-03-10']);
    expect(starts({ from: '2026-03-10T00:00:00-08:00', to: '2026-03-11T00:00:00-08:00' })).toEqual([
      '2026-03-10',
    ]);
    expect(starts({ from: '2026-03-09T10:00:00' })).toEqual(['2026-03-10', '2026-03-11']);
  });

  it('holds the hours that start in it', () => {
    expect(starts({ from: '2026-03-10T11:30:00', to: '2026-03-11', bucket: 'hour' })).toEqual([
      '2026-03-10T12:00:00-08:00',
      '2026-03-10T23:00:00-08:00',
      '2026-03-11T00:00:00-08:00',
    ]);
  });

  it.each<[string, Partial<MetricQuestion>]>([
    ['from', { from: 'yesterday' }],
    ['to', { to: '2026-02-30' }],
    ['bucket', { bucket: 'fortnight' }],
    ['limit', { limit: 0 }],
    ['limit', { limit: 10_001 }],
    ['limit', { limit: 1.5 }],
    ['cursor', { cursor: 'nonsense' }],
  ])('is refused with the name of what cannot be understood: %s', (name, q) => {
    expect(() => ask(q)).toThrow(HealthlogError);
    expect(() => ask(q)).toThrow(new RegExp(name));
  });
});

describe('paging', () => {
  it('refuses the cursor of another list', () => {
    model
      .bucket('step_count', 'day', '2026-03-10', { value: 1 })
      .bucket('step_count', 'day', '2026-03-11', { value: 1 });
    const { next } = ask({ limit: 1, bucket: 'day' });
    expect(next).not.toBeNull();
    expect(() => ask({ cursor: next, bucket: 'hour' })).toThrow(/cursor/);
  });

  it('gives the same items whatever the size of the pages, for every bucket', () => {
    const grains = ['second', 'minute', 'hour', 'day', 'week', 'month', 'raw'] as const;
    const point = fc.record({
      grain: fc.constantFrom(...grains),
      // Two years in steps of 20 seconds, thinly: gaps longer than what is read at a time.
      place: fc.integer({ min: 0, max: 3_000_000 }),
      offset: fc.constantFrom('+00:00', '-08:00', '+05:30'),
      value: fc.integer({ min: 1, max: 100 }),
      complete: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(point, { selector: ({ grain, place }) => `${grain} ${place}`, maxLength: 40 }),
        fc.integer({ min: 1, max: 7 }),
        (points, limit) => {
          model.db.close();
          model = new ReadModelBuilder();
          const taken = new Set<string>();
          for (const { grain, place, offset, value, complete } of points) {
            const width = grain === 'hour' ? 3600 : grain === 'minute' ? 60 : 1;
            const at = new Date(
              Math.floor((1_700_000_000 + place * 20) / width) * width * 1000,
            ).toISOString();
            const start =
              grain === 'day' || grain === 'week' || grain === 'month'
                ? at.slice(0, 10)
                : `${at.slice(0, 19)}${offset}`;
            // Two offsets can name one instant.
            const key = `${grain} ${new Date(start).getTime()}`;
            if (taken.has(key)) continue;
            taken.add(key);
            if (grain === 'raw') model.sample('step_count', start, { value });
            else model.bucket('step_count', grain, start, { value, complete });
          }
          model.bucket('step_count', 'year', '2020-01-01', { value: 1 });
          for (const bucket of BUCKETS) {
            const whole = ask({ bucket, limit: 10_000 });
            expect(whole.next).toBeNull();
            expect(allPages({ bucket }, limit)).toEqual(whole.items);
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe('which metric is meant', () => {
  it('is found by any name the app has used for it', () => {
    model.bucket('walking_running_distance', 'day', '2026-03-10', { value: 2, unit: 'mi' });
    expect(ask({ metric: 'Distance_Walking_Running' })).toMatchObject({
      metric: 'walking_running_distance',
      items: [{ value: 2 }],
    });
  });

  it('is empty, not unknown, when the catalogue knows it and nothing has come yet', () => {
    expect(ask({ metric: 'step_count' })).toEqual({
      metric: 'step_count',
      unit: 'count',
      bucket: 'day',
      items: [],
      next: null,
    });
  });

  it('is not found when neither the catalogue nor the data know it', () => {
    expect(() => ask({ metric: 'no_such_metric' })).toThrow(/There is no metric "no_such_metric"/);
    expect(() => ask({ metric: '__proto__' })).toThrow(HealthlogError);
  });

  it('is looked for in one profile only', () => {
    model.bucket('workout_effort', 'day', '2026-03-10', { value: 2 });
    expect(() => ask({ metric: 'workout_effort', profile: 'anna' })).toThrow(HealthlogError);
    model.bucket('step_count', 'day', '2026-03-10', { value: 2 });
    expect(ask({ profile: 'anna' }).items).toEqual([]);
  });
});

describe('the list of metrics', () => {
  it('says grains, first and last local date and the number of points, by name', () => {
    model
      .bucket('step_count', 'day', '2026-03-10', { value: 2 })
      .bucket('step_count', 'minute', '2026-03-12T23:30:00-08:00', { value: 2 })
      .sample('step_count', '2026-03-01T00:30:00+09:00', { value: 2 })
      .bucket('heart_rate', 'second', '2026-03-12T23:30:05-08:00', { value: 60, unit: 'bpm' })
      .bucket('workout_effort', 'day', '2026-03-10', { value: 2, min: 1, max: 3, unit: 'points' });
    expect(listMetrics(model.db, { profile: 'me' })).toEqual({
      items: [
        {
          metric: 'heart_rate',
          kind: 'minmax',
          unit: 'count/min',
          known: true,
          grains: ['second'],
          first: '2026-03-12',
          last: '2026-03-12',
          points: 1,
        },
        {
          metric: 'step_count',
          kind: 'cumulative',
          unit: 'count',
          known: true,
          grains: ['raw', 'minute', 'day'],
          first: '2026-03-01',
          last: '2026-03-12',
          points: 3,
        },
        {
          metric: 'workout_effort',
          kind: 'minmax',
          unit: 'points',
          known: false,
          grains: ['day'],
          first: '2026-03-10',
          last: '2026-03-10',
          points: 1,
        },
      ],
      next: null,
    });
    expect(listMetrics(model.db, { profile: 'anna' }).items).toEqual([]);
  });

  it('is paged', () => {
    for (const metric of ['active_energy', 'step_count', 'vo2_max'])
      model.bucket(metric, 'day', '2026-03-10', { value: 2 });
    const first = listMetrics(model.db, { profile: 'me', limit: 2 });
    expect(first.items.map(({ metric }) => metric)).toEqual(['active_energy', 'step_count']);
    const second = listMetrics(model.db, { profile: 'me', limit: 2, cursor: first.next });
    expect(second.items.map(({ metric }) => metric)).toEqual(['vo2_max']);
    expect(second.next).toBeNull();
  });
});

describe('the reading of rows', () => {
  it('walks primary keys and never scans or sorts buckets, samples or coverage', () => {
    const statements = new Set<string>();
    const watched = new ReadModelBuilder({ onStatement: (sql) => statements.add(sql) });
    for (const grain of ['second', 'minute', 'hour', 'day', 'week', 'month'] as const) {
      watched.bucket(
        'step_count',
        grain,
        grain === 'day' || grain === 'week' || grain === 'month' ? '2026-03-01' : '2026-03-01T00:00:00Z',
        { value: 1, complete: false },
      );
    }
    watched
      .sample('step_count', '2026-03-01T10:00:00Z', { value: 1 })
      .covers('step_count', 'minute', '2026-03-01', 'D1');
    statements.clear();
    for (const bucket of BUCKETS) metricAnswer(watched.db, { profile: 'me', metric: 'step_count', bucket });
    listMetrics(watched.db, { profile: 'me' });
    const reads = [...statements].filter((sql) => /FROM (bucket|sample|coverage)\b/.test(sql));
    expect(reads.length).toBeGreaterThan(10);
    for (const sql of reads) {
      const plan = watched.db.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
      const details = plan.map(({ detail }) => detail).join('\n');
      expect(details).toMatch(
        /SEARCH (bucket|sample|coverage) USING (COVERING INDEX \S+|PRIMARY KEY) \(series=\?/,
      );
      expect(details).not.toMatch(/SCAN (bucket|sample|coverage)|TEMP B-TREE/);
    }
    watched.db.close();
  });
});
