/**
 * Accept: one delivery becomes one archive file and one journal row, or nothing at all.
 *
 * First the upload is received (upload.ts): streamed, checked, fsynced under a temporary name. The clock is read
 * as the upload begins; that reading is `clock_at` and stands in the archive file. Then comes the
 *
 * ## Commit section
 *
 * one at a time, synchronous, on a connection nothing else uses:
 *
 *  1. BEGIN IMMEDIATE   the write lock of the journal; other processes wait here, so the lock is the order
 *  2. position          max(now, last + 1), `last` read inside the lock. Never at request start: two requests
 *                       would commit in another order than they were stamped
 *  3. mkdir             new day folders, each fsynced, and its parent
 *  4. rename            the upload into its final name, which holds the position
 *  5. fsync             the day folder: now the name survives a power cut
 *  6. INSERT
 *  7. COMMIT            synchronous = FULL: now the row survives it too
 *  8. onAccepted        wakes the runner; the caller answers 200 after this
 *
 * - A BEGIN that finds the lock taken is tried again asynchronously, up to `busyWaitMs` after the upload ended;
 *   the connection itself never waits (busy_timeout 0), because its waiting would stop the whole process.
 * - A step that fails before the rename: the temporary file is removed, nothing happened.
 * - A step that fails after it: ROLLBACK and an error, but the file stays. The row may have survived (a COMMIT
 *   that reports an I/O error can have reached the disk), and a row without its body would be worse than an
 *   orphan, which is adopted at the next start. Its position is never given out again.
 * - The section does not know the request. A client that hangs up after its last byte is recorded all the same.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { archivePath, automationOf } from './archive.js';
import { newestArchived } from './archive-walk.js';
import type { Clock } from './clock.js';
import { HealthlogError, platformCode } from './errors.js';
import { type FileLayer, nodeFiles } from './files.js';
import type { DataFolder } from './folder.js';
import { ArchiveFolders } from './folders.js';
import { deliveryId, type Micros, micros, type Position } from './position.js';
import { Journal, type JournalRow } from './store.js';
import {
  discardUpload,
  endUpload,
  type IncomingDelivery,
  receiveUpload,
  storageError,
  type Upload,
} from './upload.js';

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
}

const BUSY_WAIT_MS = 10_000;
const BUSY_RETRY_FIRST_MS = 2;
const BUSY_RETRY_MAX_MS = 100;
const CLOCK_SKEW_MAX_MICROS = 60_000_000;

function isBusy(error: unknown): boolean {
  return platformCode(error)?.startsWith('SQLITE_BUSY') ?? false;
}

/** How far a commit section came; decides what a failure leaves behind. */
type Step = 'begin' | 'before_rename' | 'renaming' | 'after_rename';

interface Progress {
  step: Step;
  position: Position | null;
}

export class Acceptor {
  readonly #deps: AcceptorDeps;
  readonly #files: FileLayer;
  readonly #busyWaitMs: number;
  readonly #journal: Journal;
  readonly #folders: ArchiveFolders;
  /** No position at or below this is given out: archive names, and sections that failed after the rename. */
  #floor: number;
  #isSkewed: boolean = false;
  #isClosing: boolean = false;
  /** The end of the queue of commit sections. It never rejects. */
  #tail: Promise<void> = Promise.resolve();

  /** Opens a journal connection of its own and makes the archive folders. Throws what Journal.open throws. */
  constructor(deps: AcceptorDeps) {
    this.#deps = deps;
    this.#files = deps.files ?? nodeFiles;
    this.#busyWaitMs = deps.busyWaitMs ?? BUSY_WAIT_MS;
    this.#journal = Journal.open(deps.folder, 'write');
    this.#journal.db.pragma('busy_timeout = 0');
    this.#folders = new ArchiveFolders(deps.folder, this.#files);
    this.#folders.ensureIncoming();
    this.#floor = newestArchived(deps.folder, this.#files)?.receivedAt ?? -1;
  }

