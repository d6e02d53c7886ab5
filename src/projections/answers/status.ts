/**
 * Status: how much waits, how old it is, and when each automation last spoke.
 *
 * Cheap with a long journal: everything is a count or a step along an index. Ages are taken from the clock as read
 * when a delivery arrived, never from its position, which only orders and may run ahead of the clock.
 */
import { basename } from 'node:path';
import type { Database } from 'better-sqlite3';
import { formatMicros, type Micros, micros } from '../../journal/position.js';
import type { Journal } from '../../journal/store.js';
import { readMeta } from '../readmodel.js';
import { enrolledSeq, resultReader } from './ledger-view.js';

export interface AutomationStatus {
  readonly profile: string;
  /** Null for the deliveries that name no automation. */
  readonly id: string | null;
  /** Name, grouping and period as the latest delivery has them. */
  readonly name: string | null;
  readonly aggregation: string | null;
  readonly period: string | null;
  readonly deliveries: number;
  readonly last_received_at: string;
  /** Parse status of the latest delivery. */
  readonly last_status: string;
}

export interface JournalStatus {
  readonly pending: number;
  readonly oldest_pending_age_s: number | null;
  readonly last_received_at: string | null;
  readonly last_folded_at: string | null;
  readonly deliveries: number;
  readonly failed: number;
  readonly partial: number;
  /** File name of the live generation. */
  readonly generation: string | null;
  readonly fold_version: number | null;
  readonly automations: readonly AutomationStatus[];
}

/** How far behind the newest delivery the last fold is looked for, in rows of an index. */
const LOOK_BACK_MAX = 2000;

interface PendingRow {
  readonly seq: number;
  readonly received_at: number;
  readonly delivery_id: string;
}

/** Journal rows behind a seq. */
function countBehind(journal: Journal, seq: number): number {
  const sql = 'SELECT count(*) FROM delivery WHERE seq > ?';
  return journal.db.prepare<[number], number>(sql).pluck().get(seq) ?? 0;
}

function ledgerCount(
  generation: Database | null,
  status: 'pending' | 'failed' | 'partial',
  profile: string | null = null,
): number {
  if (generation === null) return 0;
  // A literal status: only that lets SQLite use the partial index.
  const sql = `SELECT count(*) FROM delivery_result WHERE parse_status = '${status}'`;
  if (profile === null) return generation.prepare<[], number>(sql).pluck().get() ?? 0;
  return generation.prepare<[string], number>(`${sql} AND profile = ?`).pluck().get(profile) ?? 0;
}

/** The first delivery in journal order that waits in the ledger. */
function firstPending(generation: Database | null): PendingRow | null {
  const row = generation
    ?.prepare<[], PendingRow>(
      `SELECT seq, received_at, delivery_id FROM delivery_result
       WHERE parse_status = 'pending' ORDER BY received_at, delivery_id LIMIT 1`,
    )
    .get();
  return row ?? null;
}

/**
 * When the ledger was last folded into. There is no index on times, and none is needed: deliveries are folded in
 * journal order, so the latest fold is just before the oldest one that waits, or, when that one is put off, among
 * the newest.
 */
function lastFoldedAt(
  generation: Database | null,
  pending: number,
  oldest: PendingRow | null,
): Micros | null {
  if (generation === null) return null;
  const newest = generation
    .prepare<[number], number | null>(
      `SELECT max(folded_at) FROM
         (SELECT folded_at FROM delivery_result ORDER BY received_at DESC, delivery_id DESC LIMIT ?)`,
    )
    .pluck()
    .get(Math.min(pending + 1, LOOK_BACK_MAX));
  const before =
    oldest === null
      ? null
      : generation
          .prepare<[number, string], number | null>(
            `SELECT folded_at FROM delivery_result WHERE (received_at, delivery_id) < (?, ?)
             ORDER BY received_at DESC, delivery_id DESC LIMIT 1`,
          )
          .pluck()
          .get(oldest.received_at, oldest.delivery_id);
  const latest = Math.max(newest ?? -1, before ?? -1);
  return latest < 0 ? null : micros(latest);
}

interface GroupRow {
  readonly profile: string;
  readonly automation_id: string | null;
  readonly deliveries: number;
}

function automationsOf(journal: Journal, generation: Database | null): AutomationStatus[] {
  const groups = journal.db
    .prepare<[], GroupRow>(
      `SELECT profile, automation_id, count(*) AS deliveries FROM delivery
       GROUP BY profile, automation_id ORDER BY profile, automation_id`,
    )
    .all();
  const last = journal.db
    .prepare<[string, string | null], number>(
      `SELECT seq FROM delivery WHERE profile = ? AND automation_id IS ?
       ORDER BY received_at DESC, id DESC LIMIT 1`,
    )
    .pluck();
  const resultOf = resultReader(generation);
  return groups.flatMap(({ profile, automation_id: id, deliveries }) => {
    const seq = last.get(profile, id);
    const row = seq === undefined ? null : journal.bySeq(seq);
    if (row === null) return [];
    const { name, aggregation, period } = row.automation;
    return {
      profile,
      id,
      name,
      aggregation,
      period,
      deliveries,
      last_received_at: formatMicros(row.receivedAt),
      last_status: resultOf(row.seq, row.id)?.parse_status ?? 'pending',
    };
  });
}

/** Times of one form compare as texts. */
function latestText(times: readonly string[]): string | null {
  return times.reduce<string | null>(
    (latest, time) => (latest === null || time > latest ? time : latest),
    null,
  );
}

function ageSeconds(now: Micros, since: readonly (Micros | null | undefined)[]): number | null {
  const times = since.filter((time): time is Micros => time !== null && time !== undefined);
  if (times.length === 0) return null;
  return Math.max(0, Math.round((now - Math.min(...times)) / 1_000_000));
}

/**
 * @param generation the live read model, null when there is none yet: everything is pending then
 * @param now the clock, for ages
 * @param profile whose deliveries are counted; null: everybody's. What waits, and since when, is the service's.
 */
export function journalStatus(
  journal: Journal,
  generation: Database | null,
  now: Micros,
  profile: string | null = null,
): JournalStatus {
  const enrolled = enrolledSeq(generation, journal.meta().epoch);
  // The ledger of a generation that was built from another journal says nothing about this one.
  const ledger = enrolled === 0 ? null : generation;
  const oldest = firstPending(ledger);
  const waiting = ledgerCount(ledger, 'pending');
  const [notTakenIn] = journal.after(enrolled, 1);
  const automations = automationsOf(journal, ledger).filter(
    (automation) => profile === null || automation.profile === profile,
  );
  const foldedAt = lastFoldedAt(ledger, waiting, oldest);
  return {
    pending: waiting + countBehind(journal, enrolled),
    oldest_pending_age_s: ageSeconds(now, [
      oldest && journal.bySeq(oldest.seq)?.clockAt,
      notTakenIn?.clockAt,
    ]),
    last_received_at: latestText(automations.map(({ last_received_at }) => last_received_at)),
    last_folded_at: foldedAt === null ? null : formatMicros(foldedAt),
    deliveries: automations.reduce((sum, { deliveries }) => sum + deliveries, 0),
    failed: ledgerCount(ledger, 'failed', profile),
    partial: ledgerCount(ledger, 'partial', profile),
    generation: generation === null ? null : basename(generation.name),
    fold_version: generation === null ? null : readMeta(generation).foldVersion,
    automations,
  };
}
