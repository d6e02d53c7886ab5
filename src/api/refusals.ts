/**
 * Refusals: every error leaves in the one shape, `{error:{code,message,hint}}`, whoever found it: a route, the
 * framework, or node's parser, for which a request that cannot be understood never becomes one.
 *
 * What the parser refuses has to find its place: answers that are still due on the connection go out first; a
 * body that breaks off in the middle is the business of the upload that reads it; and the connection is closed
 * in a way that lets the client read the answer.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HealthlogError } from '../journal/errors.js';
import { withoutTokens } from '../journal/secrets.js';
import type { RunnerLog } from '../projections/thread.js';
import type { Connections } from './connections.js';
import { DRAIN_MS_MAX, drain } from './drain.js';
import { presentedTokens } from './presented-tokens.js';
import { failBody } from './request-body.js';
import { pathOf, shownPath } from './url.js';

const JSON_TYPE = 'application/json; charset=utf-8';

function catalogued(error: unknown): HealthlogError {
  if (error instanceof HealthlogError) return error;
  const status =
    typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : null;
  // The framework's own refusals. Their texts repeat what the client sent, so they are not passed on.
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new HealthlogError('bad_request', { reason: 'the address is not valid' }, { cause: error });
  }
  return new HealthlogError('internal', {}, { cause: error });
}

/** Answers a request with an error. */
export function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: RunnerLog,
): FastifyReply {
  const known = catalogued(error);
  if (known.status >= 500) {
    const cause = known.cause instanceof Error ? known.cause : known;
    const fields = { code: known.code, path: pathOf(request), error: cause.message };
    log.error(known.code === 'internal' ? { ...fields, stack: cause.stack } : fields, known.message);
  }
  drain(request.raw, reply.raw);
  // What a client may try instead of a token is said as HTTP demands it.
  if (known.status === 401) void reply.header('www-authenticate', 'Bearer realm="healthlog"');
  const { error: said } = known.toBody();
  // Some texts repeat what was asked for.
  const message = withoutTokens(said.message, presentedTokens(request.raw.headersDistinct));
  return reply
    .code(known.status)
    .type(JSON_TYPE)
    .send({ error: { ...said, message } });
}

/** What node's parser says, as an error of the catalogue. */
function parserError(error: NodeJS.ErrnoException, headerBytesMax: number): HealthlogError {
  const code = error.code ?? 'unknown';
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new HealthlogError('headers_too_large', { limit: headerBytesMax });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HealthlogError('timed_out');
    case 'HPE_INVALID_EOF_STATE':
      return new HealthlogError('cut_off');
    default:
      return new HealthlogError('bad_http', {
        reason: isTls(error) ? 'it is HTTPS, and this port speaks HTTP' : spoken(code),
      });
  }
}

const TLS_HANDSHAKE = 0x16;

function isTls(error: Error): boolean {
  return 'rawPacket' in error && Buffer.isBuffer(error.rawPacket) && error.rawPacket[0] === TLS_HANDSHAKE;
}

function spoken(code: string): string {
  return code.replace(/^HPE_/, '').replaceAll('_', ' ').toLowerCase();
}

/** Says it on a connection on which no other answer is under way, and closes it. */
function answerRaw(socket: Socket, error: HealthlogError): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(error.toBody());
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}\r\nContent-Type: ${JSON_TYPE}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  linger(socket);
}

/** The answer is out and this side is closed: the client has some time to read it and to close its own. */
function linger(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), DRAIN_MS_MAX);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}

export class ParserRefusals {
  readonly #log: RunnerLog;
  readonly #headerBytesMax: number;
  /** A broken parser complains about every byte that follows. */
  readonly #refused = new WeakSet<Socket>();

  constructor(log: RunnerLog, headerBytesMax: number) {
    this.#log = log;
    this.#headerBytesMax = headerBytesMax;
  }

  /** For `clientError` of the server. */
  refuse(error: NodeJS.ErrnoException, socket: Socket, connections: Connections): void {
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const known = parserError(error, this.#headerBytesMax);
    const newest = connections.exchanges(socket).at(-1);
    if (newest !== undefined && !newest.request.complete) {
      // Its answer is under way, or is now. Nothing that follows on this connection can be understood.
      failBody(newest.request, known);
      const end = (): void => {
        socket.end();
        linger(socket);
      };
      // Refused before, it may have its answer already.
      if (newest.response.writableFinished) end();
      else newest.response.once('close', end);
      return;
    }
    const { remoteAddress: remote } = socket;
    const say = (): void => {
      this.#log.warn(
        { status: known.status, reason: error.code, remote },
        'a request was refused before it was whole',
      );
      answerRaw(socket, known);
    };
    if (newest === undefined) say();
    else newest.response.once('close', say);
  }

  /** What never reaches a route: CONNECT asks for a proxy. */
  refuseConnect(server: Server): void {
    server.on('connect', ({ method, url, headersDistinct }: IncomingMessage, socket: Socket) => {
      const known = new HealthlogError('method_not_allowed', {
        method: method ?? '',
        path: shownPath(url ?? '', presentedTokens(headersDistinct)),
        allowed: 'no such requests',
      });
      this.#log.warn(
        { method, status: known.status, remote: socket.remoteAddress },
        'a request was refused before it was whole',
      );
      socket.on('error', () => socket.destroy());
      answerRaw(socket, known);
    });
  }
}
