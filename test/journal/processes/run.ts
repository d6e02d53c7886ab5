/** Starts one of the small programs in this folder on the compiled journal, as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const JOURNAL = new URL('../../../dist/journal/', import.meta.url).href;

export interface Program {
  readonly process: ChildProcess;
  /** The next line it prints; throws when it ends instead. */
  line(): Promise<string>;
  /** Waits for its end; throws when it failed. */
  ended(): Promise<void>;
}

export function program(name: string, ...args: string[]): Program {
  const script = fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
  const child = spawn(process.execPath, ['--expose-gc', script, JOURNAL, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exit = once(child, 'exit');
  return {
    process: child,
    line: async () => {
      const next = await lines.next();
      if (next.done) throw new Error(`${name} ended without another line`);
      return next.value;
    },
    ended: async () => {
      const [code] = await exit;
      if (code !== 0) throw new Error(`${name} ended with ${String(code)}`);
    },
  };
}
