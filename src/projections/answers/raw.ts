/**
 * `bucket=raw`: the samples as they are, each with its devices; where the range holds no sample of the metric, the
 * buckets of the finest grain it does hold, as they are.
 */
import type { Grain } from '../layer.js';
import { isDateGrain } from '../layer.js';
import { bucketFigure } from './choose.js';
import type { Source } from './day.js';
import { dayName, instantName, itemOf, type MetricItem } from './item.js';
import { decodeNumbers, encodeCursor, type Page, pageOf } from './page.js';
import type { Point } from './point.js';
import { dayRange, inRange, secondRange, type TimeRange } from './range.js';
import type { Sample, SampleKey } from './rows.js';

/** Rows read at a time while looking for those inside a range of local time. */
const STRETCH_ROWS = 2000;

/** From the finest to the coarsest. */
const BUCKETS: readonly Grain[] = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'];

const END_OF_INSTANT = Number.MAX_SAFE_INTEGER;

function readSamples(
  source: Source,
  id: number,
  range: TimeRange,
  after: SampleKey | null,
  wanted: number,
): Sample[] {
  const { first, end } = secondRange(range);
  let from: SampleKey = after ?? [first * 1000 - 1, END_OF_INSTANT, END_OF_INSTANT];
  const found: Sample[] = [];
  while (found.length < wanted) {
    const read = source.rows.samples(source.series, id, from, end * 1000, STRETCH_ROWS);
    found.push(...read.filter(({ instantMs, offsetMin }) => inRange(range, instantMs, offsetMin)));
    const last = read.at(-1);
    if (last === undefined || read.length < STRETCH_ROWS) break;
    from = [last.instantMs, last.sourceSet, last.n];
  }
  return found;
}

function readBuckets(
  source: Source,
  grain: Grain,
  id: number,
  range: TimeRange,
  after: number | null,
  wanted: number,
): Point[] {
  const dated = isDateGrain(grain);
  const { first, end } = dated ? dayRange(range) : secondRange(range);
  let from = after === null ? first : Math.max(first, after + 1);
  const found: Point[] = [];
  while (found.length < wanted) {
    const read = source.rows.buckets(id, from, end, STRETCH_ROWS);
    found.push(...read.filter(({ start, offsetMin }) => dated || inRange(range, start * 1000, offsetMin)));
    const last = read.at(-1);
    if (last === undefined || read.length < STRETCH_ROWS) break;
    from = last.start + 1;
  }
  return found;
}

function pointItem(grain: Grain, point: Point, { rules }: Source): MetricItem | null {
  const figure = bucketFigure(grain, [point], point.complete, rules);
  if (figure === null) return null;
  const start = isDateGrain(grain) ? dayName(point.start) : instantName(point.start, point.offsetMin);
  return itemOf(start, figure, rules, point.source);
}

/** Rows that hold no number at all (everything they said is in `extra`) have nothing to answer with. */
function itemsOf(grain: Grain, points: readonly Point[], source: Source): MetricItem[] {
  return points.flatMap((point) => pointItem(grain, point, source) ?? []);
}

function samplePage(
  source: Source,
  id: number,
  range: TimeRange,
  limit: number,
  cursor: string | null,
): Page<MetricItem> {
  const key = decodeNumbers('raw', cursor, 3);
  const after: SampleKey | null = key === null ? null : [key[0] ?? 0, key[1] ?? 0, key[2] ?? 0];
  const samples = readSamples(source, id, range, after, limit + 1);
  const page = pageOf(
    samples,
    limit,
    (sample) => sample,
    (last) => encodeCursor('raw', [last.instantMs, last.sourceSet, last.n]),
  );
  return { items: itemsOf('raw', page.items, source), next: page.next };
}

function bucketPage(
  source: Source,
  grain: Grain,
  id: number,
  range: TimeRange,
  limit: number,
  cursor: string | null,
): Page<MetricItem> {
  const list = `raw:${grain}`;
  const after = decodeNumbers(list, cursor, 1)?.[0] ?? null;
  const buckets = readBuckets(source, grain, id, range, after, limit + 1);
  const page = pageOf(
    buckets,
    limit,
    (bucket) => bucket,
    (last) => encodeCursor(list, [last.start]),
  );
  return { items: itemsOf(grain, page.items, source), next: page.next };
}

/** One page of samples, or of the finest buckets. Which of the two depends on the range alone, not on the cursor. */
export function readRaw(
  source: Source,
  range: TimeRange,
  limit: number,
  cursor: string | null,
): Page<MetricItem> {
  const { byGrain } = source.series;
  const raw = byGrain.get('raw');
  if (raw !== undefined && readSamples(source, raw, range, null, 1).length > 0) {
    return samplePage(source, raw, range, limit, cursor);
  }
  for (const grain of BUCKETS) {
    const id = byGrain.get(grain);
    if (id !== undefined && readBuckets(source, grain, id, range, null, 1).length > 0) {
      return bucketPage(source, grain, id, range, limit, cursor);
    }
  }
  return { items: [], next: null };
}
