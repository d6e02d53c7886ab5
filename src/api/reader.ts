/**
 * Reader: the main thread's handle on the reader thread. Questions go out with a ticket, answers come back as JSON
 * text. A thread that dies is started again; the questions it held are answered with an error.
 */
import type { Worker } from 'node:worker_threads';
import { HealthlogError } from '../journal/errors.js';
import type { DataFolder } from '../journal/folder.js';
import { startThread } from '../journal/thread-url.js';
import type { RunnerLog } from '../projections/thread.js';
import type { ReaderQuestion, ReaderReply, ReaderRequest, ReaderWorkerData } from './reader-protocol.js';

export interface ReaderOptions {
  readonly folder: DataFolder;
  /** Slot 0 rises whenever the live generation is switched. */
  readonly generationCounter: Int32Array;
  readonly log: RunnerLog;
}

interface Waiting {
  readonly resolve: (json: string) => void;
  readonly reject: (error: unknown) => void;
}

/** A thread that dies more often than this within one life of the process is not started again. */
const RESTARTS_MAX = 100;

export class Reader {
  readonly #options: ReaderOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #ticket = 0;
  #restarts = 0;
  #isStopping = false;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** @returns the answer as JSON text. Throws HealthlogError as the question's function does */
  ask(question: ReaderQuestion): Promise<string> {
    if (this.#isStopping) return Promise.reject(new HealthlogError('stopping'));
    const worker = this.#worker ?? this.#start();
    this.#ticket += 1;
    const request: ReaderRequest = { ticket: this.#ticket, question };
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.ticket, { resolve, reject });
      worker.postMessage(request);
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    if (this.#restarts > RESTARTS_MAX) throw new HealthlogError('internal');
    const data: ReaderWorkerData = {
      root: this.#options.folder.root,
      generationCounter: this.#options.generationCounter.buffer as SharedArrayBuffer,
    };
    const worker = startThread(new URL('./reader-thread.js', import.meta.url), {
      workerData: data,
      name: 'healthlog-read',
    });
    worker.on('message', (reply: ReaderReply) => this.#hear(reply));
    worker.on('error', (error) => {
      if (!this.#isStopping)
        this.#options.log.error({ error: error.message, stack: error.stack }, 'the reader thread failed');
    });
    worker.on('exit', () => this.#gone(worker));
    this.#worker = worker;
    return worker;
  }

  #hear(reply: ReaderReply): void {
    const waiting = this.#waiting.get(reply.ticket);
    this.#waiting.delete(reply.ticket);
    if (waiting === undefined) return;
    if ('json' in reply) {
      waiting.resolve(reply.json);
      return;
    }
    const { failure, detail } = reply;
    if (detail !== null)
      this.#options.log.error({ code: failure.code, detail }, 'a question could not be answered');
    waiting.reject(HealthlogError.restored(failure.code, failure.message, failure.hint));
  }

  #gone(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    this.#restarts += 1;
    const error = new HealthlogError(this.#isStopping ? 'stopping' : 'internal');
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
