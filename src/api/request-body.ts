/**
 * Request body: the bytes of one upload on their way from the connection to the archive.
 *
 * It stands between the two so that an upload can be ended while its connection lives on: whoever ends it says
 * why, the reading side fails with exactly that, and the client can still be told. It keeps the two budgets of an
 * upload: the whole of it, and the longest pause between two bytes. A pause counts only while bytes are wanted;
 * when the disk is slower than the phone that is not the phone's fault.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { HealthlogError } from '../journal/errors.js';

export interface UploadBudgets {
  /** For the whole upload, from the end of its headers. */
  readonly uploadTimeoutMs: number;
  /** For the next byte. */
  readonly stallTimeoutMs: number;
}

const HIGH_WATER_BYTES = 256 * 1024;

/** The upload of a request, while it is read. */
const bodies = new WeakMap<IncomingMessage, RequestBody>();
/** What went wrong with a message; it may happen before anybody reads its body. */
const failures = new WeakMap<IncomingMessage, HealthlogError>();

/** Nothing more of this message can be understood: whoever reads its body fails with `error`. */
export function failBody(message: IncomingMessage, error: HealthlogError): void {
  failures.set(message, error);
  bodies.get(message)?.destroy(error);
}

/** Clients that were told to go on. */
const invited = new WeakSet<IncomingMessage>();

/** Does the client wait to be told that its body is wanted? */
export function awaitsContinue(message: IncomingMessage): boolean {
  const { headers, httpVersionMinor, complete } = message;
  if (complete || httpVersionMinor === 0 || invited.has(message)) return false;
  return /^100-continue$/i.test(headers.expect?.trim() ?? '');
}

export function invite(message: IncomingMessage, response: ServerResponse): void {
  invited.add(message);
  response.writeContinue();
}

export class RequestBody extends Readable {
  readonly #message: IncomingMessage;
  readonly #whole: NodeJS.Timeout;
  readonly #pause: NodeJS.Timeout;
  #isWanted = true;
  receivedBytes = 0;

  constructor(message: IncomingMessage, response: ServerResponse, budgets: UploadBudgets) {
    super({ highWaterMark: HIGH_WATER_BYTES });
    const { uploadTimeoutMs, stallTimeoutMs } = budgets;
    this.#message = message;
    this.#whole = setTimeout(() => this.destroy(new HealthlogError('timed_out')), uploadTimeoutMs);
    this.#pause = setTimeout(() => this.#stalled(stallTimeoutMs), stallTimeoutMs);
    message.on('data', this.#take);
    message.once('end', this.#finish);
    message.once('close', this.#cut);
    bodies.set(message, this);
    // The reading side hears of a failure by itself; after it has stopped reading nobody has to.
    this.on('error', () => undefined);
    const failure = failures.get(message);
    if (failure !== undefined) {
      this.receivedBytes = message.readableLength;
      this.destroy(failure);
    } else if (message.destroyed) this.#cut();
    // Asked for only now: a request that is refused for its headers need not send its body.
    else if (awaitsContinue(message)) invite(message, response);
  }

  override _read(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#pause.refresh();
    this.#message.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#detach();
    done(error);
  }

  readonly #take = (chunk: Buffer): void => {
    this.receivedBytes += chunk.length;
    this.#pause.refresh();
    if (this.push(chunk)) return;
    this.#isWanted = false;
    this.#message.pause();
  };

  readonly #finish = (): void => {
    this.#detach();
    this.push(null);
  };

  readonly #cut = (): void => {
    this.destroy(new Error('the connection was closed in the middle of the body'));
  };

  #stalled(limitMs: number): void {
    if (this.#isWanted)
      this.destroy(new HealthlogError('stalled', { limit_s: Math.round(limitMs / 100) / 10 }));
    else this.#pause.refresh();
  }

  #detach(): void {
    clearTimeout(this.#whole);
    clearTimeout(this.#pause);
    this.#message.removeListener('data', this.#take);
    this.#message.removeListener('end', this.#finish);
    this.#message.removeListener('close', this.#cut);
    bodies.delete(this.#message);
  }
}
