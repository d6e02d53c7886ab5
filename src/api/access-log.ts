/**
 * Access log: one line per request, written when its connection is done with it, so that it tells what really
 * happened: answered, answer not delivered, aborted before the last byte. Never a query string, a token, a body.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RunnerLog } from '../projections/thread.js';
import { clientAddress } from './client.js';
import { pathOf } from './url.js';

/** What the ingest route adds to its line. */
export interface IngestNote {
  /** Id of the delivery that was recorded. */
  readonly delivery?: string;
  readonly bodyBytes?: number;
  /** The client went away before its last byte, after so many. */
  readonly abortedAfterBytes?: number;
  /** The upload was refused in the middle, after so many bytes. */
  readonly refusedAfterBytes?: number;
  /** The upload was ended because the stop budget had run out. */
  readonly isCutByStop?: true;
}

/** What becomes of an upload whose connection may be gone long before it is recorded. */
const notes = new WeakMap<FastifyRequest, Promise<IngestNote>>();

/** The line of this request waits for the note, so that it tells what came of the upload. */
export function noteIngest(request: FastifyRequest, note: Promise<IngestNote>): void {
  notes.set(request, note);
}

const unremarkable = new WeakSet<FastifyRequest>();

/** One of many of its kind, which are reported together: its own line would only fill the disk. */
export function logQuietly(request: FastifyRequest): void {
  unremarkable.add(request);
}

export function logWhenClosed(request: FastifyRequest, reply: FastifyReply, log: RunnerLog): void {
  const startedMs = performance.now();
  // A connection that is gone has no address any more.
  const remote = clientAddress(request);
  const { socket } = request.raw;
  reply.raw.once('close', async () => {
    const finished = reply.raw.writableFinished;
    const isHalfClosed = socket.readableEnded;
    const { isCutByStop, ...note } = (await notes.get(request)) ?? {};
    const fields = {
      method: request.method,
      path: pathOf(request),
      // Who went away in the middle is told as well, in case it still listens, but was not answered.
      ...(finished && note.abortedAfterBytes === undefined ? { status: reply.raw.statusCode } : {}),
      ms: Math.round(performance.now() - startedMs),
      remote,
      ...note,
    };
    if (isCutByStop === true) log.warn(fields, CUT_BY_US);
    else if (note.abortedAfterBytes !== undefined) log.warn(fields, CUT_BY_CLIENT);
    else if (note.delivery !== undefined && isHalfClosed) log.warn({ ...fields, half_closed: true }, UNREAD);
    else if (note.delivery !== undefined && !finished) log.warn(fields, UNREAD);
    else if (finished && !unremarkable.has(request)) log.info(fields, 'request');
    else if (!finished) log.warn(fields, 'answer not delivered');
  });
}

const CUT_BY_CLIENT = 'aborted by the client before its last byte; nothing was stored';
const CUT_BY_US = 'aborted because the service stops; nothing was stored';
/** With `half_closed`: the client may have shut its sending side only, and have read the answer; nobody can tell from here. */
const UNREAD = 'recorded, answer not delivered';
