/**
 * `--as-of`: when an old file was made. It becomes `clock_at`, the evidence by which older data loses to newer; it is
 * never the position.
 *
 * - A date means the end of that day on this machine's clock; today's date means now.
 * - A time without an offset is read on this machine's clock, one with an offset as written.
 * - Nothing was made in the future.
 */
import { HealthlogError } from '../../journal/errors.js';
import { type Micros, micros, parseMicros } from '../../journal/position.js';
import { parseStamp, type Stamp, ymdOfDay } from '../../projections/dates.js';

export interface AsOf {
  readonly at: Micros;
  /** What was said is true of everything that was made from here … */
  readonly from: Micros;
  /** … to here, inclusive: for a date that is its whole day. */
  readonly to: Micros;
}

/** @throws HealthlogError usage */
export function readAsOf(text: string, now: Micros): AsOf {
  const read = parseStamp(text);
  // Older than every phone: a slip of the finger.
  const stamp = read !== null && read.localDay > 0 ? read : null;
  // Stamps end at milliseconds; `clock_at` of another delivery has six digits.
  const exact = stamp === null ? null : parseMicros(text.trim());
  const asOf = exact === null ? stamp && fromStamp(stamp, now) : moment(exact);
  if (asOf === null) {
    throw new HealthlogError('usage', {
      reason: `--as-of cannot be "${text}": it is a date like 2026-03-10 or a time like 2026-03-10T22:05:00+01:00.`,
    });
  }
  if (asOf.at > now) {
    throw new HealthlogError('usage', {
      reason: `--as-of cannot be "${text}": that is in the future, and it says when the file was made.`,
    });
  }
  return asOf;
}

function moment(at: Micros): AsOf {
  return { at, from: at, to: at };
}

function fromStamp(stamp: Stamp, now: Micros): AsOf {
  if (stamp.offsetMin !== null) return moment(micros(Math.round(stamp.epochMs * 1000)));
  if (!stamp.dateOnly) {
    const msOfSecond = stamp.epochMs - Math.floor(stamp.epochMs / 1000) * 1000;
    return moment(onThisClock(stamp.localDay, stamp.secondOfDay, msOfSecond));
  }
  const from = onThisClock(stamp.localDay, 0, 0);
  const to = micros(onThisClock(stamp.localDay + 1, 0, 0) - 1);
  return { at: from <= now && now < to ? now : to, from, to };
}

function onThisClock(day: number, secondOfDay: number, ms: number): Micros {
  const { y, m, d } = ymdOfDay(day);
  return micros(new Date(y, m - 1, d, 0, 0, secondOfDay, ms).getTime() * 1000);
}
