import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isKnownUnit, sameUnit, unitFactor } from '../../src/projections/units.js';

function convert(value: number, from: string, to: string): number {
  const conversion = unitFactor(from, to);
  if (conversion === null) throw new Error(`${from} does not convert to ${to}`);
  return value * conversion.factor + conversion.offset;
}

/** One spelling of each unit, by what it measures. */
const QUANTITIES = [
  ['kcal', 'kJ', 'J', 'Cal', 'cal'],
  ['mi', 'km', 'm', 'yd', 'ft', 'in', 'cm', 'mm'],
  ['kg', 'g', 'mg', 'mcg', 'lb', 'st', 'oz'],
  ['mg/dL', 'mmol/L'],
  ['mi/hr', 'km/hr', 'm/s', 'ft/s'],
  ['L', 'mL', 'fl_oz_us', 'fl_oz_imp', 'cup'],
  ['hr', 'min', 's', 'ms'],
  ['mmHg', 'kPa'],
  ['L/s', 'L/min', 'mL/min'],
  ['degC', 'degF', 'K'],
  ['kW', 'W'],
  ['count/s', 'count/min'],
  ['kcal/hr·kg'],
  ['ml/(kg·min)'],
  ['dBASPL'],
  ['mcS'],
  ['IU'],
  ['%'],
  ['count'],
] as const;

describe('a value in another unit', () => {
  it.each([
    [1, 'kcal', 'kJ', 4.184],
    [4.184, 'kJ', 'kcal', 1],
    [1, 'Cal', 'kcal', 1],
    [1000, 'cal', 'kcal', 1],
    [4184, 'J', 'kcal', 1],
    [1, 'mi', 'km', 1.609344],
    [1, 'mi', 'yd', 1760],
    [1, 'yd', 'm', 0.9144],
    [1, 'ft', 'in', 12],
    [2.54, 'cm', 'in', 1],
    [1, 'm', 'mm', 1000],
    [1, 'lb', 'kg', 0.45359237],
    [1, 'st', 'lb', 14],
    [16, 'oz', 'lb', 1],
    [1, 'mg', 'mcg', 1000],
    [1, 'g', 'mg', 1000],
    [212, 'degF', 'degC', 100],
    [-40, 'degF', 'degC', -40],
    [37, 'degC', 'degF', 98.6],
    [0, 'degC', 'K', 273.15],
    [0, 'K', 'degF', -459.67],
    [32, 'degF', 'K', 273.15],
    [5.5, 'mmol/L', 'mg/dL', 99.0857],
    [100, 'mg/dL', 'mmol/L', 5.55075],
    [1, 'mi/hr', 'km/hr', 1.609344],
    [3.6, 'km/hr', 'm/s', 1],
    [1, 'm/s', 'ft/s', 3.28084],
    [1, 'fl_oz_us', 'mL', 29.5735],
    [1, 'cup', 'fl_oz_us', 8],
    [1, 'L', 'mL', 1000],
    [1, 'hr', 'min', 60],
    [1, 'min', 's', 60],
    [1500, 'ms', 's', 1.5],
    [120, 'mmHg', 'kPa', 15.9987],
    [1, 'L/s', 'L/min', 60],
    [1, 'count/s', 'count/min', 60],
  ])('%d %s in %s is %d', (value, from, to, expected) => {
    expect(convert(value, from, to)).toBeCloseTo(expected, 4);
  });

  it('comes back as it was', () => {
    for (const units of QUANTITIES) {
      for (const from of units) {
        for (const to of units) {
          fc.assert(
            fc.property(fc.double({ min: -1e6, max: 1e6, noNaN: true }), (value) => {
              const back = convert(convert(value, from, to), to, from);
              expect(Math.abs(back - value)).toBeLessThanOrEqual(1e-9 * Math.max(1000, Math.abs(value)));
            }),
            { numRuns: 10 },
          );
        }
      }
    }
  });

  it('of a different quantity does not exist', () => {
    QUANTITIES.forEach((units, at) => {
      for (const other of QUANTITIES.slice(at + 1)) {
        for (const from of units)
          for (const to of other) expect([from, to, unitFactor(from, to)]).toEqual([from, to, null]);
      }
    });
  });
});

describe('spellings of one unit', () => {
  it.each([
    ['count/min', 'bpm'],
    ['count/min', 'count\\/min'],
    ['count/min', ' Count / Min '],
    ['mi/hr', 'mph'],
    ['km/hr', 'kmph'],
    ['km/hr', 'km/h'],
    ['kcal/hr·kg', 'MET'],
    ['kcal/hr·kg', 'kcal/(hr*kg)'],
    ['kcal/hr·kg', 'kcal/hr⋅kg'],
    ['ml/(kg·min)', 'mL/min·kg'],
    ['ml/(kg·min)', 'ml/kg*min'],
    ['mmol/L', 'mmol<180.1558800000541>/L'],
    ['mmol/L', 'mmol<180.15588000005408>\\/L'],
    ['mmol/L', 'MMOL/l'],
    ['mcg', 'μg'],
    ['mcg', 'µg'],
    ['mcg', 'ug'],
    ['mcS', 'μS'],
    ['degF', 'ºF'],
    ['degF', '°F'],
    ['degF', '℉'],
    ['degC', '°C'],
    ['degC', 'DegC'],
    ['kcal', 'Cal'],
    ['kJ', 'kj'],
    ['lb', 'lbs'],
    ['fl_oz_us', 'FL_OZ_US'],
    ['%', ' %'],
    ['min', 'minutes'],
    ['hr', 'h'],
    // Not known, but the same all the same.
    ['furlong', 'Furlong '],
    ['', ''],
  ])('%j and %j convert by exactly 1 and 0', (a, b) => {
    expect(unitFactor(a, b)).toEqual({ factor: 1, offset: 0 });
    expect(unitFactor(b, a)).toEqual({ factor: 1, offset: 0 });
    expect(sameUnit(a, b)).toBe(true);
  });

  it.each([
    ['m', 'min'],
    ['cal', 'Cal'],
    ['mg', 'mcg'],
    ['L', 'mL'],
    ['degC', 'degF'],
    ['degC', 'K'],
    ['count', 'count/min'],
    ['count', ''],
    ['步', 'count'],
    ['mmol<60.05>/L', 'mmol/L'],
  ])('%j and %j are two units', (a, b) => {
    expect(sameUnit(a, b)).toBe(false);
    expect(sameUnit(b, a)).toBe(false);
  });
});

describe('a unit that is not known', () => {
  it.each(['furlong', '步', '', ' ', '__proto__', 'constructor', 'CAL', 'mmol<60.05>/L'])(
    '%j converts to itself alone',
    (unit) => {
      expect(isKnownUnit(unit)).toBe(false);
      expect(unitFactor(unit, unit)).toEqual({ factor: 1, offset: 0 });
      expect(unitFactor(unit, 'kcal')).toBeNull();
      expect(unitFactor('kcal', unit)).toBeNull();
    },
  );

  it('is told apart from known ones whatever was read before', () => {
    for (let i = 0; i < 2000; i++) expect(unitFactor(`unit ${i}`, 'kg')).toBeNull();
    expect(convert(1, 'lb', 'kg')).toBeCloseTo(0.45359237, 10);
  });
});
