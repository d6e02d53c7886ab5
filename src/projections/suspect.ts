/**
 * Suspect: the delivery a worker is folding, noted on disk before the fold begins, so that a body that kills
 * its worker is recognised instead of killing the next one too.
 *
 * The note is one short record, overwritten in place and blanked after the fold; it needs no fsync, since a
 * power cut is nobody's fault. A note found at start means that the fold never ended. Two deaths of a worker in
 * a row on one delivery condemn it: `too_large` when the worker ran out of memory, `broken` otherwise. A death
 * of the whole process may as well have been somebody's kill, so it takes five of those.
 */
import { closeSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { platformCode } from '../journal/errors.js';
import { type DeliveryId, isDeliveryId } from '../journal/position.js';
import type { Attempt } from './outcome.js';

const WORKER_DEATHS_MAX = 2;
const PROCESS_DEATHS_MAX = 5;

export type WorkerDeath = 'memory' | 'watchdog' | 'other';

const noteSchema = z.object({
  id: z.string().refine(isDeliveryId),
  pid: z.number(),
  workerDeaths: z.number(),
  processDeaths: z.number(),
});
type Note = z.infer<typeof noteSchema>;

export class Suspect {
  readonly #handle: number;
  readonly #pid: number;
  #found: (Note & { readonly lastDeath: WorkerDeath | null }) | null;

  /** @param lastDeath how the worker before this one ended, when it belonged to this process */
  constructor(path: string, pid: number, lastDeath: WorkerDeath | null) {
    this.#pid = pid;
    mkdirSync(dirname(path), { recursive: true });
    const note = readNote(path);
    const ours = note?.pid === pid && lastDeath !== null;
    this.#found =
      note === null
        ? null
        : {
            ...note,
            workerDeaths: note.workerDeaths + (ours ? 1 : 0),
            processDeaths: note.processDeaths + (ours ? 0 : 1),
            lastDeath: ours ? lastDeath : null,
          };
    this.#handle = openSync(path, 'a+');
    if (this.#found !== null) this.#write(this.#found);
  }

  /** The attempt to record instead of folding this delivery once more; null when it may be tried. */
  verdict(id: DeliveryId): Attempt | null {
    const found = this.#found;
    if (found === null || found.id !== id) return null;
    if (found.workerDeaths < WORKER_DEATHS_MAX && found.processDeaths < PROCESS_DEATHS_MAX) return null;
    const memory = found.lastDeath === 'memory';
    const reason = memory
      ? 'folding it ran out of memory twice'
      : `folding it ended its worker ${found.workerDeaths} times and the process ${found.processDeaths} times in a row`;
    return { type: 'Failed', data: { class: memory ? 'too_large' : 'broken', reasons: [reason] } };
  }

  before(id: DeliveryId): void {
    const known = this.#found?.id === id ? this.#found : { workerDeaths: 0, processDeaths: 0 };
    this.#write({ id, pid: this.#pid, workerDeaths: known.workerDeaths, processDeaths: known.processDeaths });
  }

  after(id: DeliveryId): void {
    if (this.#found?.id === id) this.#found = null;
    ftruncateSync(this.#handle, 0);
  }

  close(): void {
    closeSync(this.#handle);
  }

  #write({ id, workerDeaths, processDeaths }: Note): void {
    ftruncateSync(this.#handle, 0);
    writeSync(this.#handle, JSON.stringify({ id, pid: this.#pid, workerDeaths, processDeaths }));
  }
}

function readNote(path: string): Note | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (platformCode(error) === 'ENOENT') return null;
    throw error;
  }
  if (text === '') return null;
  try {
    return noteSchema.parse(JSON.parse(text));
  } catch {
    // A record cut by a power failure names nobody.
    return null;
  }
}
