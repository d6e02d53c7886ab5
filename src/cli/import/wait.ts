/**
 * Wait: until everything of this run has its outcome. Whoever owns the data folder folds: a service, another import,
 * or, when nobody does, this one. The owner may end while we wait; then we are the next.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Lock } from '../../journal/lock.js';
import { isAlive } from '../../journal/process-alive.js';
import { Journal } from '../../journal/store.js';
import { journalStatus } from '../../projections/answers/status.js';
import { builderPid } from '../../projections/build-lock.js';
import { openLive } from '../../projections/generations.js';
import type { RunnerThread } from '../../projections/thread.js';
import type { Context } from '../context.js';
import type { Outcomes } from './outcomes.js';
import { becomeOwner, startFolding } from './owner.js';

const LOOK_EVERY_MS = 100;
/** How often is asked whether the owner is still there; asking holds this process up for a moment. */
const OWNER_EVERY_MS = 2_000;
/** A service that has folded nothing at all for this long has a reason, and will not be done soon. */
const STILL_MAX_MS = 300_000;
const STOP_BUDGET_MS = 8_000;

export interface WaitEnd {
  /** Why something is still pending; null when nothing is, or when the person ended the waiting. */
  readonly reason: string | null;
  /** False when a fold is still running in this process, under which nothing may be closed. */
  readonly clean: boolean;
}

export interface WaitDeps {
  readonly context: Context;
  readonly outcomes: Outcomes;
  readonly stopped: () => boolean;
  /** After every look. */
  readonly onLook: () => void;
}

export async function waitForOutcomes(deps: WaitDeps): Promise<WaitEnd> {
  const { context, outcomes, stopped, onLook } = deps;
  let askOwnerAtMs = 0;
  const standstill = new Standstill(context);
  for (;;) {
    const askOwner = performance.now() >= askOwnerAtMs;
    outcomes.look(askOwner);
    onLook();
    if (outcomes.waiting === 0 || stopped()) return { reason: null, clean: true };
    if (askOwner) {
      const lock = becomeOwner(context);
      if (lock !== null) return foldOurselves(lock, deps);
      askOwnerAtMs = performance.now() + OWNER_EVERY_MS;
      const reason = standstill.reason();
      if (reason !== null) return { reason, clean: true };
    }
    await delay(LOOK_EVERY_MS);
  }
}

async function foldOurselves(lock: Lock, { context, outcomes, stopped, onLook }: WaitDeps): Promise<WaitEnd> {
  const runner = startFolding(context);
  let reason: string | null = null;
  for (;;) {
    // Asked before the look: what was folded until then is seen by it.
    const rest = restOf(runner);
    outcomes.look(rest !== null);
    onLook();
    if (outcomes.waiting === 0 || stopped()) break;
    if (rest !== null) {
      reason = rest;
      break;
    }
    await delay(LOOK_EVERY_MS);
  }
  const clean = await runner.stop(STOP_BUDGET_MS);
  if (clean) lock.release();
  return { reason, clean };
}

/** Why the runner does nothing more by itself soon; null while it works. Everything of ours was there when it began. */
function restOf(runner: RunnerThread): string | null {
  const { state, reason, restarting } = runner.state();
  if (restarting) return null;
  const isAtRest = state === 'idle' || state === 'waiting' || state === 'paused';
  return isAtRest ? (reason ?? 'folding came to rest before them') : null;
}

/** Watches an owner in another process, of whom only the files tell. */
class Standstill {
  readonly #context: Context;
  #pending = -1;
  #sinceMs = performance.now();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Why there is no point in waiting any longer; null while there is one. */
  reason(): string | null {
    const { folder, clock } = this.#context;
    const journal = Journal.open(folder, 'read');
    const live = openLive(folder);
    try {
      if (journal.meta().paused) return 'folding was paused by a person';
      const { pending } = journalStatus(journal, live.kind === 'open' ? live.db : null, clock.now());
      const builder = builderPid(folder);
      if (pending !== this.#pending || (builder !== null && isAlive(builder))) {
        this.#pending = pending;
        this.#sinceMs = performance.now();
      }
    } finally {
      if (live.kind === 'open') live.db.close();
      journal.close();
    }
    if (performance.now() - this.#sinceMs < STILL_MAX_MS) return null;
    return 'the service has folded nothing for five minutes; "healthlog status" tells more';
  }
}
