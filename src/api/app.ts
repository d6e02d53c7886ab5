/**
 * App: the HTTP server. Every route but `/healthz` and the readable GET of the ingest address needs a token; every
 * error has one shape, `{error:{code,message,hint}}`.
 *
 * Budgets. Only the ingest route may take long, for slow uploads: the server's own limit on receiving a request
 * is the long one, and every other route gets a short timer of its own. (Node ignores a requestTimeout below
 * headersTimeout and looks only every connectionsCheckingInterval; fastify sets it to 0 by default.)
 */
import { setMaxListeners } from 'node:events';
import { type Server, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Acceptor } from '../journal/accept.js';
import { HealthlogError } from '../journal/errors.js';
import type { TokenStore } from '../journal/tokens.js';
import type { RunnerLog, RunnerThread } from '../projections/thread.js';
import { logWhenClosed, pathOf } from './access-log.js';
import { authorize } from './auth.js';
import { drain } from './drain.js';
import { Ingest, takeContentType } from './ingest.js';
import type { Reader } from './reader.js';
import { readingRoutes } from './reading.js';

export interface ApiLimits {
  readonly bodyBytesMax: number;
  readonly uploadsMax: number;
  /** For receiving a whole request on the ingest route. */
  readonly uploadTimeoutMs: number;
  /** For every other route, until its answer is sent. */
  readonly requestTimeoutMs: number;
}

export interface ApiDeps {
  readonly acceptor: Acceptor;
  readonly tokens: TokenStore;
  readonly runner: RunnerThread;
  readonly reader: Reader;
  readonly log: RunnerLog;
  readonly limits: ApiLimits;
}

export interface ApiServer {
  listen(host: string, port: number): Promise<{ readonly host: string; readonly port: number }>;
  /**
   * Takes no new connections, lets running requests finish, closes connections that are idle.
   * @returns false when the budget (ms) ran out with requests still running; those are cut
   */
  stop(budgetMs: number): Promise<boolean>;
}

/** `/api/data` is the address of the app vendor's own server: its users only change the host. */
const INGEST_PATHS = new Set(['/v1/ingest', '/api/data']);
const HEADERS_TIMEOUT_MS = 30_000;
const CHECK_EVERY_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;
const HEADER_BYTES_MAX = 16 * 1024;

const INGEST_GET =
  'This is the address for the app Health Auto Export. It takes POST requests; a browser sends GET, so reaching this page shows that the address is right.\n' +
  'In the app, make an automation of the type REST API with this address as its URL and the header Authorization: Bearer TOKEN.\n';

export function createApp(deps: ApiDeps): ApiServer {
  const { limits, log, tokens, runner } = deps;
  const stopping = new AbortController();
  // Every client that waits for a fold listens; more than ten of them are no leak.
  setMaxListeners(0, stopping.signal);
  const app = Fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.uploadTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: false,
    routerOptions: { ignoreTrailingSlash: true },
    clientErrorHandler: (error, socket) => refuseConnection(error, socket, log),
    frameworkErrors: (error, request, reply) => {
      logWhenClosed(request, reply, log, () => stopping.signal.aborted);
      return sendError(error, request, reply, log);
    },
    http: {
      // Node never gives up on a request sooner than on its headers.
      headersTimeout: Math.min(HEADERS_TIMEOUT_MS, limits.uploadTimeoutMs),
      connectionsCheckingInterval: CHECK_EVERY_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
    },
  });
  const connections = new Connections(app.server);
  const ingest = new Ingest({
    acceptor: deps.acceptor,
    tokens,
    runner,
    bodyBytesMax: limits.bodyBytesMax,
    uploadsMax: limits.uploadsMax,
    stopping: stopping.signal,
  });

  // Bodies are never parsed here: whatever the type says, the handler gets the stream.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.addHook('onRequest', async (request, reply) => {
    logWhenClosed(request, reply, log, () => stopping.signal.aborted);
    if (stopping.signal.aborted) void reply.header('connection', 'close');
    if (INGEST_PATHS.has(pathOf(request.url))) takeContentType(request);
    else limitTime(request, reply, limits.requestTimeoutMs);
  });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, log));
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request.url);
    const what = INGEST_PATHS.has(path)
      ? `${request.method} at this address: it takes POST`
      : `${request.method} ${path} here`;
    return sendError(new HealthlogError('not_found', { what }), request, reply, log);
  });

  for (const path of INGEST_PATHS) {
    app.post(path, (request, reply) => ingest.handle(request, reply));
    app.get(path, async (_request, reply) => reply.type('text/plain; charset=utf-8').send(INGEST_GET));
  }
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (request) => {
    authorize(request.headers, tokens, 'read');
    if (stopping.signal.aborted) throw new HealthlogError('stopping');
    if (!runner.state().begun)
      throw new HealthlogError('reading_unavailable', { reason: 'the service is starting' });
    return { status: 'ready' };
  });
  readingRoutes(app, {
    tokens,
    reader: deps.reader,
    runner,
    clockSkewMicros: () => (stopping.signal.aborted ? 0 : deps.acceptor.clockSkewMicros()),
  });

  return {
    listen: async (host, port) => {
      await app.listen({ host, port });
      return { host, port: addressOf(app).port };
    },
    stop: async (budgetMs) => {
      stopping.abort();
      const inTime = await connections.end(budgetMs);
      await app.close();
      return inTime;
    },
  };
}

