/** Progress on a terminal, and on a terminal only. A phase has a bar of its own; the next one takes its place. */
import { SingleBar } from 'cli-progress';

export interface Progress {
  /**
   * @param what words behind `{value}/{total}`, with `{names}` for the texts of `more`; other words begin another bar
   */
  show(what: string, done: number, total: number, more?: Readonly<Record<string, string>>): void;
  end(): void;
}

const SILENT: Progress = { show: () => undefined, end: () => undefined };

export function progressOn(stream: NodeJS.WriteStream, shown: boolean): Progress {
  if (!shown || !stream.isTTY) return SILENT;
  let bar: SingleBar | null = null;
  let phase = '';
  const end = (): void => {
    bar?.stop();
    bar = null;
  };
  return {
    show: (what, done, total, more = {}) => {
      if (what !== phase) end();
      phase = what;
      if (bar === null) {
        // The cursor stays: a signal may end the process without a chance to bring it back.
        bar = new SingleBar({ format: `{bar} {value}/{total} ${what}`, clearOnComplete: true, stream });
        bar.start(total, done, more);
        return;
      }
      bar.setTotal(total);
      bar.update(done, more);
    },
    end,
  };
}
