/**
 * Owner: what import does when no service owns the data folder. It takes the lock, as `serve` does, puts right what a
 * crash may have left, and can fold by the service's own worker.
 */
import { type Lock, unlessLocked } from '../../journal/lock.js';
import { hadToReconcile } from '../../journal/reconcile-notes.js';
import { type RunnerThread, startRunner } from '../../projections/thread.js';
import type { Context } from '../context.js';
import { say } from '../output.js';
import { resolveSetting, SERVE } from '../settings.js';
import { takeOver } from '../take-over.js';

/** Null when a service, or another import, owns the folder. */
export function becomeOwner({ folder, clock }: Context): Lock | null {
  const taken = unlessLocked(() => takeOver(folder, clock));
  if (taken === null) return null;
  const { lock, journal, replaced, adopted, damaged, notes } = taken;
  journal.close();
  if (replaced !== null)
    say('Finished a recovery that was cut short: the journal is the one made from the archive.');
  if (adopted.length > 0) say(`Took in bodies of the archive that had no journal row: ${adopted.length}.`);
  for (const { path, reason } of damaged)
    say(`The archive file ${path} has no journal row and is damaged (${reason}); it stays where it is.`);
  if (hadToReconcile(notes))
    say('Put together what the journal and the archive knew of tokens and of deliveries set aside.');
  return lock;
}

/** The worker of the service. Only while the lock is held. */
export function startFolding({ folder, env }: Context): RunnerThread {
  const memoryMb = resolveSetting(SERVE.foldMemory, undefined, env);
  return startRunner({
    folder,
    log: {
      info: () => undefined,
      warn: (_fields, text) => say(`healthlog: ${text}`),
      error: (fields, text) => say(`healthlog: ${text} ${JSON.stringify(fields)}`),
    },
    ...(memoryMb === null ? {} : { memoryMb }),
  });
}
