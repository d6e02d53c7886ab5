/**
 * Rebuild: the read model once more from the archive, and the proof that it says the same (design §8).
 *
 * A rebuild is an ordinary pass over an empty generation. It works beside a running service and without one:
 *  1. the build lock; room for a second read model; reconciliation of archive and journal;
 *  2. one read snapshot of the live generation; a new generation folded exactly to the snapshot's mark, without
 *     what was pending there, and with what was set aside there; both compared, row by row;
 *  3. verify stops here and removes what it built. A rebuild folds what has come since, begins once more when a
 *     person has set deliveries aside or taken them back since, seals the file and announces it as READY;
 *  4. only the owner of the data folder's lock switches: the service, between two deliveries, or, without one,
 *     this command, holding the lock for that moment.
 * Cancelling at any time leaves the live generation as it was.
 */
import { statfsSync, statSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import type { Clock } from '../journal/clock.js';
import { HealthlogError } from '../journal/errors.js';
import type { DataFolder } from '../journal/folder.js';
import { acquireLock, unlessLocked } from '../journal/lock.js';
import type { DeliveryId } from '../journal/position.js';
import { adoptOrphans, findOrphans } from '../journal/reconcile.js';
import { Journal } from '../journal/store.js';
import { builderPid, tryBuildLock } from './build-lock.js';
import {
  announceReady,
  currentGeneration,
  type GenerationFile,
  pointLiveAt,
  removeGeneration,
  sealGeneration,
  startGeneration,
  switchToReady,
} from './generations.js';
import { Ledger } from './ledger.js';
import { Meter, type RebuildProgress } from './meter.js';
import { addOutcomes, countersOf, exitCodeOf, NO_OUTCOMES, type OutcomeSum } from './outcome.js';
import { compareWithLive, NOT_COMPARED, openSnapshot, type Proof } from './proof.js';
import { joinPasses, type PassReport, Runner, type RunnerOptions } from './runner.js';

export interface RebuildOptions {
  readonly folder: DataFolder;
  readonly clock: Clock;
  /** Stop before anything is switched, and remove what was built. */
  readonly dryRun: boolean;
  /** Switch although bodies that the live generation folded are gone. */
  readonly acceptLoss: boolean;
  readonly onProgress?: (progress: RebuildProgress) => void;
  readonly cancelled?: () => boolean;
  readonly onFault?: (id: DeliveryId, error: unknown) => void;
}

/** What a switch came to. `waiting`: it is announced, and the running service takes it over by itself. */
export type SwitchResult = 'switched' | 'waiting' | 'none';

export interface RebuildReport extends Proof {
  readonly exitCode: 0 | 1 | 3 | 4;
  readonly result: SwitchResult;
  readonly generation: string | null;
  readonly deliveries: number;
  readonly outcomes: OutcomeSum;
  /** Bodies in the archive without a journal row: taken in by a rebuild, only reported by a verify. */
  readonly orphans: readonly string[];
  readonly damaged: readonly { readonly path: string; readonly reason: string }[];
  readonly cancelled: boolean;
  /** The circumstance that ended the folding; null when none did. */
  readonly stoppedBy: string | null;
  readonly deferred: readonly DeliveryId[];
}

/** A second read model needs about as much room as the first; some slack for its log. */
const ROOM_FACTOR = 1.3;

/** How long this command waits for a running service to take a finished generation over. */
const SWITCH_WAIT_MS = 60_000;
const SWITCH_LOOK_EVERY_MS = 100;
/** How long this command folds without looking up. */
const SLICE_MS = 100;

/** @throws HealthlogError build_locked, no_room, not_found; what SQLite and the file system throw */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  const { folder, clock, dryRun } = options;
  Journal.open(folder, 'read').close();
  const lock = tryBuildLock(folder, clock);
  if (lock === null) throw new HealthlogError('build_locked', { pid: builderPid(folder) ?? 'unknown' });
  try {
    checkRoom(folder);
    const found = reconcile(folder, dryRun);
    const { report, finished } = await buildAnew(options, found);
    if (finished === null) return report;
    announceReady(folder, finished);
    const result = await switchOver(folder, clock, finished, options.cancelled ?? (() => false));
    return { ...report, result, generation: finished.name };
  } finally {
    lock.release();
  }
}

