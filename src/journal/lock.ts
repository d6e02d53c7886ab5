/**
 * Lock: one service per data folder.
 *
 * The lock is held by the operating system (exclusive-file.ts), so that it goes with its holder, however that
 * dies. Who holds it stands beside it in `lock.json`, for people; that file alone means nothing.
 *
 * Nothing else in the holding process may open `lock`: closing another handle would drop the lock unseen. The
 * functions here refuse to do it; threads of the process have memory of their own and must not call them.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import type { Clock } from './clock.js';
import { HealthlogError, platformCode } from './errors.js';
import { holdExclusively } from './exclusive-file.js';
import type { DataFolder } from './folder.js';
import { formatMicros } from './position.js';

export interface Lock {
  /** Gives the lock up. Calling it twice does nothing. */
  release(): void;
}

export interface LockHolder {
  readonly pid: number;
  /** ISO 8601 UTC. */
  readonly startedAt: string;
}

/** A command that asks lockHolder() holds the lock for an instant; a starting service waits that out. */
const PROBE_WAIT_MS = 250;

/** Locks this process holds, by full path. */
const heldHere = new Set<string>();

const lockInfo = z.object({ pid: z.number().int(), started_at: z.string() });

function readInfo(folder: DataFolder): LockHolder | null {
  try {
    const info = lockInfo.parse(JSON.parse(readFileSync(folder.lockInfo, 'utf8')));
    return { pid: info.pid, startedAt: info.started_at };
  } catch (error) {
    // Not written yet, or by hand: the lock is what counts, and it names nobody.
    if (error instanceof SyntaxError || error instanceof z.ZodError || platformCode(error) === 'ENOENT') {
      return null;
    }
    throw error;
  }
}

function writeInfo(folder: DataFolder, clock: Clock): void {
  const info = { pid: process.pid, started_at: formatMicros(clock.now()) };
  const tmpPath = `${folder.lockInfo}.tmp`;
  writeFileSync(tmpPath, `${JSON.stringify(info)}\n`);
  renameSync(tmpPath, folder.lockInfo);
}

function lockedError(folder: DataFolder, holder: LockHolder | null): HealthlogError {
  return new HealthlogError('locked', {
    folder: folder.root,
    pid: holder?.pid ?? 'unknown',
    started: holder?.startedAt ?? 'at an unknown time',
  });
}

/**
 * Takes the lock of the data folder, which is made when it is missing.
 *
 * @throws HealthlogError locked, with process and start of the holder
 */
export function acquireLock(folder: DataFolder, clock: Clock): Lock {
  mkdirSync(folder.root, { recursive: true });
  const path = resolve(folder.lock);
  if (heldHere.has(path)) throw lockedError(folder, readInfo(folder));
  const held = holdExclusively(path, PROBE_WAIT_MS);
  if (held === null) throw lockedError(folder, readInfo(folder));
  heldHere.add(path);
  const release = (): void => {
    if (!heldHere.delete(path)) return;
    rmSync(folder.lockInfo, { force: true });
    held.release();
  };
  try {
    writeInfo(folder, clock);
  } catch (error) {
    release();
    throw error;
  }
  return { release };
}

/**
 * Which other process holds the lock; null when none does. The number is 0 when the holder has not said yet.
 *
 * @throws Error when this process holds the lock itself: asking would drop it
 */
export function lockHolder(folder: DataFolder): LockHolder | null {
  const path = resolve(folder.lock);
  if (heldHere.has(path)) throw new Error('the holder of the lock may not ask who holds it');
  if (!existsSync(path)) return null;
  const held = holdExclusively(path);
  if (held === null) return readInfo(folder) ?? { pid: 0, startedAt: 'unknown' };
  held.release();
  return null;
}

/** What `attempt` gives; null when another process holds the lock. */
export function unlessLocked<T>(attempt: () => T): T | null {
  try {
    return attempt();
  } catch (error) {
    if (error instanceof HealthlogError && error.code === 'locked') return null;
    throw error;
  }
}
