/**
 * Layer: the time grouping an automation exported with (design §5.2), and the grain it gives each metric.
 *
 * The app writes no version and no grouping into the body. What can be known, in this order:
 *  1. Bound: a coarse grouping cannot produce a fine stamp, so the finest stamp of any metric but sleep, read
 *     on the clock as written, bounds the layer. Coarse stamps prove nothing: a fine grouping produces them too.
 *     (A day that begins at 01:00, because the clocks go forward at midnight, has its midnight there.)
 *  2. Declared: the header `automation-aggregation`, unless it is coarser than the bound, to which it loses.
 *  3. Content: what the stamps of the dense metrics show.
 *  4. Inherited: from a preceding delivery of the same automation (inheritance.ts).
 *  5. Three dense metrics or more, each at one and the same midnight: `day`.
 *  6. Otherwise unknown: the metrics of this delivery are not folded.
 * This file holds 1, 2, 3 and the condition of 5; it reads nothing but the delivery.
 */
import { monthStart, type Stamp, yearStart } from './dates.js';

/** From the finest to the coarsest. */
export const LAYERS = ['raw', 'second', 'default', 'minute', 'hour', 'day', 'week', 'month', 'year'] as const;
export type Layer = (typeof LAYERS)[number];

/** Bucket width of the points of one metric; `raw` are samples without buckets. */
export const GRAINS = ['raw', 'second', 'minute', 'hour', 'day', 'week', 'month', 'year'] as const;
export type Grain = (typeof GRAINS)[number];

/** How a layer was found. Only the first three can be inherited from. */
export type LayerOrigin = 'declared' | 'bound' | 'content' | 'inherited' | 'midnight' | 'unknown';

const FINENESS = new Map<Layer, number>(LAYERS.map((layer, index) => [layer, index]));

export function coarserThan(a: Layer, b: Layer): boolean {
  return (FINENESS.get(a) ?? 0) > (FINENESS.get(b) ?? 0);
}

export function isLayer(text: string): text is Layer {
  return (LAYERS as readonly string[]).includes(text);
}

/** The app's own words and their singular; compared without case, spaces, `-` and `_` (hae-format.md §2.2). */
const DECLARED = new Map<string, Layer>([
  ['default', 'default'],
  ['second', 'second'],
  ['seconds', 'second'],
  ['minute', 'minute'],
  ['minutes', 'minute'],
  ['hour', 'hour'],
  ['hours', 'hour'],
  ['day', 'day'],
  ['days', 'day'],
  ['week', 'week'],
  ['weeks', 'week'],
  ['month', 'month'],
  ['months', 'month'],
  ['year', 'year'],
  ['years', 'year'],
]);

export function foldHeader(text: string): string {
  return text.toLowerCase().replace(/[\s_-]/gu, '');
}

/** The layer the header names; null when there is none or its word is not known (localised phones). */
export function declaredLayer(header: string | null): Layer | null {
  return header === null ? null : (DECLARED.get(foldHeader(header)) ?? null);
}

/** `default` means seconds for heart_rate and minutes for everything else (hae-format.md §2.3). */
export function grainOf(layer: Layer, metric: string): Grain {
  if (layer === 'default') return metric === 'heart_rate' ? 'second' : 'minute';
  return layer;
}

/** Buckets of these grains are named by a local date, finer ones by an instant. */
export function isDateGrain(grain: Grain): boolean {
  return grain === 'day' || grain === 'week' || grain === 'month' || grain === 'year';
}

/** A stamp as far as layer and window look at it. */
export type StampReading = Omit<Stamp, 'dateOnly'>;

const HOUR_S = 3600;

export interface MetricStamps {
  readonly metric: string;
  readonly dense: boolean;
  readonly points: readonly StampReading[];
}

/** What the stamps of a delivery show, sleep left out. */
export interface StampFacts {
  readonly anyPoints: boolean;
  readonly bound: Layer | null;
  /** Distinct stamps of dense metrics on a full hour that is not midnight. */
  readonly denseHours: number;
  /** Distinct local dates, ascending, at whose midnight a dense metric has a stamp. */
  readonly denseMidnights: readonly number[];
  /** True when every stamp of every metric is a midnight. */
  readonly midnightsOnly: boolean;
  /** True when three dense metrics or more have exactly one stamp each, all at the same midnight. */
  readonly oneMidnight: boolean;
}