/** Builds a generation and, unless it is of no use, leaves it sealed. */
async function buildAnew(
  options: RebuildOptions,
  found: Found,
): Promise<{ readonly report: RebuildReport; readonly finished: GenerationFile | null }> {
  const { folder, dryRun, acceptLoss } = options;
  const journal = Journal.open(folder, 'read');
  try {
    let proof: Proof | null = null;
    for (;;) {
      const { file, db } = startGeneration(folder, journal.meta().epoch);
      let finished: GenerationFile | null = null;
      try {
        const built = await build(options, journal, file, db, proof);
        proof = built.proof;
        // What was pending in the live generation came before what had been folded, or what is set aside has changed:
        // once more, in one order.
        if (built.passes.some(({ end }) => end === 'stale')) continue;
        const report = reportOf(built, found, dryRun);
        if (!dryRun && mayAnnounce(report, acceptLoss)) {
          sealGeneration(file, db);
          finished = file;
        }
        return { report, finished };
      } finally {
        if (finished === null) {
          db.close();
          removeGeneration(file);
        }
      }
    }
  } finally {
    journal.close();
  }
}

/** Work that was put off, a cancelled run, or bodies that are gone: the live generation stays. */
function mayAnnounce(report: RebuildReport, acceptLoss: boolean): boolean {
  if (report.cancelled || report.stoppedBy !== null || report.deferred.length > 0) return false;
  return report.lost.length === 0 || acceptLoss;
}

function checkRoom(folder: DataFolder): void {
  const live = currentGeneration(folder);
  if (live === null) return;
  const size = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const needed = Math.ceil((size(live.path) + size(`${live.path}-wal`)) * ROOM_FACTOR);
  const { bavail, bsize } = statfsSync(folder.readmodel);
  if (bavail * bsize < needed) throw new HealthlogError('no_room', { needed, free: bavail * bsize });
}

type Found = Pick<RebuildReport, 'orphans' | 'damaged'>;

/** Bodies without a row are taken in before a rebuild; a verify only says that they are there. */
function reconcile(folder: DataFolder, dryRun: boolean): Found {
  const journal = Journal.open(folder, dryRun ? 'read' : 'write');
  try {
    if (dryRun) return { orphans: findOrphans(folder, journal), damaged: [] };
    const { adopted, damaged } = adoptOrphans({ folder, journal });
    return { orphans: adopted.map(({ archivePath }) => archivePath), damaged };
  } finally {
    journal.close();
  }
}

interface Built {
  readonly proof: Proof;
  readonly passes: readonly PassReport[];
}

/** @param known what an earlier try has compared already; null for the first */
async function build(
  options: RebuildOptions,
  journal: Journal,
  file: GenerationFile,
  db: Database.Database,
  known: Proof | null,
): Promise<Built> {
  const { cancelled = () => false, onFault = () => undefined } = options;
  const meter = new Meter(journal.count(), options.onProgress);
  const fold = (limits: Pick<RunnerOptions, 'enrolUpTo' | 'leftOut' | 'setAside'>): Promise<PassReport> =>
    inSlices(
      cancelled,
      (stopped) =>
        new Runner({
          ...limits,
          journal,
          generation: db,
          archiveRoot: options.folder.archive,
          clock: options.clock,
          stopped,
          afterFold: (_id, outcome) => meter.count(countersOf(outcome).points),
          onFault,
        }),
    );
  const snapshot = known === null ? openSnapshot(options.folder, journal, file) : null;
  if (snapshot === null) return { proof: known ?? NOT_COMPARED, passes: [await fold({})] };
  if (typeof snapshot === 'string')
    return { proof: { ...NOT_COMPARED, unreadable: snapshot }, passes: [await fold({})] };
  let proof: Proof = { ...NOT_COMPARED, mismatches: snapshot.mismatches };
  const passes: PassReport[] = [];
  try {
    const { enrolledSeq: enrolUpTo, pending: leftOut, setAside } = snapshot;
    passes.push(await fold({ enrolUpTo, leftOut, setAside }));
    if (passes.every(isWhole)) proof = compareWithLive(snapshot, journal);
  } finally {
    snapshot.close();
  }
  if (options.dryRun || !passes.every(isWhole)) return { proof, passes };
  const late = [...snapshot.pending].map((id) => journal.byId(id)).filter((row) => row !== null);
  new Ledger(db).enrolLate(late);
  passes.push(await fold({}));
  return { proof, passes };
}

