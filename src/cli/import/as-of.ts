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

/** @throws HealthlogError usage */
export function readAsOf(text: string, now: Micros): Micros {
  const stamp = parseStamp(text);
  // Stamps end at milliseconds; `clock_at` of another delivery has six digits.
  const at = stamp === null ? null : (parseMicros(text.trim()) ?? fromStamp(stamp, now));
  if (at === null) {
    throw new HealthlogError('usage', {
      reason: `--as-of cannot be "${text}": it is a date like 2026-03-10 or a time like 2026-03-10T22:05:00+01:00.`,
    });
  }
  if (at > now) {
    throw new HealthlogError('usage', {
      reason: `--as-of cannot be "${text}": that is in the future, and it says when the file was made.`,
    });
  }
  return at;
}

function fromStamp(stamp: Stamp, now: Micros): Micros {
  if (stamp.offsetMin !== null) return micros(Math.round(stamp.epochMs * 1000));
  if (!stamp.dateOnly) {
    const msOfSecond = stamp.epochMs - Math.floor(stamp.epochMs / 1000) * 1000;
    return onThisClock(stamp.localDay, stamp.secondOfDay, msOfSecond);
  }
  const begin = onThisClock(stamp.localDay, 0, 0);
  const end = micros(onThisClock(stamp.localDay + 1, 0, 0) - 1);
  return begin <= now && now < end ? now : end;
}

function onThisClock(day: number, secondOfDay: number, ms: number): Micros {
  const { y, m, d } = ymdOfDay(day);
  return micros(new Date(y, m - 1, d, 0, 0, secondOfDay, ms).getTime() * 1000);
}
