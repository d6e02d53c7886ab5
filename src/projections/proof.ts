/**
 * Proof: the live generation, seen in one snapshot, against one built anew (design §8).
 */
import type Database from 'better-sqlite3';
import { z } from 'zod';
import type { DataFolder } from '../journal/folder.js';
import type { Journal } from '../journal/store.js';
import { foreignReason } from './belonging.js';
import { exclusionDrift, setAsideIn } from './exclusion-drift.js';
import { isDamage } from './failure.js';
import { type GenerationFile, openLive } from './generations.js';
import { Inheritance, type InheritanceMismatch } from './inheritance.js';
import { compareGenerations, type TableDifference } from './oracle.js';
import { readMeta } from './readmodel.js';

/** What the comparison with the live generation showed. */
export interface Proof {
  /** False when there was nothing this version could be compared with. */
  readonly compared: boolean;
  /** Why the live generation could not be compared although it is there; null when it could, or there is none. */
  readonly unreadable: string | null;
  readonly differences: readonly TableDifference[];
  readonly mismatches: readonly InheritanceMismatch[];
  /** Deliveries that a person set aside or took back since the live generation was folded: compared as it was folded. */
  readonly drifted: readonly string[];
  /** Deliveries that the live generation shows and whose body can no longer be read. */
  readonly lost: readonly { readonly id: string; readonly archivePath: string; readonly reason: string }[];
}

export const NOT_COMPARED: Proof = {
  compared: false,
  unreadable: null,
  differences: [],
  mismatches: [],
  drifted: [],
  lost: [],
};

export interface Snapshot {
  readonly db: Database.Database;
  readonly enrolledSeq: number;
  readonly pending: ReadonlySet<string>;
  /** What it was folded without: reasons by delivery id. */
  readonly setAside: ReadonlyMap<string, readonly string[]>;
  readonly drifted: readonly string[];
  readonly mismatches: readonly InheritanceMismatch[];
  close(): void;
}

/**
 * One read snapshot of the live generation, with the new file attached beside it: it is read for the first time
 * when it has been built. A text says why there is nothing to compare with; null: there is no live generation.
 */
export function openSnapshot(
  folder: DataFolder,
  journal: Journal,
  built: GenerationFile,
): Snapshot | string | null {
  const live = openLive(folder);
  if (live.kind === 'none') return null;
  if (live.kind === 'unreadable') return live.reason;
  const { db } = live;
  let keep = false;
  try {
    if (readMeta(db).journalEpoch !== journal.meta().epoch) return 'it was built from another journal';
    db.prepare('ATTACH ? AS rebuilt').run(built.path);
    db.exec('BEGIN');
    const foreign = foreignReason(db, journal);
    if (foreign !== null) return foreign;
    const { enrolledSeq } = readMeta(db);
    const pending = db
      .prepare<[], { delivery_id: string }>(
        "SELECT delivery_id FROM delivery_result WHERE parse_status = 'pending'",
      )
      .all();
    const snapshot: Snapshot = {
      db,
      enrolledSeq,
      pending: new Set(pending.map((row) => row.delivery_id)),
      setAside: setAsideIn(db),
      drifted: exclusionDrift(db, journal.exclusions()),
      mismatches: new Inheritance(db).mismatches(),
      close: () => db.close(),
    };
    keep = true;
    return snapshot;
  } catch (error) {
    if (isDamage(error)) return DAMAGED;
    throw error;
  } finally {
    if (!keep) db.close();
  }
}

const DAMAGED = 'its file is damaged';

/** Both generations, read in the snapshot's transaction. */
export function compareWithLive({ db, mismatches, drifted }: Snapshot, journal: Journal): Proof {
  try {
    const lost = findLost(db, journal);
    return {
      compared: true,
      unreadable: null,
      differences: compareGenerations(db, 'main', 'rebuilt'),
      mismatches,
      drifted,
      lost,
    };
  } catch (error) {
    if (isDamage(error)) return { ...NOT_COMPARED, unreadable: DAMAGED };
    throw error;
  }
}

function findLost(db: Database.Database, journal: Journal): Proof['lost'] {
  return db
    .prepare<[], { delivery_id: string; reasons: string }>(`
      SELECT l.delivery_id, r.reasons FROM main.delivery_result l JOIN rebuilt.delivery_result r ON r.seq = l.seq
      WHERE l.parse_status IN ('parsed', 'partial') AND r.class = 'unreadable' ORDER BY l.received_at, l.delivery_id`)
    .all()
    .map(({ delivery_id, reasons }) => ({
      id: delivery_id,
      archivePath: journal.byId(delivery_id)?.archivePath ?? '',
      reason: z.array(z.string()).parse(JSON.parse(reasons)).join('; '),
    }));
}
