/**
 * Minutes: the minute bucket where there is one, else the seconds of that minute put together; never from anything
 * coarser. Raw samples answer only in hours of which no bucket is known: next to merged buckets they would count
 * overlapping devices again.
 */
import type { Grain } from '../layer.js';
import { bucketFigure, sampleFigure } from './choose.js';
import { groupBy, type Source } from './day.js';
import { localStartOf, type Point } from './point.js';
import type { TimeRange } from './range.js';
import { readSpans, type SpanFigure, samplesBySpan } from './span.js';

const MINUTE_S = 60;
const HOUR_S = 3600;
/** Seconds read at a time: a day of minutes. */
const STRETCH_S = 86_400;

const GRAINS: readonly Grain[] = ['minute', 'second', 'raw'];

function minutesBetween(source: Source, first: number, end: number): SpanFigure[] {
  const { rows, series, rules } = source;
  const found = new Map<number, SpanFigure>();
  // Hours that some bucket speaks for, in the whole reach of the samples.
  const spoken = new Set<number>();

  const take = (grain: Grain, start: number, points: readonly Point[]): void => {
    const [point] = points;
    if (start < first || start >= end || point === undefined || found.has(start)) return;
    const complete = points.every((each) => each.complete);
    const figure =
      grain === 'raw' ? sampleFigure(points, rules) : bucketFigure(grain, points, complete, rules);
    if (figure !== null) found.set(start, { start, offsetMin: point.offsetMin, figure });
  };

  const raw = series.byGrain.has('raw');
  const reach = raw ? HOUR_S : MINUTE_S;
  for (const grain of ['minute', 'second'] as const) {
    const id = series.byGrain.get(grain);
    if (id === undefined) continue;
    const buckets = rows.buckets(id, first - reach, end + reach);
    if (raw) for (const bucket of buckets) spoken.add(localStartOf(bucket, HOUR_S));
    for (const [start, points] of groupBy(buckets, (bucket) => localStartOf(bucket, MINUTE_S))) {
      take(grain, start, points);
    }
  }
  if (raw) {
    for (const [start, samples] of samplesBySpan(source, MINUTE_S, first, end)) {
      const [sample] = samples;
      if (sample !== undefined && !spoken.has(localStartOf(sample, HOUR_S))) take('raw', start, samples);
    }
  }
  return [...found.values()].sort((a, b) => a.start - b.start);
}

/** The first minutes of the range that start behind `after` (seconds since 1970, null from the beginning). */
export function readMinutes(
  source: Source,
  range: TimeRange,
  after: number | null,
  wanted: number,
): SpanFigure[] {
  const reading = { grains: GRAINS, width: MINUTE_S, stretch: STRETCH_S, between: minutesBetween } as const;
  return readSpans(source, reading, range, after, wanted);
}
