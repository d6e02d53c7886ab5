/**
 * Lag: says when folding falls behind. It is watched by the main thread, so that it shows even when the worker
 * stands still. Not while the first pass or a rebuild works off a backlog: then waiting means nothing.
 */
import type { RunnerState } from '../projections/thread.js';

/** The phone's quick cadence: whoever waits longer than the time between two deliveries waits in a growing queue. */
export const LAG_MAX_S = 300;

export interface LagView {
  readonly state: RunnerState;
  /** The runner has come to rest at least once since the start. */
  readonly settled: boolean;
  readonly pending: number;
  readonly oldestPendingAgeS: number | null;
}

/** The warning's fields; null when there is nothing to warn of. */
export function lagWarning({
  state,
  settled,
  pending,
  oldestPendingAgeS,
}: LagView): { pending: number; waited_s: number } | null {
  if (!settled || state === 'rebuilding' || state === 'paused' || state === 'stopping') return null;
  if (oldestPendingAgeS === null || oldestPendingAgeS <= LAG_MAX_S) return null;
  return { pending, waited_s: Math.round(oldestPendingAgeS) };
}
