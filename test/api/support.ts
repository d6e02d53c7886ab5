/**
 * The HTTP side in this process: real sockets, acceptor, journal, fold and reader on a fresh data folder, with
 * limits that a test makes small and a disk that it can make fail. What is waited for is an event, never a time.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { type ApiDeps, type ApiServer, createApp } from '../../src/api/app.js';
import { type ApiLimits, FIXED } from '../../src/api/limits.js';
import { Reader } from '../../src/api/reader.js';
import { Acceptor, type AcceptorDeps } from '../../src/journal/accept.js';
import { archivePaths } from '../../src/journal/archive-walk.js';
import { systemClock } from '../../src/journal/clock.js';
import { nodeFiles } from '../../src/journal/files.js';
import type { DataFolder } from '../../src/journal/folder.js';
import { Journal } from '../../src/journal/store.js';
import { type Scope, TokenStore } from '../../src/journal/tokens.js';
import { makeFirstGeneration } from '../../src/projections/generations.js';
import { startRunner } from '../../src/projections/thread.js';
import { tmpData } from '../support/tmp.js';

export const BODY = '{"data":{"metrics":[]}}';

/** Long enough that no test meets one of them by accident. */
export const LIMITS: ApiLimits = {
  ...FIXED,
  bodyBytesMax: 1_000_000,
  uploadsMax: 64,
  uploadTimeoutMs: 300_000,
  stallTimeoutMs: 60_000,
  requestTimeoutMs: 30_000,
};

export type ApiOptions = Partial<Pick<ApiDeps, 'trustedProxies' | 'basePath' | 'slowdown'>> & {
  readonly limits?: Partial<ApiLimits>;
  readonly files?: AcceptorDeps['files'];
  readonly busyWaitMs?: number;
};

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
  readonly [field: string]: unknown;
}

export class Api {
  readonly folder: DataFolder = tmpData();
  readonly lines: LogLine[] = [];
  readonly journal: Journal;
  readonly tokens: TokenStore;
  readonly #server: ApiServer;
  readonly #close: () => Promise<void>;
  #heard: (() => void)[] = [];
  port = 0;

  private constructor({ limits, files = nodeFiles, busyWaitMs = 10_000, ...options }: ApiOptions) {
    const { folder } = this;
    this.journal = Journal.open(folder, 'write');
    makeFirstGeneration(folder, this.journal.meta().epoch);
    this.tokens = new TokenStore(this.journal, folder, nodeFiles, systemClock);
    const hear = (level: LogLine['level']) => (fields: object, text: string) => {
      this.lines.push({ ...fields, level, text });
      for (const heard of this.#heard.splice(0)) heard();
    };
    const log = { info: hear('info'), warn: hear('warn'), error: hear('error') };
    const runner = startRunner({ folder, log });
    const all = { ...LIMITS, ...limits };
    const acceptor = new Acceptor({
      folder,
      clock: systemClock,
      files,
      busyWaitMs,
      bodyBytesMax: all.bodyBytesMax,
      onAccepted: () => runner.wake(),
    });
    const reader = new Reader({ folder, generationCounter: runner.generationCounter, log });
    this.#server = createApp({
      acceptor,
      tokens: this.tokens,
      runner,
      reader,
      log,
      limits: all,
      trustedProxies: null,
      basePath: null,
      ...options,
    });
    this.#close = async () => {
      await runner.stop(60_000);
      await acceptor.close();
      await reader.stop();
      this.journal.close();
    };
  }

  /** Started, and stopped when the test (or, given `later`, what that registers) has finished. */
  static async start(
    options: ApiOptions = {},
    later: (end: () => Promise<void>) => void = onTestFinished,
  ): Promise<Api> {
    const api = new Api(options);
    later(async () => {
      await api.stop(0);
      await api.#close();
    });
    api.port = (await api.#server.listen('127.0.0.1', 0)).port;
    return api;
  }

  stop(budgetMs: number): Promise<boolean> {
    return this.#server.stop(budgetMs);
  }

  /** A new token. */
  token(scope: Scope = 'ingest', profile = 'me'): string {
    return this.tokens.add({ label: `${scope}-${this.tokens.list().length}`, scope, profile });
  }

  /** The first line of the log that fits, waited for if need be. */
  async line(fits: (line: LogLine) => boolean): Promise<LogLine> {
    for (;;) {
      const found = this.lines.find(fits);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#heard.push(resolve));
    }
  }

  /** What lies on the disk: journal rows, archive files, uploads in progress. */
  onDisk(): { rows: number; files: number; incoming: number } {
    return {
      rows: this.journal.count(),
      files: [...archivePaths(this.folder, nodeFiles)].length,
      incoming: readdirSync(this.folder.incoming).length,
    };
  }

  open(): Client {
    return new Client(this.port);
  }

  /** Sends the bytes on a connection of their own and gives everything that comes back until it is closed. */
  async exchange(...parts: readonly (string | Buffer)[]): Promise<Answer[]> {
    const client = this.open();
    for (const part of parts) client.send(part);
    return client.untilClosed();
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Splits what came on a connection into answers; an answer that is not whole is left out. */
export function answersIn(received: Buffer, isHead = false): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; ; ) {
    const end = received.indexOf('\r\n\r\n', at);
    if (end < 0) return answers;
    const [first = '', ...lines] = received.subarray(at, end).toString('latin1').split('\r\n');
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1]);
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const length = isHead || status < 200 || status === 204 ? 0 : Number(headers['content-length'] ?? 0);
    const from = end + 4;
    if (from + length > received.length) return answers;
    answers.push({ status, headers, body: received.subarray(from, from + length).toString() });
    at = from + length;
  }
}

/** A raw connection. */
export class Client {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];
  isClosed = false;

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (chunk) => this.#chunks.push(chunk));
    // A reset is one of the ways in which a connection ends.
    this.socket.on('error', () => undefined);
    this.socket.once('end', () => this.socket.end());
    this.socket.once('close', () => {
      this.isClosed = true;
    });
    onTestFinished(() => void this.socket.destroy());
  }

  send(bytes: string | Buffer): this {
    this.socket.write(bytes);
    return this;
  }

  received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  answers(): Answer[] {
    return answersIn(this.received());
  }

  /** Waits for the next bytes, or the end. */
  async more(): Promise<void> {
    if (this.isClosed) throw new Error(`closed after ${JSON.stringify(this.received().toString())}`);
    await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')]);
  }

  /** Waits until so many whole answers are there. Interim ones (100) count. */
  async answer(count = 1): Promise<Answer> {
    for (;;) {
      const answer = this.answers()[count - 1];
      if (answer !== undefined) return answer;
      await this.more();
    }
  }

  async untilClosed(): Promise<Answer[]> {
    if (!this.isClosed) await once(this.socket, 'close');
    return this.answers();
  }
}

/** The head of a request, in lines. `Host` is added. */
export function head(first: string, ...lines: readonly string[]): string {
  return [`${first} HTTP/1.1`, 'Host: localhost', ...lines, '', ''].join('\r\n');
}

/** A whole POST of a delivery. */
export function post(
  token: string,
  body: string | Buffer = BODY,
  { path = '/v1/ingest', headers = [] }: { path?: string; headers?: readonly string[] } = {},
): Buffer {
  const bytes = Buffer.from(body);
  const lines = [`Authorization: Bearer ${token}`, `Content-Length: ${bytes.length}`, ...headers];
  return Buffer.concat([Buffer.from(head(`POST ${path}`, ...lines)), bytes]);
}
