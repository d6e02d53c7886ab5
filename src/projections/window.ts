/**
 * Window: which span of time one delivery speaks for, and so which of its buckets are whole.
 *
 * The body names no window. It is read from the period header, the run date, and where the dense metrics (a
 * watch that is worn produces them many times an hour) begin and end:
 *  - a bucket is *complete* when the window covered it at both ends (design §5.3);
 *  - a delivery *covers* a local day or hour of a metric when an absent bucket there means an absent value
 *    (design §9); the reading part sums a day only from the latest covering delivery on.
 *
 * Times on one axis: seconds since 1970 for buckets named by an instant, days since 1970-01-01 for buckets
 * named by a local date.
 */
import { nextMonthStart, nextYearStart } from './dates.js';
import { type Grain, isDateGrain, type StampReading } from './layer.js';
import type { AlignedPeriod } from './period.js';

const DAY_MS = 86_400_000;
const HOUR_S = 3600;

/** Where one dense metric begins and ends in this delivery. */
interface Span {
  readonly firstStart: number;
  readonly firstDay: number;
  readonly firstHour: number;
  readonly lastStart: number;
  readonly lastDay: number;
  readonly lastHour: number;
}

export interface DeliveryWindow {
  /** Window of whole days, when the period header promises one. */
  readonly aligned: { readonly firstDay: number; readonly closed: boolean } | null;
  /** Local date of the run. */
  readonly runDay: number;
  /** False when the run date had to be taken from the newest point. */
  readonly live: boolean;
  /** Null when the delivery holds no dense metric. */
  readonly dense: {
    /** By when two dense metrics (one, when there is a single one) have begun. */
    readonly begin: Pick<Span, 'firstStart' | 'firstDay' | 'firstHour'>;
    /** The newest bucket of any dense metric. */
    readonly newest: Pick<Span, 'lastStart' | 'lastDay' | 'lastHour'>;
  } | null;
}

/** Start of the local hour a point lies in, seconds since 1970. */
export function hourStart(point: StampReading): number {
  return Math.floor(point.epochMs / 1000) - (point.secondOfDay % HOUR_S);
}

/** Place of a bucket on its axis. */
export function bucketStart(point: StampReading, grain: Grain): number {
  return isDateGrain(grain) ? point.localDay : Math.floor(point.epochMs / 1000);
}

/** First place on the axis behind the bucket. */
export function bucketEnd(start: number, grain: Grain): number {
  switch (grain) {
    case 'raw':
      return start;
    case 'second':
    case 'day':
      return start + 1;
    case 'minute':
      return start + 60;
    case 'hour':
      return start + HOUR_S;
    case 'week':
      return start + 7;
    case 'month':
      return nextMonthStart(start);
    case 'year':
      return nextYearStart(start);
  }
}

function spanOf(points: readonly StampReading[], dateAxis: boolean): Span | null {
  const first = points[0];
  if (first === undefined) return null;
  let low = first;
  let high = first;
  let firstDay = first.localDay;
  let lastDay = first.localDay;
  for (const point of points) {
    if (point.epochMs < low.epochMs) low = point;
    if (point.epochMs > high.epochMs) high = point;
    if (point.localDay < firstDay) firstDay = point.localDay;
    if (point.localDay > lastDay) lastDay = point.localDay;
  }
  return {
    firstStart: dateAxis ? firstDay : Math.floor(low.epochMs / 1000),
    firstDay,
    firstHour: hourStart(low),
    lastStart: dateAxis ? lastDay : Math.floor(high.epochMs / 1000),
    lastDay,
    lastHour: hourStart(high),
  };
}

/** Smallest but one, or the only one. */
function second(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(1, sorted.length - 1)] ?? 0;
}

/**
 * @param clockMs the clock as read when the delivery arrived, milliseconds since 1970
 * @param dateAxis true when the layer's buckets are named by local dates
 */
export function readWindow(
  metrics: readonly { readonly dense: boolean; readonly points: readonly StampReading[] }[],
  period: AlignedPeriod | null,
  clockMs: number,
  dateAxis: boolean,
): DeliveryWindow | null {
  let newest: StampReading | null = null;
  const spans: Span[] = [];
  for (const { dense, points } of metrics) {
    for (const point of points) if (newest === null || point.epochMs > newest.epochMs) newest = point;
    if (!dense) continue;
    const span = spanOf(points, dateAxis);
    if (span !== null) spans.push(span);
  }
  if (newest === null) return null;
  const live = newest.offsetMin !== null && clockMs - newest.epochMs < DAY_MS;
  const runDay = live ? Math.floor((clockMs + (newest.offsetMin ?? 0) * 60_000) / DAY_MS) : newest.localDay;
  return {
    aligned: period === null ? null : { firstDay: firstDayOf(period, runDay, live), closed: period.closed },
    runDay,
    live,
    dense:
      spans.length === 0
        ? null
        : {
            begin: {
              firstStart: second(spans.map((span) => span.firstStart)),
              firstDay: second(spans.map((span) => span.firstDay)),
              firstHour: second(spans.map((span) => span.firstHour)),
            },
            newest: {
              lastStart: Math.max(...spans.map((span) => span.lastStart)),
              lastDay: Math.max(...spans.map((span) => span.lastDay)),
              lastHour: Math.max(...spans.map((span) => span.lastHour)),
            },
          },
  };
}

/** A closed period ends on the day before the run; when the run date is unknown, on the newest point's date. */
function firstDayOf(period: AlignedPeriod, runDay: number, live: boolean): number {
  if (!period.closed) return runDay - period.daysBack;
  const lastDay = live ? runDay - 1 : runDay;
  return lastDay - period.daysBack + 1;
}

/** A delivery without dense metrics promises whole days only with a day-aligned header and a known run date. */
function promisedDay(window: DeliveryWindow, localDay: number): boolean {
  const { aligned, live, runDay } = window;
  return aligned !== null && live && aligned.firstDay <= localDay && localDay < runDay;
}

/**
 * Did the window cover the whole bucket?
 * @param start place on the axis (bucketStart)
 * @param end first place behind it (bucketEnd)
 * @param localDay local date of the bucket as written
 */
export function isComplete(window: DeliveryWindow, start: number, end: number, localDay: number): boolean {
  const { aligned, dense } = window;
  if (dense === null) return promisedDay(window, localDay);
  if (aligned === null) return dense.begin.firstStart < start && dense.newest.lastStart >= end;
  if (localDay < aligned.firstDay || dense.begin.firstStart > start) return false;
  return aligned.closed || dense.newest.lastStart >= end;
}

/** Does an absent bucket of a metric that has some bucket on this local day mean an absent value? */
export function coversDay(window: DeliveryWindow, localDay: number): boolean {
  const { aligned, dense } = window;
  if (dense === null) return promisedDay(window, localDay);
  const { firstDay } = dense.begin;
  const { lastDay } = dense.newest;
  if (aligned === null) return firstDay < localDay && localDay < lastDay;
  if (localDay < aligned.firstDay || firstDay > localDay) return false;
  return aligned.closed ? localDay <= lastDay : localDay < lastDay;
}

/** The same for a local hour; `hour` is its start in seconds since 1970. */
export function coversHour(window: DeliveryWindow, hour: number, localDay: number): boolean {
  const { aligned, dense } = window;
  if (dense === null) return promisedDay(window, localDay);
  const { firstHour } = dense.begin;
  const { lastDay, lastHour } = dense.newest;
  if (aligned === null) return firstHour < hour && hour < lastHour;
  if (localDay < aligned.firstDay || firstHour > hour) return false;
  return aligned.closed ? localDay <= lastDay : hour < lastHour;
}
