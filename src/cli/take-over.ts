/**
 * Taking over: what the owner of a data folder does before anything else, service or import.
 *
 * lock → (a recovery that was cut short) → journal (migrations) → sweep → adopt → notes of the archive → (first
 * generation). Afterwards journal and archive say the same, whatever a crash has left.
 */
import type { Clock } from '../journal/clock.js';
import { nodeFiles } from '../journal/files.js';
import type { DataFolder } from '../journal/folder.js';
import { acquireLock, type Lock } from '../journal/lock.js';
import { type Adoption, adoptOrphans, sweepIncoming } from '../journal/reconcile.js';
import { type NotesReconciled, reconcileNotes } from '../journal/reconcile-notes.js';
import { discardUnfinished, putInPlace, type Replaced } from '../journal/replace-journal.js';
import { Journal } from '../journal/store.js';
import { currentGeneration, makeFirstGeneration } from '../projections/generations.js';

export interface TakenOver extends Adoption {
  readonly lock: Lock;
  /** Open for writing. */
  readonly journal: Journal;
  /** A recovery that was cut short and is finished now; null when there was none. */
  readonly replaced: Replaced | null;
  /** Names of what uploads of dead processes had left. */
  readonly swept: readonly string[];
  readonly notes: NotesReconciled;
}

/** @throws HealthlogError locked, bad_journal, journal_busy; what SQLite and the file system throw */
export function takeOver(folder: DataFolder, clock: Clock): TakenOver {
  const lock = acquireLock(folder, clock);
  try {
    const replaced = putInPlace(folder, nodeFiles, clock);
    discardUnfinished(folder, nodeFiles);
    const journal = Journal.open(folder, 'write');
    try {
      const swept = sweepIncoming(folder);
      const adoption = adoptOrphans({ folder, journal });
      const notes = reconcileNotes(journal, folder, nodeFiles, clock);
      if (journal.count() === 0 && currentGeneration(folder) === null)
        makeFirstGeneration(folder, journal.meta().epoch);
      return { lock, journal, replaced, swept, notes, ...adoption };
    } catch (error) {
      journal.close();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}
