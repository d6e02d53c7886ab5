/**
 * Runner thread: the worker in which everything is folded, with connections of its own. better-sqlite3 is
 * synchronous, and the fold of a wide delivery must not hold up an answer to a phone.
 *
 * The loop is thin: wait for the wake bit, the tick or the stop flag; step; repeat. The wake is one bit, set by
 * whoever has work and cleared before a step, so that losing one is harmless: the step finds the work itself.
 * The tick picks up what was put off. A failing step is an ERROR and the end of that step, never of the loop.
 */
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../journal/clock.js';
import { platformCode } from '../journal/errors.js';
import { dataFolder } from '../journal/folder.js';
import { Live, type Progress } from './live.js';
import {
  FOLDS,
  noticeOf,
  type RunnerMessage,
  type RunnerState,
  type RunnerWorkerData,
  STOP,
  WAKE,
} from './runner-protocol.js';
import { Suspect } from './suspect.js';

/** Folding yields to answering; 0 is normal, 19 the lowest. */
const FOLD_PRIORITY = 10;
/** Progress of a rebuild is told at most this often. */
const PROGRESS_EVERY_MS = 250;

const {
  root,
  flags: sharedFlags,
  generationCounter,
  tickMs,
  foldDeadlineMs,
  lastDeath,
}: RunnerWorkerData = workerData;
const flags = new Int32Array(sharedFlags);
const switches = new Int32Array(generationCounter);
const folder = dataFolder(root);

function tell(message: RunnerMessage): void {
  parentPort?.postMessage(message);
}

function log(
  level: 'info' | 'warn' | 'error',
  text: string,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  tell({ kind: 'log', level, fields, text });
}

function state(name: RunnerState, reason: string | null, rebuild: Progress | null): void {
  tell({ kind: 'state', state: name, reason, rebuild });
}

function errorFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { error: String(error) };
  return { error: error.message, code: platformCode(error), stack: error.stack, cause: causeOf(error) };
}

function causeOf(error: Error): string | null {
  return error.cause instanceof Error ? `${error.cause.name}: ${error.cause.message}` : null;
}

// Only Linux gives a thread a priority of its own; elsewhere this would slow the answers down as well.
if (process.platform === 'linux') {
  try {
    setPriority(0, FOLD_PRIORITY);
  } catch (error) {
    log('info', 'the fold runs at normal priority', errorFields(error));
  }
}

const stopped = (): boolean => Atomics.load(flags, STOP) !== 0;

function run(): void {
  let progressToldMs = 0;
  const suspect = new Suspect(join(folder.readmodel, 'suspect'), process.pid, lastDeath);
  const live = new Live({
    folder,
    clock: systemClock,
    hooks: {
      stopped,
      deadlineMs: foldDeadlineMs,
      condemned: (id) => suspect.verdict(id),
      beforeFold: (id) => {
        suspect.before(id);
        Atomics.add(flags, FOLDS, 1);
      },
      onFault: (id, error) =>
        log('error', 'a delivery could not be folded: a fault in healthlog', {
          delivery: id,
          ...errorFields(error),
        }),
      onUnrecorded: (id, error) => {
        Atomics.add(flags, FOLDS, 1);
        suspect.after(id);
        log(
          'error',
          'the outcome of a delivery could not be recorded; it has its turn again in the next pass',
          {
            delivery: id,
            ...errorFields(error),
          },
        );
      },
    },
    onFolded: (id, outcome) => {
      Atomics.add(flags, FOLDS, 1);
      suspect.after(id);
      tell({ kind: 'folded', notice: noticeOf(id, outcome) });
    },
    onPass: (rebuild) => state(rebuild === null ? 'folding' : 'rebuilding', null, rebuild),
    onProgress: (progress) => {
      const now = performance.now();
      if (now - progressToldMs < PROGRESS_EVERY_MS) return;
      progressToldMs = now;
      state('rebuilding', null, progress);
    },
    onSwitch: (file) => {
      Atomics.add(switches, 0, 1);
      log('info', 'the read model was switched to a new generation', { generation: file.name });
    },
    onLinkFailed: (error) =>
      log(
        'warn',
        'readmodel/live.db, the link for other programs, cannot be set; remove what is in its place',
        errorFields(error),
      ),
    onRebuild: (reason) => log('info', 'building a new generation of the read model', { reason }),
  });
  try {
    while (!stopped()) {
      Atomics.store(flags, WAKE, 0);
      if (!turn(live)) Atomics.wait(flags, WAKE, 0, tickMs);
    }
    state('stopping', null, null);
  } finally {
    live.close();
    suspect.close();
  }
}

/** One step; true when another one has work at once. */
function turn(live: Live): boolean {
  try {
    const { again, waiting, rebuild, paused } = live.step();
    if (stopped()) return false;
    const rest: RunnerState = paused ? 'paused' : waiting !== null ? 'waiting' : 'idle';
    if (!again) state(rest, waiting, rebuild);
    return again;
  } catch (error) {
    log('error', 'a pass over the pending deliveries failed; they stay pending', errorFields(error));
    state('waiting', error instanceof Error ? error.message : String(error), null);
    return false;
  }
}

run();
