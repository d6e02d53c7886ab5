/** A read model made by hand: rows as the fold would leave them, without the fold. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import BetterSqlite3, { type Database } from 'better-sqlite3';
import type { Grain } from '../../src/projections/layer.js';
import { sourceSetName } from '../../src/projections/sources.js';

const MIGRATIONS = fileURLToPath(new URL('../../migrations/readmodel', import.meta.url));

/** What a bucket or sample is made of; everything has a usual value. */
export interface PointParts {
  readonly value?: number | null;
  readonly min?: number | null;
  readonly max?: number | null;
  readonly unit?: string;
  readonly source?: string | null;
  /** Minutes east of UTC; null for a stamp without an offset. */
  readonly offset?: number | null;
  /** Name of the delivery that won. */
  readonly by?: string;
  /** Name of the latest delivery that named the bucket; the winner's when left out. */
  readonly named?: string;
  readonly measured?: boolean;
  readonly complete?: boolean;
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface DeliveryParts {
  readonly evidence?: number;
  readonly receivedAt?: number;
  readonly id?: string;
  readonly profile?: string;
  readonly automation?: string;
}

/** Seconds since 1970 of a moment written in ISO 8601; a moment without an offset is read as if UTC. */
export function seconds(iso: string): number {
  return Date.parse(/(Z|[+-]\d\d:\d\d)$/.test(iso) ? iso : `${iso}Z`) / 1000;
}

/** Days since 1970-01-01. */
export function days(date: string): number {
  return Date.parse(`${date}T00:00:00Z`) / 86_400_000;
}

function isDate(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text);
}

/** The offset a moment is written with, in minutes. */
function offsetOf(iso: string): number | null {
  const match = /([+-])(\d\d):(\d\d)$/.exec(iso);
  if (match === null) return iso.endsWith('Z') ? 0 : null;
  const size = Number(match[2]) * 60 + Number(match[3]);
  return match[1] === '-' ? -size : size;
}

export class ReadModelBuilder {
  readonly db: Database;
  readonly profile: string;
  readonly #seqs = new Map<string, number>();

  constructor(
    options: {
      readonly path?: string;
      readonly profile?: string;
      readonly epoch?: string;
      readonly onStatement?: (sql: string) => void;
    } = {},
  ) {
    this.db = new BetterSqlite3(options.path ?? ':memory:', {
      verbose: (sql) => options.onStatement?.(String(sql)),
    });
    this.profile = options.profile ?? 'me';
    for (const file of readdirSync(MIGRATIONS).sort())
      this.db.exec(readFileSync(join(MIGRATIONS, file), 'utf8'));
    this.db
      .prepare(
        "INSERT INTO generation (one, fold_version, journal_epoch, enrolled_seq, enrolled_id) VALUES (1, 1, ?, 0, '')",
      )
      .run(options.epoch ?? 'epoch');
  }

  /** A delivery by a short name; deliveries made later are later in the journal unless told otherwise. */
  delivery(name: string, parts: DeliveryParts = {}): number {
    const known = this.#seqs.get(name);
    if (known !== undefined) return known;
    const seq = this.#seqs.size + 1;
    const receivedAt = parts.receivedAt ?? seq * 1_000_000;
    this.db
      .prepare(
        `INSERT INTO delivery_result (seq, delivery_id, received_at, evidence, profile, automation_id, parse_status, class)
         VALUES (?, ?, ?, ?, ?, ?, 'parsed', 'folded')`,
      )
      .run(
        seq,
        parts.id ?? name,
        receivedAt,
        parts.evidence ?? receivedAt,
        parts.profile ?? this.profile,
        parts.automation ?? null,
      );
    this.#seqs.set(name, seq);
    return seq;
  }

