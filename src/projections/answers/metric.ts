/**
 * `GET /v1/metrics/:name`: one metric over a span of time, in buckets of one width.
 *
 * Every number says its grain, whether it is complete, and the delivery it came with (design §9).
 */
import type { Database } from 'better-sqlite3';
import { HealthlogError } from '../../journal/errors.js';
import { MONTHS, readSpans, WEEKS } from './calendar.js';
import { answerUnit, Converter } from './convert.js';
import { type DayFigure, readDays, type Source } from './day.js';
import { readHours } from './hour.js';
import { dayName, instantName, itemOf, type MetricItem } from './item.js';
import { readMinutes } from './minute.js';
import { DeliveryOrder } from './order.js';
import { decodeNumbers, encodeCursor, type Page, pageLimit, pageOf } from './page.js';
import { dayRange, parseRange, type TimeRange } from './range.js';
import { readRaw } from './raw.js';
import { Rows } from './rows.js';
import { findMetric, ownUnit } from './series.js';
import type { SpanFigure } from './span.js';

export type { MetricItem } from './item.js';

export const BUCKETS = ['raw', 'minute', 'hour', 'day', 'week', 'month'] as const;
export type BucketName = (typeof BUCKETS)[number];

export function isBucketName(text: string): text is BucketName {
  return (BUCKETS as readonly string[]).includes(text);
}

export interface MetricQuestion {
  readonly profile: string;
  /** The name of the metric, or any name the app has used for it. */
  readonly metric: string;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** `day` when absent. */
  readonly bucket?: string | undefined;
  /** Another unit to answer in. */
  readonly unit?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | null | undefined;
}

export interface MetricAnswer extends Page<MetricItem> {
  readonly metric: string;
  readonly unit: string;
  readonly bucket: BucketName;
}

function spanPage(
  bucket: 'hour' | 'minute',
  source: Source,
  range: TimeRange,
  limit: number,
  cursor: string | null,
): Page<MetricItem> {
  const after = decodeNumbers(bucket, cursor, 1)?.[0] ?? null;
  const read = bucket === 'hour' ? readHours : readMinutes;
  return pageOf<SpanFigure, MetricItem>(
    read(source, range, after, limit + 1),
    limit,
    ({ start, offsetMin, figure }) => itemOf(instantName(start, offsetMin), figure, source.rules),
    ({ start }) => encodeCursor(bucket, [start]),
  );
}

function dayPage(
  bucket: 'day' | 'week' | 'month',
  source: Source,
  range: TimeRange,
  limit: number,
  cursor: string | null,
): Page<MetricItem> {
  const calendar = bucket === 'day' ? null : bucket === 'week' ? WEEKS : MONTHS;
  const { first, end } = dayRange(range);
  const after = decodeNumbers(bucket, cursor, 1)?.[0] ?? null;
  const behind =
    after === null ? first : Math.max(first, calendar === null ? after + 1 : calendar.nextOf(after));
  return pageOf<DayFigure, MetricItem>(
    calendar === null
      ? readDays(source, behind, end, limit + 1)
      : readSpans(source, calendar, behind, end, limit + 1),
    limit,
    ({ day, figure }) => itemOf(dayName(day), figure, source.rules),
    ({ day }) => encodeCursor(bucket, [day]),
  );
}

function answerPage(
  bucket: BucketName,
  source: Source,
  range: TimeRange,
  limit: number,
  cursor: string | null,
): Page<MetricItem> {
  switch (bucket) {
    case 'raw':
      return readRaw(source, range, limit, cursor);
    case 'minute':
    case 'hour':
      return spanPage(bucket, source, range, limit, cursor);
    case 'day':
    case 'week':
    case 'month':
      return dayPage(bucket, source, range, limit, cursor);
  }
}

/**
 * Answers a question about one metric, in one snapshot of the read model.
 * @throws HealthlogError not_found for a metric that neither the catalogue nor the data know; bad_request for a
 * range, bucket, unit, limit or cursor that cannot be understood.
 */
export function metricAnswer(generation: Database, q: MetricQuestion): MetricAnswer {
  const bucket = q.bucket ?? 'day';
  if (!isBucketName(bucket)) {
    throw new HealthlogError('bad_request', { reason: `bucket must be one of ${BUCKETS.join(', ')}` });
  }
  const range = parseRange(q);
  const limit = pageLimit(q.limit);
  const rows = Rows.of(generation);
  return rows.snapshot(() => {
    const known = findMetric(generation, q.profile, q.metric);
    const own = ownUnit(rows, known);
    const unit = answerUnit(known.metric, own, q.unit);
    const rules = {
      // Of a metric the catalogue does not know nobody can tell whether it adds up: it is not added (§4.3).
      summed: known.info?.summed ?? false,
      converter: new Converter(unit, own),
      order: new DeliveryOrder(generation),
    };
    const page = answerPage(bucket, { rows, series: known.series, rules }, range, limit, q.cursor ?? null);
    return { metric: known.metric, unit, bucket, items: page.items, next: page.next };
  });
}
