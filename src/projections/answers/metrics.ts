/** `GET /v1/metrics`: which metrics a profile has, in which grains, from when to when. */
import type { Database } from 'better-sqlite3';
import type { MetricKind } from '../catalogue.js';
import { formatDay } from '../dates.js';
import { type Grain, isDateGrain } from '../layer.js';
import { decodeCursor, encodeCursor, type Page, pageLimit, pageOf } from './page.js';
import { localDayOf, type Point } from './point.js';
import { Rows } from './rows.js';
import { grainsOf, type KnownMetric, metricsOf, ownUnit } from './series.js';

export interface MetricSummary {
  readonly metric: string;
  readonly kind: MetricKind;
  readonly unit: string;
  /** False when the catalogue does not know the metric; its kind is then read off its newest point. */
  readonly known: boolean;
  /** From the finest to the coarsest. */
  readonly grains: readonly Grain[];
  /** Local dates of the first and the last point. */
  readonly first: string;
  readonly last: string;
  /** Buckets and samples of all grains. */
  readonly points: number;
}

function dayOf(grain: Grain, point: Point): number {
  return isDateGrain(grain) ? point.start : localDayOf(point);
}

function summaryOf(generation: Database, rows: Rows, known: KnownMetric): MetricSummary | null {
  const countBuckets = generation
    .prepare<[number], number>('SELECT count(*) FROM bucket WHERE series = ?')
    .pluck();
  const countSamples = generation
    .prepare<[number], number>('SELECT count(*) FROM sample WHERE series = ?')
    .pluck();
  let first: number | null = null;
  let last: number | null = null;
  let points = 0;
  let ranges = false;
  const grains: Grain[] = [];
  for (const grain of grainsOf(known)) {
    const id = known.series.byGrain.get(grain);
    const oldest = id === undefined ? null : rows.oldest(known.series, grain, id);
    const newest = id === undefined ? null : rows.newest(known.series, grain, id);
    if (id === undefined || oldest === null || newest === null) continue;
    grains.push(grain);
    first = Math.min(first ?? Number.POSITIVE_INFINITY, dayOf(grain, oldest));
    last = Math.max(last ?? Number.NEGATIVE_INFINITY, dayOf(grain, newest));
    points += (grain === 'raw' ? countSamples : countBuckets).get(id) ?? 0;
    ranges ||= newest.min !== null && newest.max !== null;
  }
  if (first === null || last === null) return null;
  return {
    metric: known.metric,
    kind: known.info?.kind ?? (ranges ? 'minmax' : 'discrete'),
    unit: ownUnit(rows, known),
    known: known.info !== null,
    grains,
    first: formatDay(first),
    last: formatDay(last),
    points,
  };
}

/**
 * The metrics of a profile, by name.
 * @throws HealthlogError bad_request for a limit or cursor that cannot be understood.
 */
export function listMetrics(
  generation: Database,
  q: {
    readonly profile: string;
    readonly limit?: number | undefined;
    readonly cursor?: string | null | undefined;
  },
): Page<MetricSummary> {
  const limit = pageLimit(q.limit);
  const [after] = decodeCursor('metrics', q.cursor) ?? [];
  const rows = Rows.of(generation);
  return rows.snapshot(() => {
    const known = metricsOf(generation, q.profile, String(after ?? ''), limit + 1);
    const page = pageOf(
      known,
      limit,
      (metric) => metric,
      ({ metric }) => encodeCursor('metrics', [metric]),
    );
    return {
      items: page.items.flatMap((metric) => summaryOf(generation, rows, metric) ?? []),
      next: page.next,
    };
  });
}
