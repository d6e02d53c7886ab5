import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type MetricItem,
  type MetricQuestion,
  metricAnswer,
} from '../../../src/projections/answers/metric.js';
import { ReadModelBuilder } from '../../support/readmodel.js';

const DAY = '2026-03-10';
let model: ReadModelBuilder;

beforeEach(() => {
  model = new ReadModelBuilder();
  for (const name of ['D1', 'D2', 'D3']) model.delivery(name);
});
afterEach(() => {
  model.db.close();
});

function items(metric: string, q: Partial<MetricQuestion>): MetricItem[] {
  return metricAnswer(model.db, { profile: 'me', metric, ...q }).items;
}

describe('an hour', () => {
  const ask = (metric: string): MetricItem[] => items(metric, { bucket: 'hour' });

  it('is named by its start with the offset as written, whatever the minute of its buckets', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T10:07:00+05:30`, { value: 3 })
      .bucket('step_count', 'minute', `${DAY}T10:59:00+05:30`, { value: 4 })
      .bucket('step_count', 'minute', `${DAY}T11:00:00+05:30`, { value: 5 });
    expect(ask('step_count')).toEqual([
      {
        start: `${DAY}T10:00:00+05:30`,
        value: 7,
        count: 2,
        grain: 'minute',
        complete: false,
        delivery_id: 'D1',
      },
      {
        start: `${DAY}T11:00:00+05:30`,
        value: 5,
        count: 1,
        grain: 'minute',
        complete: false,
        delivery_id: 'D1',
      },
    ]);
  });

  it('is chosen among grains like a day: complete beats incomplete, then the latest covering delivery', () => {
    model
      .bucket('step_count', 'hour', `${DAY}T10:00:00+01:00`, { value: 90, by: 'D1', complete: false })
      .bucket('step_count', 'minute', `${DAY}T10:30:00+01:00`, { value: 70, by: 'D2' })
      .covers('step_count', 'minute', `${DAY}T10:00:00+01:00`, 'D2');
    expect(ask('step_count')).toMatchObject([{ value: 70, grain: 'minute', complete: true }]);
    model.bucket('step_count', 'hour', `${DAY}T11:00:00+01:00`, { value: 40, by: 'D2' });
    model
      .bucket('step_count', 'minute', `${DAY}T11:30:00+01:00`, { value: 41, by: 'D2' })
      .covers('step_count', 'minute', `${DAY}T11:00:00+01:00`, 'D2');
    expect(ask('step_count')[1]).toMatchObject({ value: 40, grain: 'hour', complete: true });
  });

  it('is never cut out of a day', () => {
    model.bucket('step_count', 'day', DAY, { value: 5000 });
    expect(ask('step_count')).toEqual([]);
  });

  it('comes from samples only when no bucket of it is known', () => {
    model
      .sample('step_count', `${DAY}T10:05:00+01:00`, { value: 30, source: 'Watch' })
      .sample('step_count', `${DAY}T10:06:00+01:00`, { value: 40, source: 'iPhone' })
      .sample('step_count', `${DAY}T11:05:00+01:00`, { value: 99, source: 'Watch' })
      .bucket('step_count', 'minute', `${DAY}T11:00:00+01:00`, { value: 1, complete: false });
    expect(ask('step_count')).toMatchObject([
      { start: `${DAY}T10:00:00+01:00`, value: 40, grain: 'raw', complete: false },
      { start: `${DAY}T11:00:00+01:00`, value: 1, grain: 'minute' },
    ]);
  });
});

describe('a minute', () => {
  const ask = (metric: string): MetricItem[] => items(metric, { bucket: 'minute' });

  it('is the minute bucket with its own completeness', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 12.000000000000002 })
      .bucket('step_count', 'minute', `${DAY}T10:01:00+01:00`, { value: 3, complete: false });
    expect(ask('step_count')).toEqual([
      {
        start: `${DAY}T10:00:00+01:00`,
        value: 12.000000000000002,
        count: 1,
        grain: 'minute',
        complete: true,
        delivery_id: 'D1',
      },
      {
        start: `${DAY}T10:01:00+01:00`,
        value: 3,
        count: 1,
        grain: 'minute',
        complete: false,
        delivery_id: 'D1',
      },
    ]);
  });

  it('is put together from seconds where there is no minute bucket, never from anything coarser', () => {
    const unit = 'count/min';
    model
      .bucket('heart_rate', 'second', `${DAY}T10:00:05+01:00`, { value: 60, min: 60, max: 60, unit })
      .bucket('heart_rate', 'second', `${DAY}T10:00:10+01:00`, {
        value: 70,
        min: 70,
        max: 70,
        unit,
        complete: false,
      })
      .bucket('heart_rate', 'second', `${DAY}T10:01:10+01:00`, { value: 99, unit })
      .bucket('heart_rate', 'minute', `${DAY}T10:01:00+01:00`, { value: 80, unit })
      .bucket('heart_rate', 'hour', `${DAY}T12:00:00+01:00`, { value: 50, unit })
      .bucket('heart_rate', 'day', DAY, { value: 50, unit });
    expect(ask('heart_rate')).toMatchObject([
      {
        start: `${DAY}T10:00:00+01:00`,
        value: 65,
        min: 60,
        max: 70,
        count: 2,
        grain: 'second',
        complete: false,
      },
      { start: `${DAY}T10:01:00+01:00`, value: 80, count: 1, grain: 'minute', complete: true },
    ]);
  });

  it('comes from samples only in hours of which no bucket is known', () => {
    model
      .sample('step_count', `${DAY}T10:05:30+01:00`, { value: 30, source: 'Watch' })
      .sample('step_count', `${DAY}T10:05:40+01:00`, { value: 20, source: 'iPhone' })
      .sample('step_count', `${DAY}T11:05:00+01:00`, { value: 99, source: 'Watch' })
      .bucket('step_count', 'minute', `${DAY}T11:59:00+01:00`, { value: 1 });
    expect(ask('step_count')).toMatchObject([
      { start: `${DAY}T10:05:00+01:00`, value: 30, grain: 'raw', count: 1 },
      { start: `${DAY}T11:59:00+01:00`, value: 1, grain: 'minute' },
    ]);
  });
});

describe('raw', () => {
  const ask = (metric: string, q: Partial<MetricQuestion> = {}): MetricItem[] =>
    items(metric, { ...q, bucket: 'raw' });

  it('serves every sample as it is, with its devices, equal instants included', () => {
    model
      .sample('dietary_caffeine', `${DAY}T10:05:00.250+01:00`, {
        value: 80,
        unit: 'mg',
        source: 'Watch | iPhone',
      })
      .sample('dietary_caffeine', `${DAY}T10:05:00.250+01:00`, {
        value: 80,
        unit: 'mg',
        source: 'Watch | iPhone',
      })
      .sample('dietary_caffeine', `${DAY}T12:05:00+01:00`, { value: 40, unit: 'mg', by: 'D2' });
    expect(ask('dietary_caffeine')).toEqual([
      ...[1, 2].map(() => ({
        start: `${DAY}T10:05:00.250+01:00`,
        value: 80,
        count: 1,
        grain: 'raw',
        complete: false,
        delivery_id: 'D1',
        source: 'Watch | iPhone',
      })),
      {
        start: `${DAY}T12:05:00+01:00`,
        value: 40,
        count: 1,
        grain: 'raw',
        complete: false,
        delivery_id: 'D2',
      },
    ]);
  });

  it('serves the finest buckets as they are where there is no sample', () => {
    model
      .bucket('step_count', 'day', DAY, { value: 500 })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 12, source: 'Watch' })
      .bucket('step_count', 'day', '2026-03-20', { value: 700 });
    expect(ask('step_count')).toMatchObject([
      { grain: 'minute', value: 12, source: 'Watch', complete: true },
    ]);
    expect(ask('step_count', { from: '2026-03-20', to: '2026-03-20' })).toMatchObject([
      { start: '2026-03-20', grain: 'day', value: 700 },
    ]);
  });

  it('pages through samples of one instant without losing or repeating one', () => {
    for (let n = 0; n < 5; n += 1)
      model.sample('dietary_water', `${DAY}T10:00:00Z`, { value: n, unit: 'mL', source: n > 2 ? 'A' : 'B' });
    const seen: (number | undefined)[] = [];
    let cursor: string | null = null;
    do {
      const page = metricAnswer(model.db, {
        profile: 'me',
        metric: 'dietary_water',
        bucket: 'raw',
        unit: 'mL',
        limit: 2,
        cursor,
      });
      seen.push(...page.items.map(({ value }) => value));
      cursor = page.next;
    } while (cursor !== null);
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4]);
  });
});
