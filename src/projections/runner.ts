/**
 * Runner: folds what is pending, in journal order, one delivery after another.
 *
 * `pass()` is synchronous and waits on nothing; clock and stop flag are injected, so tests call it directly.
 * One pass:
 *  1. checks that the generation was folded from this journal, with these exclusions (belonging.ts): otherwise it
 *     is stale;
 *  2. enrols what it has not seen as pending rows of its own ledger;
 *  3. takes pending deliveries behind a cursor that rises strictly, folds each, and moves on whatever happens:
 *     one that cannot even record its outcome is skipped until the next pass, so a pass always ends (law 9);
 *  4. looks at the stop flag between deliveries, never inside one;
 *  5. runs the inheritance check when it folded below the highest folded position.
 *
 * There is no "running" status: a delivery is pending until the transaction that writes its rows also writes
 * its outcome. A crash anywhere leaves it pending, and the next pass is the whole recovery.
 */
import { getHeapStatistics } from 'node:v8';
import type Database from 'better-sqlite3';
import type { Clock } from '../journal/clock.js';
import { comparePosition, type DeliveryId, POSITION_ZERO, type Position } from '../journal/position.js';
import { type Journal, toRecorded } from '../journal/store.js';
import { deliveryProjection, type FoldContext } from './apply.js';
import { Belonging } from './belonging.js';
import { structureMaxOf } from './body.js';
import { setAsideReasons } from './exclusion-drift.js';
import { askJournal, isCircumstance, isDamage, JournalFailure } from './failure.js';
import { FoldStore } from './fold-store.js';
import { Inheritance, type InheritanceMismatch } from './inheritance.js';
import {
  type Attempt,
  addOutcome,
  addOutcomes,
  NO_OUTCOMES,
  type Outcome,
  type OutcomeSum,
} from './outcome.js';
import { markStale, readMeta } from './readmodel.js';

/** A fold that takes longer is given up: `deadline`. */
export const FOLD_DEADLINE_MS = 120_000;
/** Larger than any body the ingest takes by default, so that only a changed limit is refused here. */
export const FOLD_BODY_BYTES_MAX = 1024 * 1024 * 1024;

const ENROL_PAGE = 500;
const PASS_PAGE = 100;

export interface RunnerOptions {
  /** Opened for reading. */
  readonly journal: Journal;
  /** Opened for writing; nothing else writes to it. */
  readonly generation: Database.Database;
  readonly archiveRoot: string;
  readonly clock: Clock;
  readonly monotonicMs?: () => number;
  readonly stopped?: () => boolean;
  readonly deadlineMs?: number;
  readonly bodyBytesMax?: number;
  /** What V8 may take in this thread; its own limit when left out. */
  readonly heapBytes?: number;
  /** Only journal rows up to this seq are enrolled, and none of `leftOut`: the oracle folds a fixed prefix. */
  readonly enrolUpTo?: number;
  readonly leftOut?: ReadonlySet<string>;
  /** Reasons by delivery id: what is set aside, whatever the journal says. The oracle folds what the live one had. */
  readonly setAside?: ReadonlyMap<string, readonly string[]>;
  /** An attempt to record instead of folding: the delivery killed its worker twice. */
  readonly condemned?: (id: DeliveryId) => Attempt | null;
  readonly beforeFold?: (id: DeliveryId) => void;
  readonly afterFold?: (id: DeliveryId, outcome: Outcome) => void;
  readonly onFault?: (id: DeliveryId, error: unknown) => void;
  readonly onUnrecorded?: (id: DeliveryId, error: unknown) => void;
}

export type PassEnd =
  /** Every pending delivery had its turn. */
  | 'caught_up'
  /** The stop flag was up. */
  | 'stopped'
  /** The disk or the database forbids going on; the rest stays pending. */
  | 'circumstances'
  /** The generation must be rebuilt. */
  | 'stale'
  /** The generation's file is damaged and must be rebuilt. */
  | 'damaged';

export interface PassReport {
  readonly end: PassEnd;
  /** Why, for every end but `caught_up` and `stopped`. */
  readonly reason: string | null;
  readonly enrolled: number;
  readonly outcomes: OutcomeSum;
  readonly deferred: readonly DeliveryId[];
  /** Deliveries whose outcome could not be recorded; they have their turn in the next pass. */
  readonly unrecorded: readonly DeliveryId[];
  readonly mismatches: readonly InheritanceMismatch[];
  /** How far the pass came; a stopped one can be taken up behind it. */
  readonly cursor: Position;
}

