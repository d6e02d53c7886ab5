/** Fold and answers together: what a covering delivery names counts, whoever won it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { metricAnswer } from '../../src/projections/answers/metric.js';
import { Lab } from '../support/lab.js';
import { body, days, metric, minutes } from '../support/points.js';

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.close());

function answer(bucket: string, name = 'step_count') {
  const { items } = metricAnswer(lab.folded(), { profile: 'me', metric: name, bucket });
  return items.map(({ start, value, complete, count }) => ({ start, value, complete, count }));
}

const D = (n: number): string => `2026-03-${n}`;
const steps = (...points: ReturnType<typeof minutes>[]) => metric('step_count', 'count', points.flat());
const energy = (...points: ReturnType<typeof minutes>[]) => metric('active_energy', 'kcal', points.flat());
const sync = (day: number, ...metrics: Record<string, unknown>[]) =>
  lab.add({
    automation: 'A',
    aggregation: 'Minutes',
    period: 'Default',
    at: `${D(day)}T20:00:00Z`,
    body: body(...metrics),
  });

describe('a day that a delivery covers', () => {
  const night = minutes(D(11), 0, 10, 1, () => 10);
  const morning = minutes(D(11), 600, 634, 1);

  it('holds the minutes that the covering delivery names, although an earlier one won them', () => {
    // The first sync sees both dense metrics before midnight, so its minutes of the night are complete. In the
    // second the energy begins in the morning: its own are not, although its window covers the whole day.
    sync(
      11,
      steps(minutes(D(10), 600, 610, 1), night, minutes(D(11), 620, 621, 1)),
      energy(minutes(D(10), 600, 610, 1), minutes(D(11), 620, 621, 1)),
    );
    sync(
      12,
      steps(night, morning, minutes(D(12), 600, 601, 1)),
      energy(minutes(D(11), 360, 361, 1), minutes(D(12), 600, 601, 1)),
    );
    expect(answer('day').find(({ start }) => start === D(11))).toEqual({
      start: D(11),
      value: 134,
      complete: true,
      count: 44,
    });
  });

  it('loses a minute that the covering delivery no longer names', () => {
    const whole = [energy(minutes(D(10), 0, 1, 1), minutes(D(11), 0, 1, 1), minutes(D(12), 600, 601, 1))];
    sync(11, steps(minutes(D(10), 0, 1, 1), night, morning), ...whole);
    sync(
      12,
      steps(
        minutes(D(11), 0, 1, 1, () => 10),
        morning,
        minutes(D(12), 600, 601, 1),
      ),
      energy(minutes(D(11), 0, 1, 1), minutes(D(12), 600, 601, 1)),
    );
    expect(answer('day').find(({ start }) => start === D(11))).toEqual({
      start: D(11),
      value: 44,
      complete: true,
      count: 35,
    });
    expect(answer('minute').filter(({ start }) => start.startsWith(D(11)))).toHaveLength(44);
  });
});

describe('a point without a unit', () => {
  it('of a known metric is in the unit of the metric', () => {
    lab.add({
      aggregation: 'Days',
      body: body(
        metric(
          'step_count',
          'count',
          days([D(10)], () => 10),
        ),
        metric(
          'step_count',
          '',
          days([D(11)], () => 20),
        ),
      ),
    });
    expect(answer('week')).toMatchObject([{ value: 30, count: 2 }]);
  });
});
