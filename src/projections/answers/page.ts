/**
 * Paging: every list is `{ items, next }`, where `next` is an opaque cursor or null.
 *
 * A cursor names the last item of a page, never a count of items: what is folded between two pages neither
 * repeats nor hides an item. It is base64url of a small JSON list whose first member names the list it belongs
 * to, so that a cursor of one list is refused by another.
 */
import { HealthlogError } from '../../journal/errors.js';

export const LIMIT_DEFAULT = 1000;
export const LIMIT_MAX = 10_000;

export interface Page<Item> {
  readonly items: Item[];
  /** Cursor of the next page, null when this one is the last. */
  readonly next: string | null;
}

type CursorPart = string | number;

/** How many items a page may hold. Throws bad_request for anything but a whole number from 1 to 10000. */
export function pageLimit(limit: number | undefined): number {
  if (limit === undefined) return LIMIT_DEFAULT;
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) {
    throw new HealthlogError('bad_request', {
      reason: `limit must be a whole number from 1 to ${LIMIT_MAX}`,
    });
  }
  return limit;
}

/** The cursor behind the item named by `parts` in the list called `list`. */
export function encodeCursor(list: string, parts: readonly CursorPart[]): string {
  return Buffer.from(JSON.stringify([list, ...parts]), 'utf8').toString('base64url');
}

function unreadable(): HealthlogError {
  return new HealthlogError('bad_request', {
    reason: 'the cursor is not one that this list gave; ask for the first page again, without a cursor',
  });
}

/** The parts of a cursor of the list called `list`, null without a cursor. Throws bad_request for any other text. */
export function decodeCursor(list: string, cursor: string | null | undefined): readonly CursorPart[] | null {
  if (cursor === undefined || cursor === null) return null;
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
  } catch {
    throw unreadable();
  }
  if (!Array.isArray(read) || read[0] !== list) throw unreadable();
  const parts: CursorPart[] = [];
  for (const part of read.slice(1) as readonly unknown[]) {
    if (typeof part !== 'string' && !(typeof part === 'number' && Number.isFinite(part))) throw unreadable();
    parts.push(part);
  }
  return parts;
}

/** Cursor parts that must all be numbers, `count` of them. */
export function decodeNumbers(
  list: string,
  cursor: string | null | undefined,
  count: number,
): readonly number[] | null {
  const parts = decodeCursor(list, cursor);
  if (parts === null) return null;
  const numbers = parts.filter((part): part is number => typeof part === 'number');
  if (numbers.length !== count || parts.length !== count) throw unreadable();
  return numbers;
}

/** Cuts a list that was read one item too far into a page; `cursorOf` names the last item kept. */
export function pageOf<Read, Item>(
  read: readonly Read[],
  limit: number,
  toItem: (item: Read) => Item,
  cursorOf: (last: Read) => string,
): Page<Item> {
  const kept = read.slice(0, limit);
  const last = kept.at(-1);
  return { items: kept.map(toItem), next: read.length > limit && last !== undefined ? cursorOf(last) : null };
}
