/**
 * Accept: one delivery becomes one archive file and one journal row, or nothing at all.
 *
 * First the upload is received (upload.ts): streamed, checked, fsynced under a temporary name. The clock is read
 * as the upload begins; that reading is `clock_at` and stands in the archive file. Then it queues for the commit
 * section (commit-section.ts), which takes everything that waits, up to a limit, at once. Only after its COMMIT
 * is the runner woken and the caller answered.
 *
 * - A journal whose write lock is taken is tried again, up to `busyWaitMs` after the upload ended; then the
 *   temporary file goes.
 * - The queue does not know the request. A client that hangs up after its last byte is recorded all the same.
 */
import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { setTimeout as delay, setImmediate as endOfTurn } from 'node:timers/promises';
import type { Clock } from './clock.js';
import { type Candidate, CommitSection, type Committed } from './commit-section.js';
import { HealthlogError } from './errors.js';
import { type FileLayer, nodeFiles } from './files.js';
import type { DataFolder } from './folder.js';
import { deliveryId } from './position.js';
import type { JournalRow } from './store.js';
import { discardUpload, type IncomingDelivery, receiveUpload, type Upload } from './upload.js';

export type { IncomingDelivery } from './upload.js';
export { UploadAborted } from './upload.js';

export interface AcceptorDeps {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly files?: FileLayer;
  /** Limit for a body, in bytes. */
  readonly bodyBytesMax: number;
  /** Called after COMMIT, before accept() resolves. */
  readonly onAccepted: (row: JournalRow) => void;
  /** Called once when positions begin to run more than a minute ahead of the clock. */
  readonly onClockSkew?: (aheadMicros: number) => void;
  /** How long a delivery waits for the journal's write lock, counted from the end of its upload. */
  readonly busyWaitMs?: number;
  /** How many deliveries may share one commit section. */
  readonly commitGroupMax?: number;
}

/** A delivery that was taken in, or the earlier one that made it superfluous. */
export type Accepted = Exclude<Committed, { kind: 'failed' }>;

const BUSY_WAIT_MS = 10_000;
const BUSY_RETRY_FIRST_MS = 2;
const BUSY_RETRY_MAX_MS = 100;
/** A section holds the event loop up for about 0.1 ms a delivery on top of its two flushes. */
const COMMIT_GROUP_MAX = 64;
const CLOCK_SKEW_MAX_MICROS = 60_000_000;

interface Waiting extends Candidate {
  /** By `performance.now()`. */
  readonly deadlineMs: number;
  readonly resolve: (accepted: Accepted) => void;
  readonly reject: (error: unknown) => void;
}

export class Acceptor {
  readonly #deps: AcceptorDeps;
  readonly #files: FileLayer;
  readonly #busyWaitMs: number;
  readonly #groupMax: number;
  readonly #section: CommitSection;
  readonly #queue: Waiting[] = [];
  /** The work on the queue; null while it is empty. It never rejects. */
  #working: Promise<void> | null = null;
  #isSkewed: boolean = false;
  #isClosing: boolean = false;

  /** Opens a journal connection of its own and makes the archive folders. Throws what Journal.open throws. */
  constructor(deps: AcceptorDeps) {
    this.#deps = deps;
    this.#files = deps.files ?? nodeFiles;
    this.#busyWaitMs = deps.busyWaitMs ?? BUSY_WAIT_MS;
    this.#groupMax = deps.commitGroupMax ?? COMMIT_GROUP_MAX;
    this.#section = new CommitSection({ folder: deps.folder, clock: deps.clock, files: this.#files });
  }

  /**
   * Takes in one delivery. When this resolves, body, directory entry and row are durable.
   *
   * @throws HealthlogError with the refusals of receiveUpload(), journal_busy, stopping, disk_full,
   *   storage_failed; UploadAborted
   */
  async accept(body: Readable, incoming: IncomingDelivery): Promise<JournalRow> {
    const { row } = await this.#queued(await this.#receive(body, incoming), null);
    return row;
  }

  /**
   * The same, but a delivery whose body lies in the journal already can be left out. Decided inside the write lock, so
   * that two programs with the same file do not both record it.
   *
   * @param known gets the rows of this profile with exactly this body, and names the one that says it all
   * @throws what accept() throws
   */
  async acceptUnlessKnown(
    body: Readable,
    incoming: IncomingDelivery,
    known: (sameBody: readonly JournalRow[]) => JournalRow | null,
  ): Promise<Accepted> {
    return this.#queued(await this.#receive(body, incoming), known);
  }

