/**
 * Live: keeps one live generation up to date, and builds the next one beside it when it must be replaced.
 *
 * `step()` is one synchronous turn: it decides which generation to work on, makes one pass over it, and
 * switches when a finished one is due. A generation is replaced when there is none, when its file cannot be
 * read, when it was built by another fold version or from another journal, when it is stale, or when a rebuild
 * left a finished one behind. Until the switch the old generation is frozen and serves; arrivals wait in the
 * new one, which is nothing but an ordinary pass over an empty file.
 * Only the owner of the data folder's lock may run this.
 */
import type Database from 'better-sqlite3';
import type { Clock } from '../journal/clock.js';
import type { DataFolder } from '../journal/folder.js';
import type { DeliveryId } from '../journal/position.js';
import { Journal } from '../journal/store.js';
import { type BuildLock, tryBuildLock } from './build-lock.js';
import { isCircumstance } from './failure.js';
import {
  announceReady,
  currentGeneration,
  type GenerationFile,
  pointLiveAt,
  readyGeneration,
  removeGeneration,
  sealGeneration,
  startGeneration,
  switchToReady,
} from './generations.js';
import type { Outcome } from './outcome.js';
import { FOLD_VERSION, openGeneration, readMeta } from './readmodel.js';
import { type PassReport, Runner, type RunnerOptions } from './runner.js';

export interface LiveOptions {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly hooks: Pick<
    RunnerOptions,
    'stopped' | 'condemned' | 'beforeFold' | 'onFault' | 'onUnrecorded' | 'deadlineMs'
  >;
  readonly onFolded: (id: DeliveryId, outcome: Outcome) => void;
  /** A pass begins; `rebuild` is set while a new generation is built. */
  readonly onPass: (rebuild: Progress | null) => void;
  readonly onProgress: (progress: Progress) => void;
  readonly onSwitch: (file: GenerationFile) => void;
  readonly onRebuild: (reason: string) => void;
  /** The link for other programs could not be set; folding goes on. */
  readonly onLinkFailed: (error: unknown) => void;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

export interface StepReport {
  readonly pass: PassReport | null;
  /** Another step has work to do at once. */
  readonly again: boolean;
  /** Why the work stands still; null when it does not. */
  readonly waiting: string | null;
  readonly rebuild: Progress | null;
  readonly paused: boolean;
}

interface Open {
  readonly file: GenerationFile;
  readonly db: Database.Database;
  readonly runner: Runner;
}

const IDLE: StepReport = { pass: null, again: false, waiting: null, rebuild: null, paused: false };

export class Live {
  readonly #options: LiveOptions;
  readonly #journal: Journal;
  #live: Open | null = null;
  #building: (Open & { readonly lock: BuildLock | null }) | null = null;
  /** Set when the live generation proved to be of no use; its file may not be able to say so itself. */
  #condemned: string | null = null;

  constructor(options: LiveOptions) {
    this.#options = options;
    this.#journal = Journal.open(options.folder, 'read');
  }

  step(): StepReport {
    if (this.#journal.meta().paused) {
      return { ...IDLE, waiting: 'folding was paused by a person', rebuild: this.#progress(), paused: true };
    }
    const why = this.#building === null ? this.#replaceReason() : null;
    if (why !== null) {
      const started = this.#startBuild(why);
      if (started !== null) return { ...IDLE, waiting: started };
    }
    const target = this.#building ?? this.#live;
    if (target === null) throw new Error('there is no generation to work on');
    this.#options.onPass(this.#progress());
    const pass = target.runner.pass();
    const rebuild = this.#progress();
    if (pass.end === 'stale' || pass.end === 'damaged') {
      const building = this.#discard(target, pass.reason ?? pass.end);
      // A new generation that is damaged at once means a bad disk: no reason to hurry.
      return { ...IDLE, pass, again: !building || pass.end === 'stale', waiting: pass.reason, rebuild };
    }
    const settled = pass.end === 'caught_up' && pass.unrecorded.length === 0;
    if (this.#building !== null && settled && (pass.deferred.length === 0 || !this.#serves())) {
      this.#finishBuild(this.#building);
      return { ...IDLE, pass, again: true };
    }
    return { ...IDLE, pass, waiting: waitingText(pass), rebuild };
  }

  /** Closes what is open, without finishing a build: an unfinished generation is removed by the next one. */
  close(): void {
    if (this.#building !== null) {
      this.#building.db.close();
      this.#building.lock?.release();
      this.#building = null;
    }
    this.#live?.db.close();
    this.#live = null;
    this.#journal.close();
  }

  #progress(): Progress | null {
    const building = this.#building;
    if (building === null) return null;
    const { ledger } = building.runner.store;
    const total = ledger.total();
    return { done: total - ledger.pendingCount(), total };
  }