export function readStamps(metrics: readonly MetricStamps[], declared: Layer | null): StampFacts {
  let anyPoints = false;
  let secondsInHeartRate = false;
  let secondsElsewhere = false;
  let offHour = false;
  let offMidnight = false;
  const denseHours = new Set<number>();
  const denseMidnights = new Set<number>();
  let denseMetrics = 0;
  let singleStamped = 0;
  for (const { metric, dense, points } of metrics) {
    if (points.length === 0) continue;
    anyPoints = true;
    const stamps = new Set<number>();
    const lateMidnights = findLateMidnights(points);
    for (const point of points) {
      const { localDay, epochMs } = point;
      const secondOfDay = lateMidnights.has(point) ? 0 : point.secondOfDay;
      if (secondOfDay % 60 !== 0 || epochMs % 1000 !== 0) {
        if (metric === 'heart_rate') secondsInHeartRate = true;
        else secondsElsewhere = true;
      }
      if (secondOfDay % 3600 !== 0) offHour = true;
      if (secondOfDay !== 0) offMidnight = true;
      if (!dense) continue;
      stamps.add(localDay * 86_400 + secondOfDay);
      if (secondOfDay === 0) denseMidnights.add(localDay);
      else if (secondOfDay % 3600 === 0) denseHours.add(localDay * 24 + secondOfDay / 3600);
    }
    if (!dense) continue;
    denseMetrics += 1;
    if (stamps.size === 1) singleStamped += 1;
  }
  return {
    anyPoints,
    bound: boundOf({ secondsInHeartRate, secondsElsewhere, offHour, offMidnight }, declared),
    denseHours: denseHours.size,
    denseMidnights: [...denseMidnights].sort((a, b) => a - b),
    midnightsOnly: anyPoints && !offMidnight,
    oneMidnight:
      !offMidnight && denseMetrics >= 3 && singleStamped === denseMetrics && denseMidnights.size === 1,
  };
}

const NO_POINTS: ReadonlySet<StampReading> = new Set();

/**
 * Where clocks go forward at midnight (Chile, Cuba, Egypt, Lebanon, Paraguay), one day a year begins at 01:00, and
 * that is the stamp of its bucket. It is told from an hour by the bucket of the day before: at midnight, an hour
 * further west, with nothing between them and nothing else on the day. Such a stamp counts as its day's midnight.
 */
function findLateMidnights(points: readonly StampReading[]): ReadonlySet<StampReading> {
  if (!points.some(({ secondOfDay }) => secondOfDay === HOUR_S)) return NO_POINTS;
  const byDay = new Map<number, StampReading | null>();
  for (const point of points) byDay.set(point.localDay, byDay.has(point.localDay) ? null : point);
  const found = new Set<StampReading>();
  for (const point of byDay.values()) {
    if (point?.secondOfDay !== HOUR_S || point.offsetMin === null) continue;
    const before = byDay.get(point.localDay - 1);
    if (before?.secondOfDay === 0 && before.offsetMin === point.offsetMin - 60) found.add(point);
  }
  return found;
}

interface Fineness {
  readonly secondsInHeartRate: boolean;
  readonly secondsElsewhere: boolean;
  readonly offHour: boolean;
  readonly offMidnight: boolean;
}

function boundOf(seen: Fineness, declared: Layer | null): Layer | null {
  if (seen.secondsElsewhere || seen.secondsInHeartRate) {
    if (declared === 'second') return 'second';
    return seen.secondsElsewhere ? 'raw' : 'default';
  }
  if (seen.offHour) return 'minute';
  return seen.offMidnight ? 'hour' : null;
}

export type LayerReading =
  /** No bucketed points: nothing needs a layer. */
  | { readonly kind: 'not_needed' }
  | { readonly kind: 'derived'; readonly layer: Layer; readonly origin: 'declared' | 'bound' | 'content' }
  /** Rules 4 to 6 decide. An inherited layer must not be coarser than `bound`. */
  | { readonly kind: 'open'; readonly bound: Layer | null; readonly oneMidnight: boolean };

/** Rules 1 to 3 of design §5.2. */
export function readLayer(facts: StampFacts, declared: Layer | null): LayerReading {
  if (!facts.anyPoints) return { kind: 'not_needed' };
  const { bound } = facts;
  if (declared !== null) {
    if (bound !== null && coarserThan(declared, bound))
      return { kind: 'derived', layer: bound, origin: 'bound' };
    return { kind: 'derived', layer: declared, origin: 'declared' };
  }
  if (bound !== null && bound !== 'hour') return { kind: 'derived', layer: bound, origin: 'content' };
  if (facts.denseHours >= 2) return { kind: 'derived', layer: 'hour', origin: 'content' };
  if (facts.midnightsOnly && facts.denseMidnights.length >= 2) {
    return { kind: 'derived', layer: spacing(facts.denseMidnights), origin: 'content' };
  }
  return { kind: 'open', bound, oneMidnight: facts.oneMidnight };
}

/** Day, week, month or year by the distance of at least two dates, ascending. */
function spacing(days: readonly number[]): Layer {
  if (days.every((day) => day === yearStart(day))) return 'year';
  if (days.every((day) => day === monthStart(day))) return 'month';
  const first = days[0] ?? 0;
  return days.every((day) => (day - first) % 7 === 0) ? 'week' : 'day';
}

/** Rules 4 to 6: what an open reading becomes, given what can be inherited. */
export function closeLayer(
  open: { readonly bound: Layer | null; readonly oneMidnight: boolean },
  inherited: { readonly layer: Layer; readonly from: string } | null,
): {
  readonly layer: Layer | null;
  readonly origin: 'inherited' | 'midnight' | 'unknown';
  readonly from: string | null;
} {
  if (inherited !== null && (open.bound === null || !coarserThan(inherited.layer, open.bound))) {
    return { layer: inherited.layer, origin: 'inherited', from: inherited.from };
  }
  if (open.oneMidnight) return { layer: 'day', origin: 'midnight', from: null };
  return { layer: null, origin: 'unknown', from: null };
}
