/**
 * Commit section: a group of finished uploads becomes archive files and journal rows, all at once.
 *
 * One at a time, synchronous, on a connection nothing else uses:
 *
 *  1. BEGIN IMMEDIATE   the write lock of the journal; other processes wait here, so the lock is the order
 *  2. position          max(now, last + 1), `last` read inside the lock, never at or below a name in the archive.
 *                       Never at request start: two requests would commit in another order than they were stamped
 *  3. mkdir             new day folders, each fsynced, and its parent
 *  4. rename            each upload into its final name, which holds its position
 *  5. fsync             the day folders: now the names survive a power cut
 *  6. INSERT            a row for each
 *  7. COMMIT            synchronous = FULL: now the rows survive it too
 *
 * Uploads that wait at the same time share one section (group commit): one fsync of the folder, one COMMIT,
 * positions in a row.
 *
 * - A BEGIN that finds the lock taken did nothing: the caller tries again. The connection itself never waits
 *   (busy_timeout 0), because its waiting would stop the whole process.
 * - An upload that cannot be put into its place costs itself alone; its temporary file is removed.
 * - A step that fails after the renames fails them all: ROLLBACK and an error, but the files stay. The rows may
 *   have survived (a COMMIT that reports an I/O error can have reached the disk), and a row without its body
 *   would be worse than an orphan, which is adopted at the next start. Their positions are never given out again.
 */
import { dirname, join } from 'node:path';
import { archivePath, automationOf } from './archive.js';
import { newestArchived, newestDayFolder } from './archive-walk.js';
import type { Clock } from './clock.js';
import { platformCode } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import { ArchiveFolders } from './folders.js';
import { type Micros, micros, type Position } from './position.js';
import { Journal, type JournalRow } from './store.js';
import { discardUpload, endUpload, storageError, type Upload } from './upload.js';

/** One upload that waits for its place. */
export interface Candidate {
  readonly upload: Upload;
  /** Of the rows with the same body and profile, the one that makes this upload superfluous; null: none does. */
  readonly known: ((sameBody: readonly JournalRow[]) => JournalRow | null) | null;
}

export type Committed =
  | { readonly kind: 'recorded'; readonly row: JournalRow }
  /** Not recorded again: this row has the same body. */
  | { readonly kind: 'known'; readonly row: JournalRow }
  | { readonly kind: 'failed'; readonly error: unknown };

export interface CommitSectionDeps {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly files: FileLayer;
}

/** The system's clock steps once in a millisecond; positions within one step are told apart by `last + 1`. */
const CLOCK_STEP_MICROS = 1000;

function isBusy(error: unknown): boolean {
  return platformCode(error)?.startsWith('SQLITE_BUSY') ?? false;
}

type NewRow = Omit<JournalRow, 'seq'>;

/** How far one section came; decides what a failure leaves behind. */
interface Progress {
  hasLock: boolean;
  readonly results: Map<Upload, Committed>;
  /** Uploads that have their final names. */
  readonly placed: { readonly upload: Upload; readonly row: NewRow }[];
}

export class CommitSection {
  readonly #deps: CommitSectionDeps;
  readonly #journal: Journal;
  readonly #folders: ArchiveFolders;
  /** No position at or below this is given out: archive names, and sections that failed after the renames. */
  #floor: number;

  /** Opens a journal connection of its own and makes the archive folders. Throws what Journal.open throws. */
  constructor(deps: CommitSectionDeps) {
    this.#deps = deps;
    this.#journal = Journal.open(deps.folder, 'write');
    this.#journal.db.pragma('busy_timeout = 0');
    this.#folders = new ArchiveFolders(deps.folder, deps.files);
    this.#folders.ensureIncoming();
    this.#floor = newestArchived(deps.folder, deps.files)?.receivedAt ?? -1;
  }

