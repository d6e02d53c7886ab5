/**
 * The rows behind the answers, read by range scans on the primary keys: one scan per grain and stretch of time,
 * never one look-up per day. Statements are prepared once per open read model.
 */

import type { Database } from 'better-sqlite3';
import type { Grain } from '../layer.js';
import { FLAG_COMPLETE, FLAG_MEASURED } from '../readmodel.js';
import type { Point } from './point.js';

/** Buckets come by the hundred thousand: as lists they are read twice as fast as objects. */
type BucketRow = readonly [
  start: number,
  value: number | null,
  min: number | null,
  max: number | null,
  label: number,
  delivery: number,
  named: number,
  flags: number,
  extra: string | null,
];
type SumRow = readonly [
  start: number,
  value: number | null,
  label: number,
  delivery: number,
  named: number,
  flags: number,
];

interface SampleRow {
  readonly instant: number;
  readonly source_set: number;
  readonly n: number;
  readonly value: number | null;
  readonly min: number | null;
  readonly max: number | null;
  readonly label: number;
  readonly delivery: number;
  readonly extra: string | null;
}

interface LabelRow {
  readonly unit: string;
  readonly source: string | null;
  readonly source_set: number;
  readonly offset_min: number | null;
}

interface CoverageRow {
  readonly start: number;
  readonly delivery: number;
}

/** A raw sample with its place among those of the same instant. */
export interface Sample extends Point {
  readonly instantMs: number;
  readonly n: number;
}

/** Where a sample stands: instant in milliseconds, set of devices, number within the multiset. */
export type SampleKey = readonly [instantMs: number, sourceSet: number, n: number];

const BUCKET_COLUMNS = 'start, value, min, max, label, delivery, named, flags, extra';

