import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type MetricItem,
  type MetricQuestion,
  metricAnswer,
} from '../../../src/projections/answers/metric.js';
import { days, ReadModelBuilder } from '../../support/readmodel.js';

let model: ReadModelBuilder;

beforeEach(() => {
  model = new ReadModelBuilder();
  for (const name of ['D1', 'D2', 'D3']) model.delivery(name);
});
afterEach(() => {
  model.db.close();
});

function ask(bucket: 'week' | 'month', q: Partial<MetricQuestion> = {}): MetricItem[] {
  return metricAnswer(model.db, { profile: 'me', metric: 'step_count', bucket, ...q }).items;
}

/** A day bucket for every date from `first` to `last`. */
function fill(first: string, last: string, value: number): void {
  for (let day = days(first); day <= days(last); day += 1) {
    model.bucket('step_count', 'day', new Date(day * 86_400_000).toISOString().slice(0, 10), { value });
  }
}

describe('a week', () => {
  it('is the ISO week from Monday, put together from days, complete when all seven are', () => {
    fill('2026-03-08', '2026-03-16', 10);
    expect(ask('week')).toEqual([
      { start: '2026-03-02', value: 10, count: 1, grain: 'day', complete: false, delivery_id: 'D1' },
      { start: '2026-03-09', value: 70, count: 7, grain: 'day', complete: true, delivery_id: 'D1' },
      { start: '2026-03-16', value: 10, count: 1, grain: 'day', complete: false, delivery_id: 'D1' },
    ]);
  });

  it('is not complete when one of its days is not', () => {
    fill('2026-03-09', '2026-03-14', 10);
    model.bucket('step_count', 'day', '2026-03-15', { value: 1, complete: false });
    expect(ask('week')).toMatchObject([{ start: '2026-03-09', value: 61, count: 7, complete: false }]);
  });

  it('is the mean of its days for a metric that does not add up', () => {
    model
      .bucket('resting_heart_rate', 'day', '2026-03-09', { value: 50, unit: 'count/min' })
      .bucket('resting_heart_rate', 'day', '2026-03-10', { value: 54, min: 48, max: 60, unit: 'count/min' });
    const { items } = metricAnswer(model.db, { profile: 'me', metric: 'resting_heart_rate', bucket: 'week' });
    expect(items).toMatchObject([{ value: 52, min: 48, max: 60, count: 2, complete: false }]);
  });

  it('takes each day from the grain that knows it best', () => {
    fill('2026-03-09', '2026-03-14', 10);
    model
      .bucket('step_count', 'minute', '2026-03-15T10:00:00+01:00', { value: 7, by: 'D2' })
      .covers('step_count', 'minute', '2026-03-15', 'D2');
    expect(ask('week')).toMatchObject([{ value: 67, count: 7, complete: true, delivery_id: 'D2' }]);
  });

  it("is the phone's own only where no day of it is known", () => {
    model
      .bucket('step_count', 'week', '2026-03-02', { value: 500 })
      .bucket('step_count', 'week', '2026-03-09', { value: 700 })
      .bucket('step_count', 'day', '2026-03-11', { value: 20, complete: false });
    expect(ask('week')).toMatchObject([
      { start: '2026-03-02', value: 500, count: 1, grain: 'week', complete: true },
      { start: '2026-03-09', value: 20, count: 1, grain: 'day', complete: false },
    ]);
  });

  it("that begins on the phone's Sunday stands for the ISO week of most of its days, incomplete", () => {
    model.bucket('step_count', 'week', '2026-03-08', { value: 700 });
    expect(ask('week')).toMatchObject([{ start: '2026-03-09', value: 700, grain: 'week', complete: false }]);
    model.bucket('step_count', 'week', '2026-03-09', { value: 710 });
    expect(ask('week')).toMatchObject([{ start: '2026-03-09', value: 710, grain: 'week', complete: true }]);
  });

  it('is answered whole when only some of its days are in the range', () => {
    fill('2026-03-02', '2026-03-22', 10);
    expect(ask('week', { from: '2026-03-11', to: '2026-03-11' })).toMatchObject([
      { start: '2026-03-09', value: 70 },
    ]);
    expect(ask('week', { from: '2026-03-09', to: '2026-03-15' })).toHaveLength(1);
    expect(ask('week', { from: '2026-03-12', to: '2026-03-11' })).toEqual([]);
  });

  it('pages from week to week over long gaps', () => {
    fill('2024-01-01', '2024-01-07', 1);
    fill('2026-03-09', '2026-03-22', 10);
    const first = metricAnswer(model.db, { profile: 'me', metric: 'step_count', bucket: 'week', limit: 2 });
    expect(first.items.map(({ start }) => start)).toEqual(['2024-01-01', '2026-03-09']);
    const second = metricAnswer(model.db, {
      profile: 'me',
      metric: 'step_count',
      bucket: 'week',
      limit: 2,
      cursor: first.next,
    });
    expect(second).toMatchObject({ items: [{ start: '2026-03-16', value: 70 }], next: null });
  });
});

describe('a month', () => {
  it('is complete when every one of its days is known and complete', () => {
    fill('2026-02-01', '2026-02-28', 2);
    fill('2026-03-01', '2026-03-30', 3);
    expect(ask('month')).toMatchObject([
      { start: '2026-02-01', value: 56, count: 28, grain: 'day', complete: true },
      { start: '2026-03-01', value: 90, count: 30, grain: 'day', complete: false },
    ]);
  });

  it("is the phone's own where no day of it is known", () => {
    model.bucket('step_count', 'month', '2025-12-01', { value: 9000, by: 'D2' });
    expect(ask('month')).toEqual([
      { start: '2025-12-01', value: 9000, count: 1, grain: 'month', complete: true, delivery_id: 'D2' },
    ]);
  });
});
