/**
 * `GET /v1/deliveries`: the journal with what became of each delivery, newest first, paged by position.
 *
 * Journal and read model are two files. A question about outcomes is asked of the read model's ledger, any other of
 * the journal; rows the generation has not taken in yet are `pending` and are put in at their position. Every page
 * is one walk along an index of positions.
 */
import type { Database } from 'better-sqlite3';
import { HealthlogError } from '../../journal/errors.js';
import { type Micros, micros, parseMicros } from '../../journal/position.js';
import type { Journal, JournalRow } from '../../journal/store.js';
import { parseStamp } from '../dates.js';
import { PARSE_STATUSES, RECORDED_CLASSES } from '../outcome.js';
import { type DeliveryItem, deliveryItem } from './delivery-item.js';
import { enrolledSeq, resultReader } from './ledger-view.js';
import { decodeCursor, encodeCursor, type Page, pageLimit, pageOf } from './page.js';

export type { DeliveryItem } from './delivery-item.js';

export interface DeliveriesQuestion {
  /** Null or absent: the deliveries of every profile. */
  readonly profile?: string | null | undefined;
  readonly parse_status?: string | undefined;
  readonly class?: string | undefined;
  /** Id of the automation as the phone sends it. */
  readonly automation?: string | undefined;
  /** Only deliveries in which this section was read, e.g. `workouts`. */
  readonly section?: string | undefined;
  /** Received at or after, before (exclusive; a bare date: the whole UTC day): text, or microseconds since 1970. */
  readonly since?: string | number | undefined;
  readonly until?: string | number | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | null | undefined;
  /** `newest` first when absent. */
  readonly order?: 'newest' | 'oldest' | undefined;
}

interface Place {
  readonly seq: number;
  readonly received_at: number;
  readonly id: string;
}

const DAY_MICROS = 86_400_000_000;

/** A moment of the journal: an exact position time, any other time (UTC when it names no offset), or a date. */
function parseMoment(name: 'since' | 'until', given: string | number | undefined): Micros | null {
  if (given === undefined) return null;
  if (typeof given === 'number') return micros(given);
  const exact = parseMicros(given);
  if (exact !== null) return exact;
  const stamp = parseStamp(given);
  if (stamp === null) {
    throw new HealthlogError('bad_request', {
      reason: `"${name}" is neither a date like 2026-11-30 nor a time like 2026-11-30T22:05:00Z`,
    });
  }
  if (stamp.dateOnly) return micros((stamp.localDay + (name === 'until' ? 1 : 0)) * DAY_MICROS);
  return micros(Math.round(stamp.epochMs * 1000));
}

function refuseUnknown(q: DeliveriesQuestion): void {
  const statuses: readonly string[] = PARSE_STATUSES;
  const classes: readonly string[] = RECORDED_CLASSES;
  if (q.parse_status !== undefined && !statuses.includes(q.parse_status)) {
    throw new HealthlogError('bad_request', { reason: `parse_status must be one of ${statuses.join(', ')}` });
  }
  if (q.class !== undefined && !classes.includes(q.class)) {
    throw new HealthlogError('bad_request', { reason: `class must be one of ${classes.join(', ')}` });
  }
}

/** Conditions joined with AND, and their values. */
class Conditions {
  readonly #texts: string[] = [];
  readonly values: (string | number)[] = [];

  add(text: string, ...values: readonly (string | number)[]): void {
    this.#texts.push(text);
    this.values.push(...values);
  }

  get where(): string {
    return this.#texts.length === 0 ? '' : `WHERE ${this.#texts.join(' AND ')}`;
  }
}

interface Walk {
  readonly after: { readonly receivedAt: number; readonly id: string } | null;
  readonly newestFirst: boolean;
  readonly limit: number;
}

function walkFrom(q: DeliveriesQuestion, limit: number): Walk {
  const newestFirst = q.order !== 'oldest';
  const list = newestFirst ? 'deliveries' : 'deliveries:oldest';
  const parts = decodeCursor(list, q.cursor);
  if (parts === null) return { after: null, newestFirst, limit };
  const [receivedAt, id] = parts;
  if (typeof receivedAt !== 'number' || typeof id !== 'string') {
    throw new HealthlogError('bad_request', { reason: 'the cursor is not one that this list gave' });
  }
  return { after: { receivedAt, id }, newestFirst, limit };
}

/** The conditions that both files can answer. `id` is the name of the column that holds the delivery's id. */
function sharedConditions(q: DeliveriesQuestion, walk: Walk, id: string): Conditions {
  const conditions = new Conditions();
  const { after, newestFirst } = walk;
  if (after !== null) {
    conditions.add(`(received_at, ${id}) ${newestFirst ? '<' : '>'} (?, ?)`, after.receivedAt, after.id);
  }
  const since = parseMoment('since', q.since);
  const until = parseMoment('until', q.until);
  if (since !== null) conditions.add('received_at >= ?', since);
  if (until !== null) conditions.add('received_at < ?', until);
  if (typeof q.profile === 'string') conditions.add('profile = ?', q.profile);
  if (q.automation !== undefined) conditions.add('automation_id = ?', q.automation);
  return conditions;
}

