/**
 * Fold store: lets the candidates of one delivery meet the winners that are there (winner.ts has the rule).
 *
 * Existing winners are read range by range and compared in memory; only what changes is written. Everything
 * here runs inside the caller's transaction, on the one connection that writes to the generation.
 */
import type Database from 'better-sqlite3';
import type { BucketCandidate, SampleCandidate, SeriesCandidates } from './candidates.js';
import { lookupMetric } from './catalogue.js';
import { type Label, Labels } from './labels.js';
import { type Grain, isDateGrain } from './layer.js';
import { Ledger } from './ledger.js';
import { FLAG_COMPLETE, FLAG_MEASURED } from './readmodel.js';
import { incomparable as incomparableSets, sourceSet } from './sources.js';
import { keyConverter } from './units.js';
import { type BucketKey, compareBucketKeys, compareEvidence, partsSum } from './winner.js';

/** One range read of existing buckets spans at most this: two days of seconds, or three years of dates. */
const RANGE_SECONDS_MAX = 172_800;
const RANGE_DAYS_MAX = 1100;
/** The same for samples, in milliseconds. */
const RANGE_MS_MAX = RANGE_SECONDS_MAX * 1000;

/** What a stored winner's key needs; `parts` is the whole of `extra` when the point has no number of its own. */
type StoredBucket = [
  start: number,
  number: number | null,
  label: number,
  delivery: number,
  flags: number,
  parts: string | null,
  named: number,
];
type StoredSample = [instant: number, sourceSet: number, delivery: number];
type StoredCoverage = [start: number, delivery: number];

const NOTHING_COMPARED = { seq: -1, storedSeq: -1, later: false };

export interface Written {
  readonly changed: number;
  readonly incomparable: number;
}

export class FoldStore {
  readonly db: Database.Database;
  readonly ledger: Ledger;
  readonly #labels: Labels;
  readonly #series: Database.Statement<[string, string, string], { id: number }>;
  readonly #insertSeries: Database.Statement<[string, string, string]>;
  readonly #automation: Database.Statement<[string, string], { id: number }>;
  readonly #insertAutomation: Database.Statement<[string, string]>;
  readonly #buckets: Database.Statement<[number, number, number], StoredBucket>;
  readonly #insertBucket: Database.Statement;
  readonly #replaceBucket: Database.Statement;
  readonly #nameBucket: Database.Statement<[number, number, number]>;
  readonly #samples: Database.Statement<[number, number, number], StoredSample>;
  readonly #dropSamples: Database.Statement<[number, number, number]>;
  readonly #putSample: Database.Statement;
  readonly #window: Database.Statement<[number, number, number, number, number]>;
  readonly #coverage: Database.Statement<[number, string, number, number, number], StoredCoverage>;
  readonly #putCoverage: Database.Statement<[number, string, number, number, number]>;

  #lastCompared = NOTHING_COMPARED;

