/**
 * App: the HTTP server. Every route but `/healthz` and the readable GET of the ingest address needs a token; every
 * error has one shape, `{error:{code,message,hint}}` (refusals.ts).
 *
 * Budgets. Only the ingest route may take long, for slow uploads: it keeps the time itself (request-body.ts), and
 * every other route gets a short time until its answer is out (budget.ts). Node's own limits stand behind them,
 * for what is no request yet. (Node ignores a requestTimeout below headersTimeout and looks only every
 * connectionsCheckingInterval; fastify sets it to 0 by default.) Which route it is says the router, not the text
 * of the URL: that may be coded, doubled, prefixed.
 */
import { setMaxListeners } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Acceptor } from '../journal/accept.js';
import { HealthlogError } from '../journal/errors.js';
import type { TokenStore } from '../journal/tokens.js';
import type { RunnerLog, RunnerThread } from '../projections/thread.js';
import { logWhenClosed } from './access-log.js';
import { Gate } from './auth.js';
import { limitAnswer } from './budget.js';
import { Connections } from './connections.js';
import { HeldAnswers } from './held-answers.js';
import { Ingest, takeContentType } from './ingest.js';
import type { ApiLimits } from './limits.js';
import { answerOtherMethods } from './methods.js';
import type { Reader } from './reader.js';
import { readingRoutes } from './reading.js';
import { ParserRefusals, sendError } from './refusals.js';
import { SLOWDOWN, Slowdown, type SlowdownLimits } from './slowdown.js';
import { pathOf, routedUrl } from './url.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** It takes a body, and keeps the time for that itself. */
    isUpload?: boolean;
  }
}

export interface ApiDeps {
  readonly acceptor: Acceptor;
  readonly tokens: TokenStore;
  readonly runner: RunnerThread;
  readonly reader: Reader;
  readonly log: RunnerLog;
  readonly limits: ApiLimits;
  /** Addresses, networks and the names of networks whose X-Forwarded-For is believed; null for none. */
  readonly trustedProxies: readonly string[] | null;
  /** The prefix under which a proxy shows the service; null for none. */
  readonly basePath: string | null;
  readonly slowdown?: SlowdownLimits;
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
const INGEST_PATHS = ['/v1/ingest', '/api/data'];
/** Behind the limits that answer for themselves. */
const NODE_GRACE_MS = 10_000;
/** For telling those that are cut, and for removing what they had sent. */
const CUT_MS = 250;
const CROWDED_REPORT_MS = 60_000;

const INGEST_GET =
  'This is the address for the app Health Auto Export. It takes POST requests; a browser sends GET, so reaching this page shows that the address is right.\n' +
  'In the app, make an automation of the type REST API with this address as its URL and the header Authorization: Bearer TOKEN.\n';

export function createApp(deps: ApiDeps): ApiServer {
  const { limits, log, runner } = deps;
  const stopping = new AbortController();
  // Every client that waits for a fold listens; more than ten of them are no leak.
  setMaxListeners(0, stopping.signal);
  const parserRefusals = new ParserRefusals(log, limits.headerBytesMax);
  const app = makeServer(deps, (error, socket) => parserRefusals.refuse(error, socket, connections));
  const connections = new Connections(
    app.server,
    limits.connectionsMax,
    atMostEvery(CROWDED_REPORT_MS, () =>
      log.warn(
        { limit: limits.connectionsMax },
        'too many connections are open; the one that is idle longest is closed for a new one',
      ),
    ),
  );
  parserRefusals.refuseConnect(app.server);
  const gate = new Gate({
    tokens: deps.tokens,
    slowdown: new Slowdown(() => performance.now(), deps.slowdown ?? SLOWDOWN),
    held: new HeldAnswers(limits.heldAnswersMax, stopping.signal),
    log,
  });
  const ingest = new Ingest({
    acceptor: deps.acceptor,
    gate,
    runner,
    limits,
    stopping: stopping.signal,
  });

  // Bodies are never parsed here: whatever the type says, the handler gets the stream.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.addHook('onRequest', async (request, reply) => {
    logWhenClosed(request, reply, log);
    takeContentType(request);
    if (request.routeOptions.config.isUpload !== true) limitAnswer(request, reply, limits.requestTimeoutMs);
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined)
      throw new HealthlogError('bad_request', { reason: 'the header Host is missing' });
  });
  app.addHook('onSend', async (request, reply) => {
    if (request.routeOptions.config.isUpload === true) limitAnswer(request, reply, limits.requestTimeoutMs);
    // A body that is still being thrown away must come to its end first.
    if (stopping.signal.aborted && request.raw.complete) void reply.header('connection', 'close');
  });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, log));
  app.setNotFoundHandler((request, reply) => {
    const what = `${request.method} ${pathOf(request)} here`;
    return sendError(new HealthlogError('not_found', { what }), request, reply, log);
  });

  const otherMethods = answerOtherMethods(app);
  for (const path of INGEST_PATHS) {
    app.post(path, { config: { isUpload: true } }, (request, reply) => ingest.handle(request, reply));
    app.get(path, async (_request, reply) => reply.type('text/plain; charset=utf-8').send(INGEST_GET));
  }
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (request, reply) => {
    await gate.admit(request, reply, 'read');
    if (stopping.signal.aborted) throw new HealthlogError('stopping');
    if (!runner.state().begun)
      throw new HealthlogError('reading_unavailable', { reason: 'the service is starting' });
    return { status: 'ready' };
  });
  readingRoutes(app, {
    gate,
    reader: deps.reader,
    runner,
    clockSkewMicros: () => (stopping.signal.aborted ? 0 : deps.acceptor.clockSkewMicros()),
  });
  otherMethods();

  return {
    listen: async (host, port) => {
      await app.listen({ host, port });
      return { host, port: addressOf(app).port };
    },
    stop: async (budgetMs) => {
      stopping.abort();
      const inTime = await connections.end(budgetMs);
      if (!inTime) {
        ingest.cut();
        await connections.end(CUT_MS);
        connections.cut();
        await Promise.race([ingest.idle(), delay(CUT_MS, undefined, { ref: false })]);
      }
      await app.close();
      return inTime;
    },
  };
}

