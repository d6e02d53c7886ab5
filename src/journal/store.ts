/**
 * Store: journal.db, one row per accepted delivery, append-only, totally ordered by position.
 *
 * - Rows are inserted by the commit section (commit-section.ts) and by adoption (reconcile.ts), never changed, never
 *   removed; triggers in the schema say no to everything else.
 * - WAL with `synchronous = FULL`: COMMIT has fsynced the row. better-sqlite3 is compiled so that WAL falls to
 *   NORMAL after the first write unless the level is set by name *after* the journal mode.
 * - `seq` serves discovery ("what have I not seen yet"). The order is always `(received_at, id)`.
 * - Readers never migrate: a file of a newer release is readable, because journal migrations are additive.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import BetterSqlite3, { type Database, type Statement } from 'better-sqlite3';
import { systemClock } from './clock.js';
import { HealthlogError, platformCode } from './errors.js';
import type { DeliveryAccepted, DeliverySource, RecordedDelivery } from './event.js';
import { nodeFiles } from './files.js';
import type { DataFolder } from './folder.js';
import { MigrationError, migrate, migrationsDir } from './migrate.js';
import { deliveryId, type Micros, micros, type Position } from './position.js';

/** One row: the event and where discovery finds it. */
export type JournalRow = DeliveryAccepted['data'] & { readonly seq: number };

/** Where one delivery stands: `received_at`, `id`, `seq`. */
export type Place = [receivedAt: number, id: string, seq: number];

export interface JournalPage {
  /** Only positions before this one, newest first. */
  readonly before?: Position;
  /** Only positions after this one, oldest first. */
  readonly after?: Position;
  readonly limit: number;
  readonly profile?: string;
  readonly automationId?: string;
  /** Inclusive. */
  readonly since?: Micros;
  /** Exclusive. */
  readonly until?: Micros;
}

interface RawRow {
  readonly seq: number;
  readonly id: string;
  readonly received_at: number;
  readonly clock_at: number;
  readonly profile: string;
  readonly automation_id: string | null;
  readonly automation_name: string | null;
  readonly automation_aggregation: string | null;
  readonly automation_period: string | null;
  readonly session_id: string | null;
  readonly content_type: string | null;
  readonly source: DeliverySource;
  readonly adopted: number;
  readonly body_bytes: number;
  readonly body_sha256: string;
  readonly archive_path: string;
}

const COLUMNS = `seq, id, received_at, clock_at, profile, automation_id, automation_name, automation_aggregation,
  automation_period, session_id, content_type, source, adopted, body_bytes, body_sha256, archive_path`;

function toRow(raw: RawRow): JournalRow {
  return {
    seq: raw.seq,
    id: deliveryId(raw.id),
    receivedAt: micros(raw.received_at),
    clockAt: micros(raw.clock_at),
    profile: raw.profile,
    automation: {
      id: raw.automation_id,
      name: raw.automation_name,
      aggregation: raw.automation_aggregation,
      period: raw.automation_period,
    },
    sessionId: raw.session_id,
    contentType: raw.content_type,
    source: raw.source,
    adopted: raw.adopted === 1,
    bodyBytes: raw.body_bytes,
    bodySha256: raw.body_sha256,
    archivePath: raw.archive_path,
  };
}

/** The row as the event it is. */
export function toRecorded(row: JournalRow): RecordedDelivery {
  const { seq, ...data } = row;
  return {
    type: 'DeliveryAccepted',
    kind: 'Event',
    data,
    metadata: {
      messageId: row.id,
      streamName: 'journal',
      streamPosition: BigInt(seq),
      globalPosition: { receivedAt: row.receivedAt, id: row.id },
    },
  };
}

/** Opening and migrating may wait for another process that starts at the same moment. */
const WRITE_TIMEOUT_MS = 5_000;
/** A reader of a WAL file hardly ever waits; when it does, the caller should know soon. */
const READ_TIMEOUT_MS = 500;

function openFailure(folder: DataFolder, error: unknown): unknown {
  const code = platformCode(error);
  if (error instanceof MigrationError) {
    return new HealthlogError('bad_journal', { reason: error.message }, { cause: error });
  }
  if (code === 'SQLITE_NOTADB' || code?.startsWith('SQLITE_CORRUPT')) {
    const reason = `${folder.journal} is damaged or is no database`;
    return new HealthlogError('bad_journal', { reason }, { cause: error });
  }
  return error;
}

