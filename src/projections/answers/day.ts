/**
 * Days: local days as written by the phone, put together from the grain that knows best (choose.ts).
 *
 * A fine bucket belongs to the local date of its own stamp. On a day of travel, or when the clock changes, a day is
 * longer or shorter than 24 hours; every instant has one bucket per grain and counts once.
 */
import type { Grain } from '../layer.js';
import { chooseFigure, type GrainView } from './choose.js';
import type { Rules } from './combine.js';
import { type Figure, localDayOf, type Point } from './point.js';
import { DAY_MIN, OFFSET_MAX_S } from './range.js';
import type { MetricSeries, Rows } from './rows.js';
import { earliest, sweep } from './sweep.js';

const DAY_S = 86_400;
/** Days looked at at a time. */
const STRETCH_DAYS = 31;
/** Days of fine buckets read at a time: two weeks of minutes are some 20 000 buckets. */
const FINE_DAYS = 14;

const FINE: readonly Grain[] = ['hour', 'minute', 'second'];

export interface DayFigure {
  /** Days since 1970-01-01 of the local date. */
  readonly day: number;
  readonly figure: Figure;
}

export interface Source {
  readonly rows: Rows;
  readonly series: MetricSeries;
  readonly rules: Rules;
}

/** A place not behind the first local day at or after `day` of which anything finer than a week is known. */
export function nextDay({ rows, series }: Source, day: number): number | null {
  const firstSecond = day * DAY_S - OFFSET_MAX_S;
  const places = [...series.byGrain].map(([grain, id]): number | null => {
    switch (grain) {
      case 'day':
        return rows.nextBucket(id, day);
      case 'raw': {
        const ms = rows.nextSample(id, firstSecond * 1000);
        return ms === null ? null : Math.floor((ms / 1000 - OFFSET_MAX_S) / DAY_S);
      }
      case 'hour':
      case 'minute':
      case 'second': {
        const start = rows.nextBucket(id, firstSecond);
        return start === null ? null : Math.floor((start - OFFSET_MAX_S) / DAY_S);
      }
      default:
        return null;
    }
  });
  const place = earliest(places);
  return place === null ? null : Math.max(place, day);
}

/** Groups points by a key, keeping their order. */
export function groupBy<T>(points: readonly T[], keyOf: (point: T) => number): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const point of points) {
    const key = keyOf(point);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [point]);
    else group.push(point);
  }
  return groups;
}

/** Calls `make` when the value is first asked for. */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** The latest covering delivery of each day or hour of a series. */
export function latestCoverage(
  { rows, rules }: Source,
  series: number,
  unit: 'day' | 'hour',
  first: number,
  end: number,
): ReadonlyMap<number, number> {
  const latest = new Map<number, number>();
  for (const { start, delivery } of rows.coverage(series, unit, first, end)) {
    const known = latest.get(start);
    latest.set(start, known === undefined ? delivery : rules.order.later(known, delivery));
  }
  return latest;
}

const NONE: readonly Point[] = [];

/** One grain of a stretch of days: which of them are covered, and its buckets by day. */
interface GrainStretch {
  readonly grain: Grain;
  readonly covered: ReadonlyMap<number, number>;
  readonly pointsOf: (day: number) => readonly Point[];
}

/**
 * The points of one day after the other, read from the first one asked for: days that another grain answers cost
 * nothing. What is asked for in a row is read in ever longer runs, up to FINE_DAYS.
 */
function byDay(
  end: number,
  read: (first: number, end: number) => readonly Point[],
): (day: number) => readonly Point[] {
  let first = 0;
  let stop = 0;
  let length = 1;
  let groups: ReadonlyMap<number, readonly Point[]> = new Map();
  return (day) => {
    if (day < first || day >= stop) {
      length = day === stop ? Math.min(FINE_DAYS, length * 2) : 1;
      first = day;
      stop = Math.min(end, day + length);
      groups = groupBy(read(first, stop), localDayOf);
    }
    return groups.get(day) ?? NONE;
  };
}

function fineStretch(source: Source, grain: Grain, id: number, first: number, end: number): GrainStretch {
  const { rows, series } = source;
  return {
    grain,
    covered: latestCoverage(source, id, 'day', first, end),
    pointsOf: byDay(end, (low, high) =>
      rows.ingredients(series, id, low * DAY_S - OFFSET_MAX_S, high * DAY_S + OFFSET_MAX_S),
    ),
  };
}

function stretchesOf(source: Source, first: number, end: number): GrainStretch[] {
  const { rows, series } = source;
  const stretches: GrainStretch[] = [];
  const own = series.byGrain.get('day');
  if (own !== undefined) {
    const buckets = groupBy(rows.buckets(own, first, end), (point) => point.start);
    stretches.push({
      grain: 'day',
      covered: latestCoverage(source, own, 'day', first, end),
      pointsOf: (day) => buckets.get(day) ?? NONE,
    });
  }
  for (const grain of FINE) {
    const id = series.byGrain.get(grain);
    if (id !== undefined) stretches.push(fineStretch(source, grain, id, first, end));
  }
  return stretches;
}

function samplesOf({ rows, series }: Source, end: number): (day: number) => readonly Point[] {
  const raw = series.byGrain.get('raw');
  if (raw === undefined) return () => NONE;
  return byDay(end, (low, high) => {
    const before = (low * DAY_S - OFFSET_MAX_S) * 1000 - 1;
    return rows.samples(
      series,
      raw,
      [before, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
      (high * DAY_S + OFFSET_MAX_S) * 1000,
    );
  });
}

/** The local days with `first` ≤ day < `end` of which something is known, in order. */
export function daysBetween(source: Source, first: number, end: number): DayFigure[] {
  const stretches = stretchesOf(source, first, end);
  const samples = samplesOf(source, end);
  const days: DayFigure[] = [];
  for (let day = first; day < end; day += 1) {
    const views = stretches.map(
      ({ grain, covered, pointsOf }): GrainView => ({
        grain,
        covering: covered.get(day) ?? null,
        points: () => pointsOf(day),
      }),
    );
    const figure = chooseFigure({ ...source.rules, views, samples: () => samples(day) });
    if (figure !== null) days.push({ day, figure });
  }
  return days;
}

/**
 * The first days at or behind `from` and before `end` (days since 1970-01-01) of which something is known.
 * @param wanted at least so many, fewer only when there are no more
 */
export function readDays(source: Source, from: number, end: number, wanted: number): DayFigure[] {
  return sweep(
    {
      from: Math.max(from, DAY_MIN),
      end,
      next: (at) => nextDay(source, at),
      stretch: (at) => at + STRETCH_DAYS,
      read: (first, stop) => daysBetween(source, first, stop),
    },
    wanted,
  );
}