  constructor(db: Database.Database) {
    this.db = db;
    this.ledger = new Ledger(db);
    this.#labels = new Labels(db);
    this.#series = db.prepare('SELECT id FROM series WHERE profile = ? AND metric = ? AND grain = ?');
    this.#insertSeries = db.prepare('INSERT INTO series (profile, metric, grain) VALUES (?, ?, ?)');
    this.#automation = db.prepare('SELECT id FROM automation WHERE profile = ? AND automation_id = ?');
    this.#insertAutomation = db.prepare('INSERT INTO automation (profile, automation_id) VALUES (?, ?)');
    this.#buckets = db
      .prepare<[number, number, number], StoredBucket>(
        `SELECT start, coalesce(value, max, min), label, delivery, flags, iif(coalesce(value, max, min) IS NULL, extra, NULL), named
         FROM bucket WHERE series = ? AND start BETWEEN ? AND ? ORDER BY start`,
      )
      .raw();
    this.#insertBucket = db.prepare(
      'INSERT INTO bucket (value, min, max, label, delivery, named, flags, extra, series, start) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#replaceBucket = db.prepare(
      'UPDATE bucket SET value = ?, min = ?, max = ?, label = ?, delivery = ?, named = ?, flags = ?, extra = ? WHERE series = ? AND start = ?',
    );
    this.#nameBucket = db.prepare('UPDATE bucket SET named = ? WHERE series = ? AND start = ?');
    this.#samples = db
      .prepare<[number, number, number], StoredSample>(
        'SELECT instant, source_set, delivery FROM sample WHERE series = ? AND instant BETWEEN ? AND ? AND n = 0 ORDER BY instant, source_set',
      )
      .raw();
    this.#dropSamples = db.prepare('DELETE FROM sample WHERE series = ? AND instant = ? AND source_set = ?');
    this.#putSample = db.prepare(
      'INSERT INTO sample (series, instant, source_set, n, value, min, max, label, delivery, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    );
    this.#window = db.prepare(`
      INSERT INTO delivery_series (delivery, series, points, first_date, last_date) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (delivery, series) DO UPDATE SET points = excluded.points, first_date = excluded.first_date, last_date = excluded.last_date`);
    this.#coverage = db
      .prepare<[number, string, number, number, number], StoredCoverage>(
        'SELECT start, delivery FROM coverage WHERE series = ? AND unit = ? AND automation = ? AND start BETWEEN ? AND ?',
      )
      .raw();
    this.#putCoverage = db.prepare(`
      INSERT INTO coverage (series, unit, start, automation, delivery) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (series, unit, start, automation) DO UPDATE SET delivery = excluded.delivery`);
  }

  /** Runs `work` in one immediate transaction; after a rollback the caches are forgotten. */
  transaction<T>(work: () => T): T {
    try {
      return this.db.transaction(work).immediate();
    } catch (error) {
      this.#lastCompared = NOTHING_COMPARED;
      this.#labels.forget();
      this.ledger.forget();
      throw error;
    }
  }

  /** Merges one series of a delivery. `tick` is called between ranges and may throw to give up. */
  write(
    candidates: SeriesCandidates,
    delivery: { readonly seq: number; readonly profile: string; readonly automationId: string | null },
    tick: () => void,
  ): Written {
    const { metric, grain } = candidates;
    const series = this.#seriesId(delivery.profile, metric, grain);
    this.#window.run(delivery.seq, series, candidates.points, candidates.firstDay, candidates.lastDay);
    if (candidates.coveredDays.length > 0 || candidates.coveredHours.length > 0) {
      const automation = this.#automationId(delivery.profile, delivery.automationId ?? '');
      this.#cover(series, 'day', automation, candidates.coveredDays, delivery.seq);
      this.#cover(series, 'hour', automation, candidates.coveredHours, delivery.seq);
    }
    const context = { series, seq: delivery.seq, metric, cumulative: candidates.cumulative };
    let changed = 0;
    let incomparable = 0;
    const span = isDateGrain(grain) ? RANGE_DAYS_MAX : RANGE_SECONDS_MAX;
    for (const range of ranges(candidates.buckets, span, (candidate) => candidate.start)) {
      tick();
      const written = this.#writeBuckets(range, context);
      changed += written.changed;
      incomparable += written.incomparable;
    }
    for (const range of ranges(candidates.samples, RANGE_MS_MAX, (candidate) => candidate.instant)) {
      tick();
      changed += this.#writeSamples(range, context);
    }
    return { changed, incomparable };
  }

  #seriesId(profile: string, metric: string, grain: Grain): number {
    const known = this.#series.get(profile, metric, grain)?.id;
    return known ?? Number(this.#insertSeries.run(profile, metric, grain).lastInsertRowid);
  }

  #automationId(profile: string, automationId: string): number {
    const known = this.#automation.get(profile, automationId)?.id;
    return known ?? Number(this.#insertAutomation.run(profile, automationId).lastInsertRowid);
  }

  #writeBuckets(range: readonly BucketCandidate[], context: SeriesContext): Written {
    const existing = this.#buckets.all(context.series, startOf(range), endOf(range));
    const key = this.#keyReader(context.metric);
    let changed = 0;
    let incomparable = 0;
    let at = 0;
    for (const candidate of range) {
      while (at < existing.length && (existing[at]?.[0] ?? 0) < candidate.start) at += 1;
      const stored = existing[at]?.[0] === candidate.start ? existing[at] : undefined;
      const { value, min, max, unit, source, offsetMin, extra } = candidate.point;
      const label = this.#labels.of(unit, source, offsetMin);
      let named = context.seq;
      if (stored !== undefined) {
        const storedKey = key(stored);
        if (candidate.complete && storedKey.complete && this.#disagree(label, stored[2])) incomparable += 1;
        named = this.#latest(context.seq, stored[6]);
        if (!this.#wins(candidate, storedKey, stored[3], context)) {
          if (named !== stored[6]) this.#nameBucket.run(named, context.series, candidate.start);
          continue;
        }
      }
      const put = stored === undefined ? this.#insertBucket : this.#replaceBucket;
      put.run(
        value,
        min,
        max,
        label.id,
        context.seq,
        named,
        flagsOf(candidate),
        extra,
        context.series,
        candidate.start,
      );
      changed += 1;
    }
    return { changed, incomparable };
  }

  #wins(
    candidate: BucketKey,
    stored: BucketKey,
    storedSeq: number,
    { cumulative, seq }: SeriesContext,
  ): boolean {
    const byKey = compareBucketKeys(candidate, stored, cumulative);
    if (byKey !== 0) return byKey > 0;
    return storedSeq === seq || this.#isLater(seq, storedSeq);
  }

  #latest(seq: number, storedSeq: number): number {
    return seq === storedSeq || this.#isLater(seq, storedSeq) ? seq : storedSeq;
  }

  /** Winners of one range mostly came with one delivery, so the last comparison is remembered. */
  #isLater(seq: number, storedSeq: number): boolean {
    const last = this.#lastCompared;
    if (last.seq === seq && last.storedSeq === storedSeq) return last.later;
    const later = compareEvidence(this.ledger.evidenceOf(seq), this.ledger.evidenceOf(storedSeq)) > 0;
    this.#lastCompared = { seq, storedSeq, later };
    return later;
  }

  /** True when neither set of devices contains the other: two exports disagree about devices. */
  #disagree(label: Label, storedLabel: number): boolean {
    if (label.id === storedLabel) return false;
    const stored = this.#labels.byId(storedLabel);
    if (stored.sourceSetId === label.sourceSetId) return false;
    return incomparableSets(sourceSet(label.sourceSet), sourceSet(stored.sourceSet));
  }

  /** Reads the key of a stored winner; its value in the metric's canonical unit. */
  #keyReader(metric: string): (stored: StoredBucket) => BucketKey {
    const canonical = lookupMetric(metric)?.unit ?? null;
    let lastLabel = -1;
    let convert = keyConverter('', null);
    return ([, number, label, , flags, extra]) => {
      if (label !== lastLabel) {
        lastLabel = label;
        convert = keyConverter(this.#labels.byId(label).unit, canonical);
      }
      return {
        measured: (flags & FLAG_MEASURED) !== 0,
        complete: (flags & FLAG_COMPLETE) !== 0,
        value: convert(number ?? partsSum(partsOf(extra))),
      };
    };
  }

  #writeSamples(range: readonly SampleCandidate[], { series, seq }: SeriesContext): number {
    const existing = new Map<string, number>();
    const first = range[0]?.instant ?? 0;
    const last = range[range.length - 1]?.instant ?? first;
    for (const [instant, set, delivery] of this.#samples.all(series, first, last))
      existing.set(`${instant} ${set}`, delivery);
    let changed = 0;
    for (const { instant, sourceSet: names, samples } of range) {
      const set = this.#labels.setId(names);
      const stored = existing.get(`${instant} ${set}`);
      if (stored === seq) continue;
      if (stored !== undefined) {
        if (!this.#isLater(seq, stored)) continue;
        this.#dropSamples.run(series, instant, set);
      }
      for (const [n, point] of samples.entries()) {
        const label = this.#labels.of(point.unit, point.source, point.offsetMin);
        this.#putSample.run(
          series,
          instant,
          set,
          n,
          point.value,
          point.min,
          point.max,
          label.id,
          seq,
          point.extra,
        );
      }
      changed += 1;
    }
    return changed;
  }

  #cover(
    series: number,
    unit: 'day' | 'hour',
    automation: number,
    starts: readonly number[],
    seq: number,
  ): void {
    const first = starts[0];
    const last = starts[starts.length - 1];
    if (first === undefined || last === undefined) return;
    const existing = new Map(this.#coverage.all(series, unit, automation, first, last));
    for (const start of starts) {
      const stored = existing.get(start);
      if (stored === seq || (stored !== undefined && !this.#isLater(seq, stored))) continue;
      this.#putCoverage.run(series, unit, start, automation, seq);
    }
  }
}

interface SeriesContext {
  readonly series: number;
  readonly seq: number;
  readonly metric: string;
  readonly cumulative: boolean;
}

function flagsOf({ measured, complete }: BucketKey): number {
  return (measured ? FLAG_MEASURED : 0) | (complete ? FLAG_COMPLETE : 0);
}

function partsOf(extra: string | null): Record<string, number> | null {
  const { parts }: { parts?: Record<string, number> } = JSON.parse(extra ?? '{}');
  return parts ?? null;
}

function startOf(range: readonly BucketCandidate[]): number {
  return range[0]?.start ?? 0;
}

function endOf(range: readonly BucketCandidate[]): number {
  return range[range.length - 1]?.start ?? 0;
}

/** Cuts an ascending list into runs that span at most `span`. */
function* ranges<T>(list: readonly T[], span: number, placeOf: (item: T) => number): Generator<readonly T[]> {
  let from = 0;
  for (let i = 1; i <= list.length; i++) {
    const first = list[from];
    const item = list[i];
    if (first === undefined) return;
    if (item !== undefined && placeOf(item) - placeOf(first) <= span) continue;
    yield from === 0 && i === list.length ? list : list.slice(from, i);
    from = i;
  }
}
