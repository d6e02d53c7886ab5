import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HealthlogError } from '../../../src/journal/errors.js';
import { type MetricAnswer, metricAnswer } from '../../../src/projections/answers/metric.js';
import { ReadModelBuilder } from '../../support/readmodel.js';

const DAY = '2026-03-10';
let model: ReadModelBuilder;

beforeEach(() => {
  model = new ReadModelBuilder();
});
afterEach(() => {
  model.db.close();
});

function ask(metric: string, unit?: string): MetricAnswer {
  return metricAnswer(model.db, { profile: 'me', metric, bucket: 'day', unit });
}

describe('units of an answer', () => {
  it('serve a number in its own unit digit by digit', () => {
    const value = 0.1 + 0.2;
    model.bucket('active_energy', 'day', DAY, { value, unit: 'kcal' });
    expect(ask('active_energy').items[0]?.value).toBe(value);
    expect(ask('active_energy', 'kcal').items[0]?.value).toBe(value);
  });

  it('serve the stored number when it is asked for in the unit it is stored in', () => {
    const value = 1234.5678901234567;
    model.bucket('active_energy', 'day', DAY, { value, unit: 'kJ' });
    expect(ask('active_energy', 'kJ')).toMatchObject({ unit: 'kJ', items: [{ value }] });
    expect(ask('active_energy')).toMatchObject({ unit: 'kcal' });
    expect(ask('active_energy').items[0]?.value).toBeCloseTo(value / 4.184, 9);
  });

  it('convert each bucket of a day whose units are mixed', () => {
    model
      .bucket('active_energy', 'minute', `${DAY}T10:00:00Z`, { value: 10, unit: 'kcal' })
      .bucket('active_energy', 'minute', `${DAY}T10:01:00Z`, { value: 41.84, unit: 'kJ' });
    expect(ask('active_energy').items[0]?.value).toBeCloseTo(20, 9);
    expect(ask('active_energy').items[0]).not.toHaveProperty('unit');
  });

  it('convert mean, min and max of a temperature', () => {
    model.bucket('body_temperature', 'day', DAY, { value: 37, min: 36, max: 38, unit: 'degC' });
    const [item] = ask('body_temperature', 'degF').items;
    expect(item?.value).toBeCloseTo(98.6, 9);
    expect(item?.min).toBeCloseTo(96.8, 9);
    expect(item?.max).toBeCloseTo(100.4, 9);
  });

  it('keep a number whose unit nobody can convert, and name the unit that came', () => {
    model.bucket('step_count', 'day', DAY, { value: 7, unit: '步' });
    expect(ask('step_count')).toMatchObject({ unit: 'count', items: [{ value: 7, unit: '步' }] });
  });

  it('never add numbers whose units do not fit: the day is then not whole', () => {
    model
      .bucket('step_count', 'minute', `${DAY}T10:00:00Z`, { value: 10 })
      .bucket('step_count', 'minute', `${DAY}T10:01:00Z`, { value: 99, unit: '步' })
      .covers('step_count', 'minute', DAY, 'D1');
    expect(ask('step_count').items).toMatchObject([{ value: 10, count: 1, complete: false }]);
  });

  it('are refused when the metric cannot be answered in them', () => {
    model.bucket('step_count', 'day', DAY, { value: 7 });
    expect(() => ask('step_count', 'kg')).toThrow(HealthlogError);
    expect(() => ask('step_count', 'kg')).toThrow(/cannot be converted to "kg"/);
  });

  it('sum delivered numbers in the order of time, as a person does with the file', () => {
    const values = [0.1, 0.7, 0.2, 1e-9, 12.345];
    for (const [index, value] of values.entries()) {
      model.bucket('active_energy', 'minute', `${DAY}T10:0${index}:00Z`, { value, unit: 'kcal' });
    }
    expect(ask('active_energy').items[0]?.value).toBe(values.reduce((sum, value) => sum + value, 0));
  });
});
