/**
 * What the read model knows of deliveries: their outcomes. A journal row that the generation has not taken in yet,
 * or that stands at a seq where it took in another delivery (a restored journal), is `pending`.
 */
import type { Database } from 'better-sqlite3';
import { readMeta } from '../readmodel.js';

export interface ResultRow {
  readonly seq: number;
  readonly delivery_id: string;
  readonly received_at: number;
  readonly profile: string;
  readonly parse_status: string;
  readonly class: string | null;
  readonly declared: string | null;
  readonly layer: string | null;
  readonly layer_origin: string | null;
  readonly layer_from: string | null;
  readonly counters: string | null;
  readonly reasons: string | null;
  readonly fold_ms: number | null;
  readonly folded_at: number | null;
}

const RESULT_SQL = `SELECT seq, delivery_id, received_at, profile, parse_status, class, declared, layer, layer_origin,
    layer_from, counters, reasons, fold_ms, folded_at
  FROM delivery_result WHERE seq = ?`;

/** Looks up the outcome of one delivery after the other; null while the generation has not taken it in. */
export function resultReader(generation: Database | null): (seq: number, id: string) => ResultRow | null {
  if (generation === null) return () => null;
  const select = generation.prepare<[number], ResultRow>(RESULT_SQL);
  return (seq, id) => {
    const row = select.get(seq);
    return row !== undefined && row.delivery_id === id ? row : null;
  };
}

/** The last journal seq that this generation took in of this journal; 0 when there is none, or of another one. */
export function enrolledSeq(generation: Database | null, journalEpoch: string): number {
  if (generation === null) return 0;
  const meta = readMeta(generation);
  return meta.journalEpoch === journalEpoch ? meta.enrolledSeq : 0;
}
