/**
 * Candidates: what one delivery says about each coordinate (design §5.1), computed from that delivery alone.
 *
 * Where a delivery names one coordinate twice, its own greatest candidate speaks for it (the later ordinal on a
 * tie), so that the store compares deliveries and never points of one delivery.
 */

import { wellFormed } from './json.js';
import { type Grain, grainOf, type Layer } from './layer.js';
import type { MetricPoints, Point } from './sections/metrics.js';
import { sourceSetName } from './sources.js';
import { keyConverter } from './units.js';
import {
  bucketEnd,
  bucketStart,
  coversDay,
  coversHour,
  type DeliveryWindow,
  hourStart,
  isComplete,
} from './window.js';
import { type BucketKey, compareBucketKeys, partsSum } from './winner.js';

export interface BucketCandidate extends BucketKey {
  /** Place on the grain's axis. */
  readonly start: number;
  readonly point: Point;
}

/** All samples of the delivery at one instant by one set of sources: a multiset, in one order. */
export interface SampleCandidate {
  /** Milliseconds since 1970. */
  readonly instant: number;
  readonly sourceSet: string;
  readonly samples: readonly Point[];
}

export interface SeriesCandidates {
  readonly metric: string;
  readonly grain: Grain;
  readonly cumulative: boolean;
  readonly points: number;
  readonly firstDay: number;
  readonly lastDay: number;
  /** Ascending by start; empty for raw samples. */
  readonly buckets: readonly BucketCandidate[];
  /** Ascending by instant; empty for buckets. */
  readonly samples: readonly SampleCandidate[];
  /** Local days and hours of this series that the delivery covers, ascending. */
  readonly coveredDays: readonly number[];
  readonly coveredHours: readonly number[];
}

export function seriesCandidates(
  group: MetricPoints,
  layer: Layer,
  window: DeliveryWindow,
): SeriesCandidates {
  const { metric, info, points } = group;
  const grain = grainOf(layer, metric);
  const cumulative = info?.summed ?? false;
  let firstDay = Number.POSITIVE_INFINITY;
  let lastDay = Number.NEGATIVE_INFINITY;
  for (const { localDay } of points) {
    if (localDay < firstDay) firstDay = localDay;
    if (localDay > lastDay) lastDay = localDay;
  }
  const covered = grain === 'raw' ? NOTHING_COVERED : coveredUnits(points, grain, window);
  return {
    metric,
    grain,
    cumulative,
    points: points.length,
    firstDay,
    lastDay,
    buckets: grain === 'raw' ? [] : bucketCandidates(group, grain, cumulative, window),
    samples: grain === 'raw' ? sampleCandidates(points) : [],
    coveredDays: covered.days,
    coveredHours: covered.hours,
  };
}

const NOTHING_COVERED: { readonly days: readonly number[]; readonly hours: readonly number[] } = {
  days: [],
  hours: [],
};

/** Weeks, months and years are put together from days, so nothing asks whether they are covered. */
function coveredUnits(
  points: readonly Point[],
  grain: Grain,
  window: DeliveryWindow,
): typeof NOTHING_COVERED {
  if (grain === 'week' || grain === 'month' || grain === 'year') return NOTHING_COVERED;
  const days = new Set<number>();
  const hours = new Set<number>();
  const seenDays = new Set<number>();
  const seenHours = new Set<number>();
  for (const point of points) {
    const { localDay } = point;
    if (!seenDays.has(localDay)) {
      seenDays.add(localDay);
      if (coversDay(window, localDay)) days.add(localDay);
    }
    if (grain === 'day') continue;
    const hour = hourStart(point);
    if (seenHours.has(hour)) continue;
    seenHours.add(hour);
    if (coversHour(window, hour, localDay)) hours.add(hour);
  }
  return { days: ascending(days), hours: ascending(hours) };
}

function ascending(values: Set<number>): number[] {
  return [...values].sort((a, b) => a - b);
}

function bucketCandidates(
  { info, points }: MetricPoints,
  grain: Grain,
  cumulative: boolean,
  window: DeliveryWindow,
): BucketCandidate[] {
  const list: BucketCandidate[] = [];
  const zeroIsMissing = info?.zeroMeansNotMeasured ?? false;
  let unit: string | null = null;
  let convert = keyConverter('', null);
  let ascendingStarts = true;
  for (const point of points) {
    const start = bucketStart(point, grain);
    if (point.unit !== unit) {
      unit = point.unit;
      convert = keyConverter(point.unit, info?.unit ?? null);
    }
    const number = keyNumber(point);
    const previous = list[list.length - 1];
    if (previous !== undefined && start <= previous.start) ascendingStarts = false;
    list.push({
      start,
      point,
      measured: !(zeroIsMissing && number === 0),
      complete: isComplete(window, start, bucketEnd(start, grain), point.localDay),
      value: convert(number),
    });
  }
  return ascendingStarts ? list : greatestOfEach(list, cumulative);
}

/** The number a key compares and the "not measured" rule looks at. */
function keyNumber(point: Point): number {
  if (point.value !== null) return point.value;
  if (point.max !== null) return point.max;
  if (point.min !== null) return point.min;
  return partsSum(point.parts);
}

function greatestOfEach(list: readonly BucketCandidate[], cumulative: boolean): BucketCandidate[] {
  const best = new Map<number, BucketCandidate>();
  for (const candidate of list) {
    const known = best.get(candidate.start);
    // A tie goes to the later ordinal, which is the one at hand.
    if (known === undefined || compareBucketKeys(candidate, known, cumulative) >= 0)
      best.set(candidate.start, candidate);
  }
  return [...best.values()].sort((a, b) => a.start - b.start);
}

function sampleCandidates(points: readonly Point[]): SampleCandidate[] {
  const groups = new Map<string, { instant: number; sourceSet: string; samples: Point[] }>();
  for (const point of points) {
    const sourceSet = sourceSetName(wellFormed(point.source ?? ''));
    const key = `${point.epochMs} ${sourceSet}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { instant: point.epochMs, sourceSet, samples: [point] });
    else group.samples.push(point);
  }
  const list = [...groups.values()];
  for (const { samples } of list) if (samples.length > 1) samples.sort(compareSamples);
  return list.sort((a, b) => a.instant - b.instant);
}

/** One order for a multiset, whatever order the body had. */
function compareSamples(a: Point, b: Point): number {
  return (
    (a.value ?? 0) - (b.value ?? 0) ||
    (a.min ?? 0) - (b.min ?? 0) ||
    (a.max ?? 0) - (b.max ?? 0) ||
    compareText(a.unit, b.unit) ||
    compareText(a.source ?? '', b.source ?? '') ||
    (a.offsetMin ?? 0) - (b.offsetMin ?? 0) ||
    compareText(a.extra ?? '', b.extra ?? '')
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
