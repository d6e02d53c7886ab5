/**
 * Ledger: `delivery_result`, what the generation knows of each delivery. The runner's queue is this table: a
 * delivery waits as `pending` until the transaction that writes its rows also writes its outcome, so there is
 * no "running" status, nothing to overflow and nothing to lose in a crash.
 */
import type Database from 'better-sqlite3';
import { type DeliveryId, type Micros, POSITION_ZERO, type Position } from '../journal/position.js';
import type { JournalRow } from '../journal/store.js';
import type { Layer } from './layer.js';
import { countersOf, layerOf, type Outcome } from './outcome.js';
import type { Evidence } from './winner.js';

/** The pass asks this more than once a minute: one range of a partial index that holds only what waits. */
export const PENDING_SQL = `
  SELECT received_at, delivery_id, seq FROM delivery_result
  WHERE parse_status = 'pending' AND (received_at, delivery_id) > (?, ?)
  ORDER BY received_at, delivery_id LIMIT ?`;

export interface PendingRow {
  readonly position: Position;
  readonly seq: number;
}

/** What the archive file says about whose delivery it is. */
export interface Identity {
  readonly evidence: Micros;
  readonly profile: string;
  readonly automationId: string | null;
  readonly sessionId: string | null;
}

/** What inheritance needs to know of a delivery beyond its outcome. */
export interface LayerMarks {
  readonly declared: Layer | null;
  readonly bound: Layer | null;
}

interface KeyRow {
  received_at: number;
  delivery_id: string;
}

/** Rows of this file's own tables were branded when they were written. */
function positionOf(row: KeyRow): Position {
  return { receivedAt: row.received_at as Micros, id: row.delivery_id as DeliveryId };
}

export class Ledger {
  readonly #db: Database.Database;
  readonly #pending: Database.Statement<[number, string, number], KeyRow & { seq: number }>;
  readonly #enrol: Database.Statement;
  readonly #batches: Database.Statement;
  readonly #mark: Database.Statement<[number, string]>;
  readonly #record: Database.Statement;
  readonly #evidence: Database.Statement<[number], KeyRow & { evidence: number }>;
  readonly #evidenceCache = new Map<number, Evidence>();

