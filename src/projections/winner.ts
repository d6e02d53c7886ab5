/**
 * Winner: of all that deliveries say about one coordinate, the candidate the read model shows.
 *
 * A pairwise rule such as "the richer source set wins, else the later one" is not transitive: {A,B} at 1, {C}
 * at 2 and {A} at 3 form a cycle, and what is shown would depend on the order of folding. So every candidate
 * gets a key computed from its own delivery alone, keys are totally ordered, and the greatest wins (design
 * §5.3): the winner is a function of the set. Keys compare left to right:
 *
 *   bucketed, cumulative   measured · complete · value when incomplete · evidence · position
 *   bucketed, discrete     measured · complete · evidence · position
 *   raw sample             evidence · position
 *
 * The value counts only between two incomplete ones: a part of a day never lowers it, while a later complete
 * window may well lower a wrong high value. Evidence is `received_at` of a phone's delivery and the clock of
 * an import: an old file must not beat newer data merely because it was imported today.
 * Two candidates of one delivery are told apart by their ordinal in the body; that is settled before anything
 * is stored, so a stored winner needs no ordinal.
 */
import { comparePosition, type DeliveryId, type Micros } from '../journal/position.js';

/** Where a candidate comes from, as far as the order of keys is concerned. */
export interface Evidence {
  /** `received_at` of an http delivery, `clock_at` of an import. */
  readonly evidence: Micros;
  readonly receivedAt: Micros;
  readonly id: DeliveryId;
}

export interface BucketKey {
  /** False for a 0 that means "not measured". */
  readonly measured: boolean;
  readonly complete: boolean;
  /** In the metric's canonical unit. */
  readonly value: number;
}

/** The number a metric with several (blood pressure) is compared by. */
export function partsSum(parts: Readonly<Record<string, number>> | null): number {
  return Object.values(parts ?? {}).reduce((sum, part) => sum + part, 0);
}

/** Total order of deliveries as evidence: positive when `a` is later. */
export function compareEvidence(a: Evidence, b: Evidence): number {
  return a.evidence - b.evidence || comparePosition(a, b);
}

/** The part of the key that does not look at the delivery; 0 when only the evidence can decide. */
export function compareBucketKeys(a: BucketKey, b: BucketKey, cumulative: boolean): number {
  if (a.measured !== b.measured) return a.measured ? 1 : -1;
  if (a.complete !== b.complete) return a.complete ? 1 : -1;
  return cumulative && !a.complete ? a.value - b.value : 0;
}