function isNamed(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Extra {
  readonly parts: ReadonlyMap<string, number> | null;
  readonly weight: number | null;
}

const NO_EXTRA: Extra = { parts: null, weight: null };

/** What the answers use of everything else a point said. Most points say nothing of it: those are not parsed. */
function readExtra(extra: string | null): Extra {
  if (extra === null || !(extra.includes('"parts"') || extra.includes('"count"'))) return NO_EXTRA;
  const read: unknown = JSON.parse(extra);
  if (!isNamed(read)) return NO_EXTRA;
  const parts = new Map<string, number>();
  if (isNamed(read.parts)) {
    for (const [name, value] of Object.entries(read.parts))
      if (typeof value === 'number') parts.set(name, value);
  }
  const { count } = read;
  return {
    parts: parts.size > 0 ? parts : null,
    weight: typeof count === 'number' && Number.isFinite(count) && count > 0 ? count : null,
  };
}

/** The series of one metric: one id per grain that holds anything. */
export interface MetricSeries {
  readonly metric: string;
  readonly byGrain: ReadonlyMap<Grain, number>;
  /** True when a 0 of this metric means "not measured". */
  readonly zeroMeansNotMeasured: boolean;
  /** True when its buckets add up and hold one number each: a sum then needs nothing but that number. */
  readonly plainSum: boolean;
}

export class Rows {
  static readonly #open = new WeakMap<Database, Rows>();

  readonly #db: Database;
  readonly #labels = new Map<number, LabelRow>();
  readonly #label;
  readonly #buckets;
  readonly #sums;
  readonly #nextBucket;
  readonly #lastBucket;
  readonly #samples;
  readonly #nextSample;
  readonly #lastSample;
  readonly #coverage;

  private constructor(db: Database) {
    this.#db = db;
    this.#label = db.prepare<[number], LabelRow>(
      'SELECT unit, source, source_set, offset_min FROM label WHERE id = ?',
    );
    this.#buckets = db
      .prepare<[number, number, number, number], BucketRow>(
        `SELECT ${BUCKET_COLUMNS} FROM bucket WHERE series = ? AND start >= ? AND start < ? ORDER BY start LIMIT ?`,
      )
      .raw();
    this.#sums = db
      .prepare<[number, number, number], SumRow>(
        'SELECT start, value, label, delivery, named, flags FROM bucket WHERE series = ? AND start >= ? AND start < ? ORDER BY start',
      )
      .raw();
    this.#nextBucket = db
      .prepare<[number, number], number>(
        'SELECT start FROM bucket WHERE series = ? AND start >= ? ORDER BY start LIMIT 1',
      )
      .pluck();
    this.#lastBucket = db
      .prepare<[number], BucketRow>(
        `SELECT ${BUCKET_COLUMNS} FROM bucket WHERE series = ? ORDER BY start DESC LIMIT 1`,
      )
      .raw();
    const sampleColumns = 'instant, source_set, n, value, min, max, label, delivery, extra';
    this.#samples = db.prepare<[number, number, number, number, number, number], SampleRow>(
      `SELECT ${sampleColumns} FROM sample
       WHERE series = ? AND (instant, source_set, n) > (?, ?, ?) AND instant < ?
       ORDER BY instant, source_set, n LIMIT ?`,
    );
    this.#nextSample = db
      .prepare<[number, number], number>(
        'SELECT instant FROM sample WHERE series = ? AND instant >= ? ORDER BY instant LIMIT 1',
      )
      .pluck();
    this.#lastSample = db.prepare<[number], SampleRow>(
      `SELECT ${sampleColumns} FROM sample WHERE series = ? ORDER BY instant DESC, source_set DESC, n DESC LIMIT 1`,
    );
    this.#coverage = db.prepare<[number, string, number, number], CoverageRow>(
      `SELECT coverage.start, coverage.delivery FROM coverage
       JOIN automation ON automation.id = coverage.automation AND automation.batches = 0
       WHERE coverage.series = ? AND coverage.unit = ? AND coverage.start >= ? AND coverage.start < ?`,
    );
  }

  /** The prepared statements of an open read model. */
  static of(db: Database): Rows {
    let rows = Rows.#open.get(db);
    if (rows === undefined) {
      rows = new Rows(db);
      Rows.#open.set(db, rows);
    }
    return rows;
  }

  /** Runs `read` in one snapshot: nothing that is folded meanwhile shows halfway. */
  snapshot<T>(read: () => T): T {
    return this.#db.transaction(read).deferred();
  }

  /** Buckets with `first` ≤ start < `end`, in order: seconds since 1970, or days for day and coarser. */
  buckets(series: number, first: number, end: number, limit = -1): Point[] {
    return this.#buckets.all(series, first, end, limit).map((row) => this.#point(row));
  }

  /** The same buckets with as much as it takes to put them together: of a plain sum, one number each. */
  ingredients(of: MetricSeries, series: number, first: number, end: number): Point[] {
    if (!of.plainSum) return this.buckets(series, first, end);
    return this.#sums.all(series, first, end).map(([start, value, label, delivery, named, flags]) => {
      const row: BucketRow = [start, value, null, null, label, delivery, named, flags, null];
      return this.#point(row);
    });
  }

  /** Start of the first bucket at or behind `first`, null when there is none. */
  nextBucket(series: number, first: number): number | null {
    return this.#nextBucket.get(series, first) ?? null;
  }

  /** Samples behind `after`, before `endMs` (milliseconds since 1970), in order. */
  samples(of: MetricSeries, series: number, after: SampleKey, endMs: number, limit = -1): Sample[] {
    return this.#samples.all(series, ...after, endMs, limit).map((row) => this.#sample(row, of));
  }

  /** Instant of the first sample at or behind `firstMs` in milliseconds, null when there is none. */
  nextSample(series: number, firstMs: number): number | null {
    return this.#nextSample.get(series, firstMs) ?? null;
  }

  /** The newest bucket or sample of a series, null when it is empty. */
  newest(of: MetricSeries, grain: Grain, series: number): Point | null {
    if (grain === 'raw') {
      const row = this.#lastSample.get(series);
      return row === undefined ? null : this.#sample(row, of);
    }
    const row = this.#lastBucket.get(series);
    return row === undefined ? null : this.#point(row);
  }

  /** The oldest bucket or sample of a series, null when it is empty. */
  oldest(of: MetricSeries, grain: Grain, series: number): Point | null {
    const [first] =
      grain === 'raw'
        ? this.samples(of, series, [Number.MIN_SAFE_INTEGER, 0, 0], Number.MAX_SAFE_INTEGER, 1)
        : this.buckets(series, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 1);
    return first ?? null;
  }

  /** Deliveries that cover whole days (days) or hours (seconds) of a series, batching automations left out. */
  coverage(series: number, unit: 'day' | 'hour', first: number, end: number): CoverageRow[] {
    return this.#coverage.all(series, unit, first, end);
  }

  #labelOf(id: number): LabelRow {
    let label = this.#labels.get(id);
    if (label === undefined) {
      label = this.#label.get(id);
      if (label === undefined) throw new Error(`the read model names label ${id} but does not hold it`);
      this.#labels.set(id, label);
    }
    return label;
  }

  #point([start, value, min, max, labelId, delivery, named, flags, extra]: BucketRow): Point {
    const label = this.#labelOf(labelId);
    const { parts, weight } = readExtra(extra);
    return {
      start,
      value,
      min,
      max,
      parts,
      unit: label.unit,
      weight,
      delivery,
      named,
      offsetMin: label.offset_min,
      measured: (flags & FLAG_MEASURED) !== 0,
      complete: (flags & FLAG_COMPLETE) !== 0,
      source: label.source,
      sourceSet: label.source_set,
    };
  }

  #sample(row: SampleRow, of: MetricSeries): Sample {
    const label = this.#labelOf(row.label);
    const { parts, weight } = readExtra(row.extra);
    return {
      start: row.instant / 1000,
      instantMs: row.instant,
      n: row.n,
      value: row.value,
      min: row.min,
      max: row.max,
      parts,
      unit: label.unit,
      weight: weight ?? 1,
      delivery: row.delivery,
      named: row.delivery,
      offsetMin: label.offset_min,
      measured: !(of.zeroMeansNotMeasured && row.value === 0),
      complete: false,
      source: label.source,
      sourceSet: row.source_set,
    };
  }
}
