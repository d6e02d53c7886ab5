/**
 * Sections this fold version does not read: counted, named, kept in the archive, and folded by a later version
 * (law 10). A delivery that holds one is `partial`.
 */
import type { Sections } from '../envelope.js';
import { type Report, shownName } from '../report.js';
import { isKnownSection, SECTION_NAMES } from './names.js';

/** Sections whose entries count as objects rather than points. */
export const OBJECT_SECTIONS: ReadonlySet<string> = new Set([
  'sleep',
  ...SECTION_NAMES.filter((name) => name !== 'metrics'),
]);

/** @param sleep the sleep objects that came inside `metrics` */
export function leaveOutSections(sections: Sections, sleep: readonly unknown[], report: Report): void {
  if (sleep.length > 0)
    report.leaveOut('sleep', 'the section "sleep" is not read by this version yet', sleep.length);
  for (const [name, items] of sections) {
    if (name === 'metrics' || items.length === 0) continue;
    const why = isKnownSection(name)
      ? `the section "${name}" is not read by this version yet`
      : `the section "${shownName(name)}" is not known to this version`;
    report.leaveOut(name, why, items.length);
  }
}
