/** `healthlog status`: how things stand, in plain words. It reads the files, so it works with the service up or down. */
import { type ServiceView, statusBody } from '../../api/status.js';
import { lockHolder } from '../../journal/lock.js';
import { isAlive } from '../../journal/process-alive.js';
import { journalStatus } from '../../projections/answers/status.js';
import { builderPid } from '../../projections/build-lock.js';
import type { Context } from '../context.js';
import { duration, facts, print, printJson, table } from '../output.js';
import { withSources } from '../reading.js';

export function status(context: Context): number {
  withSources(context, ({ journal, generation }) => {
    const view = journalStatus(journal, generation, context.clock.now());
    const newest = journal.last();
    const clockBehindS =
      newest === null ? 0 : Math.max(0, Math.round((newest.receivedAt - context.clock.now()) / 1e6));
    const body = statusBody(view, { ...stateOf(context, view.pending, journal.meta().paused), clockBehindS });
    if (context.json) {
      printJson(body);
      return;
    }
    print(
      facts([
        ['service', body.reason === undefined ? body.state : `${body.state}: ${body.reason}`],
        ['deliveries', `${body.deliveries}, of which ${body.partial} partial and ${body.failed} failed`],
        [
          'pending',
          body.oldest_pending_age_s === null
            ? 'none'
            : `${body.pending}, the oldest for ${duration(body.oldest_pending_age_s)}`,
        ],
        ['last received', body.last_received_at ?? 'nothing yet'],
        ['last folded', body.last_folded_at ?? 'nothing yet'],
        [
          'read model',
          body.generation === null ? 'none yet' : `${body.generation}, fold version ${body.fold_version}`,
        ],
        ...(body.clock_behind_s > 60
          ? ([
              ['clock', `behind the newest delivery by ${duration(body.clock_behind_s)}: it was set back`],
            ] as const)
          : []),
      ]),
    );
    if (body.automations.length === 0) return;
    print(
      table(
        ['automation', 'profile', 'grouping', 'period', 'deliveries', 'last', 'status'],
        body.automations.map((a) => [
          a.name ?? a.id ?? 'not named',
          a.profile,
          a.aggregation ?? '',
          a.period ?? '',
          String(a.deliveries),
          a.last_received_at.slice(0, 19).replace('T', ' '),
          a.last_status,
        ]),
      ),
    );
  });
  return 0;
}

type FileView = Omit<ServiceView, 'clockBehindS'>;

/** What the files tell of a service that runs in another process. */
function stateOf({ folder }: Context, pending: number, paused: boolean): FileView {
  const rest = { rebuild: null, restarts: 0 };
  const holder = lockHolder(folder);
  if (holder === null) return { ...rest, state: 'stopped', reason: 'no service runs on this data folder' };
  const reason = `process ${holder.pid}, since ${holder.startedAt}`;
  if (paused) return { ...rest, state: 'paused', reason };
  // A builder that was killed leaves its note; the lock itself cannot be tried without getting in the way.
  const builder = builderPid(folder);
  if (builder !== null && isAlive(builder)) return { ...rest, state: 'rebuilding', reason };
  return { ...rest, state: pending > 0 ? 'folding' : 'idle', reason };
}