  /** How far the newest position lies ahead of the clock, in microseconds; 0 when it does not. */
  clockSkewMicros(): number {
    const newest = this.#section.newest();
    return newest < 0 ? 0 : Math.max(0, newest - this.#deps.clock.now());
  }

  /** Refuses what waits for the write lock: there is no time left to wait. Nothing of it stays. */
  giveUpWaiting(): void {
    for (const { upload, reject } of this.#queue.splice(0)) {
      discardUpload(this.#files, upload.tmpPath);
      reject(new HealthlogError('stopping'));
    }
  }

  /** Lets what has been received be recorded, then closes the connection. Later deliveries are refused. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#working;
    this.#section.close();
  }

  async #receive(body: Readable, incoming: IncomingDelivery): Promise<Upload> {
    if (this.#isClosing) throw new HealthlogError('stopping');
    const upload = await receiveUpload(body, incoming, {
      incomingDir: this.#deps.folder.incoming,
      files: this.#files,
      id: deliveryId(randomUUID()),
      clockAt: this.#deps.clock.now(),
      bodyBytesMax: this.#deps.bodyBytesMax,
    });
    if (this.#isClosing) {
      discardUpload(this.#files, upload.tmpPath);
      throw new HealthlogError('stopping');
    }
    return upload;
  }

  #queued(upload: Upload, known: Candidate['known']): Promise<Accepted> {
    return new Promise((resolve, reject) => {
      const deadlineMs = performance.now() + this.#busyWaitMs;
      this.#queue.push({ upload, known, deadlineMs, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  async #work(): Promise<void> {
    let retryMs = BUSY_RETRY_FIRST_MS;
    while (this.#queue.length > 0) {
      // Uploads that end in the same turn of the event loop share the section.
      await endOfTurn();
      if (this.#commit(this.#nextGroup())) {
        retryMs = BUSY_RETRY_FIRST_MS;
        continue;
      }
      this.#giveUpOverdue();
      // Not at the same beat as another program that waits too.
      await delay(retryMs * (0.5 + Math.random()));
      retryMs = Math.min(retryMs * 2, BUSY_RETRY_MAX_MS);
    }
    // In the same breath as the look at the queue: whoever comes next finds that nobody works.
    this.#working = null;
  }

  /** The front of the queue. Equal bodies that may be known go one after another: the second has to see the first. */
  #nextGroup(): readonly Waiting[] {
    const front = this.#queue.slice(0, this.#groupMax);
    const bodies = new Set<string>();
    const end = front.findIndex(({ upload, known }) => {
      if (known !== null && bodies.has(upload.bodySha256)) return true;
      bodies.add(upload.bodySha256);
      return false;
    });
    return end < 0 ? front : front.slice(0, end);
  }

  /** False when the write lock is taken: the group stays in the queue. */
  #commit(group: readonly Waiting[]): boolean {
    const results = this.#section.commit(group);
    if (results === null) return false;
    this.#queue.splice(0, group.length);
    for (const [at, { resolve, reject }] of group.entries()) {
      const result = results[at];
      if (result === undefined || result.kind === 'failed') {
        reject(result?.error ?? new HealthlogError('internal'));
        continue;
      }
      if (result.kind === 'recorded') this.#recorded(result.row);
      resolve(result);
    }
    return true;
  }

  #recorded(row: JournalRow): void {
    const aheadMicros = row.receivedAt - this.#deps.clock.now();
    const isSkewed = aheadMicros > CLOCK_SKEW_MAX_MICROS;
    if (isSkewed && !this.#isSkewed) this.#deps.onClockSkew?.(aheadMicros);
    this.#isSkewed = isSkewed;
    this.#deps.onAccepted(row);
  }

  #giveUpOverdue(): void {
    const nowMs = performance.now();
    while (this.#queue[0] !== undefined && this.#queue[0].deadlineMs <= nowMs) {
      const overdue = this.#queue.shift();
      if (overdue === undefined) return;
      discardUpload(this.#files, overdue.upload.tmpPath);
      overdue.reject(new HealthlogError('journal_busy', { waited_s: Math.round(this.#busyWaitMs / 1000) }));
    }
  }
}