/** One pass in slices: between two of them signals are heard and progress is drawn. */
async function inSlices(
  cancelled: () => boolean,
  makeRunner: (stopped: () => boolean) => Runner,
): Promise<PassReport> {
  let endMs = 0;
  const runner = makeRunner(() => cancelled() || performance.now() > endMs);
  let whole: PassReport | null = null;
  for (;;) {
    endMs = performance.now() + SLICE_MS;
    const part = runner.pass(whole?.cursor);
    whole = whole === null ? part : joinPasses(whole, part);
    if (part.end !== 'stopped' || cancelled()) return whole;
    await nextTurn();
  }
}

function isWhole(pass: PassReport): boolean {
  return pass.end === 'caught_up' && pass.deferred.length + pass.unrecorded.length === 0;
}

function reportOf({ proof, passes }: Built, found: Found, dryRun: boolean): RebuildReport {
  const outcomes = passes.reduce((sum, pass) => addOutcomes(sum, pass.outcomes), NO_OUTCOMES);
  const last = passes[passes.length - 1];
  const report = {
    ...proof,
    ...found,
    result: 'none' as const,
    generation: null,
    deliveries: outcomes.deliveries,
    outcomes,
    cancelled: passes.some(({ end }) => end === 'stopped'),
    stoppedBy: passes.find(({ end }) => end === 'circumstances' || end === 'damaged')?.reason ?? null,
    deferred: last === undefined ? [] : [...last.deferred, ...last.unrecorded],
  };
  return { ...report, exitCode: exitCode(report, found, dryRun) };
}

/**
 * 3 beats 1 beats 4 (design §8); a lost body explains the rows that differ, and is 1. A live generation that cannot be
 * compared is no proof for a verify; a rebuild replaces it, whatever it held.
 */
function exitCode(
  report: Omit<RebuildReport, 'exitCode'>,
  { damaged, orphans }: Found,
  dryRun: boolean,
): RebuildReport['exitCode'] {
  if (report.lost.length > 0) return 1;
  const isUnproved = dryRun && report.unreadable !== null;
  if (report.differences.length > 0 || report.mismatches.length > 0 || isUnproved) return 3;
  const code = exitCodeOf(report.outcomes);
  if (code === 1 || damaged.length > 0 || (dryRun && orphans.length > 0)) return 1;
  const unfinished = report.cancelled || report.stoppedBy !== null || report.deferred.length > 0;
  return unfinished ? 4 : 0;
}

/** The service takes it over, or, when none runs, this command does, holding the lock for that moment. */
async function switchOver(
  folder: DataFolder,
  clock: Clock,
  file: GenerationFile,
  cancelled: () => boolean,
): Promise<SwitchResult> {
  const endMs = performance.now() + SWITCH_WAIT_MS;
  while (performance.now() < endMs && !cancelled()) {
    if (currentGeneration(folder)?.name === file.name) return 'switched';
    const lock = unlessLocked(() => acquireLock(folder, clock));
    if (lock !== null) {
      try {
        switchToReady(folder);
        pointLiveAt(folder, file);
      } finally {
        lock.release();
      }
      continue;
    }
    await new Promise((resolve) => setTimeout(resolve, SWITCH_LOOK_EVERY_MS));
  }
  return 'waiting';
}
