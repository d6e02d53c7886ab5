/** `/v1/status`: what the journal and the read model say, and what the service itself knows (design §10). */
import type { JournalStatus } from '../projections/answers/status.js';
import type { RunnerStatus } from '../projections/thread.js';

export type ServiceState = RunnerStatus['state'] | 'stopped';

export interface ServiceView {
  readonly state: ServiceState;
  readonly reason: string | null;
  readonly rebuild: { readonly done: number; readonly total: number } | null;
  /** How often the fold's worker had to be started again. */
  readonly restarts: number;
  /** How far positions run ahead of the clock, seconds; more than a minute means that the clock was set back. */
  readonly clockBehindS: number;
}

export type StatusBody = JournalStatus & {
  readonly state: ServiceState;
  readonly reason?: string;
  readonly rebuild: { readonly done: number; readonly total: number } | null;
  readonly worker_restarts: number;
  readonly clock_behind_s: number;
};

export function statusBody(journal: JournalStatus, service: ServiceView): StatusBody {
  return {
    state: service.state,
    ...(service.reason === null ? {} : { reason: service.reason }),
    ...journal,
    rebuild: service.rebuild,
    worker_restarts: service.restarts,
    clock_behind_s: service.clockBehindS,
  };
}
