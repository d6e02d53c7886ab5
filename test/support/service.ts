/** Service: the compiled program as users run it, in a process of its own, on the loopback address. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { tmpData } from './tmp.js';

const PROGRAM = fileURLToPath(new URL('../../bin/healthlog', import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command to its end. */
export function healthlog(args: readonly string[], env: Record<string, string> = {}): Outcome {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 * 1024,
    timeout: 60_000,
  });
  return { code: status, stdout, stderr };
}

export interface ServiceOptions {
  readonly data?: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  /** Where its log goes instead: a file that is open for writing. */
  readonly stderr?: number;
}

export class Service {
  readonly data: string;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';
  #url = '';

  private constructor(data: string, child: ChildProcess) {
    this.data = data;
    this.#child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
  }

  /** Starts it and waits for its line `listening on …`. Throws with its stderr when it ends before. */
  static async start(options: ServiceOptions = {}): Promise<Service> {
    const data = options.data ?? tmpData().root;
    const child = spawn(
      process.execPath,
      [PROGRAM, 'serve', '--data', data, '--host', '127.0.0.1', '--port', '0', ...(options.args ?? [])],
      { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', options.stderr ?? 'pipe'] },
    );
    const service = new Service(data, child);
    running.add(service);
    await service.waitForOutput(/^listening on (http:\S+)$/m, 'stdout');
    service.#url = /^listening on (http:\S+)$/m.exec(service.#stdout)?.[1] ?? '';
    return service;
  }

  get url(): string {
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.#url).port);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** The token that the first start printed. */
  token(kind: 'phone' | 'reading'): string {
    const match = new RegExp(`^token for (?:the )?${kind}[^:]*: (\\S+)$`, 'm').exec(this.#stdout);
    if (match?.[1] === undefined) throw new Error(`no token for ${kind} was printed`);
    return match[1];
  }

  /** Waits until the output holds what is looked for; never for a time. */
  async waitForOutput(pattern: RegExp, stream: 'stdout' | 'stderr' = 'stderr'): Promise<void> {
    const source = stream === 'stdout' ? this.#child.stdout : this.#child.stderr;
    for (;;) {
      if (pattern.test(stream === 'stdout' ? this.#stdout : this.#stderr)) return;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) {
        throw new Error(
          `the service ended (${this.#child.exitCode ?? this.#child.signalCode}):\n${this.#stderr}`,
        );
      }
      await Promise.race([once(source ?? process.stdin, 'data'), once(this.#child, 'close')]);
    }
  }

  /** Sends the signal and waits for the end. */
  async stop(
    signal: NodeJS.Signals = 'SIGTERM',
  ): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.#child.kill(signal);
    return this.ended();
  }

  /** Waits for the end without asking for it. */
  async ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    running.delete(this);
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'close');
    return { code: this.#child.exitCode, signal: this.#child.signalCode };
  }

  post(body: string | Buffer, headers: Record<string, string> = {}, query = ''): Promise<Response> {
    return fetch(`${this.#url}/v1/ingest${query}`, {
      method: 'POST',
      body: typeof body === 'string' ? body : new Uint8Array(body),
      headers: {
        authorization: `Bearer ${this.token('phone')}`,
        'content-type': 'application/json',
        ...headers,
      },
    });
  }

  async get(path: string, token = this.token('reading')): Promise<{ status: number; body: unknown }> {
    const response = await fetch(`${this.#url}${path}`, { headers: { 'x-api-key': token } });
    return { status: response.status, body: await response.json() };
  }
}

const running = new Set<Service>();

/** Ends what a test left running; for `afterEach`. */
export async function stopAll(): Promise<void> {
  for (const service of [...running]) await service.stop('SIGKILL');
}
