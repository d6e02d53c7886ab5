/** Build lock: one builder of generations at a time, in whichever process. Who it is stands in a file beside it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../journal/clock.js';
import { platformCode } from '../journal/errors.js';
import { holdExclusively } from '../journal/exclusive-file.js';
import type { DataFolder } from '../journal/folder.js';
import { formatMicros } from '../journal/position.js';

export interface BuildLock {
  release(): void;
}

/** Null when somebody else builds. */
export function tryBuildLock(folder: DataFolder, clock: Clock): BuildLock | null {
  mkdirSync(folder.readmodel, { recursive: true });
  const held = holdExclusively(join(folder.readmodel, 'build.lock'));
  if (held === null) return null;
  const info = infoPath(folder);
  writeFileSync(info, `${JSON.stringify({ pid: process.pid, started_at: formatMicros(clock.now()) })}\n`);
  return {
    release: () => {
      rmSync(info, { force: true });
      held.release();
    },
  };
}

/** The process that builds, as it noted itself; null when the note is gone. */
export function builderPid(folder: DataFolder): number | null {
  try {
    const info: unknown = JSON.parse(readFileSync(infoPath(folder), 'utf8'));
    return typeof info === 'object' && info !== null && 'pid' in info && typeof info.pid === 'number'
      ? info.pid
      : null;
  } catch (error) {
    if (error instanceof SyntaxError || platformCode(error) === 'ENOENT') return null;
    throw error;
  }
}

function infoPath(folder: DataFolder): string {
  return join(folder.readmodel, 'build.json');
}
