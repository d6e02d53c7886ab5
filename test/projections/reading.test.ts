import { describe, expect, it } from 'vitest';
import { checkStructure, DEPTH_MAX, parseBody } from '../../src/projections/body.js';
import { openEnvelope } from '../../src/projections/envelope.js';
import { BodyTooLarge, MalformedBody } from '../../src/projections/failure.js';
import { canonicalJson } from '../../src/projections/json.js';
import { Report } from '../../src/projections/report.js';
import { readMetrics } from '../../src/projections/sections/metrics.js';
import { at } from '../support/points.js';

const D = '2026-03-10';
const noDeadline = (): void => undefined;

function sectionsOf(value: unknown): { names: Record<string, number>; report: Report } {
  const report = new Report();
  const sections = openEnvelope(value, report);
  return { names: Object.fromEntries([...sections].map(([name, items]) => [name, items.length])), report };
}

function read(metrics: unknown[]) {
  const report = new Report();
  const { metrics: groups, sleep } = readMetrics(metrics, report, noDeadline);
  return {
    groups,
    sleep,
    report,
    reasons: report.reasons(),
    counters: report.counters(0, 0, new Set(['sleep'])),
  };
}

describe('the envelope', () => {
  const one = { name: 'step_count', data: [] };
  it.each<[string, unknown, Record<string, number>]>([
    ['the usual one', { data: { metrics: [one] } }, { metrics: 1 }],
    [
      'no data wrapper',
      { metrics: [one], workouts: [], symptoms: [] },
      { metrics: 1, workouts: 0, symptoms: 0 },
    ],
    [
      'a list of envelopes',
      [{ data: { metrics: [one] } }, { data: { metrics: [one], ecg: [1] } }],
      { metrics: 2, ecg: 1 },
    ],
    [
      'the nested form',
      { data: { healthMetrics: { metrics: [one] }, workouts: { workouts: [1, 2] } } },
      { metrics: 1, workouts: 2 },
    ],
    ['a JSON text in a JSON text', JSON.stringify({ data: { metrics: [one] } }), { metrics: 1 }],
    ['an empty object', {}, {}],
    ['an empty list', [], {}],
    ['empty data', { data: {} }, {}],
    ['data that is null', { data: null }, {}],
    ['sections that are null', { data: { metrics: null, workouts: null } }, { metrics: 0, workouts: 0 }],
    ['a section of the future', { data: { moonPhases: [1] } }, { moonPhases: 1 }],
    ['one entry without a list around it', { data: { metrics: one } }, { metrics: 1 }],
  ])('%s is opened', (_what, value, names) => {
    expect(sectionsOf(value).names).toEqual(names);
  });

  it.each([
    ['a number', 7],
    ['null', null],
    ['an object of something else', { hello: 1 }],
    ['a list of numbers', [1]],
    ['text', 'hello'],
    ['a text in a text in a text', JSON.stringify(JSON.stringify('x'))],
  ])('%s is malformed', (_what, value) => {
    expect(() => sectionsOf(value)).toThrow(MalformedBody);
  });

  it('counts a part of a list that is no envelope, and opens the others', () => {
    const { names, report } = sectionsOf([{ data: { metrics: [one] } }, 5]);
    expect(names).toEqual({ metrics: 1 });
    expect(report.reasons()).toEqual(['a part of the list is no export of the app (1 skipped)']);
  });

  it('names what stands beside data', () => {
    expect(sectionsOf({ data: {}, version: 3 }).report.reasons()[0]).toContain('"version"');
  });

  it('counts a section with a name of the prototype like any other', () => {
    const report = new Report();
    report.leaveOut('__proto__', 'why', 2);
    expect(Object.keys(report.counters(0, 0, new Set()).sections)).toEqual(['__proto__']);
  });

  it('names no more sections than anybody reads, and counts them all', () => {
    const report = new Report();
    for (let i = 0; i < 5000; i++) report.leaveOut(`section ${i}`, 'not known', 1);
    const counters = report.counters(0, 0, new Set());
    expect(Object.keys(counters.sections)).toHaveLength(40);
    expect(counters.partial).toBe(5000);
  });

  it('is not fooled by keys of the prototype', () => {
    const { names } = sectionsOf(JSON.parse('{"data":{"__proto__":[1],"constructor":[1,2],"metrics":[]}}'));
    expect(names).toEqual(JSON.parse('{"__proto__":1,"constructor":2,"metrics":0}'));
  });
});

