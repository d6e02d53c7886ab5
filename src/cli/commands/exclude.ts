/** `healthlog journal exclude` and `include`: a person sets a delivery aside, or takes it back. */
import { type ExclusionChange, ExclusionStore } from '../../journal/exclusions.js';
import { nodeFiles } from '../../journal/files.js';
import { Journal } from '../../journal/store.js';
import { getDelivery } from '../../projections/answers/deliveries.js';
import type { Context } from '../context.js';
import { print, printJson, say } from '../output.js';

const WHAT_FOLLOWS =
  'A running service builds the read model anew in the background; without one, run "healthlog rebuild".';

export function journalExclude(context: Context, id: string, reason: string): number {
  return change(context, id, 'excluded', (store, whole) => store.exclude(whole, reason));
}

export function journalInclude(context: Context, id: string): number {
  return change(context, id, 'included', (store, whole) => store.include(whole));
}

/** @param given the beginning of an id is enough */
function change(
  context: Context,
  given: string,
  wish: 'excluded' | 'included',
  work: (store: ExclusionStore, id: string) => ExclusionChange,
): number {
  const id = wholeId(context, given);
  const { changed, reason } = withStore(context, (store) => work(store, id));
  const isExcluded = wish === 'excluded';
  if (context.json) {
    printJson({ delivery_id: id, excluded: isExcluded, changed, reason: isExcluded ? reason : null });
    return 0;
  }
  if (isExcluded) {
    print(
      changed ? `Delivery ${id} is set aside: ${reason}` : `Delivery ${id} was set aside already: ${reason}`,
    );
  } else print(changed ? `Delivery ${id} is taken back.` : `Delivery ${id} was not set aside.`);
  if (changed) say(WHAT_FOLLOWS);
  return 0;
}

/** Looked up for reading, so that a misspelt --data makes no new journal. */
function wholeId({ folder }: Context, given: string): string {
  const journal = Journal.open(folder, 'read');
  try {
    return getDelivery(journal, null, given, null).id;
  } finally {
    journal.close();
  }
}

function withStore<T>({ folder, clock }: Context, work: (store: ExclusionStore) => T): T {
  const journal = Journal.open(folder, 'write');
  try {
    return work(new ExclusionStore(journal, folder, nodeFiles, clock));
  } finally {
    journal.close();
  }
}
