/**
 * Period: what the header `automation-period` says about the window of a run (hae-format.md §2.3).
 *
 * Only the day-aligned settings promise anything. "Since Last Sync" starts at any minute, and newer labels
 * ("last 7 days") are not documented: neither is taken for a promise.
 */
import { foldHeader } from './layer.js';

/** A window made of whole local days. */
export interface AlignedPeriod {
  /** How many days before the run date the window begins. */
  readonly daysBack: number;
  /** True when the window ends with the day before the run date; false when it runs up to the run itself. */
  readonly closed: boolean;
}

/** Null when there is no header or it does not promise whole days. */
export function alignedPeriod(header: string | null): AlignedPeriod | null {
  if (header === null) return null;
  const word = foldHeader(header);
  if (word === 'today') return { daysBack: 0, closed: false };
  if (word === 'default') return { daysBack: 1, closed: false };
  if (word === 'yesterday') return { daysBack: 1, closed: true };
  const previous = /^previous(\d{1,4})days?$/.exec(word);
  if (previous === null) return null;
  const days = Number(previous[1]);
  return days >= 1 ? { daysBack: days, closed: true } : null;
}
