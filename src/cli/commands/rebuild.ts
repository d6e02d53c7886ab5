/** `healthlog rebuild` and `healthlog verify`: the read model once more from the archive, and the proof. */
import type { RebuildProgress } from '../../projections/meter.js';
import { rebuild } from '../../projections/rebuild.js';
import { rebuildLines } from '../../projections/rebuild-text.js';
import type { Context } from '../context.js';
import { duration, print, printJson, say } from '../output.js';
import { type Progress, progressOn } from '../progress.js';
import { stopWish } from '../signals.js';

export interface RebuildFlags {
  readonly dryRun: boolean;
  readonly acceptLoss: boolean;
}

export async function runRebuild(
  { folder, clock, json }: Context,
  { dryRun, acceptLoss }: RebuildFlags,
): Promise<number> {
  // Folding is synchronous: a signal is seen between two deliveries.
  const cancel = stopWish();
  const progress = progressOn(process.stderr, !json);
  try {
    const report = await rebuild({
      folder,
      clock,
      dryRun,
      acceptLoss,
      cancelled: cancel.asked,
      onProgress: (now) => show(progress, now),
      onFault: (id, error) =>
        say(
          `A fault in healthlog at delivery ${id}: ${error instanceof Error ? error.stack : String(error)}`,
        ),
    });
    progress.end();
    if (json) {
      const { exitCode, ...rest } = report;
      printJson({ exit_code: exitCode, ...rest });
    } else for (const line of rebuildLines(report, dryRun)) print(line);
    return report.exitCode;
  } finally {
    progress.end();
    cancel.end();
  }
}

function show(
  progress: Progress,
  { done, total, points, pointsPerSecond, secondsLeft }: RebuildProgress,
): void {
  progress.show('deliveries · {points} points · {rate} points/s · {left}', done, total, {
    points: String(points),
    rate: String(Math.round(pointsPerSecond)),
    left: secondsLeft === null ? '' : `${duration(secondsLeft)} left`,
  });
}
