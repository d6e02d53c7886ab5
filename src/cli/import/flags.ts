/**
 * Flags of `import`. What they say of a file goes into the kept headers of its delivery, so that the fold, which sees
 * only the archive, reads it where the phone would have said it. What the fold would not understand is refused here:
 * a misspelt grouping would be found when the numbers are wrong.
 */
import { HealthlogError } from '../../journal/errors.js';
import type { Micros } from '../../journal/position.js';
import { declaredLayer, foldHeader } from '../../projections/layer.js';
import { alignedPeriod } from '../../projections/period.js';
import { type AsOf, readAsOf } from './as-of.js';

/** As typed; absent when not given. */
export interface ImportFlags {
  readonly automation?: string;
  readonly aggregation?: string;
  readonly period?: string;
  readonly asOf?: string;
  readonly profile?: string;
  readonly again: boolean;
  /** False: leave the folding to the service, or to the next start. */
  readonly wait: boolean;
}

/** What is said of a file; null is not said, an empty text says that there is none. */
export interface Said {
  readonly automation: string | null;
  readonly aggregation: string | null;
  readonly period: string | null;
  /** When the file was made. */
  readonly asOf: AsOf | null;
  readonly profile: string | null;
}

/** Names and ids of people's automations are far shorter. */
const TEXT_CHARS_MAX = 200;
const GROUPINGS = 'Default, Seconds, Minutes, Hours, Days, Weeks, Months or Years';
const PERIODS = 'Default, Today, Yesterday, Previous 7 Days (or any other number of days) or Since Last Sync';

/** @throws HealthlogError usage, listing what is known */
export function readFlags(flags: ImportFlags, now: Micros): Said {
  const automation = textOf('--automation', flags.automation);
  const aggregation = textOf('--aggregation', flags.aggregation);
  const period = textOf('--period', flags.period);
  if (aggregation !== null && declaredLayer(aggregation) === null) {
    throw unknownWord('--aggregation', aggregation, GROUPINGS);
  }
  const isPeriod =
    period === null || alignedPeriod(period) !== null || foldHeader(period) === 'sincelastsync';
  // The phone's spellings are read generously; a number with a minus is none of them.
  if (!isPeriod || /(?:^|\s)-\d/.test(period ?? '')) {
    throw unknownWord('--period', period ?? '', PERIODS);
  }
  return {
    automation,
    aggregation,
    period,
    asOf: flags.asOf === undefined ? null : readAsOf(flags.asOf, now),
    profile: textOf('--profile', flags.profile),
  };
}

/** The headers that stand for what was said. */
export function saidHeaders({ automation, aggregation, period }: Said): Record<string, string> {
  return {
    ...(automation === null ? {} : { 'automation-id': automation }),
    ...(aggregation === null ? {} : { 'automation-aggregation': aggregation }),
    ...(period === null ? {} : { 'automation-period': period }),
  };
}

function textOf(flag: string, given: string | undefined): string | null {
  if (given === undefined) return null;
  const text = given.trim();
  if (text === '') throw new HealthlogError('usage', { reason: `${flag} cannot be empty.` });
  if (text.length > TEXT_CHARS_MAX || /\p{Cc}/u.test(text)) {
    const reason = `${flag} is one line of at most ${TEXT_CHARS_MAX} characters.`;
    throw new HealthlogError('usage', { reason });
  }
  return text;
}

function unknownWord(flag: string, given: string, known: string): HealthlogError {
  return new HealthlogError('usage', { reason: `${flag} cannot be "${given}": it is ${known}.` });
}
