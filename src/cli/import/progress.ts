/** Progress of an import, on a terminal only: first the files that go in, then the deliveries that get their outcome. */
import { SingleBar } from 'cli-progress';

export interface ImportProgress {
  files(done: number, total: number): void;
  folded(done: number, total: number): void;
  end(): void;
}

const SILENT: ImportProgress = { files: () => undefined, folded: () => undefined, end: () => undefined };

export function importProgress(shown: boolean): ImportProgress {
  if (!shown) return SILENT;
  let bar: SingleBar | null = null;
  let what = '';
  const end = (): void => {
    bar?.stop();
    bar = null;
  };
  const show = (name: string, done: number, total: number): void => {
    if (name !== what) end();
    what = name;
    if (bar === null) {
      bar = new SingleBar({
        format: `{bar} {value}/{total} ${name}`,
        hideCursor: true,
        clearOnComplete: true,
        stream: process.stderr,
      });
      bar.start(total, done);
      return;
    }
    bar.setTotal(total);
    bar.update(done);
  };
  return {
    files: (done, total) => show('files taken in', done, total),
    folded: (done, total) => show('deliveries folded', done, total),
    end,
  };
}