  /** The greatest instant that was given out or lies in the archive; -1 when there is none. */
  newest(): number {
    return Math.max(this.#journal.last()?.receivedAt ?? -1, this.#floor);
  }

  close(): void {
    this.#journal.close();
  }

  /**
   * Takes the whole group into the journal; null when the write lock is taken and nothing was done.
   * Every upload that is not recorded has no temporary file any more.
   */
  commit(group: readonly Candidate[]): Committed[] | null {
    const progress: Progress = { hasLock: false, results: new Map(), placed: [] };
    const section = this.#journal.db.transaction(() => {
      progress.hasLock = true;
      let last = this.#last(this.#deps.clock.now());
      for (const candidate of group) last = this.#place(candidate, last, progress);
      for (const folder of dayFolders(progress)) this.#deps.files.fsyncDirectory(this.#inArchive(folder));
      for (const { upload, row } of progress.placed) {
        const recorded = { ...row, seq: this.#journal.insert(row) };
        progress.results.set(upload, { kind: 'recorded', row: recorded });
      }
    });
    try {
      section.immediate();
    } catch (error) {
      if (!progress.hasLock && isBusy(error)) return null;
      this.#fail(group, progress, error);
    }
    return group.map(({ upload }) => this.#end(upload, progress.results.get(upload)));
  }

  /** Finds the upload's place and puts it there; gives the last instant that is taken now. */
  #place({ upload, known }: Candidate, last: Micros, { results, placed }: Progress): Micros {
    const { clock, files } = this.#deps;
    const same = known?.(this.#journal.byBody(upload.bodySha256, upload.header.profile)) ?? null;
    if (same !== null) {
      results.set(upload, { kind: 'known', row: same });
      return last;
    }
    const receivedAt = micros(Math.max(clock.now(), last + 1));
    const row = rowOf(upload, { receivedAt, id: upload.id });
    try {
      this.#folders.ensureFor(row.archivePath);
      files.rename(upload.tmpPath, this.#inArchive(row.archivePath));
    } catch (error) {
      // A rename that reports an error has mostly not happened; if it has, the name is taken.
      this.#floor = Math.max(this.#floor, receivedAt);
      this.#folders.forget();
      results.set(upload, { kind: 'failed', error: storageError(error) });
      return receivedAt;
    }
    placed.push({ upload, row });
    return receivedAt;
  }

  /**
   * The greatest instant that is taken. The archive is looked at again only when it can hold a later name than the
   * journal knows: another process whose COMMIT failed leaves one, and it lies ahead only of a clock that was set back.
   */
  #last(now: Micros): Micros {
    if (now + CLOCK_STEP_MICROS <= this.newest() || this.#archiveIsAhead(now)) {
      const { folder, files } = this.#deps;
      this.#floor = Math.max(this.#floor, newestArchived(folder, files)?.receivedAt ?? -1);
    }
    return micros(this.newest());
  }

  #archiveIsAhead(now: Micros): boolean {
    const { folder, files } = this.#deps;
    const newest = newestDayFolder(folder, files);
    return newest !== null && (newest.startsAt > now || files.modifiedAtMs(newest.path) * 1000 > now);
  }

  /** A failed section: what has its final name stays there, its positions are taken for ever. */
  #fail(group: readonly Candidate[], { placed, results }: Progress, error: unknown): void {
    this.#folders.forget();
    for (const { row } of placed) this.#floor = Math.max(this.#floor, row.receivedAt);
    for (const { upload } of group) {
      if (results.get(upload)?.kind !== 'failed')
        results.set(upload, { kind: 'failed', error: storageError(error) });
    }
    for (const { upload } of placed) endUpload(upload.tmpPath);
  }

  #end(upload: Upload, result: Committed | undefined): Committed {
    if (result === undefined) throw new Error('a commit section left an upload without a result');
    if (result.kind === 'recorded') endUpload(upload.tmpPath);
    else discardUpload(this.#deps.files, upload.tmpPath);
    return result;
  }

  #inArchive(relative: string): string {
    return join(this.#deps.folder.archive, relative);
  }
}

function dayFolders({ placed }: Progress): Set<string> {
  return new Set(placed.map(({ row }) => dirname(row.archivePath)));
}

function rowOf({ id, header, bodyBytes, bodySha256 }: Upload, position: Position): NewRow {
  return {
    id,
    receivedAt: position.receivedAt,
    clockAt: header.clockAt,
    profile: header.profile,
    ...automationOf(header.headers),
    contentType: header.contentType,
    source: header.source,
    adopted: false,
    bodyBytes,
    bodySha256,
    archivePath: archivePath(position, bodySha256),
  };
}
