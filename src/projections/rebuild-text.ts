/** What a rebuild or verify came to, in plain words: one line per fact, the verdict first. */
import type { TableDifference } from './oracle.js';
import { CLASSES, type OutcomeClass } from './outcome.js';
import type { RebuildReport } from './rebuild.js';

const LISTED_MAX = 10;

/** Lines for a person. `verify` and `rebuild --dry-run` never switch, and say so. */
export function rebuildLines(report: RebuildReport, dryRun: boolean): string[] {
  const { deliveries, outcomes } = report;
  return [
    verdict(report, dryRun),
    `${deliveries} deliveries were folded anew, ${outcomes.counters.points} points.`,
    ...classLines(report),
    ...named(
      report.drifted,
      dryRun
        ? 'deliveries were set aside or taken back by a person, and the live read model does not follow yet; the service builds it anew, or "healthlog rebuild" does'
        : 'deliveries were set aside or taken back by a person since; the comparison is with the read model as it was before that',
      (id) => id,
    ),
    ...named(
      report.lost,
      'deliveries are shown, but their bodies can no longer be read',
      (lost) => `${lost.id}: ${lost.reason} (${lost.archivePath})`,
    ),
    ...named(
      report.damaged,
      'bodies in the archive have no journal row and are damaged',
      (file) => `${file.path}: ${file.reason}`,
    ),
    ...named(
      report.orphans,
      dryRun
        ? 'bodies in the archive have no journal row; "healthlog rebuild" takes them in'
        : 'bodies without a journal row were taken in',
      (path) => path,
    ),
    ...named(
      report.mismatches,
      'results carry a time grouping that the journal before them does not support',
      (m) =>
        `${m.id}: recorded ${m.recordedLayer ?? 'none'} from ${m.recordedFrom ?? 'none'}, should be ${m.layer ?? 'none'} from ${m.from ?? 'none'}`,
    ),
    ...report.differences.flatMap(differenceLines),
    ...named(report.deferred, 'deliveries were put off by circumstances', (id) => id),
  ];
}

function verdict(report: RebuildReport, dryRun: boolean): string {
  if (report.cancelled) return 'Cancelled. The read model is as it was.';
  if (report.stoppedBy !== null) return `Given up: ${report.stoppedBy}. The read model is as it was.`;
  const proof = report.compared
    ? report.differences.length === 0
      ? 'The rebuilt read model says the same as the live one, row for row.'
      : 'The rebuilt read model differs from the live one.'
    : report.unreadable === null
      ? 'There was no read model to compare with.'
      : `The live read model could not be compared: ${report.unreadable}.`;
  if (dryRun) return `${proof} Nothing was changed.`;
  switch (report.result) {
    case 'switched':
      return `${proof} It is live now (${report.generation}).`;
    case 'waiting':
      return `${proof} It is finished (${report.generation}); the running service takes it over by itself.`;
    case 'none':
      return report.lost.length > 0
        ? `${proof} It was not taken over, because bodies are gone; put them back, or use --accept-loss.`
        : `${proof} It was not taken over, because work was put off.`;
  }
}

function classLines({ outcomes }: RebuildReport): string[] {
  const lines: string[] = [];
  for (const [name, count] of Object.entries(outcomes.byClass)) {
    if (name === 'folded' || !isClass(name)) continue;
    lines.push(`${count} × ${name}: ${CLASSES[name].means}; comes back by ${CLASSES[name].comesBackBy}.`);
  }
  return lines;
}

function isClass(name: string): name is OutcomeClass {
  return Object.hasOwn(CLASSES, name);
}

function differenceLines({ table, onlyLive, onlyRebuilt, first }: TableDifference): string[] {
  return [
    `${table}: ${onlyLive} rows only in the live read model, ${onlyRebuilt} only in the rebuilt one. The first:`,
    ...first.map(({ side, row }) => `  ${side.padEnd(7)} ${JSON.stringify(row)}`),
  ];
}

/** A heading with the count, and the first few items; nothing for an empty list. */
export function named<T>(items: readonly T[], what: string, line: (item: T) => string): string[] {
  if (items.length === 0) return [];
  const more = items.length > LISTED_MAX ? [`  … and ${items.length - LISTED_MAX} more`] : [];
  return [
    `${items.length} ${what}:`,
    ...items.slice(0, LISTED_MAX).map((item) => `  ${line(item)}`),
    ...more,
  ];
}
