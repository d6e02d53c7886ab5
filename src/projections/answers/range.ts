/**
 * The span of time a question is about: `from` inclusive, `to` exclusive.
 *
 *  - a bare date means the whole local day, in both places: `from=D&to=D` is that day;
 *  - a time with an offset is an instant;
 *  - a time without an offset is compared with local time as written (design §9).
 *
 * An item lies in the range when its start does. Days have no offset of their own: a bound that is an instant is
 * compared with them on its own clock. Weeks and months are answered whole when any of their days is in the range.
 */
import { HealthlogError } from '../../journal/errors.js';
import { parseStamp } from '../dates.js';

const DAY_MS = 86_400_000;
const DAY_S = 86_400;

/** Offsets east and west of UTC stay below this; a local day lies within this distance of the UTC day of its name. */
export const OFFSET_MAX_S = 15 * 3600;

/** Days since 1970-01-01 between which every readable stamp lies (dates.ts reads the years 1900 to 2200). */
export const DAY_MIN = -25_600;
export const DAY_MAX = 84_400;

interface Bound {
  /** An instant, or (`local`) a reading of the local clock as if it were UTC; milliseconds since 1970. */
  readonly ms: number;
  readonly local: boolean;
  /** The bound on a local clock: its own for an instant; milliseconds as if UTC. */
  readonly localMs: number;
}

export interface TimeRange {
  readonly from: Bound | null;
  readonly to: Bound | null;
}

/** A plus sign that was not encoded in an address arrives as a space: `…T10:00:00 02:00` can mean nothing else. */
const LOST_PLUS = /^(\S+T\S+) (\d{2}:?\d{2})$/;

function parseBound(name: 'from' | 'to', text: string | undefined): Bound | null {
  if (text === undefined) return null;
  const stamp = parseStamp(text.trim().replace(LOST_PLUS, '$1+$2'));
  if (stamp === null) {
    throw new HealthlogError('bad_request', {
      reason: `"${name}" is neither a date like 2026-11-30 nor a time like 2026-11-30T22:05:00+01:00 (in an address the + is written %2B)`,
    });
  }
  if (stamp.dateOnly) {
    const ms = (stamp.localDay + (name === 'to' ? 1 : 0)) * DAY_MS;
    return { ms, local: true, localMs: ms };
  }
  if (stamp.offsetMin === null) return { ms: stamp.epochMs, local: true, localMs: stamp.epochMs };
  return { ms: stamp.epochMs, local: false, localMs: stamp.epochMs + stamp.offsetMin * 60_000 };
}

/** Reads `from` and `to`; an absent one leaves that side open. Throws bad_request for text that is no time. */
export function parseRange(q: {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}): TimeRange {
  return { from: parseBound('from', q.from), to: parseBound('to', q.to) };
}

/** Whether a start lies in the range. `epochMs` is the instant, or the local reading when `offsetMin` is null. */
export function inRange(range: TimeRange, epochMs: number, offsetMin: number | null): boolean {
  const localMs = epochMs + (offsetMin ?? 0) * 60_000;
  const { from, to } = range;
  if (from !== null && (from.local ? localMs : epochMs) < from.ms) return false;
  return to === null || (to.local ? localMs : epochMs) < to.ms;
}

/** Days since 1970-01-01 whose local midnight lies in the range: first inclusive, end exclusive. */
export function dayRange(range: TimeRange): { readonly first: number; readonly end: number } {
  return {
    first: range.from === null ? DAY_MIN : Math.max(DAY_MIN, Math.ceil(range.from.localMs / DAY_MS)),
    end: range.to === null ? DAY_MAX : Math.min(DAY_MAX, Math.ceil(range.to.localMs / DAY_MS)),
  };
}

/**
 * Seconds since 1970 between which every start of the range lies, first inclusive, end exclusive. Bounds of local
 * time are widened by the greatest offset: {@link inRange} has the last word.
 */
export function secondRange(range: TimeRange): { readonly first: number; readonly end: number } {
  const { from, to } = range;
  return {
    first: from === null ? DAY_MIN * DAY_S : Math.ceil(from.ms / 1000) - (from.local ? OFFSET_MAX_S : 0),
    end: to === null ? DAY_MAX * DAY_S : Math.ceil(to.ms / 1000) + (to.local ? OFFSET_MAX_S : 0),
  };
}