function makeServer(
  deps: ApiDeps,
  onClientError: (error: NodeJS.ErrnoException, socket: Socket) => void,
): FastifyInstance {
  const { limits, log, trustedProxies, basePath } = deps;
  const { headersTimeoutMs, uploadTimeoutMs } = limits;
  const app = Fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: Math.max(uploadTimeoutMs, headersTimeoutMs) + NODE_GRACE_MS,
    keepAliveTimeout: limits.keepAliveMs,
    forceCloseConnections: false,
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    rewriteUrl: ({ url }) => routedUrl(url ?? '/', basePath),
    ...(trustedProxies === null ? {} : { trustProxy: [...trustedProxies] }),
    clientErrorHandler: onClientError,
    frameworkErrors: (error, request: FastifyRequest, reply: FastifyReply) => {
      logWhenClosed(request, reply, log);
      limitAnswer(request, reply, limits.requestTimeoutMs);
      return sendError(error, request, reply, log);
    },
    http: {
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      maxHeaderSize: limits.headerBytesMax,
      // Its absence is refused in the shape of all errors, which node's own refusal does not have.
      requireHostHeader: false,
    },
  });
  // A client may close its sending side after its last byte and still wait for the answer.
  Object.assign(app.server, { httpAllowHalfOpen: true });
  // Whoever waits to be asked for a body is asked by the upload, after the token was looked at. What else a
  // client expects is ignored: nothing here depends on it.
  for (const event of ['checkContinue', 'checkExpectation']) {
    app.server.on(event, (request, response) => app.server.emit('request', request, response));
  }
  return app;
}

function atMostEvery(ms: number, report: () => void): () => void {
  let reportedMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - reportedMs < ms) return;
    reportedMs = performance.now();
    report();
  };
}

function addressOf(app: FastifyInstance): AddressInfo {
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no address');
  return address;
}
