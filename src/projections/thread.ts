/**
 * Thread: the main thread's handle on the runner. It wakes it, hears what was folded, watches that it moves,
 * starts it again when it died, and stops it within a budget.
 */
import { totalmem } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { platformCode } from '../journal/errors.js';
import type { DataFolder } from '../journal/folder.js';
import type { DeliveryId } from '../journal/position.js';
import { startThread } from '../journal/thread-url.js';
import { FOLD_DEADLINE_MS } from './runner.js';
import {
  FOLDS,
  type FoldedNotice,
  type RunnerMessage,
  type RunnerState,
  type RunnerWorkerData,
  SLOTS,
  STOP,
  WAKE,
} from './runner-protocol.js';
import type { WorkerDeath } from './suspect.js';

export type { FoldedNotice, RunnerState } from './runner-protocol.js';

export interface RunnerLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface RunnerThreadOptions {
  readonly folder: DataFolder;
  readonly log: RunnerLog;
  /** How long the runner waits without being woken, ms. */
  readonly tickMs?: number;
  /** Heap of the worker, MiB. */
  readonly memoryMb?: number;
  readonly foldDeadlineMs?: number;
}

export interface RunnerStatus {
  readonly state: RunnerState;
  readonly reason: string | null;
  readonly rebuild: { readonly done: number; readonly total: number } | null;
  /** How often the worker had to be started again. */
  readonly restarts: number;
  /** True from a death of the worker until the next one has spoken. */
  readonly restarting: boolean;
  /** True once the first pass has begun. */
  readonly begun: boolean;
}

export interface RunnerThread {
  /** Something may be pending. Never blocks. */
  wake(): void;
  /** The outcome of a delivery, or null when it did not come within `ms` milliseconds or before `givenUp` was aborted. */
  waitFolded(id: DeliveryId, ms: number, givenUp?: AbortSignal): Promise<FoldedNotice | null>;
  state(): RunnerStatus;
  /** Slot 0 rises whenever the live generation is switched; readers open it anew then. */
  readonly generationCounter: Int32Array;
  /** False when the budget (ms) ran out: the worker is still in a fold, and nothing may be closed under it. */
  stop(budgetMs: number): Promise<boolean>;
}

const TICK_MS = 60_000;
/** A fold that runs this much past its own deadline is stuck in something that does not look at the clock. */
const WATCHDOG_GRACE_MS = 30_000;
const WATCHDOG_EVERY_MS = 5_000;
const RESTART_AFTER_MS = 1_000;
const RESTART_AFTER_MAX_MS = 30_000;
/** Notices kept for a caller that asks a moment after the fold. */
const NOTICES_KEPT = 512;

/** Half of the machine, within reason: the worker dies of its limit before the machine does. */
function defaultMemoryMb(): number {
  return Math.min(4096, Math.max(512, Math.floor(totalmem() / 2 ** 20 / 2)));
}

export function startRunner(options: RunnerThreadOptions): RunnerThread {
  return new RunnerHandle(options);
}

