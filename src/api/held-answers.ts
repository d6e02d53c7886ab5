/**
 * Held answers: refusals that are kept back for a while (slowdown.ts). How many is bounded, because each keeps a
 * connection; a client that goes away and a service that stops end the waiting at once.
 */
import type { ServerResponse } from 'node:http';

export class HeldAnswers {
  readonly #max: number;
  readonly #stopping: AbortSignal;
  #held = 0;

  constructor(max: number, stopping: AbortSignal) {
    this.#max = max;
    this.#stopping = stopping;
  }

  /** @returns at once, and false, when as many as allowed are held already */
  async hold(response: ServerResponse, ms: number): Promise<boolean> {
    if (this.#held >= this.#max) return false;
    if (this.#stopping.aborted) return true;
    this.#held += 1;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#stopping.removeEventListener('abort', done);
        response.removeListener('close', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#stopping.addEventListener('abort', done);
      response.once('close', done);
    });
    this.#held -= 1;
    return true;
  }
}
