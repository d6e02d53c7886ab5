/** What the answers are put together from: buckets and samples as stored, and the figures made of them. */
import type { Grain } from '../layer.js';

/** Numbers with the unit and the delivery they came with: a bucket, a sample, or a day that goes into a week. */
export interface Piece {
  readonly value: number | null;
  readonly min: number | null;
  readonly max: number | null;
  /** Numbers of a metric with several (blood pressure), by their name; null for the others. */
  readonly parts: ReadonlyMap<string, number> | null;
  /** The unit as delivered, '' when none came. */
  readonly unit: string;
  /** How many readings the value is the mean of, null when nobody said. */
  readonly weight: number | null;
  /** Journal seq of the latest delivery behind the numbers. */
  readonly delivery: number;
}

export interface Point extends Piece {
  /** Seconds since 1970 (samples: with a fraction), or days since 1970-01-01 for day and coarser. */
  readonly start: number;
  /** Minutes east of UTC as written, null when the stamp had no offset. */
  readonly offsetMin: number | null;
  /** Journal seq of the latest delivery that named this bucket, whether it won or not. */
  readonly named: number;
  /** False for a 0 that means "not measured". */
  readonly measured: boolean;
  /** True when the window of its delivery covered the whole bucket. Samples are never complete. */
  readonly complete: boolean;
  /** The devices as delivered, null when the key was absent. */
  readonly source: string | null;
  /** Id of the set of devices, the same for every spelling. */
  readonly sourceSet: number;
}

/** One answer: numbers, from which grain, of how many buckets or samples, and whether anything can be missing. */
export interface Figure extends Piece {
  readonly grain: Grain;
  readonly count: number;
  readonly complete: boolean;
}

/** The local date of a point of a grain finer than day: days since 1970-01-01, as written. */
export function localDayOf(point: Pick<Point, 'start' | 'offsetMin'>): number {
  return Math.floor((point.start + (point.offsetMin ?? 0) * 60) / 86_400);
}

/** Start of the local hour (3600) or minute (60) a point lies in, in seconds since 1970. */
export function localStartOf(point: Pick<Point, 'start' | 'offsetMin'>, widthSeconds: number): number {
  const offset = (point.offsetMin ?? 0) * 60;
  return Math.floor((point.start + offset) / widthSeconds) * widthSeconds - offset;
}
