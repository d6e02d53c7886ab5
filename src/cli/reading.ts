/** Opens journal and live read model for a command that only reads; works beside a running service. */
import type Database from 'better-sqlite3';
import { Journal } from '../journal/store.js';
import { openLive } from '../projections/generations.js';
import { FOLD_VERSION, readMeta } from '../projections/readmodel.js';
import type { Context } from './context.js';

export interface Sources {
  readonly journal: Journal;
  /** Null when there is no read model that this version can read. */
  readonly generation: Database.Database | null;
}

/** @throws HealthlogError not_found when there is no journal yet */
export function withSources<T>({ folder }: Context, work: (sources: Sources) => T): T {
  const journal = Journal.open(folder, 'read');
  const live = openLive(folder);
  try {
    const readable = live !== null && readMeta(live.db).foldVersion === FOLD_VERSION;
    return work({ journal, generation: readable ? live.db : null });
  } finally {
    live?.db.close();
    journal.close();
  }
}
