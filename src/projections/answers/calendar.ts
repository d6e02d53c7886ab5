/**
 * Weeks (ISO, from Monday) and months, put together from days: complete only when every one of their days is
 * known and complete.
 *
 * The phone's own week or month answers only where no day of it is known. Its week begins on the day its locale
 * says, so it stands for the ISO week that holds most of its days, and counts as complete only when it is that very
 * week.
 */
import { monthStart, nextMonthStart, weekStart } from '../dates.js';
import { bucketFigure } from './choose.js';
import { combine } from './combine.js';
import { type DayFigure, daysBetween, groupBy, nextDay, type Source } from './day.js';
import type { Figure, Point } from './point.js';
import { earliest, sweep } from './sweep.js';

export interface Calendar {
  readonly grain: 'week' | 'month';
  /** First day of the span a day lies in; days since 1970-01-01. */
  readonly startOf: (day: number) => number;
  /** First day of the next span, from the first day of this one. */
  readonly nextOf: (start: number) => number;
  /** The span that a bucket of the phone with this date stands for. */
  readonly placeOf: (bucketStart: number) => number;
  /** Days read at a time, at least. */
  readonly stretchDays: number;
}

const HALF_WEEK = 3;

export const WEEKS: Calendar = {
  grain: 'week',
  startOf: weekStart,
  nextOf: (start) => start + 7,
  placeOf: (start) => weekStart(start + HALF_WEEK),
  stretchDays: 56,
};

export const MONTHS: Calendar = {
  grain: 'month',
  startOf: monthStart,
  nextOf: nextMonthStart,
  placeOf: monthStart,
  stretchDays: 56,
};

function fromDays(days: readonly DayFigure[], length: number, { rules }: Source): Figure | null {
  const figures = days.map(({ figure }) => figure);
  const combined = combine(figures, rules);
  if (combined === null) return null;
  const { whole, ...numbers } = combined;
  const complete = whole && figures.length === length && figures.every((figure) => figure.complete);
  return { ...numbers, grain: 'day', complete };
}

/** The phone's own bucket for a span: the one that begins with it, else the latest. */
function fromOwn(
  buckets: readonly Point[],
  start: number,
  grain: Calendar['grain'],
  { rules }: Source,
): Figure | null {
  const exact = buckets.find((bucket) => bucket.start === start);
  if (exact !== undefined) return bucketFigure(grain, [exact], exact.complete, rules);
  const [first, ...others] = buckets;
  if (first === undefined) return null;
  const latest = others.reduce(
    (best, bucket) => (rules.order.compare(bucket.delivery, best.delivery) > 0 ? bucket : best),
    first,
  );
  return bucketFigure(grain, [latest], false, rules);
}

function spansBetween(source: Source, calendar: Calendar, first: number, end: number): DayFigure[] {
  const { rows, series } = source;
  const days = groupBy(daysBetween(source, first, end), ({ day }) => calendar.startOf(day));
  const id = series.byGrain.get(calendar.grain);
  const buckets = id === undefined ? [] : rows.buckets(id, first - HALF_WEEK, end + HALF_WEEK);
  const own = groupBy(buckets, (bucket) => calendar.placeOf(bucket.start));
  const spans: DayFigure[] = [];
  for (let start = first; start < end; start = calendar.nextOf(start)) {
    const known = days.get(start);
    const figure =
      known === undefined
        ? fromOwn(own.get(start) ?? [], start, calendar.grain, source)
        : fromDays(known, calendar.nextOf(start) - start, source);
    if (figure !== null) spans.push({ day: start, figure });
  }
  return spans;
}

/**
 * The first weeks or months that hold a day with `first` ≤ day < `end`, each answered whole, named by their first
 * day. `wanted`: at least so many, fewer only when there are no more.
 */
export function readSpans(
  source: Source,
  calendar: Calendar,
  first: number,
  end: number,
  wanted: number,
): DayFigure[] {
  if (first >= end) return [];
  const { rows, series } = source;
  const id = series.byGrain.get(calendar.grain);
  const nextOwn = (at: number): number | null => {
    const start = id === undefined ? null : rows.nextBucket(id, at - HALF_WEEK);
    return start === null ? null : Math.max(at, calendar.placeOf(start));
  };
  return sweep(
    {
      from: calendar.startOf(first),
      end: calendar.nextOf(calendar.startOf(end - 1)),
      next: (at) => {
        const place = earliest([nextDay(source, at), nextOwn(at)]);
        return place === null ? null : calendar.startOf(place);
      },
      stretch: (at) => {
        let stop = at;
        while (stop < at + calendar.stretchDays) stop = calendar.nextOf(stop);
        return stop;
      },
      read: (low, high) => spansBetween(source, calendar, low, high),
    },
    wanted,
  );
}
