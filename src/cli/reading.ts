/** Opens journal and live read model for a command that only reads; works beside a running service. */
import type Database from 'better-sqlite3';
import { Journal } from '../journal/store.js';
import { openLive } from '../projections/generations.js';
import type { Context } from './context.js';
import { say } from './output.js';

export interface Sources {
  readonly journal: Journal;
  /** Null when there is no read model that this version can read. */
  readonly generation: Database.Database | null;
}

/** @throws HealthlogError not_found when there is no journal yet */
export function withSources<T>({ folder }: Context, work: (sources: Sources) => T): T {
  const journal = Journal.open(folder, 'read');
  const live = openLive(folder);
  if (live.kind === 'unreadable') {
    say(
      `The read model cannot be read: ${live.reason}. The service builds it anew, or "healthlog rebuild" does.`,
    );
  }
  const generation = live.kind === 'open' ? live.db : null;
  try {
    return work({ journal, generation });
  } finally {
    generation?.close();
    journal.close();
  }
}