  /** One bucket. `start` is a date for day and coarser, a moment with its offset for finer grains. */
  bucket(metric: string, grain: Grain, start: string, parts: PointParts = {}): this {
    const place = isDate(start) ? days(start) : seconds(start);
    const flags = (parts.measured === false ? 0 : 1) | (parts.complete === false ? 0 : 2);
    this.db
      .prepare(
        'INSERT INTO bucket (series, start, value, min, max, label, delivery, named, flags, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(
        this.series(metric, grain),
        place,
        parts.value ?? null,
        parts.min ?? null,
        parts.max ?? null,
        this.#label(parts, isDate(start) ? null : offsetOf(start)),
        this.delivery(parts.by ?? 'D1'),
        this.delivery(parts.named ?? parts.by ?? 'D1'),
        flags,
        parts.extra === undefined ? null : JSON.stringify(parts.extra),
      );
    // As the fold does: a delivery whose day or hour is complete covers that day or hour of that grain.
    if (parts.complete === false || (grain !== 'day' && grain !== 'hour')) return this;
    return this.covers(metric, grain, start, parts.by ?? 'D1', '');
  }

  /** One raw sample; samples of one instant and set of devices are numbered in the order they are added. */
  sample(metric: string, at: string, parts: PointParts = {}): this {
    const series = this.series(metric, 'raw');
    const instant = Math.round(seconds(at) * 1000);
    const set = this.#sourceSet(parts.source ?? null);
    const n = this.db
      .prepare<[number, number, number], number>(
        'SELECT count(*) FROM sample WHERE series = ? AND instant = ? AND source_set = ?',
      )
      .pluck()
      .get(series, instant, set);
    this.db
      .prepare(
        'INSERT INTO sample (series, instant, source_set, n, value, min, max, label, delivery, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
      )
      .run(
        series,
        instant,
        set,
        n,
        parts.value ?? null,
        parts.min ?? null,
        parts.max ?? null,
        this.#label(parts, offsetOf(at)),
        this.delivery(parts.by ?? 'D1'),
        parts.extra === undefined ? null : JSON.stringify(parts.extra),
      );
    return this;
  }

  /** A delivery of an automation covers a local day (a date) or hour (a moment) of a series. */
  covers(metric: string, grain: Grain, start: string, by: string, automation = 'A'): this {
    this.db
      .prepare('INSERT INTO coverage (series, unit, start, automation, delivery) VALUES (?, ?, ?, ?, ?)')
      .run(
        this.series(metric, grain),
        isDate(start) ? 'day' : 'hour',
        isDate(start) ? days(start) : seconds(start),
        this.automation(automation),
        this.delivery(by),
      );
    return this;
  }

  /** Says that an automation sends its runs in several parts. */
  batches(automation: string): this {
    this.db.prepare('UPDATE automation SET batches = 1 WHERE id = ?').run(this.automation(automation));
    return this;
  }

  automation(name: string): number {
    return this.#idOf(
      'INSERT INTO automation (profile, automation_id) VALUES (?, ?) ON CONFLICT DO NOTHING',
      'SELECT id FROM automation WHERE profile = ? AND automation_id = ?',
      [this.profile, name],
    );
  }

  series(metric: string, grain: Grain): number {
    return this.#idOf(
      'INSERT INTO series (profile, metric, grain) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
      'SELECT id FROM series WHERE profile = ? AND metric = ? AND grain = ?',
      [this.profile, metric, grain],
    );
  }

  #sourceSet(source: string | null): number {
    return this.#idOf(
      'INSERT INTO source_set (names) VALUES (?) ON CONFLICT DO NOTHING',
      'SELECT id FROM source_set WHERE names = ?',
      [sourceSetName(source)],
    );
  }

  #label(parts: PointParts, offset: number | null): number {
    const source = parts.source ?? null;
    const set = this.#sourceSet(source);
    const key = [parts.unit ?? 'count', source, parts.offset === undefined ? offset : parts.offset] as const;
    const find = this.db
      .prepare<[string, string | null, number | null], number>(
        'SELECT id FROM label WHERE unit = ? AND source IS ? AND offset_min IS ?',
      )
      .pluck();
    const known = find.get(...key);
    if (known !== undefined) return known;
    const insert = this.db.prepare(
      'INSERT INTO label (unit, source, offset_min, source_set) VALUES (?, ?, ?, ?)',
    );
    return Number(insert.run(...key, set).lastInsertRowid);
  }

  #idOf(insert: string, select: string, key: readonly string[]): number {
    this.db.prepare(insert).run(...key);
    const id = this.db
      .prepare<string[], number>(select)
      .pluck()
      .get(...key);
    if (id === undefined) throw new Error('the row that was just written cannot be found');
    return id;
  }
}
