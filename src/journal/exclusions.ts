/**
 * Exclusions: deliveries that a person set aside (test data, somebody else's phone). The fold leaves them out.
 *
 * - The delivery itself stays: body and row are never touched, and what was set aside can be taken back.
 * - Every event (excluded, included) is appended to `archive/exclusions.jsonl` and fsynced *before* the row is written
 *   or removed, both inside the journal's write lock: rows and events change in one order. The latest event of a
 *   delivery, by its place in the file, decides.
 * - Works beside a running service, which sees that the journal has changed.
 */
import type { Statement } from 'better-sqlite3';
import { z } from 'zod';
import type { Clock } from './clock.js';
import { HealthlogError } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import { appendNote, type Notes, noteTime, readNotes, type UnreadableLine } from './jsonl.js';
import { formatMicros, isDeliveryId, type Micros, micros } from './position.js';
import type { Journal } from './store.js';

const REASON_CHARS_MAX = 500;

const deliveryIdText = z.string().refine(isDeliveryId);

const exclusionEvent = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('excluded'),
    at: noteTime,
    delivery_id: deliveryIdText,
    reason: z.string().min(1),
  }),
  z.object({ event: z.literal('included'), at: noteTime, delivery_id: deliveryIdText }),
]);

type ExclusionEvent = z.output<typeof exclusionEvent>;

function readExclusionEvents(folder: DataFolder): Notes<ExclusionEvent> {
  return readNotes(folder.exclusions, exclusionEvent);
}

/** What became of the wish to set a delivery aside or to take it back. */
export interface ExclusionChange {
  /** False when it was so already. */
  readonly changed: boolean;
  /** Why it is, or was, set aside; null when it never was. */
  readonly reason: string | null;
}

/** What a start put right between the notes and the table, as counts. */
export interface ExclusionsReconciled {
  /** Rows made, or changed, from an event. */
  readonly excluded: number;
  /** Rows removed, because the latest event took the delivery back. */
  readonly included: number;
  /** Events written for rows that had none. */
  readonly noted: number;
  readonly unreadable: readonly UnreadableLine[];
}

interface RawExclusion {
  readonly delivery_id: string;
  readonly reason: string;
  readonly created_at: number;
}

export class ExclusionStore {
  readonly #journal: Journal;
  readonly #folder: DataFolder;
  readonly #files: FileLayer;
  readonly #clock: Clock;
  readonly #all: Statement<[], RawExclusion>;
  readonly #put: Statement<[string, string, number]>;
  readonly #drop: Statement<[string]>;

  /** @param journal open for writing */
  constructor(journal: Journal, folder: DataFolder, files: FileLayer, clock: Clock) {
    this.#journal = journal;
    this.#folder = folder;
    this.#files = files;
    this.#clock = clock;
    const { db } = journal;
    this.#all = db.prepare('SELECT delivery_id, reason, created_at FROM exclusion ORDER BY delivery_id');
    this.#put = db.prepare(
      `INSERT INTO exclusion (delivery_id, reason, created_at) VALUES (?, ?, ?)
       ON CONFLICT (delivery_id) DO UPDATE SET reason = excluded.reason, created_at = excluded.created_at`,
    );
    this.#drop = db.prepare('DELETE FROM exclusion WHERE delivery_id = ?');
  }

  /**
   * Sets a delivery aside. One that is set aside already keeps its reason.
   *
   * @param id whole
   * @throws HealthlogError not_found, usage when the reason is blank or too long, journal_busy
   */
  exclude(id: string, wantedReason: string): ExclusionChange {
    const reason = wantedReason.trim();
    if (reason === '')
      throw new HealthlogError('usage', { reason: 'Say with --reason why it is set aside.' });
    if (reason.length > REASON_CHARS_MAX) {
      throw new HealthlogError('usage', {
        reason: `The reason is longer than ${REASON_CHARS_MAX} characters.`,
      });
    }
    return this.#journal.write(() => {
      if (this.#journal.byId(id) === null) {
        throw new HealthlogError('not_found', { what: `delivery "${id}"` });
      }
      const known = this.#journal.exclusion(id);
      if (known !== null) return { changed: false, reason: known };
      const at = this.#clock.now();
      this.#noteExcluded(id, reason, at);
      this.#put.run(id, reason, at);
      return { changed: true, reason };
    });
  }

  /**
   * Takes a delivery back.
   *
   * @param id whole
   * @throws HealthlogError journal_busy
   */
  include(id: string): ExclusionChange {
    return this.#journal.write(() => {
      const reason = this.#journal.exclusion(id);
      if (reason === null) return { changed: false, reason };
      this.#append({ event: 'included', at: formatMicros(this.#clock.now()), delivery_id: id });
      this.#drop.run(id);
      return { changed: true, reason };
    });
  }

  /**
   * Puts the table and the notes in the archive together, both ways. Doing it twice changes nothing.
   *
   * @throws HealthlogError journal_busy; what the file system throws
   */
  reconcile(): ExclusionsReconciled {
    return this.#journal.write(() => {
      const rows = this.#all.all();
      const { events, unreadable } = readExclusionEvents(this.#folder);
      const latest = new Map<string, ExclusionEvent>(events.map((event) => [event.delivery_id, event]));
      const counts = { excluded: 0, included: 0, noted: 0 };
      for (const { delivery_id, reason, created_at } of rows) {
        if (latest.has(delivery_id)) continue;
        this.#noteExcluded(delivery_id, reason, micros(created_at));
        counts.noted += 1;
      }
      const reasons = new Map(rows.map((row) => [row.delivery_id, row.reason]));
      for (const event of latest.values()) {
        if (event.event === 'excluded' && reasons.get(event.delivery_id) !== event.reason) {
          this.#put.run(event.delivery_id, event.reason, event.at);
          counts.excluded += 1;
        }
        if (event.event === 'included' && reasons.has(event.delivery_id)) {
          this.#drop.run(event.delivery_id);
          counts.included += 1;
        }
      }
      return { ...counts, unreadable };
    });
  }

  #noteExcluded(id: string, reason: string, at: Micros): void {
    this.#append({ event: 'excluded', at: formatMicros(at), delivery_id: id, reason });
  }

  #append(event: Readonly<Record<string, string>>): void {
    appendNote(this.#folder, this.#files, this.#folder.exclusions, event);
  }
}
