import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type MetricAnswer,
  type MetricQuestion,
  metricAnswer,
} from '../../../src/projections/answers/metric.js';
import { ReadModelBuilder } from '../../support/readmodel.js';

const DAY = '2026-03-10';
let model: ReadModelBuilder;

beforeEach(() => {
  model = new ReadModelBuilder();
  // D1 … D5 in the order of the journal.
  for (const name of ['D1', 'D2', 'D3', 'D4', 'D5']) model.delivery(name);
});
afterEach(() => {
  model.db.close();
});

function ask(metric: string, q: Partial<MetricQuestion> = {}): MetricAnswer {
  return metricAnswer(model.db, { profile: 'me', metric, bucket: 'day', ...q });
}

/** The only day of an answer. */
function day(metric: string): MetricAnswer['items'][number] {
  const { items } = ask(metric);
  expect(items).toHaveLength(1);
  const [item] = items;
  if (item === undefined) throw new Error('there is no item');
  return item;
}

describe('a day of a metric that adds up', () => {
  it('is the day bucket of the phone, exactly as stored', () => {
    model.bucket('step_count', 'day', DAY, { value: 6303.959999999999, by: 'D2' });
    expect(ask('step_count')).toEqual({
      metric: 'step_count',
      unit: 'count',
      bucket: 'day',
      items: [
        { start: DAY, value: 6303.959999999999, count: 1, grain: 'day', complete: true, delivery_id: 'D2' },
      ],
      next: null,
    });
  });

  it('is never the sum of two grains', () => {
    model
      .bucket('step_count', 'day', DAY, { value: 100, by: 'D1' })
      .bucket('step_count', 'hour', `${DAY}T10:00:00+01:00`, { value: 60, by: 'D1' })
      .bucket('step_count', 'hour', `${DAY}T11:00:00+01:00`, { value: 40, by: 'D1' })
      .bucket('step_count', 'minute', `${DAY}T10:05:00+01:00`, { value: 100, by: 'D1' })
      .covers('step_count', 'hour', DAY, 'D1')
      .covers('step_count', 'minute', DAY, 'D1');
    expect(day('step_count')).toMatchObject({ value: 100, grain: 'day', count: 1 });
  });

  it('is the complete answer even when an incomplete one is greater', () => {
    model
      .bucket('step_count', 'day', DAY, { value: 900, complete: false, by: 'D3' })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 300, by: 'D1' })
      .bucket('step_count', 'minute', `${DAY}T10:01:00+01:00`, { value: 400, by: 'D1' })
      .covers('step_count', 'minute', DAY, 'D1');
    expect(day('step_count')).toEqual({
      start: DAY,
      value: 700,
      count: 2,
      grain: 'minute',
      complete: true,
      delivery_id: 'D1',
    });
  });

  it('comes, among complete grains, from the one with the latest covering delivery', () => {
    model
      .bucket('step_count', 'day', DAY, { value: 900, by: 'D1' })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 850, by: 'D2' })
      .covers('step_count', 'minute', DAY, 'D2');
    expect(day('step_count')).toMatchObject({ value: 850, grain: 'minute', complete: true });
  });

  it('comes from the coarser grain when the same delivery covers two', () => {
    model
      .bucket('step_count', 'hour', `${DAY}T10:00:00+01:00`, { value: 7, by: 'D2' })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 8, by: 'D2' })
      .covers('step_count', 'hour', DAY, 'D2')
      .covers('step_count', 'minute', DAY, 'D2');
    expect(day('step_count')).toMatchObject({ value: 7, grain: 'hour' });
  });

  it('is, among incomplete grains, the greatest: a part of a day can only be short', () => {
    model
      .bucket('step_count', 'day', DAY, { value: 500, complete: false, by: 'D3' })
      .bucket('step_count', 'hour', `${DAY}T10:00:00+01:00`, { value: 650, by: 'D1' })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 600, by: 'D2' });
    expect(day('step_count')).toMatchObject({
      value: 650,
      grain: 'hour',
      complete: false,
      delivery_id: 'D1',
    });
  });

  it('compares incomplete grains in one unit', () => {
    model
      .bucket('active_energy', 'hour', `${DAY}T10:00:00+01:00`, { value: 400, unit: 'kJ' })
      .bucket('active_energy', 'minute', `${DAY}T10:00:00+01:00`, { value: 100, unit: 'kcal' });
    expect(day('active_energy')).toMatchObject({ value: 100, grain: 'minute' });
  });

  it('leaves out a bucket that is older than the covering delivery: it is no longer named there', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T09:00:00+01:00`, { value: 5, by: 'D1' })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 20, by: 'D2' })
      .bucket('step_count', 'minute', `${DAY}T11:00:00+01:00`, { value: 30, by: 'D3' })
      .covers('step_count', 'minute', DAY, 'D1', 'A')
      .covers('step_count', 'minute', DAY, 'D2', 'B');
    expect(day('step_count')).toMatchObject({ value: 50, count: 2, complete: true, delivery_id: 'D3' });
  });

  it('leaves out a later bucket that is not complete', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 20, by: 'D2' })
      .bucket('step_count', 'minute', `${DAY}T11:00:00+01:00`, { value: 3, by: 'D3', complete: false })
      .covers('step_count', 'minute', DAY, 'D2');
    expect(day('step_count')).toMatchObject({ value: 20, count: 1, complete: true });
  });

  it('counts every bucket of the covering delivery itself', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T00:00:00+01:00`, { value: 4, by: 'D2', complete: false })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 20, by: 'D2' })
      .covers('step_count', 'minute', DAY, 'D2');
    expect(day('step_count')).toMatchObject({ value: 24, count: 2, complete: true });
  });

  it('takes "later" from the evidence, so that an old file imported today stays old', () => {
    model.delivery('import', { evidence: 1_500_000, receivedAt: 99_000_000 });
    model
      .bucket('step_count', 'day', DAY, { value: 900, by: 'D2' })
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 1, by: 'import' })
      .covers('step_count', 'minute', DAY, 'import');
    expect(day('step_count')).toMatchObject({ value: 900, grain: 'day', delivery_id: 'D2' });
  });

  it('of an automation that sends its runs in parts is never complete, not even by its day bucket', () => {
    model.bucket('step_count', 'day', DAY, { value: 100 }).batches('');
    expect(day('step_count')).toMatchObject({ value: 100, grain: 'day', complete: false });
  });

  it('is covered by nobody when the automation sends its runs in parts', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 20, by: 'D2' })
      .bucket('step_count', 'minute', `${DAY}T11:00:00+01:00`, { value: 30, by: 'D1' })
      .covers('step_count', 'minute', DAY, 'D2', 'in parts')
      .batches('in parts');
    expect(day('step_count')).toMatchObject({ value: 50, count: 2, complete: false });
  });

  it('is covered by the other automation when one of two sends its runs in parts', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T10:00:00+01:00`, { value: 20, by: 'D1' })
      .covers('step_count', 'minute', DAY, 'D1', 'whole')
      .covers('step_count', 'minute', DAY, 'D2', 'in parts')
      .batches('in parts');
    expect(day('step_count')).toMatchObject({ value: 20, complete: true });
  });
});

describe('a day of raw samples', () => {
  it('counts, hour by hour, the largest set of devices alone', () => {
    model
      .sample('step_count', `${DAY}T10:05:00+01:00`, { value: 30, source: 'Watch' })
      .sample('step_count', `${DAY}T10:15:00+01:00`, { value: 30, source: 'Watch' })
      .sample('step_count', `${DAY}T10:10:00+01:00`, { value: 50, source: 'iPhone' })
      .sample('step_count', `${DAY}T11:10:00+01:00`, { value: 70, source: 'iPhone' })
      .sample('step_count', `${DAY}T11:20:00+01:00`, { value: 10, source: 'Watch' });
    expect(day('step_count')).toEqual({
      start: DAY,
      value: 130,
      count: 3,
      grain: 'raw',
      complete: false,
      delivery_id: 'D1',
    });
  });

  it('answers only when there is no bucket, however small', () => {
    model
      .sample('step_count', `${DAY}T10:05:00+01:00`, { value: 30, source: 'Watch' })
      .bucket('step_count', 'minute', `${DAY}T10:05:00+01:00`, { value: 1, complete: false });
    expect(day('step_count')).toMatchObject({ value: 1, grain: 'minute' });
  });

  it('is the mean of all samples for a metric that does not add up', () => {
    model
      .sample('heart_rate', `${DAY}T10:05:00+01:00`, { value: 60, min: 60, max: 60, unit: 'count/min' })
      .sample('heart_rate', `${DAY}T10:06:00+01:00`, { value: 90, min: 90, max: 90, unit: 'count/min' })
      .sample('heart_rate', `${DAY}T10:07:00+01:00`, { value: 0, min: 0, max: 0, unit: 'count/min' });
    expect(day('heart_rate')).toMatchObject({ value: 75, min: 60, max: 90, count: 2, grain: 'raw' });
  });
});

describe('a day of a metric that does not add up', () => {
  const unit = 'count/min';

  it('is the mean of its buckets, with min and max over all', () => {
    model
      .bucket('heart_rate', 'minute', `${DAY}T10:00:00+01:00`, { value: 60, min: 55, max: 70, unit })
      .bucket('heart_rate', 'minute', `${DAY}T10:01:00+01:00`, { value: 90, min: 80, max: 120, unit })
      .covers('heart_rate', 'minute', DAY, 'D1');
    expect(day('heart_rate')).toEqual({
      start: DAY,
      value: 75,
      min: 55,
      max: 120,
      count: 2,
      grain: 'minute',
      complete: true,
      delivery_id: 'D1',
    });
  });

  it('weights the mean by counts when every bucket tells its count', () => {
    model
      .bucket('heart_rate', 'minute', `${DAY}T10:00:00+01:00`, { value: 60, unit, extra: { count: 3 } })
      .bucket('heart_rate', 'minute', `${DAY}T10:01:00+01:00`, { value: 100, unit, extra: { count: 1 } });
    expect(day('heart_rate')).toMatchObject({ value: 70, min: 60, max: 100 });
    model.bucket('heart_rate', 'minute', `${DAY}T10:02:00+01:00`, { value: 80, unit });
    expect(day('heart_rate').value).toBe(80);
  });

  it('comes, among incomplete grains, from the one with the latest winner; on a tie the coarser', () => {
    model
      .bucket('heart_rate', 'hour', `${DAY}T10:00:00+01:00`, { value: 60, unit, by: 'D1', complete: false })
      .bucket('heart_rate', 'minute', `${DAY}T10:00:00+01:00`, {
        value: 61,
        unit,
        by: 'D2',
        complete: false,
      });
    expect(day('heart_rate')).toMatchObject({ value: 61, grain: 'minute' });
    model.bucket('heart_rate', 'hour', `${DAY}T11:00:00+01:00`, {
      value: 70,
      unit,
      by: 'D2',
      complete: false,
    });
    expect(day('heart_rate')).toMatchObject({ value: 65, grain: 'hour' });
  });

  it('leaves out zeros that mean "not measured" as soon as anything was measured', () => {
    model
      .bucket('heart_rate', 'minute', `${DAY}T10:00:00+01:00`, { value: 0, unit, measured: false })
      .bucket('heart_rate', 'minute', `${DAY}T10:01:00+01:00`, { value: 80, unit })
      .covers('heart_rate', 'minute', DAY, 'D1');
    expect(day('heart_rate')).toMatchObject({ value: 80, count: 1 });
  });

  it('prefers a reading in another grain to a zero that means "not measured", and shows the zero when it is all', () => {
    model.bucket('resting_heart_rate', 'day', DAY, { value: 0, unit, measured: false, by: 'D3' });
    expect(day('resting_heart_rate')).toMatchObject({ value: 0, grain: 'day', complete: true });
    model.bucket('resting_heart_rate', 'minute', `${DAY}T00:00:00+01:00`, {
      value: 54,
      unit,
      complete: false,
    });
    expect(day('resting_heart_rate')).toMatchObject({ value: 54, grain: 'minute', complete: false });
  });

  it('puts a metric of several numbers together number by number', () => {
    model
      .bucket('blood_pressure', 'minute', `${DAY}T08:00:00+01:00`, {
        unit: 'mmHg',
        extra: { parts: { systolic: 120, diastolic: 80 } },
      })
      .bucket('blood_pressure', 'minute', `${DAY}T20:00:00+01:00`, {
        unit: 'mmHg',
        extra: { parts: { systolic: 130 } },
      });
    expect(day('blood_pressure')).toMatchObject({ parts: { systolic: 125, diastolic: 80 }, count: 2 });
    expect(day('blood_pressure')).not.toHaveProperty('value');
  });

  it('adds the numbers of a metric whose several numbers are counts', () => {
    model
      .bucket('sexual_activity', 'minute', `${DAY}T00:00:00+01:00`, {
        extra: { parts: { 'Protection Used': 1 } },
      })
      .bucket('sexual_activity', 'minute', `${DAY}T01:00:00+01:00`, {
        extra: { parts: { 'Protection Used': 1, Unspecified: 1 } },
      });
    expect(day('sexual_activity').parts).toEqual({ 'Protection Used': 2, Unspecified: 1 });
  });

  it('averages a metric that the catalogue does not know: nobody can tell whether it adds up', () => {
    model
      .bucket('workout_effort', 'minute', `${DAY}T10:00:00+01:00`, { value: 4, unit: 'points' })
      .bucket('workout_effort', 'minute', `${DAY}T11:00:00+01:00`, { value: 6, unit: 'points' });
    expect(ask('workout_effort')).toMatchObject({ unit: 'points', items: [{ value: 5, count: 2 }] });
    expect(day('workout_effort')).not.toHaveProperty('unit');
  });
});

describe('the borders of a day', () => {
  it('holds 25 hours when the clock goes back', () => {
    for (let hour = 0; hour < 25; hour += 1) {
      // Berlin, 2026-10-25: +02:00 until 03:00, then +01:00 from 02:00 again.
      const at = new Date(Date.parse('2026-10-25T00:00:00+02:00') + hour * 3_600_000);
      const offset = hour < 3 ? '+02:00' : '+01:00';
      const local = new Date(at.getTime() + (hour < 3 ? 2 : 1) * 3_600_000).toISOString().slice(0, 19);
      model.bucket('step_count', 'hour', `${local}${offset}`, { value: 10 });
    }
    model
      .bucket('step_count', 'hour', '2026-10-24T23:00:00+02:00', { value: 1000 })
      .bucket('step_count', 'hour', '2026-10-26T00:00:00+01:00', { value: 1000 });
    expect(ask('step_count', { from: '2026-10-25', to: '2026-10-25' }).items).toMatchObject([
      { value: 250, count: 25 },
    ]);
    const hours = ask('step_count', { from: '2026-10-25', to: '2026-10-25', bucket: 'hour' }).items;
    expect(hours.map(({ start }) => start).slice(2, 4)).toEqual([
      '2026-10-25T02:00:00+02:00',
      '2026-10-25T02:00:00+01:00',
    ]);
    expect(hours).toHaveLength(25);
  });

  it('is the local date as written on a day of travel, and every instant counts once', () => {
    // West over the Atlantic: the day in New York goes on after the day in London has ended.
    model
      .bucket('step_count', 'minute', '2026-03-10T01:00:00+00:00', { value: 1 })
      .bucket('step_count', 'minute', '2026-03-10T23:30:00+00:00', { value: 2 })
      .bucket('step_count', 'minute', '2026-03-10T19:30:00-05:00', { value: 4 })
      .bucket('step_count', 'minute', '2026-03-10T23:59:00-05:00', { value: 8 })
      .bucket('step_count', 'minute', '2026-03-11T00:00:00-05:00', { value: 16 });
    expect(ask('step_count').items).toMatchObject([
      { start: '2026-03-10', value: 15, count: 4 },
      { start: '2026-03-11', value: 16, count: 1 },
    ]);
  });

  it('keeps stamps without an offset on the date they are written with', () => {
    model
      .bucket('step_count', 'minute', '2026-03-10T23:59:00', { value: 1 })
      .bucket('step_count', 'minute', '2026-03-11T00:00:00', { value: 2 });
    expect(ask('step_count').items).toMatchObject([
      { start: '2026-03-10', value: 1 },
      { start: '2026-03-11', value: 2 },
    ]);
  });
});