describe('points of metrics', () => {
  const point = (fields: object) =>
    read([{ name: 'step_count', units: 'count', data: [{ date: at(D), ...fields }] }]);

  it('keeps numbers, unit, source and offset as delivered', () => {
    const { groups } = read([
      {
        name: 'active_energy',
        units: 'kJ',
        data: [
          {
            date: at(D, '07:30:00', '-0400'),
            qty: 62.00000000000001,
            source: 'Jo’s Apple\u00a0Watch|iPhone',
          },
        ],
      },
    ]);
    expect(groups[0]?.points[0]).toMatchObject({
      value: 62.00000000000001,
      unit: 'kJ',
      source: 'Jo’s Apple\u00a0Watch|iPhone',
      offsetMin: -240,
      ordinal: 0,
      extra: null,
    });
  });

  it('merges two entries of one metric, and spellings of one name', () => {
    const { groups } = read([
      { name: 'basal_energy', data: [{ date: at(D), qty: 1 }] },
      { name: 'basal_energy_burned', data: [{ date: at(D), qty: 2 }] },
    ]);
    expect(groups.map(({ metric, points }) => [metric, points.length])).toEqual([['basal_energy_burned', 2]]);
  });

  it.each([
    ['Min, Avg and Max', { Min: 50, Avg: 61.5, Max: 70 }, [61.5, 50, 70]],
    ['the same in lower case', { min: 50, avg: 61.5, max: 70 }, [61.5, 50, 70]],
    ['qty alone', { qty: 66 }, [66, null, null]],
    ['a number that a relay made a text', { qty: '66.5' }, [66.5, null, null]],
    ['Max alone', { Max: 70 }, [null, null, 70]],
  ])('reads %s', (_what, fields, [value, min, max]) => {
    const { groups } = read([{ name: 'heart_rate', units: 'count/min', data: [{ date: at(D), ...fields }] }]);
    expect(groups[0]?.points[0]).toMatchObject({ value, min, max });
  });

  it('reads the parts of blood pressure and of sexual activity', () => {
    const { groups } = read([
      {
        name: 'blood_pressure',
        units: 'mmHg',
        data: [
          { date: at(D), systolic: 120, diastolic: 80 },
          { date: at(D), systolic: 118 },
        ],
      },
      {
        name: 'sexual_activity',
        units: 'count',
        data: [{ date: at(D), Unspecified: 0, 'Protection Used': 1, 'Protection Not Used': 0 }],
      },
    ]);
    expect(groups[0]?.points.map(({ parts }) => parts)).toEqual([
      { systolic: 120, diastolic: 80 },
      { systolic: 118 },
    ]);
    expect(groups[1]?.points[0]?.extra).toBe(
      '{"parts":{"Protection Not Used":0,"Protection Used":1,"Unspecified":0}}',
    );
  });

  it('keeps what a point says beside its numbers, in one spelling', () => {
    const fields = { qty: 5, mealTime: 'Before Meal', metadata: { b: 1, a: [2] }, start: at(D) };
    const { groups, reasons } = read([
      { name: 'blood_glucose', units: 'mg/dL', data: [{ date: at(D), ...fields }] },
    ]);
    expect(groups[0]?.points[0]?.extra).toBe(
      `{"mealTime":"Before Meal","metadata":{"a":[2],"b":1},"start":"${at(D)}"}`,
    );
    expect(reasons).toEqual([]);
  });

  it('keeps an unknown field and names it, without making the delivery partial', () => {
    const { groups, report, reasons } = point({ qty: 1, sparkle: true });
    expect(groups[0]?.points[0]?.extra).toBe('{"sparkle":true}');
    expect(reasons[0]).toContain('"sparkle" of "step_count"');
    expect(report.incomplete).toBe(false);
  });

  it('keeps an unknown metric and names it', () => {
    const { groups, report, reasons } = read([
      { name: 'moon_gazing', units: 'min', data: [{ date: at(D), qty: 1 }] },
    ]);
    expect(groups[0]).toMatchObject({ metric: 'moon_gazing', info: null });
    expect(reasons[0]).toContain('"moon_gazing"');
    expect(report.incomplete).toBe(false);
  });

  it.each<[string, object, string]>([
    ['no date', { date: undefined, qty: 1 }, 'no date'],
    ['a date that is none', { date: 'soon', qty: 1 }, 'no date'],
    ['a number for a date', { date: 1188745353.99, qty: 1 }, 'no date'],
    ['no number', { qty: null }, 'no number'],
    ['a word for a number', { qty: 'many' }, 'no number'],
    ['a number too large for a double', { qty: Number.POSITIVE_INFINITY }, 'no number'],
  ])('a point with %s costs that point alone, and is counted', (_what, fields, why) => {
    const { groups, counters, reasons, report } = read([
      {
        name: 'step_count',
        units: 'count',
        data: [
          { date: at(D), ...fields },
          { date: at(D), qty: 2 },
        ],
      },
    ]);
    expect(groups[0]?.points).toHaveLength(1);
    expect(counters).toMatchObject({
      points: 1,
      skipped: 1,
      sections: { metrics: { points: 1, skipped: 1 } },
    });
    expect(reasons[0]).toContain(why);
    expect(report.incomplete).toBe(true);
  });

  it.each<[string, unknown]>([
    ['an entry that is a number', 5],
    ['an entry without a name', { data: [{ date: at(D), qty: 1 }] }],
    ['an entry whose points are no list', { name: 'step_count', data: { date: at(D) } }],
    ['a point that is null', { name: 'step_count', data: [null] }],
  ])('%s costs itself alone', (_what, entry) => {
    const { groups, counters } = read([
      entry,
      { name: 'protein', units: 'g', data: [{ date: at(D), qty: 2 }] },
    ]);
    expect(groups.map(({ metric }) => metric)).toEqual(['protein']);
    expect(counters.skipped).toBe(1);
  });

  it('makes half a character U+FFFD, so that what is kept can be asked for', () => {
    const { groups } = read([{ name: 'x\ud800', units: 'count', data: [{ date: at(D), qty: 1 }] }]);
    expect(groups[0]?.metric).toBe('x\ufffd');
  });

  it('hands sleep over, whatever the entry is called', () => {
    const { sleep, groups } = read([{ name: 'Sleep Analysis', units: 'hr', data: [{ startDate: at(D) }] }]);
    expect([sleep.length, groups.length]).toEqual([1, 0]);
  });

  it('never says a value, and shortens names', () => {
    const { reasons } = read([{ name: `x${'y'.repeat(500)}`, data: [{ date: at(D), qty: 12345.678 }] }]);
    expect(reasons.join()).not.toContain('12345');
    expect(reasons.join().length).toBeLessThan(200);
  });
});

