/**
 * Hours: local hours as written, by the rule of the days (choose.ts), from hour buckets and finer ones. A day is
 * never spread over its hours.
 *
 * An hour is named by its instant, so the two hours of one name on the night the clock goes back stay two.
 */
import type { Grain } from '../layer.js';
import { chooseFigure } from './choose.js';
import { groupBy, latestCoverage, lazy, type Source } from './day.js';
import { localStartOf, type Point } from './point.js';
import type { TimeRange } from './range.js';
import { readSpans, type SpanFigure, samplesBySpan } from './span.js';

const HOUR_S = 3600;
/** Seconds read at a time: a week of minutes is some 10 000 buckets. */
const STRETCH_S = 7 * 86_400;

const GRAINS: readonly Grain[] = ['hour', 'minute', 'second'];

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
  const reading = {
    grains: [...GRAINS, 'raw'],
    width: HOUR_S,
    stretch: STRETCH_S,
    between: hoursBetween,
  } as const;
  return readSpans(source, reading, range, after, wanted);
}
