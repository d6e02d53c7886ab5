/**
 * Hours: local hours as written, by the rule of the days (choose.ts), from hour buckets and finer ones. A day is
 * never spread over its hours.
 *
 * An hour is named by its instant, so the two hours of one name on the night the clock goes back stay two.
 */
import type { Grain } from '../layer.js';
import { chooseFigure } from './choose.js';
import { groupBy, latestCoverage, lazy, type Source } from './day.js';
import { type Figure, localStartOf, type Point } from './point.js';
import { inRange, secondRange, type TimeRange } from './range.js';
import { earliest, sweep } from './sweep.js';

const HOUR_S = 3600;
/** Seconds read at a time: a week of minutes is some 10 000 buckets. */
const STRETCH_S = 7 * 86_400;

const GRAINS: readonly Grain[] = ['hour', 'minute', 'second'];

/** The answer for an hour or a minute. */
export interface SpanFigure {
  /** Seconds since 1970. */
  readonly start: number;
  /** Minutes east of UTC as written by the first bucket, null when none came. */
  readonly offsetMin: number | null;
  readonly figure: Figure;
}

/** A place not behind the first span of `width` seconds at or after `at` of which some of these grains know. */
export function nextSpan(
  { rows, series }: Source,
  grains: readonly Grain[],
  width: number,
  at: number,
): number | null {
  const places = grains.map((grain): number | null => {
    const id = series.byGrain.get(grain);
    if (id === undefined) return null;
    if (grain !== 'raw') return rows.nextBucket(id, at);
    const ms = rows.nextSample(id, at * 1000);
    return ms === null ? null : Math.floor(ms / 1000);
  });
  const place = earliest(places);
  return place === null ? null : Math.max(at, place - width + 1);
}

/** The samples of the spans with `first` ≤ start < `end`, by span. */
export function samplesBySpan(
  { rows, series }: Source,
  width: number,
  first: number,
  end: number,
): ReadonlyMap<number, readonly Point[]> {
  const raw = series.byGrain.get('raw');
  if (raw === undefined) return new Map();
  const after = [first * 1000 - 1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER] as const;
  const samples = rows.samples(series, raw, after, (end + width) * 1000);
  return groupBy(samples, (sample) => localStartOf(sample, width));
}

const NONE: readonly Point[] = [];

function hoursBetween(source: Source, first: number, end: number): SpanFigure[] {
  const { rows, series, rules } = source;
  const stretches = GRAINS.flatMap((grain) => {
    const id = series.byGrain.get(grain);
    if (id === undefined) return [];
    const covered = latestCoverage(source, id, 'hour', first, end);
    // An hour that starts before `end` reaches behind it.
    const byHour = groupBy(rows.ingredients(series, id, first, end + HOUR_S), (point) =>
      localStartOf(point, HOUR_S),
    );
    return [{ grain, covered, byHour }];
  });
  const samples = lazy(() => samplesBySpan(source, HOUR_S, first, end));
  const known = new Map<number, number | null>();
  for (const groups of [
    ...stretches.map(({ byHour }) => byHour),
    ...(series.byGrain.has('raw') ? [samples()] : []),
  ]) {
    for (const [hour, [point]] of groups) {
      if (hour >= first && hour < end && point !== undefined && !known.has(hour))
        known.set(hour, point.offsetMin);
    }
  }
  const hours: SpanFigure[] = [];
  for (const [start, offsetMin] of [...known].sort(([a], [b]) => a - b)) {
    const views = stretches.map(({ grain, covered, byHour }) => ({
      grain,
      covering: covered.get(start) ?? null,
      points: () => byHour.get(start) ?? NONE,
    }));
    const figure = chooseFigure({ ...rules, views, samples: () => samples().get(start) ?? NONE });
    if (figure !== null) hours.push({ start, offsetMin, figure });
  }
  return hours;
}

/** The first local hours of the range that start behind `after` (seconds since 1970, null from the beginning). */
export function readHours(
  source: Source,
  range: TimeRange,
  after: number | null,
  wanted: number,
): SpanFigure[] {
  const { first, end } = secondRange(range);
  return sweep(
    {
      from: after === null ? first : Math.max(first, after + 1),
      end,
      next: (at) => nextSpan(source, [...GRAINS, 'raw'], HOUR_S, at),
      stretch: (at) => at + STRETCH_S,
      read: (low, high) =>
        hoursBetween(source, low, high).filter(({ start, offsetMin }) =>
          inRange(range, start * 1000, offsetMin),
        ),
    },
    wanted,
  );
}
