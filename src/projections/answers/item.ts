/** Figures in the shape of an answer (design §10): absent fields are left out. */
import { formatDay, formatStamp } from '../dates.js';
import type { Grain } from '../layer.js';
import type { Rules } from './combine.js';
import type { Figure } from './point.js';

export interface MetricItem {
  /** ISO 8601 with the offset as written for hours and finer, `YYYY-MM-DD` for days, weeks and months. */
  readonly start: string;
  readonly value?: number;
  readonly min?: number;
  readonly max?: number;
  /** Numbers of a metric with several, by their name. */
  readonly parts?: Readonly<Record<string, number>>;
  /** How many buckets, samples or days were put together. */
  readonly count: number;
  /** What they are: raw samples, or buckets of this width. */
  readonly grain: Grain;
  readonly complete: boolean;
  /** The latest delivery behind the numbers. */
  readonly delivery_id: string;
  /** The devices, for single samples and buckets. */
  readonly source?: string;
  /** The unit of this item, when it could not be converted to that of the answer. */
  readonly unit?: string;
}

type Draft = { -readonly [Field in keyof MetricItem]: MetricItem[Field] };

/** One item of an answer. */
export function itemOf(
  start: string,
  figure: Figure,
  { converter, order }: Rules,
  source?: string | null,
): MetricItem {
  const { value, min, max, parts, count, grain, complete, delivery, unit } = figure;
  const origin = { count, grain, complete, delivery_id: order.id(delivery) };
  // A sum beyond what a double holds is no number that JSON could carry.
  const item: Draft =
    value === null || !Number.isFinite(value) ? { start, ...origin } : { start, value, ...origin };
  if (min !== null) item.min = min;
  if (max !== null) item.max = max;
  if (parts !== null) item.parts = Object.fromEntries(parts);
  if (source !== undefined && source !== null) item.source = source;
  if (unit !== converter.unit && converter.from(unit) === null) item.unit = unit;
  return item;
}

/** The name of an instant: seconds since 1970, and the offset as written. */
export function instantName(seconds: number, offsetMin: number | null): string {
  return formatStamp(Math.round(seconds * 1000), offsetMin);
}

/** The name of a day, or of a week or month by its first day; days since 1970-01-01. */
export const dayName: (day: number) => string = formatDay;
