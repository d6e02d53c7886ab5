/**
 * Reconcile notes: the notes in the archive and the tables of journal.db say the same after every start.
 *
 * They differ when a row could not be written behind its event, when journal.db was lost or an older copy was put
 * back, and when notes were lost. A journal that was made anew gets every token and every exclusion back here, so that
 * no phone is locked out. Doing it twice changes nothing.
 */
import type { Clock } from './clock.js';
import { ExclusionStore, type ExclusionsReconciled } from './exclusions.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import type { UnreadableLine } from './jsonl.js';
import type { Journal } from './store.js';
import { TokenStore, type TokensReconciled } from './tokens.js';

export interface NotesReconciled {
  readonly tokens: Omit<TokensReconciled, 'unreadable'>;
  readonly exclusions: Omit<ExclusionsReconciled, 'unreadable'>;
  readonly unreadable: readonly UnreadableLine[];
}

/**
 * @param journal open for writing
 * @throws HealthlogError journal_busy; what the file system throws
 */
export function reconcileNotes(
  journal: Journal,
  folder: DataFolder,
  files: FileLayer,
  clock: Clock,
): NotesReconciled {
  const { unreadable: tokenLines, ...tokens } = new TokenStore(journal, folder, files, clock).reconcile();
  const { unreadable: exclusionLines, ...exclusions } = new ExclusionStore(
    journal,
    folder,
    files,
    clock,
  ).reconcile();
  return { tokens, exclusions, unreadable: [...tokenLines, ...exclusionLines] };
}

/** Whether anything had to be put right. */
export function hadToReconcile({ tokens, exclusions }: NotesReconciled): boolean {
  return [...Object.values(tokens), ...Object.values(exclusions)].some((count) => count > 0);
}
