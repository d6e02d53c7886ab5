/**
 * Outcomes: what became of the deliveries of this run, asked of the live generation as anybody may ask it, whoever
 * folds. A generation that is replaced while we wait is opened anew with the next look.
 */
import type { DataFolder } from '../../journal/folder.js';
import type { JournalRow } from '../../journal/store.js';
import { type DeliveryItem, deliveryItem } from '../../projections/answers/delivery-item.js';
import { resultReader } from '../../projections/answers/ledger-view.js';
import { openLive } from '../../projections/generations.js';

export interface Awaited {
  readonly result: 'imported' | 'known';
  readonly shown: string;
  readonly row: JournalRow;
}

export type WithOutcome = Awaited & { readonly item: DeliveryItem };

/** Deliveries are folded in their order: behind this many that wait, hardly one is done. */
const PENDING_SEEN_MAX = 100;

export class Outcomes {
  readonly #folder: DataFolder;
  readonly #onOutcome: (known: WithOutcome) => void;
  #waiting: Awaited[] = [];

  constructor(folder: DataFolder, onOutcome: (known: WithOutcome) => void) {
    this.#folder = folder;
    this.#onOutcome = onOutcome;
  }

  /** How many have no outcome yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  await(one: Awaited): void {
    this.#waiting.push(one);
  }

  /** Tells the outcomes that are there now. @param all looks at every one, not only at those whose turn it is */
  look(all: boolean): void {
    if (this.#waiting.length === 0) return;
    const live = openLive(this.#folder);
    if (live.kind !== 'open') return;
    try {
      const resultOf = resultReader(live.db);
      const left: Awaited[] = [];
      for (const [at, one] of this.#waiting.entries()) {
        if (!all && left.length >= PENDING_SEEN_MAX) {
          left.push(...this.#waiting.slice(at));
          break;
        }
        const item = deliveryItem(one.row, resultOf(one.row.seq, one.row.id));
        if (item.parse_status === 'pending') left.push(one);
        else this.#onOutcome({ ...one, item });
      }
      this.#waiting = left;
    } finally {
      live.db.close();
    }
  }

  /** Those that wait for good: nobody looks any more. */
  giveUp(): WithOutcome[] {
    const left = this.#waiting.map((one) => ({ ...one, item: deliveryItem(one.row, null) }));
    this.#waiting = [];
    return left;
  }
}
