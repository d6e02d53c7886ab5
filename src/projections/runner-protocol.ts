/** What the main thread and the runner's worker tell each other: shared flags one way, messages the other. */
import type { DeliveryId } from '../journal/position.js';
import type { LayerOrigin } from './layer.js';
import {
  type Counters,
  countersOf,
  layerOf,
  type Outcome,
  type OutcomeClass,
  type ParseStatus,
} from './outcome.js';
import type { WorkerDeath } from './suspect.js';

/** Slots of the shared Int32Array. */
export const WAKE = 0;
export const STOP = 1;
/** Rises by one before and after every fold: odd while one is running. */
export const FOLDS = 2;
export const SLOTS = 3;

export interface RunnerWorkerData {
  readonly root: string;
  readonly flags: SharedArrayBuffer;
  /** One slot: rises whenever the live generation is switched. */
  readonly generationCounter: SharedArrayBuffer;
  readonly tickMs: number;
  readonly foldDeadlineMs: number;
  /** How the worker before this one ended; null for the first of the process. */
  readonly lastDeath: WorkerDeath | null;
}

export type RunnerState = 'starting' | 'idle' | 'folding' | 'waiting' | 'paused' | 'rebuilding' | 'stopping';

export interface FoldedNotice {
  readonly id: DeliveryId;
  readonly parseStatus: ParseStatus;
  readonly class: OutcomeClass;
  readonly layer: string | null;
  readonly layerOrigin: LayerOrigin | null;
  readonly layerFrom: string | null;
  readonly counters: Counters;
  readonly reasons: readonly string[];
}

export type RunnerMessage =
  | {
      readonly kind: 'state';
      readonly state: RunnerState;
      readonly reason: string | null;
      readonly rebuild: { readonly done: number; readonly total: number } | null;
    }
  | { readonly kind: 'folded'; readonly notice: FoldedNotice }
  | {
      readonly kind: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly fields: Readonly<Record<string, unknown>>;
      readonly text: string;
    };

export function noticeOf(id: DeliveryId, outcome: Outcome): FoldedNotice {
  const layer = layerOf(outcome);
  return {
    id,
    parseStatus: outcome.parseStatus,
    class: outcome.class,
    layer: layer.layer,
    layerOrigin: layer.origin,
    layerFrom: layer.from,
    counters: countersOf(outcome),
    reasons: outcome.reasons,
  };
}
