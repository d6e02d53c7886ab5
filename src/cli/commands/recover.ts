/** `healthlog journal recover`: a lost or damaged journal once more from the archive. */
import type { NotesReconciled } from '../../journal/reconcile-notes.js';
import { type RecoverReport, recoverJournal } from '../../journal/recover.js';
import { named } from '../../projections/rebuild-text.js';
import type { Context } from '../context.js';
import { print, printJson } from '../output.js';
import { progressOn } from '../progress.js';

const DONE = 0;
const NEEDS_A_PERSON = 1;

/** A signal ends it at once, wherever it is: the old journal stays in place until the new one is complete. */
export function journalRecover({ folder, clock, json }: Context): number {
  const progress = progressOn(process.stderr, !json);
  let report: RecoverReport;
  try {
    report = recoverJournal({
      folder,
      clock,
      onProgress: (done, total) => progress.show('bodies', done, total),
    });
  } finally {
    progress.end();
  }
  const exitCode = report.damaged.length + report.notes.unreadable.length > 0 ? NEEDS_A_PERSON : DONE;
  if (json) printJson(toJson(exitCode, report));
  else for (const line of recoverLines(report)) print(line);
  return exitCode;
}

function toJson(exitCode: number, report: RecoverReport): Record<string, unknown> {
  const { journal, damage, setAside, deliveries, adopted, tokens, exclusions, notes, damaged } = report;
  return {
    exit_code: exitCode,
    journal,
    damage,
    set_aside: setAside,
    deliveries,
    adopted,
    tokens,
    exclusions,
    notes: { tokens: notes.tokens, exclusions: notes.exclusions },
    unreadable: notes.unreadable,
    damaged,
  };
}

/** Lines for a person: one per fact, what became of the journal first. */
function recoverLines(report: RecoverReport): string[] {
  const { deliveries, adopted, tokens, exclusions, damaged, notes, setAside } = report;
  return [
    verdict(report),
    ...(setAside === null ? [] : [`What was left of the old one is kept in ${setAside}.`]),
    `It holds ${deliveries} deliveries, ${tokens} tokens and ${exclusions} deliveries set aside.`,
    ...(report.journal === 'anew' ? [] : broughtIn(adopted, notes)),
    ...named(
      damaged,
      'bodies are damaged and are no deliveries now',
      ({ path, reason }) => `${path}: ${reason}`,
    ),
    ...named(
      notes.unreadable,
      'lines of the notes in the archive cannot be read',
      ({ file, line, reason }) => `${file}, line ${line}: ${reason}`,
    ),
    ...(report.journal === 'completed'
      ? []
      : ['The read model is built anew by the service at its next start, or by "healthlog rebuild".']),
  ];
}

function verdict({ journal, damage }: RecoverReport): string {
  switch (journal) {
    case 'completed':
      return 'The journal is sound; it was not replaced.';
    case 'finished':
      return 'A recovery that was cut short is finished: the journal was made anew from the archive.';
    case 'anew':
      return damage === null
        ? 'There was no journal: it was made anew from the archive.'
        : `The journal could not be used (${damage}): it was made anew from the archive.`;
  }
}

function broughtIn(adopted: number, { tokens, exclusions }: NotesReconciled): string[] {
  const facts: [number, string][] = [
    [adopted, 'deliveries that it lacked were taken in from the archive'],
    [tokens.restored, 'tokens that it lacked were taken in'],
    [tokens.revoked, 'tokens that were revoked are so again'],
    [exclusions.excluded, 'deliveries are set aside again'],
    [exclusions.included, 'deliveries that had been taken back are so again'],
    [tokens.noted + exclusions.noted, 'events that the notes in the archive lacked were written there'],
  ];
  const lines = facts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}.`);
  return lines.length > 0 ? lines : ['The archive has nothing that it lacked.'];
}
