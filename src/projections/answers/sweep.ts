/**
 * Reading forward in stretches until a page is full.
 *
 * Gaps are jumped over and nothing behind the page is read, so that a page costs the same whether the question is
 * open on both sides or about one month. Every stretch is at least one place long: a sweep ends.
 */

export interface Sweep<Read> {
  /** First place of interest; places are seconds, days or weeks by their first day. */
  readonly from: number;
  /** First place behind the last of interest. */
  readonly end: number;
  /** A place not behind the next item at or after `at`, null when there is none. */
  readonly next: (at: number) => number | null;
  /** End of the stretch that begins at `at`; always greater than `at`. */
  readonly stretch: (at: number) => number;
  /** The items with `first` ≤ place < `end`, in order. */
  readonly read: (first: number, end: number) => readonly Read[];
}

/** Reads at least `wanted` items, fewer only when there are no more. */
export function sweep<Read>(plan: Sweep<Read>, wanted: number): Read[] {
  const found: Read[] = [];
  let at = plan.from;
  while (found.length < wanted && at < plan.end) {
    const next = plan.next(at);
    if (next === null || next >= plan.end) break;
    const first = Math.max(at, next);
    const end = Math.min(plan.end, plan.stretch(first));
    found.push(...plan.read(first, end));
    at = end;
  }
  return found;
}

/** The smallest of some places, null when none is known. */
export function earliest(places: readonly (number | null)[]): number | null {
  let found: number | null = null;
  for (const place of places) if (place !== null && (found === null || place < found)) found = place;
  return found;
}