function addressOf(app: FastifyInstance): AddressInfo {
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no address');
  return address;
}

function limitTime(request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const timer = setTimeout(() => request.raw.socket.destroy(), ms);
  timer.unref();
  reply.raw.once('close', () => clearTimeout(timer));
}

function catalogued(error: unknown): HealthlogError {
  if (error instanceof HealthlogError) return error;
  const status =
    typeof error === 'object' && error !== null && 'statusCode' in error ? error.statusCode : null;
  // The framework's own refusals: bad addresses, bad headers.
  if (typeof status === 'number' && status >= 400 && status < 500 && error instanceof Error) {
    return new HealthlogError('bad_request', { reason: error.message }, { cause: error });
  }
  return new HealthlogError('internal', {}, { cause: error });
}

function sendError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: RunnerLog,
): FastifyReply {
  const known = catalogued(error);
  if (known.status >= 500) {
    const cause = known.cause instanceof Error ? known.cause : known;
    const fields = { code: known.code, path: pathOf(request.url), error: cause.message };
    log.error(known.code === 'internal' ? { ...fields, stack: cause.stack } : fields, known.message);
  }
  drain(request.raw, reply.raw);
  return reply.code(known.status).type('application/json; charset=utf-8').send(known.toBody());
}

/**
 * What node's parser refuses never becomes a request: a body cut by a client that still listens, lengths that
 * contradict each other, headers without end, a request that takes too long.
 */
function refuseConnection(error: NodeJS.ErrnoException, socket: Socket, log: RunnerLog): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const known = parserError(error.code ?? 'unknown');
  log.warn({ status: known.status, reason: error.code }, 'a request was refused before it was whole');
  const body = JSON.stringify(known.toBody());
  socket.end(
    `HTTP/1.1 ${known.status} ${STATUS_CODES[known.status] ?? ''}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function parserError(code: string): HealthlogError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new HealthlogError('headers_too_large', { limit: HEADER_BYTES_MAX });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HealthlogError('timed_out');
    default:
      return new HealthlogError('bad_http', { reason: code });
  }
}

/** `close()` of a server can hang on sockets that were busy when it began, so they are kept track of. */
class Connections {
  readonly #server: Server;
  readonly #busy = new Map<Socket, number>();

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#busy.set(socket, 0);
      socket.once('close', () => this.#busy.delete(socket));
    });
    server.on('request', ({ socket }: { socket: Socket }, response: NodeJS.EventEmitter) => {
      this.#busy.set(socket, (this.#busy.get(socket) ?? 0) + 1);
      response.once('close', () => {
        if (this.#busy.has(socket)) this.#busy.set(socket, (this.#busy.get(socket) ?? 1) - 1);
      });
    });
  }

  async end(budgetMs: number): Promise<boolean> {
    this.#server.close();
    const endMs = performance.now() + budgetMs;
    for (;;) {
      for (const [socket, requests] of this.#busy) if (requests === 0) socket.destroy();
      if (this.#busy.size === 0) return true;
      if (performance.now() >= endMs) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    for (const socket of this.#busy.keys()) socket.destroy();
    return false;
  }
}
