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
import type { JournalRow } from '../journal/store.js';
import type { TokenStore } from '../journal/tokens.js';
import { UploadAborted } from '../journal/upload.js';
import type { FoldedNotice, RunnerThread } from '../projections/thread.js';
import { type IngestNote, noteIngest } from './access-log.js';
import { authorize } from './auth.js';
import { ingestQuery, parseQuery } from './schemas.js';

export interface IngestDeps {
  readonly acceptor: Acceptor;
  readonly tokens: TokenStore;
  readonly runner: RunnerThread;
  readonly bodyBytesMax: number;
  readonly uploadsMax: number;
  /** Aborted when the service stops: nothing new is taken in, and nobody waits for a fold any more. */
  readonly stopping: AbortSignal;
}

/** The header as it came, before it was taken out of the framework's way. */
const contentTypes = new WeakMap<FastifyRequest, string | null>();

/** The framework would refuse an odd content type by itself; judging it is this file's business. */
export function takeContentType(request: FastifyRequest): void {
  const { headers } = request.raw;
  contentTypes.set(request, headers['content-type'] ?? null);
  headers['content-type'] = 'application/octet-stream';
}

export class Ingest {
  readonly #deps: IngestDeps;
  #running = 0;

  constructor(deps: IngestDeps) {
    this.#deps = deps;
  }

  async handle(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const { tokens, runner, uploadsMax, stopping } = this.#deps;
    const { profile } = authorize(request.headers, tokens, 'ingest');
    if (stopping.aborted) throw new HealthlogError('stopping');
    const { wait: waitS } = parseQuery(ingestQuery, request.query);
    const contentType = contentTypes.get(request) ?? null;
    const kind = this.#judge(request, contentType);
    if (this.#running >= uploadsMax) throw new HealthlogError('too_many_uploads', { limit: uploadsMax });
    const accepting = this.#accept(request, { profile, contentType, kind });
    noteIngest(request, accepting.then(noteOf, noteOfFailure));
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

  async #accept(
    { raw }: FastifyRequest,
    { profile, contentType, kind }: { profile: string; contentType: string | null; kind: BodyKind },
  ): Promise<JournalRow> {
    this.#running += 1;
    try {
      return await this.#deps.acceptor.accept(raw, {
        profile,
        source: 'http',
        contentType,
        contentCoding: raw.headers['content-encoding'] ?? null,
        headers: keptHeaders({ ...raw.headers, 'content-type': contentType ?? undefined }),
        declaredBytes: declaredBytes(raw.headers['content-length']),
        kind,
        complete: () => raw.complete,
      });
    } finally {
      this.#running -= 1;
    }
  }

  #judge(request: FastifyRequest, contentType: string | null): BodyKind {
    const kind = judgeContentType(contentType ?? undefined);
    if (kind === null) throw new HealthlogError('unsupported_type', { type: contentType ?? '' });
    const declared = declaredBytes(request.raw.headers['content-length']);
    const { bodyBytesMax } = this.#deps;
    if (declared !== null && declared > bodyBytesMax)
      throw new HealthlogError('too_large', { limit: bodyBytesMax });
    return kind;
  }
}

function noteOf({ id, bodyBytes }: JournalRow): IngestNote {
  return { delivery: id, bodyBytes };
}

function noteOfFailure(error: unknown): IngestNote {
  return error instanceof UploadAborted ? { abortedAfterBytes: error.receivedBytes } : {};
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