  /**
   * Takes in one delivery. When this resolves, body, directory entry and row are durable.
   *
   * @throws HealthlogError with the refusals of receiveUpload(), journal_busy, stopping, disk_full,
   *   storage_failed; UploadAborted
   */
  async accept(body: Readable, incoming: IncomingDelivery): Promise<JournalRow> {
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
    const deadline = performance.now() + this.#busyWaitMs;
    const section = this.#tail.then(() => this.#commitWhenFree(upload, deadline));
    this.#tail = section.then(
      () => undefined,
      () => undefined,
    );
    try {
      return await section;
    } finally {
      endUpload(upload.tmpPath);
    }
  }

  /** How far the newest position lies ahead of the clock, in microseconds; 0 when it does not. */
  clockSkewMicros(): number {
    const newest = Math.max(this.#journal.last()?.receivedAt ?? -1, this.#floor);
    return newest < 0 ? 0 : Math.max(0, newest - this.#deps.clock.now());
  }

  /** Lets the running commit sections end, then closes the connection. Later deliveries are refused. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#tail;
    this.#journal.close();
  }

  async #commitWhenFree(upload: Upload, deadline: number): Promise<JournalRow> {
    for (let waitMs = BUSY_RETRY_FIRST_MS; ; waitMs = Math.min(waitMs * 2, BUSY_RETRY_MAX_MS)) {
      const row = this.#commit(upload);
      if (row !== null) return row;
      if (performance.now() >= deadline) {
        discardUpload(this.#files, upload.tmpPath);
        throw new HealthlogError('journal_busy', { waited_s: Math.round(this.#busyWaitMs / 1000) });
      }
      await delay(waitMs);
    }
  }

  /** The commit section. Null when the write lock is taken and nothing was done. */
  #commit(upload: Upload): JournalRow | null {
    const progress: Progress = { step: 'begin', position: null };
    const section = this.#journal.db.transaction((): number => {
      progress.step = 'before_rename';
      const position = { receivedAt: this.#nextInstant(), id: upload.id };
      const path = archivePath(position, upload.bodySha256);
      const dayFolder = this.#folders.ensureFor(path);
      progress.position = position;
      progress.step = 'renaming';
      this.#files.rename(upload.tmpPath, join(this.#deps.folder.archive, path));
      progress.step = 'after_rename';
      this.#files.fsyncDirectory(dayFolder);
      return this.#journal.insert({
        id: upload.id,
        receivedAt: position.receivedAt,
        clockAt: upload.header.clockAt,
        profile: upload.header.profile,
        ...automationOf(upload.header.headers),
        contentType: upload.header.contentType,
        source: upload.header.source,
        adopted: false,
        bodyBytes: upload.bodyBytes,
        bodySha256: upload.bodySha256,
        archivePath: path,
      });
    });
    let seq: number;
    try {
      seq = section.immediate();
    } catch (error) {
      if (progress.step === 'begin' && isBusy(error)) return null;
      this.#afterFailure(progress, upload);
      throw storageError(error);
    }
    const row = this.#journal.bySeq(seq);
    if (row === null || row.id !== upload.id) throw new HealthlogError('internal');
    this.#noticeSkew(row.receivedAt);
    this.#deps.onAccepted(row);
    return row;
  }

  #nextInstant(): Micros {
    const last = Math.max(this.#journal.last()?.receivedAt ?? -1, this.#floor);
    return micros(Math.max(this.#deps.clock.now(), last + 1));
  }

  #afterFailure({ step, position }: Progress, upload: Upload): void {
    this.#folders.forget();
    if (position !== null) this.#floor = Math.max(this.#floor, position.receivedAt);
    // A rename that reports an error has mostly not happened; if it has, the temporary name is gone already.
    if (step !== 'after_rename') discardUpload(this.#files, upload.tmpPath);
  }

  #noticeSkew(receivedAt: Micros): void {
    const aheadMicros = receivedAt - this.#deps.clock.now();
    const isSkewed = aheadMicros > CLOCK_SKEW_MAX_MICROS;
    if (isSkewed && !this.#isSkewed) this.#deps.onClockSkew?.(aheadMicros);
    this.#isSkewed = isSkewed;
  }
}
