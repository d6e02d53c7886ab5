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
import { HealthlogError, platformCode } from './errors.js';
import { type FileLayer, nodeFiles } from './files.js';
import type { DataFolder } from './folder.js';
import { isAlive } from './process-alive.js';
import { type Journal, type JournalRow, WRITE_TIMEOUT_MS } from './store.js';
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
  readonly adopted: JournalRow[];
  /** Orphans that cannot be read back: path relative to the archive folder, and why. */
  readonly damaged: { readonly path: string; readonly reason: string }[];
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

/**
 * Takes every orphan into the journal, each in a transaction of its own.
 *
 * @param deps `journal` is open for writing
 * @throws HealthlogError journal_busy when another process holds the write lock; every error of the platform,
 *   because a disk that cannot be read says nothing about the delivery
 */
export function adoptOrphans(deps: {
  readonly folder: DataFolder;
  readonly journal: Journal;
  readonly files?: FileLayer;
}): Adoption {
  const { folder, journal, files = nodeFiles } = deps;
  const result: Adoption = { adopted: [], damaged: [] };
  const adopt = journal.db.transaction((row: Omit<JournalRow, 'seq'>): number | null =>
    journal.byId(row.id) === null ? journal.insert(row) : null,
  );
  for (const rel of findOrphans(folder, journal, files)) {
    let found: ArchivedDelivery;
    try {
      found = readArchive(folder.archive, rel);
    } catch (error) {
      if (!(error instanceof ArchiveDamaged)) throw error;
      result.damaged.push({ path: rel, reason: error.reason });
      continue;
    }
    const seq = whenFree(() => adopt.immediate(adoptedRow(rel, found)));
    const row = seq === null ? null : journal.bySeq(seq);
    if (row !== null) result.adopted.push(row);
  }
  return result;
}

function whenFree<T>(transaction: () => T): T {
  try {
    return transaction();
  } catch (error) {
    if (!platformCode(error)?.startsWith('SQLITE_BUSY')) throw error;
    throw new HealthlogError('journal_busy', { waited_s: WRITE_TIMEOUT_MS / 1000 }, { cause: error });
  }
}
