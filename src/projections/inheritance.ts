/**
 * Inheritance: the layer of a sparse delivery comes from the journal before it (design §5.2, rule 4).
 *
 * It is taken from the nearest preceding delivery of the same profile and automation that has a layer of its
 * own. A nearer delivery that declares another grouping ends the search: the setting was changed in between.
 * Without an automation id a delivery neither gives nor takes.
 *
 * So a layer is a function of the journal prefix (law 8), and a delivery that turns up late, below positions
 * already folded, can prove a result wrong. The inheritance check recomputes and compares; a mismatch marks the
 * generation stale, and a new one is built.
 */
import type Database from 'better-sqlite3';
import { type DeliveryId, type Micros, POSITION_ZERO, type Position } from '../journal/position.js';
import { coarserThan, isLayer, type Layer } from './layer.js';

export interface Inherited {
  readonly layer: Layer;
  readonly from: DeliveryId;
}

interface SpeakingRow {
  received_at: number;
  delivery_id: string;
  declared: string | null;
  layer: string | null;
  layer_origin: string | null;
}

const PAGE = 16;
const OWN_ORIGINS = new Set(['declared', 'bound', 'content']);

/** Row-value search on an index that holds only deliveries with a layer of their own or a declared grouping. */
export const SPEAKING_SQL = `
  SELECT received_at, delivery_id, declared, layer, layer_origin FROM delivery_result
  WHERE speaks = 1 AND profile = ? AND automation_id = ? AND (received_at, delivery_id) < (?, ?)
  ORDER BY received_at DESC, delivery_id DESC LIMIT ${PAGE}`;

export class Inheritance {
  readonly #speaking: Database.Statement<[string, string, number, string], SpeakingRow>;
  readonly #pendingBefore: Database.Statement<[string, string, number, string], { delivery_id: string }>;
  readonly #needing: Database.Statement<[number, string, number], NeedingRow>;

  constructor(db: Database.Database) {
    this.#speaking = db.prepare(SPEAKING_SQL);
    this.#pendingBefore = db.prepare(`
      SELECT delivery_id FROM delivery_result
      WHERE parse_status = 'pending' AND profile = ? AND automation_id = ? AND (received_at, delivery_id) < (?, ?)
      ORDER BY received_at DESC, delivery_id DESC LIMIT 1`);
    this.#needing = db.prepare(`
      SELECT received_at, delivery_id, profile, automation_id, layer, layer_origin, layer_from, layer_bound FROM delivery_result
      WHERE layer_origin IN ('inherited', 'midnight', 'unknown') AND (received_at, delivery_id) > (?, ?)
      ORDER BY received_at, delivery_id LIMIT ?`);
  }

  /** What a delivery at this position inherits; null when nothing before it tells. */
  lastDerivedLayer(profile: string, automationId: string, before: Position): Inherited | null {
    const declared = new Set<string>();
    let { receivedAt, id }: { receivedAt: number; id: string } = before;
    for (;;) {
      const page = this.#speaking.all(profile, automationId, receivedAt, id);
      for (const row of page) {
        if (row.layer !== null && isLayer(row.layer) && OWN_ORIGINS.has(row.layer_origin ?? '')) {
          const changedSince = [...declared].some((grouping) => grouping !== row.layer);
          return changedSince ? null : { layer: row.layer, from: row.delivery_id as DeliveryId };
        }
        if (row.declared !== null) declared.add(row.declared);
        receivedAt = row.received_at;
        id = row.delivery_id;
      }
      if (page.length < PAGE || declared.size > 1) return null;
    }
  }

  /** An earlier delivery of the automation that still waits; until it is folded, a layer would depend on luck. */
  pendingBefore(profile: string, automationId: string, before: Position): string | null {
    return this.#pendingBefore.get(profile, automationId, before.receivedAt, before.id)?.delivery_id ?? null;
  }

  /** The inheritance check: results behind `after` that the journal before them no longer supports. */
  mismatches(after: Position = POSITION_ZERO): InheritanceMismatch[] {
    const found: InheritanceMismatch[] = [];
    let cursor: Position = after;
    for (;;) {
      const rows = this.#needing.all(cursor.receivedAt, cursor.id, 500);
      for (const row of rows) {
        cursor = { receivedAt: row.received_at as Micros, id: row.delivery_id as DeliveryId };
        const inherited =
          row.automation_id === null ? null : this.lastDerivedLayer(row.profile, row.automation_id, cursor);
        const usable = inherited !== null && isUsable(inherited.layer, row.layer_bound) ? inherited : null;
        const recorded = row.layer_origin === 'inherited' ? { layer: row.layer, from: row.layer_from } : null;
        if (usable?.layer === recorded?.layer && usable?.from === recorded?.from) continue;
        found.push({
          id: cursor.id,
          recordedLayer: row.layer,
          recordedFrom: row.layer_from,
          layer: usable?.layer ?? null,
          from: usable?.from ?? null,
        });
      }
      if (rows.length < 500) return found;
    }
  }
}

function isUsable(layer: Layer, bound: string | null): boolean {
  return bound === null || !isLayer(bound) || !coarserThan(layer, bound);
}

interface NeedingRow {
  received_at: number;
  delivery_id: string;
  profile: string;
  automation_id: string | null;
  layer: string | null;
  layer_origin: string;
  layer_from: string | null;
  layer_bound: string | null;
}

export interface InheritanceMismatch {
  readonly id: DeliveryId;
  readonly recordedLayer: string | null;
  readonly recordedFrom: string | null;
  /** What the journal before the delivery says now. */
  readonly layer: Layer | null;
  readonly from: DeliveryId | null;
}
