/** What every command is given: where the data lies, how to print, the outside world as values. */
import type { Clock } from '../journal/clock.js';
import { systemClock } from '../journal/clock.js';
import { type DataFolder, dataFolder } from '../journal/folder.js';
import { DATA, refuseUnknownEnv, resolveSetting } from './settings.js';

export interface Context {
  readonly folder: DataFolder;
  readonly json: boolean;
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
}

export interface CommonFlags {
  readonly data?: string;
  readonly json?: boolean;
}

/** @throws HealthlogError usage */
export function contextOf(flags: CommonFlags, env: NodeJS.ProcessEnv): Context {
  refuseUnknownEnv(env);
  return {
    folder: dataFolder(resolveSetting(DATA, flags.data, env)),
    json: flags.json ?? false,
    clock: systemClock,
    env,
  };
}