export class Runner {
  readonly #options: RunnerOptions;
  readonly #store: FoldStore;
  readonly #inheritance: Inheritance;
  readonly #belonging: Belonging;
  readonly #context: FoldContext;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#store = new FoldStore(options.generation);
    this.#inheritance = new Inheritance(options.generation);
    this.#belonging = new Belonging({
      journal: options.journal,
      generation: options.generation,
      followsExclusions: options.setAside === undefined,
    });
    this.#context = {
      store: this.#store,
      inheritance: this.#inheritance,
      archiveRoot: options.archiveRoot,
      clock: options.clock,
      monotonicMs: options.monotonicMs ?? (() => performance.now()),
      deadlineMs: options.deadlineMs ?? FOLD_DEADLINE_MS,
      bodyBytesMax: options.bodyBytesMax ?? FOLD_BODY_BYTES_MAX,
      structureMax: structureMaxOf(options.heapBytes ?? getHeapStatistics().heap_size_limit),
      verdict: (id) => this.#setAside(id) ?? options.condemned?.(id) ?? null,
      onFault: options.onFault ?? (() => undefined),
    };
  }

  get store(): FoldStore {
    return this.#store;
  }

  get inheritance(): Inheritance {
    return this.#inheritance;
  }

  /**
   * One sweep over what is pending. Throws only what is neither a delivery's fault nor a circumstance.
   * @param after where a stopped pass is taken up; the beginning when left out
   */
  pass(after: Position = POSITION_ZERO): PassReport {
    const state: PassState = {
      enrolled: 0,
      outcomes: NO_OUTCOMES,
      deferred: [],
      unrecorded: [],
      cursor: after,
    };
    const report = (
      end: PassEnd,
      reason: string | null,
      mismatches: readonly InheritanceMismatch[] = [],
    ): PassReport => ({
      end,
      reason,
      mismatches,
      ...state,
    });
    try {
      const objection = this.#belonging.objection();
      if (objection !== null) {
        markStale(this.#options.generation, objection);
        return report('stale', objection);
      }
      state.enrolled = this.#enrol();
      const end = this.#fold(state);
      const mismatches = this.#check(end.foldedBelow);
      if (mismatches.length > 0) return report('stale', STALE_BY_INHERITANCE, mismatches);
      return report(end.end, end.reason);
    } catch (error) {
      if (isDamage(error)) return report('damaged', 'the file of the read model is damaged');
      if (isCircumstance(error)) return report('circumstances', circumstanceText(error));
      throw error;
    }
  }

  #setAside(id: DeliveryId): Attempt | null {
    const { journal, setAside } = this.#options;
    const reasons = setAside === undefined ? null : (setAside.get(id) ?? null);
    const reason = setAside === undefined ? askJournal(() => journal.exclusion(id)) : null;
    const said = reason === null ? reasons : setAsideReasons(reason);
    return said === null ? null : { type: 'Failed', data: { class: 'excluded', reasons: said } };
  }

  #enrol(): number {
    const { journal, generation, enrolUpTo = Number.MAX_SAFE_INTEGER, leftOut } = this.#options;
    let enrolled = 0;
    for (;;) {
      const { enrolledSeq } = readMeta(generation);
      const rows = askJournal(() => journal.after(enrolledSeq, ENROL_PAGE)).filter(
        ({ seq }) => seq <= enrolUpTo,
      );
      if (rows.length === 0) return enrolled;
      this.#store.ledger.enrol(rows, (id) => leftOut?.has(id) ?? false);
      enrolled += rows.length;
    }
  }

  #fold(state: PassState): { end: PassEnd; reason: string | null; foldedBelow: Position | null } {
    const { stopped = () => false, journal, beforeFold, afterFold, onUnrecorded } = this.#options;
    const { ledger } = this.#store;
    let highest = ledger.highestFolded();
    let foldedBelow: Position | null = null;
    for (;;) {
      const page = ledger.pendingAfter(state.cursor, PASS_PAGE);
      if (page.length === 0) return { end: 'caught_up', reason: null, foldedBelow };
      for (const { position, seq } of page) {
        if (stopped()) return { end: 'stopped', reason: null, foldedBelow };
        state.cursor = position;
        const row = askJournal(() => journal.bySeq(seq));
        if (row === null || row.id !== position.id) {
          return { end: 'stale', reason: 'the journal was restored from another copy', foldedBelow };
        }
        let outcome: Outcome;
        try {
          beforeFold?.(position.id);
          outcome = deliveryProjection.handle(toRecorded(row), this.#context);
        } catch (error) {
          if (isDamage(error) || error instanceof JournalFailure) throw error;
          state.unrecorded.push(position.id);
          onUnrecorded?.(position.id, error);
          continue;
        }
        afterFold?.(position.id, outcome);
        state.outcomes = addOutcome(state.outcomes, outcome);
        if (outcome.class === 'deferred') {
          state.deferred.push(position.id);
          if (outcome.endsPass)
            return { end: 'circumstances', reason: outcome.reasons.join('; '), foldedBelow };
          continue;
        }
        if (comparePosition(position, highest) > 0) highest = position;
        else if (foldedBelow === null) foldedBelow = position;
      }
    }
  }

  /** Results above a delivery that was folded late may rest on a prefix that no longer holds. */
  #check(foldedBelow: Position | null): InheritanceMismatch[] {
    if (foldedBelow === null) return [];
    const mismatches = this.#inheritance.mismatches(foldedBelow);
    if (mismatches.length > 0) markStale(this.#options.generation, STALE_BY_INHERITANCE);
    return mismatches;
  }
}

interface PassState {
  enrolled: number;
  outcomes: OutcomeSum;
  deferred: DeliveryId[];
  unrecorded: DeliveryId[];
  cursor: Position;
}

/** Two parts of one sweep, the second taken up behind the first. */
export function joinPasses(a: PassReport, b: PassReport): PassReport {
  return {
    ...b,
    enrolled: a.enrolled + b.enrolled,
    outcomes: addOutcomes(a.outcomes, b.outcomes),
    deferred: [...a.deferred, ...b.deferred],
    unrecorded: [...a.unrecorded, ...b.unrecorded],
    mismatches: [...a.mismatches, ...b.mismatches],
  };
}

const STALE_BY_INHERITANCE =
  'a delivery that turned up late changes the time grouping of deliveries after it';

function circumstanceText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
