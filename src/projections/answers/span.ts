/**
 * Spans: hours and minutes, which are named by an instant, as far as both are read alike.
 */
import type { Grain } from '../layer.js';
import { groupBy, type Source } from './day.js';
import { type Figure, localStartOf, type Point } from './point.js';
import { inRange, secondRange, type TimeRange } from './range.js';
import { earliest, sweep } from './sweep.js';

/** The answer for an hour or a minute. */
export interface SpanFigure {
  /** Seconds since 1970. */
  readonly start: number;
  /** Minutes east of UTC as written by the first bucket, null when none came. */
  readonly offsetMin: number | null;
  readonly figure: Figure;
}

/** A place not behind the first span of `width` seconds at or after `at` of which some of these grains know. */
function nextSpan(
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

export interface SpanReading {
  /** Grains that can answer. */
  readonly grains: readonly Grain[];
  /** Seconds of one span. */
  readonly width: number;
  /** Seconds read at a time. */
  readonly stretch: number;
  /** The spans with `first` ≤ start < `end` of which something is known. */
  readonly between: (source: Source, first: number, end: number) => SpanFigure[];
}

/** The first spans of the range that start behind `after` (seconds since 1970, null from the beginning). */
export function readSpans(
  source: Source,
  { grains, width, stretch, between }: SpanReading,
  range: TimeRange,
  after: number | null,
  wanted: number,
): SpanFigure[] {
  const { first, end } = secondRange(range);
  return sweep(
    {
      from: after === null ? first : Math.max(first, after + 1),
      end,
      next: (at) => nextSpan(source, grains, width, at),
      stretch: (at) => at + stretch,
      read: (low, high) =>
        between(source, low, high).filter(({ start, offsetMin }) => inRange(range, start * 1000, offsetMin)),
    },
    wanted,
  );
}
