/**
 * Sources: whose devices are behind a point (hae-format.md §8).
 *
 * The app joins device names with `|`, in no stable order, sometimes the same name several times, with a
 * non-breaking space inside "Apple Watch" or without. As delivered the text is a label and is kept; compared
 * is only the *set*: split, trimmed, without repeats and empties, sorted by code unit. Names themselves are
 * never altered beyond that, so two devices stay two devices.
 *
 * A delivery repeats a handful of texts thousands of times, so the reading of each is remembered.
 */

interface Reading {
  readonly set: readonly string[];
  readonly name: string;
}

const EMPTY: Reading = { set: Object.freeze([]), name: '' };

/** Real households have tens of spellings; a hostile body must not make this grow. */
const REMEMBERED_MAX = 1024;
const REMEMBERED_LENGTH_MAX = 512;
const remembered = new Map<string, Reading>();

function read(source: string | null): Reading {
  if (source === null || source === '') return EMPTY;
  const known = remembered.get(source);
  if (known !== undefined) return known;
  const names = source
    .replaceAll('\u00a0', ' ')
    .split('|')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const set = Object.freeze([...new Set(names)].sort(byCodeUnit));
  const reading = { set, name: set.join('|') };
  if (source.length > REMEMBERED_LENGTH_MAX) return reading;
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  remembered.set(source, reading);
  return reading;
}

/** Not by locale: the order must be the same on every machine. */
function byCodeUnit(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The devices a source text names: sorted, no repeats; empty for null, `""` and text without a name. */
export function sourceSet(source: string | null): readonly string[] {
  return read(source).set;
}

/** The one spelling of {@link sourceSet}: its names joined with `|`, `''` for the empty set. */
export function sourceSetName(source: string | null): string {
  return read(source).name;
}

/** Is every name of `b` in `a`? Both as {@link sourceSet} gives them. Every set contains the empty one. */
export function contains(a: readonly string[], b: readonly string[]): boolean {
  if (a === b) return true;
  if (b.length > a.length) return false;
  let at = 0;
  for (const name of b) {
    while (at < a.length && a[at] !== name) at += 1;
    if (at === a.length) return false;
    at += 1;
  }
  return true;
}

/** True when neither set contains the other: two exports disagree about the devices (design §5.3). */
export function incomparable(a: readonly string[], b: readonly string[]): boolean {
  return !contains(a, b) && !contains(b, a);
}