/** A connection to journal.db. Not shared between threads; the commit section has one of its own. */
export class Journal {
  readonly db: Database;
  readonly #bySeq: Statement<[number], RawRow>;
  readonly #byId: Statement<[string], RawRow>;
  readonly #byBody: Statement<[string, string], RawRow>;
  readonly #last: Statement<[], { received_at: number; id: string }>;
  readonly #lastSeq: Statement<[], { seq: number | null }>;
  readonly #count: Statement<[], { n: number }>;
  readonly #after: Statement<[number, number], RawRow>;
  readonly #exclusion: Statement<[string], { reason: string }>;
  readonly #exclusions: Statement<[], [string, string]>;
  readonly #places: Statement<[number, string, number], Place>;
  readonly #meta: Statement<[], { epoch: string; paused: number; created_at: number }>;
  readonly #pages = new Map<string, Statement<(string | number)[], RawRow>>();
  #insert: Statement<Omit<RawRow, 'seq'>[]> | null = null;

  private constructor(db: Database) {
    this.db = db;
    this.#bySeq = db.prepare(`SELECT ${COLUMNS} FROM delivery WHERE seq = ?`);
    this.#byId = db.prepare(`SELECT ${COLUMNS} FROM delivery WHERE id = ?`);
    this.#byBody = db.prepare(
      `SELECT ${COLUMNS} FROM delivery WHERE body_sha256 = ? AND profile = ? ORDER BY received_at, id`,
    );
    this.#last = db.prepare(
      'SELECT received_at, id FROM delivery ORDER BY received_at DESC, id DESC LIMIT 1',
    );
    this.#lastSeq = db.prepare('SELECT max(seq) AS seq FROM delivery');
    this.#count = db.prepare('SELECT count(*) AS n FROM delivery');
    this.#after = db.prepare(`SELECT ${COLUMNS} FROM delivery WHERE seq > ? ORDER BY seq LIMIT ?`);
    this.#exclusion = db.prepare('SELECT reason FROM exclusion WHERE delivery_id = ?');
    this.#exclusions = db
      .prepare<[], [string, string]>('SELECT delivery_id, reason FROM exclusion ORDER BY delivery_id')
      .raw();
    this.#places = db
      .prepare<[number, string, number], Place>(
        'SELECT received_at, id, seq FROM delivery WHERE (received_at, id) > (?, ?) ORDER BY received_at, id LIMIT ?',
      )
      .raw();
    this.#meta = db.prepare('SELECT epoch, paused, created_at FROM meta WHERE one = 1');
  }

  /**
   * 'write' creates folder and file when they are missing and migrates; 'read' takes an existing file as it is.
   *
   * @throws HealthlogError not_found, bad_journal; other errors of SQLite as they came
   */
  static open(folder: DataFolder, mode: 'write' | 'read'): Journal {
    const db = mode === 'write' ? connectForWriting(folder) : connectForReading(folder);
    try {
      if (mode === 'write') prepareForWriting(db);
      else prepareForReading(db, folder);
      const journal = new Journal(db);
      journal.meta();
      return journal;
    } catch (error) {
      db.close();
      throw openFailure(folder, error);
    }
  }

  meta(): { epoch: string; paused: boolean; createdAt: Micros } {
    const raw = this.#meta.get();
    if (raw === undefined) throw new HealthlogError('bad_journal', { reason: 'it has no epoch' });
    return { epoch: raw.epoch, paused: raw.paused === 1, createdAt: micros(raw.created_at) };
  }

  bySeq(seq: number): JournalRow | null {
    const raw = this.#bySeq.get(seq);
    return raw === undefined ? null : toRow(raw);
  }

  byId(id: string): JournalRow | null {
    const raw = this.#byId.get(id);
    return raw === undefined ? null : toRow(raw);
  }

  /** Rows of this profile with exactly this body, by position. */
  byBody(bodySha256: string, profile: string): JournalRow[] {
    return this.#byBody.all(bodySha256, profile).map(toRow);
  }

  /** The greatest position, which after an adoption need not be that of the greatest seq. */
  last(): Position | null {
    const raw = this.#last.get();
    return raw === undefined ? null : { receivedAt: micros(raw.received_at), id: deliveryId(raw.id) };
  }

  /** 0 when the journal is empty. */
  lastSeq(): number {
    return this.#lastSeq.get()?.seq ?? 0;
  }

  count(): number {
    return this.#count.get()?.n ?? 0;
  }

  /** Up to `limit` rows with a greater seq, by seq: how a reader discovers what it has not seen. */
  after(seq: number, limit: number): JournalRow[] {
    return this.#after.all(seq, limit).map(toRow);
  }

  /** Rows by position: oldest first with `after`, newest first otherwise. */
  page(query: JournalPage): JournalRow[] {
    const where: string[] = [];
    const values: (string | number)[] = [];
    const only = (condition: string, ...bound: (string | number)[]): void => {
      where.push(condition);
      values.push(...bound);
    };
    if (query.before) only('(received_at, id) < (?, ?)', query.before.receivedAt, query.before.id);
    if (query.after) only('(received_at, id) > (?, ?)', query.after.receivedAt, query.after.id);
    if (query.profile !== undefined) only('profile = ?', query.profile);
    if (query.automationId !== undefined) only('automation_id = ?', query.automationId);
    if (query.since !== undefined) only('received_at >= ?', query.since);
    if (query.until !== undefined) only('received_at < ?', query.until);
    const order = query.after ? 'received_at, id' : 'received_at DESC, id DESC';
    const filter = where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`;
    const sql = `SELECT ${COLUMNS} FROM delivery ${filter} ORDER BY ${order} LIMIT ?`;
    let statement = this.#pages.get(sql);
    if (statement === undefined) {
      statement = this.db.prepare<(string | number)[], RawRow>(sql);
      this.#pages.set(sql, statement);
    }
    return statement.all(...values, query.limit).map(toRow);
  }

  /** Why a person set this delivery aside; null when nobody did. */
  exclusion(id: string): string | null {
    return this.#exclusion.get(id)?.reason ?? null;
  }

  /** Everything that people set aside: reason by delivery id. */
  exclusions(): Map<string, string> {
    return new Map(this.#exclusions.all());
  }

  /** Up to `limit` places behind a position, in the order of positions: read from an index alone. */
  placesAfter(receivedAt: number, id: string, limit: number): Place[] {
    return this.#places.all(receivedAt, id, limit);
  }

  /**
   * Does `work` inside the write lock, in one transaction.
   *
   * @throws HealthlogError journal_busy when another connection keeps the lock; what `work` throws, rolled back
   */
  write<T>(work: () => T): T {
    try {
      return this.db.transaction(work).immediate();
    } catch (error) {
      if (!platformCode(error)?.startsWith('SQLITE_BUSY')) throw error;
      throw new HealthlogError('journal_busy', { waited_s: WRITE_TIMEOUT_MS / 1000 }, { cause: error });
    }
  }

  /** Another number means that another connection, of this process or of another one, has committed since. */
  dataVersion(): number {
    return Number(this.db.pragma('data_version', { simple: true }));
  }

  /** Appends one row inside the caller's transaction and gives its seq. Only commit-section.ts and reconcile.ts do this. */
  insert(row: Omit<JournalRow, 'seq'>): number {
    if (!this.db.inTransaction)
      throw new Error('a journal row is inserted inside the write lock or not at all');
    this.#insert ??= this.db.prepare(
      `INSERT INTO delivery (id, received_at, clock_at, profile, automation_id, automation_name, automation_aggregation,
         automation_period, session_id, content_type, source, adopted, body_bytes, body_sha256, archive_path)
       VALUES (@id, @received_at, @clock_at, @profile, @automation_id, @automation_name, @automation_aggregation,
         @automation_period, @session_id, @content_type, @source, @adopted, @body_bytes, @body_sha256, @archive_path)`,
    );
    const { changes, lastInsertRowid } = this.#insert.run({
      id: row.id,
      received_at: row.receivedAt,
      clock_at: row.clockAt,
      profile: row.profile,
      automation_id: row.automation.id,
      automation_name: row.automation.name,
      automation_aggregation: row.automation.aggregation,
      automation_period: row.automation.period,
      session_id: row.sessionId,
      content_type: row.contentType,
      source: row.source,
      adopted: row.adopted ? 1 : 0,
      body_bytes: row.bodyBytes,
      body_sha256: row.bodySha256,
      archive_path: row.archivePath,
    });
    if (changes !== 1) throw new Error(`one journal row was to be inserted, SQLite reports ${changes}`);
    return Number(lastInsertRowid);
  }

  close(): void {
    this.db.close();
  }
}

function connectForWriting(folder: DataFolder): Database {
  mkdirSync(folder.root, { recursive: true });
  if (existsSync(folder.journal)) return new BetterSqlite3(folder.journal, { timeout: WRITE_TIMEOUT_MS });
  const db = new BetterSqlite3(folder.journal, { timeout: WRITE_TIMEOUT_MS });
  nodeFiles.fsyncDirectory(folder.root);
  return db;
}

function prepareForWriting(db: Database): void {
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  migrate(db, migrationsDir('journal'));
  // Looked at first: an INSERT takes the write lock even when it has nothing to do.
  if (db.prepare('SELECT 1 FROM meta').get() !== undefined) return;
  db.prepare('INSERT INTO meta (one, epoch, created_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING').run(
    randomUUID(),
    systemClock.now(),
  );
}

function connectForReading(folder: DataFolder): Database {
  if (!existsSync(folder.journal)) {
    const what = `journal in ${folder.root} yet ("healthlog serve" makes one)`;
    throw new HealthlogError('not_found', { what });
  }
  return new BetterSqlite3(folder.journal, { fileMustExist: true, timeout: READ_TIMEOUT_MS });
}

function prepareForReading(db: Database, folder: DataFolder): void {
  db.pragma('query_only = ON');
  const known = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'delivery'").get();
  if (known === undefined) {
    throw new HealthlogError('bad_journal', { reason: `${folder.journal} is no journal of healthlog` });
  }
}