class RunnerHandle implements RunnerThread {
  readonly generationCounter = new Int32Array(new SharedArrayBuffer(4));
  readonly #flags = new Int32Array(new SharedArrayBuffer(SLOTS * 4));
  readonly #options: RunnerThreadOptions;
  readonly #foldDeadlineMs: number;
  readonly #waiters = new Map<string, Set<(notice: FoldedNotice) => void>>();
  readonly #notices = new Map<string, FoldedNotice>();
  readonly #watchdog: NodeJS.Timeout;
  #worker: Worker | null = null;
  #restartTimer: NodeJS.Timeout | null = null;
  #status: RunnerStatus = {
    state: 'starting',
    reason: null,
    rebuild: null,
    restarts: 0,
    restarting: false,
    begun: false,
  };
  #lastDeath: WorkerDeath | null = null;
  #deathsInARow = 0;
  #fold = { count: 0, sinceMs: 0 };
  #whenGone: (() => void) | null = null;

  constructor(options: RunnerThreadOptions) {
    this.#options = options;
    this.#foldDeadlineMs = options.foldDeadlineMs ?? FOLD_DEADLINE_MS;
    this.#start();
    this.#watchdog = setInterval(() => this.#watch(), WATCHDOG_EVERY_MS);
    this.#watchdog.unref();
  }

  wake(): void {
    Atomics.store(this.#flags, WAKE, 1);
    Atomics.notify(this.#flags, WAKE);
  }

  state(): RunnerStatus {
    return this.#status;
  }

  waitFolded(id: DeliveryId, ms: number, givenUp?: AbortSignal): Promise<FoldedNotice | null> {
    const known = this.#notices.get(id);
    if (known !== undefined) return Promise.resolve(known);
    if (givenUp?.aborted === true) return Promise.resolve(null);
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(id) ?? new Set();
      this.#waiters.set(id, waiters);
      const done = (notice: FoldedNotice | null): void => {
        clearTimeout(timer);
        givenUp?.removeEventListener('abort', giveUp);
        waiters.delete(done);
        if (waiters.size === 0) this.#waiters.delete(id);
        resolve(notice);
      };
      const giveUp = (): void => done(null);
      const timer = setTimeout(giveUp, ms);
      givenUp?.addEventListener('abort', giveUp);
      waiters.add(done);
    });
  }

  async stop(budgetMs: number): Promise<boolean> {
    clearInterval(this.#watchdog);
    if (this.#restartTimer !== null) clearTimeout(this.#restartTimer);
    Atomics.store(this.#flags, STOP, 1);
    this.wake();
    this.#status = { ...this.#status, state: 'stopping' };
    if (this.#worker === null) return true;
    let timer: NodeJS.Timeout | undefined;
    const gone = new Promise<boolean>((resolve) => {
      this.#whenGone = () => resolve(true);
    });
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), budgetMs);
    });
    const inTime = await Promise.race([gone, late]);
    clearTimeout(timer);
    return inTime;
  }

  #start(): void {
    const { folder, tickMs = TICK_MS, memoryMb = defaultMemoryMb() } = this.#options;
    const data: RunnerWorkerData = {
      root: folder.root,
      flags: this.#flags.buffer as SharedArrayBuffer,
      generationCounter: this.generationCounter.buffer as SharedArrayBuffer,
      tickMs,
      foldDeadlineMs: this.#foldDeadlineMs,
      lastDeath: this.#lastDeath,
    };
    const worker = startThread(new URL('./runner-thread.js', import.meta.url), {
      workerData: data,
      name: 'healthlog-fold',
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    });
    let death: { kind: WorkerDeath; text: string } | null = null;
    worker.on('message', (message: RunnerMessage) => this.#hear(message));
    worker.on('error', (error) => {
      const memory = platformCode(error) === 'ERR_WORKER_OUT_OF_MEMORY';
      death = { kind: memory ? 'memory' : 'other', text: error.message };
    });
    worker.on('exit', (code) => this.#gone(worker, code, death));
    this.#worker = worker;
  }

  #gone(worker: Worker, code: number, death: { kind: WorkerDeath; text: string } | null): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    if (this.#whenGone !== null || Atomics.load(this.#flags, STOP) !== 0) {
      this.#whenGone?.();
      return;
    }
    this.#lastDeath = death?.kind ?? this.#terminated ?? 'other';
    this.#terminated = null;
    this.#deathsInARow += 1;
    const reason = `the fold's worker died and is started again (${death?.text ?? `exit code ${code}`})`;
    this.#status = {
      ...this.#status,
      state: 'waiting',
      reason,
      restarts: this.#status.restarts + 1,
      restarting: true,
    };
    this.#options.log.error({ code, kind: this.#lastDeath, restarts: this.#status.restarts }, reason);
    // A fold cut short leaves the counter odd; the next worker begins even.
    if (Atomics.load(this.#flags, FOLDS) % 2 !== 0) Atomics.add(this.#flags, FOLDS, 1);
    const afterMs = Math.min(RESTART_AFTER_MAX_MS, RESTART_AFTER_MS * 2 ** (this.#deathsInARow - 1));
    this.#restartTimer = setTimeout(() => this.#start(), afterMs);
  }

  #terminated: WorkerDeath | null = null;

  #watch(): void {
    const count = Atomics.load(this.#flags, FOLDS);
    if (count !== this.#fold.count || count % 2 === 0) {
      this.#fold = { count, sinceMs: performance.now() };
      return;
    }
    if (performance.now() - this.#fold.sinceMs < this.#foldDeadlineMs + WATCHDOG_GRACE_MS) return;
    this.#options.log.error({}, 'a fold ran far past its deadline; its worker is ended');
    this.#terminated = 'watchdog';
    this.#fold = { count, sinceMs: performance.now() };
    void this.#worker?.terminate();
  }

  #hear(message: RunnerMessage): void {
    switch (message.kind) {
      case 'state': {
        const { state, reason, rebuild } = message;
        const begun = this.#status.begun || state !== 'starting';
        // Only a pass that came to rest shows that the worker is well again.
        if (state === 'idle') this.#deathsInARow = 0;
        this.#status = { ...this.#status, state, reason, rebuild, restarting: false, begun };
        return;
      }
      case 'folded': {
        const { notice } = message;
        if (notice.class === 'deferred') return;
        if (this.#notices.size >= NOTICES_KEPT) {
          const oldest = this.#notices.keys().next();
          if (oldest.done !== true) this.#notices.delete(oldest.value);
        }
        this.#notices.set(notice.id, notice);
        for (const done of [...(this.#waiters.get(notice.id) ?? [])]) done(notice);
        return;
      }
      case 'log':
        this.#options.log[message.level]({ ...message.fields }, message.text);
        return;
    }
  }
}