  constructor(db: Database.Database) {
    this.#db = db;
    this.#pending = db.prepare(PENDING_SQL);
    this.#enrol = db.prepare(`
      INSERT INTO delivery_result (seq, delivery_id, received_at, evidence, profile, automation_id, session_id, parse_status)
      VALUES (?, ?, ?, ?, ?, ?, ?, 'pending')`);
    this.#batches = db.prepare(`
      INSERT INTO automation (profile, automation_id, batches)
      SELECT @profile, @automation, 1 FROM delivery_result
      WHERE profile = @profile AND session_id = @session AND coalesce(automation_id, '') = @automation
        AND parse_status NOT IN ('pending', 'excluded')
      GROUP BY 1 HAVING count(*) > 1
      ON CONFLICT (profile, automation_id) DO UPDATE SET batches = 1`);
    this.#mark = db.prepare('UPDATE generation SET enrolled_seq = ?, enrolled_id = ?');
    this.#record = db.prepare(`
      UPDATE delivery_result SET evidence = ?, profile = ?, automation_id = ?, session_id = ?, parse_status = ?, class = ?,
        declared = ?, layer = ?, layer_origin = ?, layer_from = ?, layer_bound = ?, speaks = ?,
        counters = ?, reasons = ?, fold_ms = ?, folded_at = ?
      WHERE seq = ?`);
    this.#evidence = db.prepare(
      'SELECT evidence, received_at, delivery_id FROM delivery_result WHERE seq = ?',
    );
  }

  /** Takes journal rows in as pending, in one transaction with the mark that remembers how far. */
  enrol(rows: readonly JournalRow[], isLeftOut: (id: DeliveryId) => boolean): void {
    const last = rows[rows.length - 1];
    if (last === undefined) return;
    this.#db
      .transaction(() => {
        for (const row of rows) if (!isLeftOut(row.id)) this.#take(row);
        this.#mark.run(last.seq, last.id);
      })
      .immediate();
  }

  /** Takes in what was left out before; the mark is already behind it. */
  enrolLate(rows: readonly JournalRow[]): void {
    this.#db
      .transaction(() => {
        for (const row of rows) this.#take(row);
      })
      .immediate();
  }

  #take(row: JournalRow): void {
    const evidence = row.source === 'import' ? row.clockAt : row.receivedAt;
    const automationId = row.automation.id;
    this.#enrol.run(row.seq, row.id, row.receivedAt, evidence, row.profile, automationId, row.sessionId);
  }

  /** The next pending deliveries behind the cursor, in journal order. */
  pendingAfter(cursor: Position, limit: number): PendingRow[] {
    return this.#pending
      .all(cursor.receivedAt, cursor.id, limit)
      .map((row) => ({ position: positionOf(row), seq: row.seq }));
  }

  pendingCount(): number {
    return this.#count("SELECT count(*) AS n FROM delivery_result WHERE parse_status = 'pending'");
  }

  total(): number {
    return this.#count('SELECT count(*) AS n FROM delivery_result');
  }

  #count(sql: string): number {
    return this.#db.prepare<[], { n: number }>(sql).get()?.n ?? 0;
  }

  /** The highest position that has an outcome. */
  highestFolded(): Position {
    const row = this.#db
      .prepare<[], KeyRow>(
        "SELECT received_at, delivery_id FROM delivery_result WHERE parse_status <> 'pending' ORDER BY received_at DESC, delivery_id DESC LIMIT 1",
      )
      .get();
    return row === undefined ? POSITION_ZERO : positionOf(row);
  }

  /** The delivery's place in the order of evidence. Throws when the ledger does not know it. */
  evidenceOf(seq: number): Evidence {
    const cached = this.#evidenceCache.get(seq);
    if (cached !== undefined) return cached;
    const row = this.#evidence.get(seq);
    if (row === undefined) throw new Error(`the read model names a delivery ${seq} that it never took in`);
    const evidence = { ...positionOf(row), evidence: row.evidence as Micros };
    if (this.#evidenceCache.size > 50_000) this.#evidenceCache.clear();
    this.#evidenceCache.set(seq, evidence);
    return evidence;
  }

  /** Writes the outcome. Needs an open transaction: rows and outcome belong together. */
  record(
    seq: number,
    identity: Identity,
    marks: LayerMarks,
    outcome: Exclude<Outcome, { class: 'deferred' }>,
    timing: { readonly foldMs: number; readonly foldedAt: Micros },
  ): void {
    const layer = layerOf(outcome);
    const speaks = marks.declared !== null || OWN.has(layer.origin ?? '');
    const changes = this.#record.run(
      identity.evidence,
      identity.profile,
      identity.automationId,
      identity.sessionId,
      outcome.parseStatus,
      outcome.class,
      marks.declared,
      layer.layer,
      layer.origin,
      layer.from,
      marks.bound,
      speaks ? 1 : 0,
      JSON.stringify(countersOf(outcome)),
      JSON.stringify(outcome.reasons),
      timing.foldMs,
      timing.foldedAt,
      seq,
    ).changes;
    if (changes !== 1) throw new Error(`the read model never took in delivery ${seq}`);
    if (identity.sessionId !== null && outcome.parseStatus !== 'excluded') this.#noteBatch(identity);
    this.#evidenceCache.delete(seq);
  }

  /** Only deliveries that have had their turn count, and none that was set aside: a session of one is whole. */
  #noteBatch({ profile, automationId, sessionId }: Identity): void {
    this.#batches.run({ profile, automation: automationId ?? '', session: sessionId });
  }

  /** After a rollback: nothing read in it is certain. */
  forget(): void {
    this.#evidenceCache.clear();
  }
}

/** Layers that can be inherited from. */
const OWN = new Set<string>(['declared', 'bound', 'content']);
