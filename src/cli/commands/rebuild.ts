/** `healthlog rebuild` and `healthlog verify`: the read model once more from the archive, and the proof. */
import { SingleBar } from 'cli-progress';
import type { RebuildProgress } from '../../projections/meter.js';
import { rebuild } from '../../projections/rebuild.js';
import { rebuildLines } from '../../projections/rebuild-text.js';
import type { Context } from '../context.js';
import { duration, print, printJson, say } from '../output.js';

export interface RebuildFlags {
  readonly dryRun: boolean;
  readonly acceptLoss: boolean;
}

export async function runRebuild(
  { folder, clock, json }: Context,
  { dryRun, acceptLoss }: RebuildFlags,
): Promise<number> {
  const cancel = cancelling();
  const bar = progressBar(!json && process.stderr.isTTY);
  try {
    const report = await rebuild({
      folder,
      clock,
      dryRun,
      acceptLoss,
      cancelled: cancel.asked,
      onProgress: bar.show,
      onFault: (id, error) =>
        say(
          `A fault in healthlog at delivery ${id}: ${error instanceof Error ? error.stack : String(error)}`,
        ),
    });
    bar.end();
    if (json) {
      const { exitCode, ...rest } = report;
      printJson({ exit_code: exitCode, ...rest });
    } else for (const line of rebuildLines(report, dryRun)) print(line);
    return report.exitCode;
  } finally {
    bar.end();
    cancel.end();
  }
}

/** Folding is synchronous, so a signal is only seen between two deliveries: the flag is looked at there. */
function cancelling(): { asked: () => boolean; end: () => void } {
  let asked = false;
  const ask = (): void => {
    asked = true;
  };
  process.once('SIGINT', ask);
  process.once('SIGTERM', ask);
  return {
    asked: () => asked,
    end: () => {
      process.off('SIGINT', ask);
      process.off('SIGTERM', ask);
    },
  };
}

function progressBar(shown: boolean): { show: (progress: RebuildProgress) => void; end: () => void } {
  if (!shown) return { show: () => undefined, end: () => undefined };
  const bar = new SingleBar({
    format: '{bar} {value}/{total} deliveries · {points} points · {rate} points/s · {left}',
    hideCursor: true,
    clearOnComplete: true,
    stream: process.stderr,
  });
  let started = false;
  return {
    show: ({ done, total, points, pointsPerSecond, secondsLeft }) => {
      const payload = {
        points,
        rate: Math.round(pointsPerSecond),
        left: secondsLeft === null ? '' : `${duration(secondsLeft)} left`,
      };
      if (!started) bar.start(total, done, payload);
      else bar.update(done, payload);
      started = true;
    },
    end: () => {
      if (started) bar.stop();
      started = false;
    },
  };
}
