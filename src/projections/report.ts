/**
 * Report: what one delivery held that was not understood. Nothing is dropped in silence (law 10): everything
 * is counted, named, and its body kept. Names come from the body, so they are shortened; values never appear.
 */
import type { Counters, SectionCounters } from './outcome.js';

const NAME_MAX = 80;
const REASONS_MAX = 40;
const SECTIONS_MAX = 40;

/** A name from a body, fit for a message: no control characters, not longer than a line. */
export function shownName(name: string): string {
  const clean = name.replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, '\uFFFD');
  return clean.length > NAME_MAX ? `${clean.slice(0, NAME_MAX)}…` : clean;
}

export class Report {
  readonly #read = new Map<string, number>();
  readonly #skipped = new Map<string, number>();
  readonly #unread = new Map<string, number>();
  readonly #left = new Map<string, number>();
  readonly #unknown = new Map<string, number>();
  #leftOut = 0;

  /** Points or objects that were read. */
  read(section: string, count: number): void {
    add(this.#read, section, count);
  }

  /** Points or objects that could not be read. `why` is a plain sentence without values. */
  skip(section: string, why: string, count = 1): void {
    add(this.#skipped, section, count);
    add(this.#unread, why, count);
  }

  /** Points or objects left out as a whole, although they may be sound; they no longer count as read. */
  leaveOut(section: string, why: string, count: number): void {
    this.#read.set(section, Math.max(0, (this.#read.get(section) ?? 0) - count));
    this.#leftOut += count;
    add(this.#left, why, count);
  }

  /** Something that is not known but kept. */
  unknown(what: string, count = 1): void {
    add(this.#unknown, what, count);
  }

  /** True when something was left out or could not be read. */
  get incomplete(): boolean {
    return this.#left.size > 0 || this.#unread.size > 0;
  }

  counters(changed: number, incomparable: number, objectSections: ReadonlySet<string>): Counters {
    let points = 0;
    let objects = 0;
    let skipped = 0;
    const sections: [string, SectionCounters][] = [];
    const names = [...new Set([...this.#read.keys(), ...this.#skipped.keys()])].sort();
    for (const name of names) {
      const read = this.#read.get(name) ?? 0;
      const unread = this.#skipped.get(name) ?? 0;
      if (objectSections.has(name)) objects += read;
      else points += read;
      skipped += unread;
      // A body may hold any number of sections; each is counted in the sums, and so many are named.
      if (sections.length < SECTIONS_MAX) sections.push([shownName(name), { points: read, skipped: unread }]);
    }
    return {
      points,
      objects,
      changed,
      skipped,
      partial: this.#leftOut,
      incomparable,
      sections: Object.fromEntries(sections),
    };
  }

  /** What was not folded first, then what is unknown but kept; bounded. */
  reasons(): string[] {
    const all = [
      ...list(this.#left, (why, count) => `${why} (${count} left out)`),
      ...list(this.#unread, (why, count) => `${why} (${count} skipped)`),
      ...list(
        this.#unknown,
        (what, count) => `${what} is not known to this version and is kept as it came (${count})`,
      ),
    ];
    if (all.length <= REASONS_MAX) return all;
    return [...all.slice(0, REASONS_MAX), `and ${all.length - REASONS_MAX} more kinds`];
  }
}

function add(map: Map<string, number>, key: string, count: number): void {
  map.set(key, (map.get(key) ?? 0) + count);
}

/** The order of a body is random on every send; a report is not. */
function list(map: Map<string, number>, line: (key: string, count: number) => string): string[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([key, count]) => line(key, count));
}
