/**
 * Which of two deliveries is the later one: the greater (evidence, received_at, id) (design §5.3).
 *
 * Rows name a delivery by its journal seq; its place in the order is looked up when it is first needed and kept
 * for the length of one answer, so that an answer costs one look-up per delivery and none per bucket.
 */
import type { Database } from 'better-sqlite3';

interface Rank {
  readonly evidence: number;
  readonly received_at: number;
  readonly delivery_id: string;
}

export class DeliveryOrder {
  readonly #ranks = new Map<number, Rank>();
  readonly #select;

  constructor(generation: Database) {
    this.#select = generation.prepare<[number], Rank>(
      'SELECT evidence, received_at, delivery_id FROM delivery_result WHERE seq = ?',
    );
  }

  /** Negative when the delivery with seq `a` is before that with seq `b`. */
  compare(a: number, b: number): number {
    if (a === b) return 0;
    const left = this.#rank(a);
    const right = this.#rank(b);
    if (left.evidence !== right.evidence) return left.evidence - right.evidence;
    if (left.received_at !== right.received_at) return left.received_at - right.received_at;
    return left.delivery_id < right.delivery_id ? -1 : 1;
  }

  /** The later of two deliveries, by seq. */
  later(a: number, b: number): number {
    return this.compare(a, b) < 0 ? b : a;
  }

  /** The id of the delivery with this seq. */
  id(seq: number): string {
    return this.#rank(seq).delivery_id;
  }

  #rank(seq: number): Rank {
    let rank = this.#ranks.get(seq);
    if (rank === undefined) {
      rank = this.#select.get(seq);
      if (rank === undefined) throw new Error(`the read model names delivery ${seq} but its ledger does not`);
      this.#ranks.set(seq, rank);
    }
    return rank;
  }
}
