/** A delivery in the shape of an answer (design §10): the journal event with what became of it. */

import { formatMicros, micros } from '../../journal/position.js';
import type { JournalRow } from '../../journal/store.js';
import type { Counters } from '../outcome.js';
import type { ResultRow } from './ledger-view.js';

export interface DeliveryItem {
  readonly id: string;
  /** Position in the journal: ISO 8601 with microseconds. */
  readonly received_at: string;
  /** The clock as read when it arrived. */
  readonly clock_at: string;
  readonly profile: string;
  readonly automation: {
    readonly id: string | null;
    readonly name: string | null;
    readonly aggregation: string | null;
    readonly period: string | null;
  };
  readonly session_id: string | null;
  readonly source: string;
  readonly adopted: boolean;
  readonly content_type: string | null;
  readonly body_bytes: number;
  readonly body_sha256: string;
  readonly parse_status: string;
  readonly class: string | null;
  readonly layer: string | null;
  readonly layer_origin: string | null;
  readonly layer_from: string | null;
  /** Null while the delivery is pending. */
  readonly counters: Counters | null;
  readonly reasons: readonly string[];
  readonly declared: string | null;
  readonly fold_ms: number | null;
  readonly folded_at: string | null;
  /** Relative to the archive folder. */
  readonly archive_path: string;
}

function readReasons(json: string | null): string[] {
  const read: unknown = json === null ? [] : JSON.parse(json);
  return Array.isArray(read) ? read.filter((reason): reason is string => typeof reason === 'string') : [];
}

/** `result` is null for a delivery that the read model has not taken in yet. */
export function deliveryItem(row: JournalRow, result: ResultRow | null): DeliveryItem {
  const foldedAt = result?.folded_at ?? null;
  const counters: Counters | null = result?.counters == null ? null : JSON.parse(result.counters);
  return {
    id: row.id,
    received_at: formatMicros(row.receivedAt),
    clock_at: formatMicros(row.clockAt),
    profile: row.profile,
    automation: {
      id: row.automation.id,
      name: row.automation.name,
      aggregation: row.automation.aggregation,
      period: row.automation.period,
    },
    session_id: row.sessionId,
    source: row.source,
    adopted: row.adopted,
    content_type: row.contentType,
    body_bytes: row.bodyBytes,
    body_sha256: row.bodySha256,
    parse_status: result?.parse_status ?? 'pending',
    class: result?.class ?? null,
    layer: result?.layer ?? null,
    layer_origin: result?.layer_origin ?? null,
    layer_from: result?.layer_from ?? null,
    counters,
    reasons: readReasons(result?.reasons ?? null),
    declared: result?.declared ?? null,
    fold_ms: result?.fold_ms ?? null,
    folded_at: foldedAt === null ? null : formatMicros(micros(foldedAt)),
    archive_path: row.archivePath,
  };
}
