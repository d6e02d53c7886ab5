/**
 * `healthlog import`: old files into the journal, through the accept code of the service, beside a running one or
 * without one.
 *
 * Find the files → take them in, one after another → wait until they have their outcomes, folding here when nobody
 * else does → tell. SIGINT and SIGTERM end it after the file at hand; a second signal ends the process at once, and
 * what that leaves in `archive/incoming` goes with the next start.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Acceptor } from '../../journal/accept.js';
import { FOLD_BODY_BYTES_MAX } from '../../projections/runner.js';
import type { Context } from '../context.js';
import { type Found, findFiles } from '../import/find.js';
import { type ImportFlags, readFlags, type Said } from '../import/flags.js';
import { Outcomes } from '../import/outcomes.js';
import { becomeOwner } from '../import/owner.js';
import { jsonLine, jsonSummary, Report } from '../import/report.js';
import { reportLines } from '../import/report-text.js';
import { takeAll } from '../import/take.js';
import { waitForOutcomes } from '../import/wait.js';
import { print, printJson, say } from '../output.js';
import { type Progress, progressOn } from '../progress.js';
import { stopWish } from '../signals.js';

/** Unlike a phone, a person who imports can wait for another program to let go of the journal. */
const BUSY_WAIT_MS = 60_000;

export async function importFiles(
  context: Context,
  args: readonly string[],
  flags: ImportFlags,
): Promise<number> {
  const said = readFlags(flags, context.clock.now());
  const found = findFiles(args, context.folder.root);
  const stop = stopWish(() => say('Ending after the file at hand. A second signal ends at once.'));
  const progress = progressOn(process.stderr, !context.json);
  const report = new Report(flags.wait);
  const outcomes = new Outcomes(context.folder, (one) => {
    report.addOutcome(one);
    if (context.json) printJson(jsonLine(one));
  });
  let clean = true;
  // What is in and what is not is told even when something fails that nobody expected.
  let failure: { readonly error: unknown } | null = null;
  try {
    await takeIn({ context, found, said, flags, report, outcomes, progress, stopped: stop.asked });
    const awaited = outcomes.waiting;
    if (!flags.wait) outcomes.look(true);
    else if (awaited > 0) {
      const onLook = (): void => progress.show('deliveries folded', awaited - outcomes.waiting, awaited);
      const end = await waitForOutcomes({ context, outcomes, stopped: stop.asked, onLook });
      report.pendingReason = end.reason;
      clean = end.clean;
    }
  } catch (error) {
    failure = { error };
  } finally {
    progress.end();
    stop.end();
  }
  for (const one of outcomes.giveUp()) {
    report.addOutcome(one);
    if (context.json) printJson(jsonLine(one));
  }
  report.cancelled = stop.asked() && report.isUnfinished;
  if (failure !== null && report.isEmpty) throw failure.error;
  if (context.json) printJson(jsonSummary(report));
  else for (const line of reportLines(report)) print(line);
  if (failure !== null) throw failure.error;
  // A fold that did not stop in time goes with the process, all or nothing; its delivery stays pending.
  if (!clean) process.exit(report.exitCode);
  return report.exitCode;
}

interface TakeIn {
  readonly context: Context;
  readonly found: readonly Found[];
  readonly said: Said;
  readonly flags: ImportFlags;
  readonly report: Report;
  readonly outcomes: Outcomes;
  readonly progress: Progress;
  readonly stopped: () => boolean;
}

async function takeIn({
  context,
  found,
  said,
  flags,
  report,
  outcomes,
  progress,
  stopped,
}: TakeIn): Promise<void> {
  const { clock, json } = context;
  const files = found.filter(({ kind }) => kind === 'file' || kind === 'stream').length;
  const tell = (one: Parameters<Report['add']>[0]): void => {
    report.add(one);
    if (json) printJson(jsonLine(one));
  };
  // Opened when it is needed: a misspelt name makes no data folder.
  const opened: { acceptor: Acceptor | null } = { acceptor: null };
  let done = 0;
  try {
    for await (const taken of takeAll(found, {
      acceptor: () => {
        opened.acceptor ??= openAcceptor(context);
        return opened.acceptor;
      },
      said,
      again: flags.again,
      stopped,
      stdin: process.stdin,
      now: () => clock.now(),
      bytesMax: FOLD_BODY_BYTES_MAX,
      isArchived: ({ archivePath }) => existsSync(join(context.folder.archive, archivePath)),
    })) {
      if (taken.result !== 'left_out') done += 1;
      progress.show('files taken in', done, Math.max(done, files));
      if ('row' in taken) outcomes.await(taken);
      else tell(taken);
    }
  } finally {
    await opened.acceptor?.close();
  }
}

/** One for the whole run. What a crash left behind comes first, when that is nobody else's business. */
function openAcceptor(context: Context): Acceptor {
  becomeOwner(context)?.release();
  return new Acceptor({
    folder: context.folder,
    clock: context.clock,
    bodyBytesMax: FOLD_BODY_BYTES_MAX,
    busyWaitMs: BUSY_WAIT_MS,
    onAccepted: () => undefined,
    onClockSkew: (aheadMicros) =>
      say(
        `The clock of this machine was set back by ${Math.round(aheadMicros / 1e6)} seconds; the order of deliveries is kept.`,
      ),
  });
}
