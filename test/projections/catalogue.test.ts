import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  canonicalName,
  lookupMetric,
  type MetricInfo,
  metricNames,
} from '../../src/projections/catalogue.js';
import { DENSE, ZERO_IS_NOT_MEASURED } from '../../src/projections/catalogue-data.js';
import { isKnownUnit, sameUnit, unitFactor } from '../../src/projections/units.js';

function known(name: string): MetricInfo {
  const info = lookupMetric(name);
  if (info === null) throw new Error(`${name} is not in the catalogue`);
  return info;
}

const ALL = metricNames().map(known);

/** Names and units of the metrics in real exports. */
function realMetrics(): { name: string; units: string }[] {
  const folder = new URL('../fixtures/', import.meta.url);
  return readdirSync(folder)
    .filter((file) => /\.json(\.gz)?$/.test(file))
    .flatMap((file) => {
      const bytes = readFileSync(new URL(file, folder));
      const body: unknown = JSON.parse((file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8'));
      return (Array.isArray(body) ? body : [body]).flatMap((envelope) => envelope.data?.metrics ?? []);
    });
}

describe('the catalogue', () => {
  it('holds 116 metrics, each once', () => {
    expect(metricNames()).toHaveLength(116);
    expect(new Set(metricNames()).size).toBe(116);
  });

  it('knows the name and unit of every metric in the fixtures', () => {
    const real = realMetrics();
    expect(real.length).toBeGreaterThan(70);
    for (const { name, units } of real) {
      expect(metricNames()).toContain(name);
      expect([name, known(name).unit]).toEqual([name, units]);
    }
  });

  it('has one kind for every metric, and as many of each as hae-format.md §4.3', () => {
    const counts = new Map<string, number>();
    for (const { kind } of ALL) counts.set(kind, (counts.get(kind) ?? 0) + 1);
    expect(Object.fromEntries(counts)).toEqual({ cumulative: 62, discrete: 47, minmax: 4, special: 3 });
  });

  it.each([
    ['step_count', 'cumulative', true, 'count'],
    ['active_energy', 'cumulative', true, 'kcal'],
    ['insulin_delivery', 'cumulative', true, 'IU'],
    ['handwashing', 'cumulative', true, 's'],
    ['blood_glucose', 'discrete', false, 'mg/dL'],
    ['walking_speed', 'discrete', false, 'mi/hr'],
    ['heart_rate', 'minmax', false, 'count/min'],
    ['low_heart_rate_notifications', 'minmax', false, 'count'],
    ['blood_pressure', 'special', false, 'mmHg'],
    ['sexual_activity', 'special', true, 'count'],
    ['sleep_analysis', 'special', false, 'hr'],
  ])('%s is %s, summed: %s, in %s', (name, kind, summed, unit) => {
    expect(lookupMetric(name)).toMatchObject({ name, kind, summed, unit });
  });

  it('sums every cumulative metric and averages every reading', () => {
    for (const { name, kind, summed } of ALL) {
      if (kind !== 'special') expect([name, summed]).toEqual([name, kind === 'cumulative']);
    }
  });

  it('names the numbers of points that have several', () => {
    expect(known('blood_pressure').parts).toEqual(['systolic', 'diastolic']);
    expect(known('sexual_activity').parts).toEqual(['Unspecified', 'Protection Used', 'Protection Not Used']);
    expect(ALL.filter(({ parts }) => parts !== undefined)).toHaveLength(2);
  });
});

describe('names', () => {
  it('lead to one metric, by each of their spellings', () => {
    const seen = new Set(metricNames());
    for (const info of ALL) {
      expect(canonicalName(info.name)).toBe(info.name);
      for (const alias of info.aliases) {
        expect(seen.has(alias), `${alias} is given twice`).toBe(false);
        seen.add(alias);
        expect(lookupMetric(alias)).toBe(info);
        expect(canonicalName(alias)).toBe(info.name);
      }
    }
  });

  it.each([
    ['distance_walking_running', 'walking_running_distance'],
    ['basal_energy', 'basal_energy_burned'],
    ['vo2max', 'vo2_max'],
    ['oxygen_saturation', 'blood_oxygen_saturation'],
    ['stair_speed:_up', 'stair_speed_up'],
    ['stair_speed:_down', 'stair_speed_down'],
    ['six-minute_walking_test_distance', 'six_minute_walking_test_distance'],
    ['monosaturated_fat', 'monounsaturated_fat'],
    ['number_of_time_fallen', 'number_of_times_fallen'],
    ['water', 'dietary_water'],
    ['body_mass', 'weight_body_mass'],
    [' Heart_Rate ', 'heart_rate'],
    ['STEP_COUNT', 'step_count'],
    ['Weight & Body Mass', 'weight_body_mass'],
    ['Walking + Running Distance', 'walking_running_distance'],
  ])('%j is %s', (delivered, name) => {
    expect(canonicalName(delivered)).toBe(name);
  });

  it.each([
    '',
    ' ',
    '__proto__',
    'constructor',
    'hasOwnProperty',
    'workout_effort',
    'blood_pressure_systolic',
    'step count!',
  ])('%j is unknown, and stays as it came', (name) => {
    expect(lookupMetric(name)).toBeNull();
    expect(canonicalName(name)).toBe(name.trim());
  });
});

describe('units of metrics', () => {
  it('are all known, and every alternative converts to the canonical one', () => {
    for (const { name, unit, alternatives } of ALL) {
      expect(isKnownUnit(unit), `${unit} of ${name}`).toBe(true);
      for (const alternative of alternatives) {
        expect(unitFactor(alternative, unit), `${alternative} of ${name}`).not.toBeNull();
        expect(unitFactor(unit, alternative), `${alternative} of ${name}`).not.toBeNull();
      }
    }
  });

  it('of energy, distance, mass and temperature have an alternative, for phones with localised units', () => {
    for (const { name, unit, alternatives } of ALL) {
      const localised = ['kcal', 'mi', 'lb', 'degF', 'mg/dL', 'mi/hr', 'ft/s'].some((other) =>
        sameUnit(unit, other),
      );
      if (localised) expect(alternatives.length, name).toBeGreaterThan(0);
    }
  });
});

describe('dense metrics', () => {
  it('are exactly the nine of the design', () => {
    expect(ALL.filter(({ dense }) => dense).map(({ name }) => name)).toEqual([
      'step_count',
      'walking_running_distance',
      'active_energy',
      'basal_energy_burned',
      'apple_exercise_time',
      'apple_stand_time',
      'time_in_daylight',
      'physical_effort',
      'heart_rate',
    ]);
    expect(DENSE.size).toBe(9);
  });
});

describe('a zero', () => {
  it('is a real one for everything that adds up', () => {
    for (const { name, summed, zeroMeansNotMeasured } of ALL) {
      if (summed) expect([name, zeroMeansNotMeasured]).toEqual([name, false]);
    }
  });

  it.each([
    'resting_heart_rate',
    'heart_rate',
    'heart_rate_variability',
    'blood_oxygen_saturation',
    'respiratory_rate',
  ])('of %s means that nothing was measured', (name) => {
    expect(known(name).zeroMeansNotMeasured).toBe(true);
  });

  it.each([
    'walking_asymmetry_percentage',
    'underwater_temperature',
    'blood_alcohol_content',
    'cycling_power',
    'uv_exposure',
  ])('of %s is a reading', (name) => {
    expect(known(name).zeroMeansNotMeasured).toBe(false);
  });

  it('is spoken of for metrics of the catalogue only', () => {
    for (const name of ZERO_IS_NOT_MEASURED) expect(metricNames()).toContain(name);
  });
});
