/** The report of an import in words: what is in, what is not and why, and what to do about it. */
import type { ErrorCode, HealthlogError } from '../../journal/errors.js';
import { facts } from '../output.js';
import type { WithOutcome } from './outcomes.js';
import { type Report, receivedText } from './report.js';

/** Of what was merely passed over a few names are enough; `--json` gives every one. */
const NAMES_SHOWN = 5;

/** The catalogue speaks to whoever holds the phone; here somebody holds a file. */
const ADVICE: Partial<Record<ErrorCode, string>> = {
  empty_body: 'Export it once more; an export without data still holds {"data":{}}.',
  shapeless_body: 'Export it as JSON. A file that was packed by another program has to be unpacked first.',
  truncated: 'Copy or export it once more.',
  too_large: 'Export it in several shorter periods.',
  journal_busy:
    'Close other programs that have journal.db open for writing, then run the same command again.',
  disk_full: 'Free some space, then run the same command again: what is in already is recognised.',
  storage_failed: 'Look at the disk, then run the same command again: what is in already is recognised.',
};

export function adviceFor({ code, hint }: HealthlogError): string {
  return ADVICE[code] ?? hint;
}

export function reportLines(report: Report): string[] {
  return [
    ...passedOver(report),
    ...known(report),
    ...refused(report),
    ...failed(report),
    ...notIn(report),
    ...pending(report),
    totals(report),
  ];
}

function totals(report: Report): string {
  const rows: [string, string][] = [
    ['taken in', count(report.imported.length, 'delivery', 'deliveries')],
    ['already known', String(report.known.length)],
    ['refused', String(report.refused.length)],
    ['left out', String(report.leftOut.length)],
  ];
  if (report.notImported.length > 0) rows.push(['not imported', String(report.notImported.length)]);
  const outcomes = [...report.outcomes].map(([name, n]) => `${n} ${name}`);
  const { points, objects, skipped, partial } = report.counters;
  if (outcomes.length > 0) {
    rows.push(['outcomes', outcomes.join(', ')]);
    rows.push(['points', `${points} read, ${skipped} unreadable, ${partial} left out`]);
    if (objects > 0) rows.push(['objects', `${objects} read`]);
  }
  if (report.pending.length > 0) rows.push(['pending', String(report.pending.length)]);
  return facts(rows);
}

function passedOver({ leftOut }: Report): string[] {
  if (leftOut.length === 0) return [];
  const names = leftOut.slice(0, NAMES_SHOWN).map(({ shown, reason }) => `  ${shown}: ${reason}`);
  return [
    `Left out: ${count(leftOut.length, 'file', 'files')}.`,
    ...names,
    ...andMore(leftOut.length - names.length),
  ];
}

function known(report: Report): string[] {
  if (report.known.length === 0) return [];
  const shown = report.known.slice(0, NAMES_SHOWN);
  return [
    ...shown.map(
      (one) =>
        `${one.shown} is known already: delivery ${one.row.id}, received ${receivedText(one)}${
          one.row.source === 'import' ? ' by an import' : ''
        }.`,
    ),
    ...andMore(report.known.length - shown.length),
    '  what to do: nothing. --again records it all the same.',
    ...setAside(report),
  ];
}

function andMore(count: number): string[] {
  return count > 0 ? [`  and ${count} more; --json names every one`] : [];
}

function setAside({ known }: Report): string[] {
  return known
    .filter(({ item }) => item.parse_status === 'excluded')
    .map(
      ({ shown, row }) =>
        `${shown} was set aside by a person and does not count; "healthlog journal include ${row.id}" takes it back.`,
    );
}

function refused(report: Report): string[] {
  return report.refused.flatMap(({ shown, error }) => [
    `${shown} was refused: ${error.message}`,
    `  what to do: ${adviceFor(error)}`,
  ]);
}

function failed(report: Report): string[] {
  return report.failed.flatMap((one) => [
    `${one.shown} is in, as delivery ${one.row.id}, but nothing of it could be folded: ${one.item.class}`,
    ...one.item.reasons.map((reason) => `  - ${reason}`),
    `  what to do: ${nextStep(one)}`,
  ]);
}

function nextStep({ item }: WithOutcome): string {
  if (item.class === 'layer_unknown')
    return 'import it again and say how it was grouped, for example with --aggregation Days.';
  return `"healthlog journal show ${item.id}" tells more. The file is kept, and a later version may read it.`;
}

function notIn({ notImported, cancelled }: Report): string[] {
  if (notImported.length === 0) return [];
  const cause = notImported.find(({ error }) => error !== null);
  const head =
    cause?.error === undefined || cause.error === null
      ? ['The run was ended. Not imported:']
      : [
          `The run ended at ${cause.shown}: ${cause.error.message}`,
          `  what to do: ${adviceFor(cause.error)}`,
          'Not imported:',
        ];
  const again = cancelled ? ['Run the same command again for them: what is in already is recognised.'] : [];
  return [...head, ...notImported.map(({ shown }) => `  ${shown}`), ...again];
}

function pending({ pending, pendingReason }: Report): string[] {
  if (pending.length === 0) return [];
  const why = pendingReason === null ? '' : ` (${pendingReason})`;
  return [
    `${count(pending.length, 'delivery is', 'deliveries are')} in and not folded yet${why}. The service folds what waits, now or at its next start; "healthlog status" tells how far it is.`,
  ];
}

function count(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`;
}
