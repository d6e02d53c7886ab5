/**
 * Where everything lies inside the data folder. No other file builds these paths.
 *
 *     DATA/archive/incoming/            uploads in progress
 *     DATA/archive/YYYY/MM/DD/*.json.gz bodies
 *     DATA/archive/tokens.jsonl         token events
 *     DATA/archive/exclusions.jsonl     deliveries set aside and taken back
 *     DATA/journal.db                   the journal
 *     DATA/readmodel/                   generations and their pointers
 *     DATA/lock, DATA/lock.json         the running service
 */
import { join } from 'node:path';

export interface DataFolder {
  readonly root: string;
  readonly archive: string;
  readonly incoming: string;
  readonly tokens: string;
  readonly exclusions: string;
  readonly journal: string;
  readonly readmodel: string;
  readonly lock: string;
  readonly lockInfo: string;
}

export function dataFolder(root: string): DataFolder {
  const archive = join(root, 'archive');
  return {
    root,
    archive,
    incoming: join(archive, 'incoming'),
    tokens: join(archive, 'tokens.jsonl'),
    exclusions: join(archive, 'exclusions.jsonl'),
    journal: join(root, 'journal.db'),
    readmodel: join(root, 'readmodel'),
    lock: join(root, 'lock'),
    lockInfo: join(root, 'lock.json'),
  };
}
