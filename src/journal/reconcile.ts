/**
 * Reconcile: what a crash may leave between archive and journal, put right at start and before a rebuild.
 *
 * - A crash during an upload leaves a file in `incoming/`. Its client never read a 200: it is removed.
 * - A crash between rename and COMMIT leaves an *orphan*: a whole body in its place without a row. It is adopted
 *   with the position in its name; every other column comes from the file.
 * - An orphan may be no orphan: another process may stand between its rename and its COMMIT right now. So each is
 *   looked up again inside the write lock, where that process has either committed or will never commit.
 * - A damaged orphan stays where it is and is reported. Nothing here removes or alters an archive file.
 */
import { join } from 'node:path';
import { ArchiveDamaged, type ArchivedDelivery, readArchive } from './archive.js';
import { archivePaths } from './archive-walk.js';
import { platformCode } from './errors.js';
import { type FileLayer, nodeFiles } from './files.js';
import type { DataFolder } from './folder.js';
import { isAlive } from './process-alive.js';
import type { Journal, JournalRow } from './store.js';
import { isInProgress } from './upload.js';

const LEFTOVER_PATTERN = /^([1-9]\d{0,9})-[0-9a-f-]{36}\.tmp$/;

/**
 * Removes what uploads of dead processes left in `incoming/` and gives the names. A file whose writer's number
 * is in use stays, even if another program has the number now: waiting for a later start costs a little space,
 * a wrong guess costs a delivery. Under this process's own number only what it is writing itself stays: in a
 * container every start has the same number.
 */
export function sweepIncoming(folder: DataFolder, files: FileLayer = nodeFiles): string[] {
  let names: string[];
  try {
    names = files.readdir(folder.incoming);
  } catch (error) {
    if (platformCode(error) === 'ENOENT') return [];
    throw error;
  }
  const swept = names.filter((name) => {
    const writer = LEFTOVER_PATTERN.exec(name)?.[1];
    if (writer === undefined) return false;
    const pid = Number(writer);
    return pid === process.pid ? !isInProgress(name) : !isAlive(pid);
  });
  for (const name of swept) removeLeftover(files, join(folder.incoming, name));
  return swept;
}

function removeLeftover(files: FileLayer, path: string): void {
  try {
    files.unlink(path);
  } catch (error) {
    // Another process swept at the same time.
    if (platformCode(error) !== 'ENOENT') throw error;
  }
}

/** The id in an archive name, which archivePaths() has checked. */
function idOf(rel: string): string {
  return rel.split('_')[1] ?? '';
}

/** Archive files without a journal row, in the order of their positions. */
export function findOrphans(folder: DataFolder, journal: Journal, files: FileLayer = nodeFiles): string[] {
  const orphans: string[] = [];
  for (const rel of archivePaths(folder, files)) if (journal.byId(idOf(rel)) === null) orphans.push(rel);
  return orphans;
}

export interface Adoption {
  readonly adopted: readonly JournalRow[];
  /** Orphans that cannot be read back: path relative to the archive folder, and why. */
  readonly damaged: readonly { readonly path: string; readonly reason: string }[];
}

function adoptedRow(rel: string, found: ArchivedDelivery): Omit<JournalRow, 'seq'> {
  return {
    id: found.position.id,
    receivedAt: found.position.receivedAt,
    clockAt: found.header.clockAt,
    profile: found.header.profile,
    automation: found.automation,
    sessionId: found.sessionId,
    contentType: found.header.contentType,
    source: found.header.source,
    adopted: true,
    bodyBytes: found.body.length,
    bodySha256: found.bodySha256,
    archivePath: rel,
  };
}

export interface AdoptionDeps {
  readonly folder: DataFolder;
  /** Open for writing. */
  readonly journal: Journal;
  readonly files?: FileLayer;
  /** Told after every orphan: how many were looked at, of how many. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Rows of one transaction: enough that its flush costs little, and the write lock is held for milliseconds only. */
const BATCH_ROWS = 500;

/**
 * Takes every orphan into the journal, in the order of their positions.
 *
 * @throws HealthlogError journal_busy when another process holds the write lock; every error of the platform,
 *   because a disk that cannot be read says nothing about the delivery
 */
export function adoptOrphans(deps: AdoptionDeps): Adoption {
  const adopted: JournalRow[] = [];
  const damaged = adoptInBatches(deps, (rows) => adopted.push(...rows));
  return { adopted, damaged };
}

/**
 * The same without keeping the rows: a recovery takes in the whole archive.
 *
 * @returns the damaged ones
 */
export function adoptInBatches(
  { folder, journal, files = nodeFiles, onProgress }: AdoptionDeps,
  onAdopted: (rows: readonly JournalRow[]) => void,
): Adoption['damaged'] {
  const damaged: { path: string; reason: string }[] = [];
  const orphans = findOrphans(folder, journal, files);
  for (let from = 0; from < orphans.length; from += BATCH_ROWS) {
    const batch = orphans.slice(from, from + BATCH_ROWS);
    const rows: Omit<JournalRow, 'seq'>[] = [];
    // Read outside the write lock: a wide body takes longer than a phone should wait.
    for (const [index, rel] of batch.entries()) {
      const read = readOrphan(folder, rel);
      if ('reason' in read) damaged.push(read);
      else rows.push(read);
      onProgress?.(from + index + 1, orphans.length);
    }
    onAdopted(insertMissing(journal, rows));
  }
  return damaged;
}

function readOrphan(
  folder: DataFolder,
  rel: string,
): Omit<JournalRow, 'seq'> | { readonly path: string; readonly reason: string } {
  try {
    return adoptedRow(rel, readArchive(folder.archive, rel));
  } catch (error) {
    if (!(error instanceof ArchiveDamaged)) throw error;
    return { path: rel, reason: error.reason };
  }
}

function insertMissing(journal: Journal, rows: readonly Omit<JournalRow, 'seq'>[]): JournalRow[] {
  if (rows.length === 0) return [];
  return journal.write(() =>
    rows.filter((row) => journal.byId(row.id) === null).map((row) => ({ seq: journal.insert(row), ...row })),
  );
}