  /** Whether the old generation can still answer while a new one is built. */
  #serves(): boolean {
    return this.#live !== null || currentGeneration(this.#options.folder) !== null;
  }

  /** Opens the live generation when it is not open yet; says why it has to be replaced. */
  #replaceReason(): string | null {
    const { folder } = this.#options;
    if (readyGeneration(folder) !== null) return 'a rebuild has finished';
    if (this.#condemned !== null) return this.#condemned;
    if (this.#live === null) {
      const file = currentGeneration(folder);
      if (file === null) return 'there is no read model yet';
      const opened = this.#openLive(file);
      if (typeof opened === 'string') return opened;
      this.#live = opened;
      this.#link(file);
    }
    return readMeta(this.#live.db).stale;
  }

  /** Says why the file is of no use. Throws circumstances: a lack of handles is no reason to build anew. */
  #openLive(file: GenerationFile): Open | string {
    let db: Database.Database | null = null;
    try {
      db = openGeneration(file.path, 'write');
      if (readMeta(db).foldVersion === FOLD_VERSION) return this.#open(file, db, null);
      db.close();
      return 'it was built by another version of the fold';
    } catch (error) {
      db?.close();
      if (isCircumstance(error)) throw error;
      return `it cannot be opened: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #open(file: GenerationFile, db: Database.Database, total: (() => Progress | null) | null): Open {
    const { folder, clock, hooks, onFolded, onProgress } = this.#options;
    const runner = new Runner({
      ...hooks,
      journal: this.#journal,
      generation: db,
      archiveRoot: folder.archive,
      clock,
      afterFold: (id, outcome) => {
        onFolded(id, outcome);
        const progress = total?.() ?? null;
        if (progress !== null) onProgress(progress);
      },
    });
    return { file, db, runner };
  }

  /** Null when a build has begun; otherwise why it has to wait. */
  #startBuild(reason: string): string | null {
    const { folder, clock, onRebuild } = this.#options;
    const ready = readyGeneration(folder);
    if (ready !== null) {
      this.#building = { ...this.#open(ready, openGeneration(ready.path, 'write'), null), lock: null };
      return null;
    }
    const lock = tryBuildLock(folder, clock);
    if (lock === null) return 'another rebuild is running';
    try {
      const { file, db } = startGeneration(folder, this.#journal.meta().epoch);
      const progress = progressCounter(() => this.#progress());
      this.#building = { ...this.#open(file, db, progress), lock };
      onRebuild(reason);
      return null;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  #finishBuild(building: Open & { readonly lock: BuildLock | null }): void {
    const { folder, onSwitch } = this.#options;
    sealGeneration(building.file, building.db);
    this.#building = null;
    try {
      announceReady(folder, building.file);
      const previous = this.#live;
      switchToReady(folder);
      this.#link(building.file);
      this.#live = null;
      this.#condemned = null;
      previous?.db.close();
    } finally {
      building.lock?.release();
    }
    onSwitch(building.file);
  }

  #link(file: GenerationFile): void {
    try {
      pointLiveAt(this.#options.folder, file);
    } catch (error) {
      this.#options.onLinkFailed(error);
    }
  }

  /**
   * A stale live generation stays and serves; an unfinished one is of no use to anybody.
   * @returns true when it was the one being built
   */
  #discard(target: Open, reason: string): boolean {
    target.db.close();
    if (this.#building === null) {
      this.#live = null;
      this.#condemned = reason;
      return false;
    }
    removeGeneration(target.file);
    this.#building.lock?.release();
    this.#building = null;
    return true;
  }
}

/** Counting is a scan of the ledger: done once, then kept by hand, deliveries that arrive meanwhile aside. */
function progressCounter(count: () => Progress | null): () => Progress | null {
  let known: { done: number; total: number } | null = null;
  return () => {
    if (known === null) known = count();
    else known = { done: Math.min(known.done + 1, known.total), total: known.total };
    return known;
  };
}

function waitingText(pass: PassReport): string | null {
  if (pass.end === 'circumstances') return pass.reason;
  const put = pass.deferred.length + pass.unrecorded.length;
  if (put === 0) return null;
  return `${put} ${put === 1 ? 'delivery was' : 'deliveries were'} put off and will be tried again`;
}
