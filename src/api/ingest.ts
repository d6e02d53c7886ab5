/**
 * Ingest: one POST becomes one delivery (docs/contract.md says what the 200 means).
 *
 * Token, scope, content type and declared length are looked at before a byte of the body is; the body is streamed
 * to the archive and never parsed. The commit is detached from the request: once the last byte has arrived the
 * delivery is recorded, whoever still listens. The query string belongs to the user (tokens and targets are in
 * use there, hae-format.md §2.1): only `wait` is looked at.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Acceptor } from '../journal/accept.js';
import type { BodyKind } from '../journal/content-type.js';
import { judgeContentType } from '../journal/content-type.js';
import { HealthlogError } from '../journal/errors.js';
import { keptHeaders } from '../journal/headers.js';
import { formatMicros } from '../journal/position.js';
import { withoutTokens } from '../journal/secrets.js';
import type { JournalRow } from '../journal/store.js';
import { UploadAborted } from '../journal/upload.js';
import type { FoldedNotice, RunnerThread } from '../projections/thread.js';
import { type IngestNote, noteIngest } from './access-log.js';
import type { Gate } from './auth.js';
import { presentedTokens } from './presented-tokens.js';
import { RequestBody, type UploadBudgets } from './request-body.js';
import { ingestQuery, parseQuery } from './schemas.js';

export interface IngestDeps {
  readonly acceptor: Acceptor;
  readonly gate: Gate;
  readonly runner: RunnerThread;
  readonly limits: UploadBudgets & { readonly bodyBytesMax: number; readonly uploadsMax: number };
  /** Aborted when the service stops: nothing new is taken in, and nobody waits for a fold any more. */
  readonly stopping: AbortSignal;
}

interface Judged {
  readonly profile: string;
  readonly contentType: string | null;
  readonly kind: BodyKind;
}

/** The header as it came, before it was taken out of the framework's way. */
const contentTypes = new WeakMap<FastifyRequest, string | null>();

/** The framework would refuse an odd content type by itself; judging it is this file's business. */
export function takeContentType(request: FastifyRequest): void {
  const { headers, headersDistinct } = request.raw;
  // Of a header that was sent twice node keeps the first only.
  const all = headersDistinct['content-type']?.join(', ');
  contentTypes.set(request, all === undefined ? null : withoutTokens(all, presentedTokens(headersDistinct)));
  headers['content-type'] = 'application/octet-stream';
}

export class Ingest {
  readonly #deps: IngestDeps;
  /** Uploads until they are recorded or given up, temporary file and all. */
  readonly #running = new Map<RequestBody, Promise<JournalRow>>();
  #isCut = false;

  constructor(deps: IngestDeps) {
    this.#deps = deps;
  }

  async handle(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { gate, runner, limits, stopping } = this.#deps;
    const { profile } = await gate.admit(request, reply, 'ingest');
    if (stopping.aborted) throw new HealthlogError('stopping');
    const { wait: waitS } = parseQuery(ingestQuery, request.query);
    const contentType = contentTypes.get(request) ?? null;
    const kind = this.#judge(request, contentType);
    if (this.#running.size >= limits.uploadsMax)
      throw new HealthlogError('too_many_uploads', { limit: limits.uploadsMax });
    const body = new RequestBody(request.raw, reply.raw, limits);
    const accepting = this.#accept(request, body, { profile, contentType, kind });
    noteIngest(
      request,
      accepting.then(noteOf, (error: unknown) => this.#noteOfFailure(error, body)),
    );
    let row: JournalRow;
    try {
      row = await accepting;
    } catch (error) {
      if (!(error instanceof UploadAborted)) throw error;
      // Nobody is there to be answered.
      reply.hijack();
      request.raw.socket.destroy();
      return reply;
    }
    // The delivery is safe; a stop does not wait for its fold.
    const notice = waitS === 0 ? null : await runner.waitFolded(row.id, waitS * 1000, stopping);
    return answerOf(row, notice);
  }

  /** Ends what is still being received or waits for the journal: its clients are told that the service stops. */
  cut(): void {
    this.#isCut = true;
    for (const body of this.#running.keys()) body.destroy(new HealthlogError('stopping'));
    this.#deps.acceptor.giveUpWaiting();
  }

  /** Resolves when no upload is under way: each is recorded, or nothing of it is left. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running.values());
  }

  #accept(request: FastifyRequest, body: RequestBody, judged: Judged): Promise<JournalRow> {
    const accepting = this.#receive(request, body, judged).finally(() => {
      this.#running.delete(body);
      body.destroy();
    });
    this.#running.set(body, accepting);
    return accepting;
  }

  async #receive({ raw }: FastifyRequest, body: RequestBody, judged: Judged): Promise<JournalRow> {
    const { profile, contentType, kind } = judged;
    const presented = presentedTokens(raw.headersDistinct);
    const headers = keptHeaders({ ...raw.headers, 'content-type': contentType ?? undefined }, presented);
    return this.#deps.acceptor.accept(body, {
      profile,
      source: 'http',
      contentType,
      contentCoding: headers['content-encoding'] ?? null,
      headers,
      declaredBytes: declaredBytes(raw.headers['content-length']),
      kind,
      complete: () => raw.complete,
    });
  }

  #judge(request: FastifyRequest, contentType: string | null): BodyKind {
    const kind = judgeContentType(contentType ?? undefined);
    if (kind === null)
      throw new HealthlogError('unsupported_type', { type: (contentType ?? '').slice(0, SHOWN_CHARS_MAX) });
    const declared = declaredBytes(request.raw.headers['content-length']);
    const { bodyBytesMax } = this.#deps.limits;
    if (declared !== null && declared > bodyBytesMax)
      throw new HealthlogError('too_large', { limit: bodyBytesMax });
    return kind;
  }

  #noteOfFailure(error: unknown, { receivedBytes }: RequestBody): IngestNote {
    if (error instanceof UploadAborted) return { abortedAfterBytes: error.receivedBytes };
    const code = error instanceof HealthlogError ? error.code : null;
    if (code === 'cut_off') return { abortedAfterBytes: receivedBytes };
    const isCutByStop = this.#isCut && code === 'stopping';
    return { refusedAfterBytes: receivedBytes, ...(isCutByStop ? { isCutByStop } : {}) };
  }
}

/** Of what a client sent, in an error text. */
const SHOWN_CHARS_MAX = 80;

function noteOf({ id, bodyBytes }: JournalRow): IngestNote {
  return { delivery: id, bodyBytes };
}

function declaredBytes(header: string | undefined): number | null {
  return header === undefined || !/^\d+$/.test(header) ? null : Number(header);
}

/** With an outcome when the fold came in time; `pending` otherwise. */
function answerOf(row: JournalRow, notice: FoldedNotice | null): Record<string, unknown> {
  const accepted = { id: row.id, received_at: formatMicros(row.receivedAt) };
  if (notice === null) return { ...accepted, parse_status: 'pending' };
  return {
    ...accepted,
    parse_status: notice.parseStatus,
    class: notice.class,
    layer: notice.layer,
    layer_origin: notice.layerOrigin,
    layer_from: notice.layerFrom,
    counters: notice.counters,
    reasons: notice.reasons,
  };
}