function places(
  db: Database,
  table: string,
  id: string,
  conditions: Conditions,
  { newestFirst, limit }: Walk,
): Place[] {
  const way = newestFirst ? 'DESC' : 'ASC';
  return db
    .prepare<(string | number)[], Place>(
      `SELECT seq, received_at, ${id} AS id FROM ${table} ${conditions.where}
       ORDER BY received_at ${way}, ${id} ${way} LIMIT ?`,
    )
    .all(...conditions.values, limit);
}

function journalPlaces(
  journal: Journal,
  q: DeliveriesQuestion,
  walk: Walk,
  behindSeq: number | null,
): Place[] {
  const conditions = sharedConditions(q, walk, 'id');
  if (behindSeq !== null) conditions.add('seq > ?', behindSeq);
  return places(journal.db, 'delivery', 'id', conditions, walk);
}

function ledgerPlaces(generation: Database, q: DeliveriesQuestion, walk: Walk): Place[] {
  const conditions = sharedConditions(q, walk, 'delivery_id');
  // A literal status: only that lets SQLite use the partial index. It was checked against the list of statuses.
  if (q.parse_status !== undefined) conditions.add(`parse_status = '${q.parse_status}'`);
  if (q.class !== undefined) conditions.add('class = ?', q.class);
  if (q.section !== undefined) {
    conditions.add("EXISTS (SELECT 1 FROM json_each(counters, '$.sections') WHERE key = ?)", q.section);
  }
  return places(generation, 'delivery_result', 'delivery_id', conditions, walk);
}

function merge(a: readonly Place[], b: readonly Place[], { newestFirst, limit }: Walk): Place[] {
  const way = newestFirst ? -1 : 1;
  return [...a, ...b]
    .sort((x, y) => way * (x.received_at - y.received_at || (x.id < y.id ? -1 : 1)))
    .slice(0, limit);
}

function findPlaces(
  journal: Journal,
  generation: Database | null,
  q: DeliveriesQuestion,
  walk: Walk,
): Place[] {
  if (q.parse_status === undefined && q.class === undefined && q.section === undefined) {
    return journalPlaces(journal, q, walk, null);
  }
  const enrolled = enrolledSeq(generation, journal.meta().epoch);
  const folded = generation === null || enrolled === 0 ? [] : ledgerPlaces(generation, q, walk);
  const pendingOnly = q.parse_status === 'pending' && q.class === undefined && q.section === undefined;
  return pendingOnly ? merge(folded, journalPlaces(journal, q, walk, enrolled), walk) : folded;
}

/**
 * One page of deliveries.
 * @param generation the live read model, null when there is none yet: everything is pending then
 * @throws HealthlogError bad_request for a filter, limit or cursor that cannot be understood.
 */
export function listDeliveries(
  journal: Journal,
  generation: Database | null,
  q: DeliveriesQuestion,
): Page<DeliveryItem> {
  refuseUnknown(q);
  const limit = pageLimit(q.limit);
  const walk = walkFrom(q, limit + 1);
  const page = pageOf(
    findPlaces(journal, generation, q, walk),
    limit,
    (place) => place,
    (last) =>
      encodeCursor(walk.newestFirst ? 'deliveries' : 'deliveries:oldest', [last.received_at, last.id]),
  );
  const resultOf = resultReader(generation);
  const items = page.items.flatMap(({ seq, id }) => {
    const row = journal.bySeq(seq);
    // The ledger of another journal may name a delivery that this one does not hold.
    return row === null || row.id !== id ? [] : [deliveryItem(row, resultOf(seq, id))];
  });
  return { items, next: page.next };
}

const PREFIX = /^[0-9a-f-]{8,36}$/;

function findRow(journal: Journal, id: string, profile: string | null): JournalRow | null {
  const prefix = id.trim().toLowerCase();
  if (!PREFIX.test(prefix)) return null;
  const conditions = new Conditions();
  // `g` comes right behind the hexadecimal digits.
  conditions.add('id >= ? AND id < ?', prefix, `${prefix}g`);
  if (profile !== null) conditions.add('profile = ?', profile);
  const seqs = journal.db
    .prepare<(string | number)[], number>(`SELECT seq FROM delivery ${conditions.where} LIMIT 2`)
    .pluck()
    .all(...conditions.values);
  if (seqs.length > 1) {
    throw new HealthlogError('bad_request', {
      reason: `several deliveries begin with "${prefix}"; give more of the id`,
    });
  }
  const [seq] = seqs;
  return seq === undefined ? null : journal.bySeq(seq);
}

/**
 * One delivery by its id, or by the beginning of its id: eight characters or more that no other delivery has.
 * @param profile whose deliveries may be seen, null for everybody's
 * @throws HealthlogError not_found, or bad_request when several deliveries begin like this.
 */
export function getDelivery(
  journal: Journal,
  generation: Database | null,
  id: string,
  profile: string | null,
): DeliveryItem {
  const row = findRow(journal, id, profile);
  if (row === null) throw new HealthlogError('not_found', { what: `delivery "${id}"` });
  return deliveryItem(row, resultReader(generation)(row.seq, row.id));
}
