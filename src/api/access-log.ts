/**
 * Access log: one line per request, written when its connection is done with it, so that it tells what really
 * happened: answered, answer not delivered, aborted before the last byte. Never a query string, a token, a body.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RunnerLog } from '../projections/thread.js';

/** What the ingest route adds to its line. */
export interface IngestNote {
  /** Id of the delivery that was recorded. */
  readonly delivery?: string;
  readonly bodyBytes?: number;
  /** The client went away before its last byte, after so many. */
  readonly abortedAfterBytes?: number;
}

/** What becomes of an upload whose connection may be gone long before it is recorded. */
const notes = new WeakMap<FastifyRequest, Promise<IngestNote>>();

/** The line of this request waits for the note, so that it tells what came of the upload. */
export function noteIngest(request: FastifyRequest, note: Promise<IngestNote>): void {
  notes.set(request, note);
}

export function logWhenClosed(
  request: FastifyRequest,
  reply: FastifyReply,
  log: RunnerLog,
  isStopping: () => boolean,
): void {
  const startedMs = performance.now();
  reply.raw.once('close', async () => {
    const note = (await notes.get(request)) ?? {};
    const finished = reply.raw.writableFinished;
    const fields = {
      method: request.method,
      path: pathOf(request.url),
      ...(finished ? { status: reply.raw.statusCode } : {}),
      ms: Math.round(performance.now() - startedMs),
      remote: request.ip,
      ...note,
    };
    if (note.abortedAfterBytes !== undefined) log.warn(fields, isStopping() ? CUT_BY_US : CUT_BY_CLIENT);
    else if (finished) log.info(fields, 'request');
    else if (note.delivery !== undefined) log.warn(fields, 'recorded, answer not delivered');
    else log.warn(fields, 'answer not delivered');
  });
}

const CUT_BY_CLIENT = 'aborted by the client before its last byte; nothing was stored';
const CUT_BY_US = 'aborted because the service stops; nothing was stored';

/** Users put tokens and targets into the query string. */
export function pathOf(url: string): string {
  const end = url.search(/[?#;]/);
  return end < 0 ? url : url.slice(0, end);
}