describe('the text of a body', () => {
  it('may begin with a byte order mark', () => {
    expect(parseBody(Buffer.from('\ufeff{"data":{}}'))).toEqual({ data: {} });
  });

  it('is UTF-8, and not UTF-8 costs only the characters', () => {
    expect(parseBody(Buffer.from([0x22, 0xff, 0x22]))).toBe('\ufffd');
  });

  it('that is not JSON is malformed', () => {
    expect(() => parseBody(Buffer.from('{"data":'))).toThrow(MalformedBody);
  });

  it('is refused before it is parsed when it holds too many values', () => {
    const bytes = Buffer.from(`[${'{},'.repeat(50)}{}]`);
    expect(() => checkStructure(bytes, 100)).toThrow(BodyTooLarge);
    expect(() => checkStructure(bytes, 200)).not.toThrow();
  });

  it('is refused when it nests too deep, but brackets inside strings do not count', () => {
    expect(() => checkStructure(Buffer.from('['.repeat(DEPTH_MAX + 1)))).toThrow(BodyTooLarge);
    expect(() => checkStructure(Buffer.from(`["${'['.repeat(DEPTH_MAX * 2)}\\"["]`))).not.toThrow();
  });
});

describe('JSON as it is kept', () => {
  it('does not depend on the order of keys', () => {
    expect(canonicalJson({ b: [1, { z: null, a: 'x' }], a: true })).toBe(
      '{"a":true,"b":[1,{"a":"x","z":null}]}',
    );
  });

  it('is not kept when it nests deeper than a point can', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100; i++) deep = [deep];
    expect(canonicalJson(deep)).toBeNull();
  });
});
