/** The reading routes: who may see what, and which question the reader thread is asked. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Grant } from '../journal/tokens.js';
import type { JournalStatus } from '../projections/answers/status.js';
import type { RunnerThread } from '../projections/thread.js';
import { type Gate, visibleProfile } from './auth.js';
import type { Reader } from './reader.js';
import type { ReaderQuestion } from './reader-protocol.js';
import {
  deliveriesQuery,
  deliveryQuery,
  metricQuery,
  metricsQuery,
  parseQuery,
  statusQuery,
} from './schemas.js';
import { type StatusBody, statusBody } from './status.js';

export interface ReadingDeps {
  readonly gate: Gate;
  readonly reader: Reader;
  readonly runner: RunnerThread;
  readonly clockSkewMicros: () => number;
}

const idParams = z.object({ id: z.string().min(1) });
const nameParams = z.object({ name: z.string().min(1) });

export function readingRoutes(app: FastifyInstance, deps: ReadingDeps): void {
  const { gate, reader } = deps;
  const grantOf = (request: FastifyRequest, reply: FastifyReply): Promise<Grant> =>
    gate.admit(request, reply, 'read');
  const answer = async (reply: FastifyReply, question: ReaderQuestion): Promise<string> => {
    const json = await reader.ask(question);
    void reply.type('application/json; charset=utf-8');
    return json;
  };

  app.get('/v1/status', async (request, reply) => {
    const grant = await grantOf(request, reply);
    parseQuery(statusQuery, request.query);
    const journal: JournalStatus = JSON.parse(
      await reader.ask({ kind: 'status', profile: visibleProfile(grant, undefined) }),
    );
    return serviceStatus(deps, journal);
  });

  app.get('/v1/deliveries', async (request, reply) => {
    const grant = await grantOf(request, reply);
    const query = parseQuery(deliveriesQuery, request.query);
    return answer(reply, {
      kind: 'deliveries',
      query: { ...query, profile: visibleProfile(grant, query.profile) },
    });
  });

  app.get('/v1/deliveries/:id', async (request, reply) => {
    const grant = await grantOf(request, reply);
    const { id } = parseQuery(idParams, request.params);
    const query = parseQuery(deliveryQuery, request.query);
    return answer(reply, { kind: 'delivery', id, profile: visibleProfile(grant, query.profile) });
  });

  app.get('/v1/metrics', async (request, reply) => {
    const grant = await grantOf(request, reply);
    const { limit, cursor, profile } = parseQuery(metricsQuery, request.query);
    return answer(reply, {
      kind: 'metrics',
      profile: visibleProfile(grant, profile) ?? grant.profile,
      ...(limit === undefined ? {} : { limit }),
      ...(cursor === undefined ? {} : { cursor }),
    });
  });

  app.get('/v1/metrics/:name', async (request, reply) => {
    const grant = await grantOf(request, reply);
    const { name } = parseQuery(nameParams, request.params);
    const { profile, ...query } = parseQuery(metricQuery, request.query);
    const visible = visibleProfile(grant, profile) ?? grant.profile;
    return answer(reply, { kind: 'metric', query: { ...query, metric: name, profile: visible } });
  });
}

function serviceStatus({ runner, clockSkewMicros }: ReadingDeps, journal: JournalStatus): StatusBody {
  const { state, reason, rebuild, restarts } = runner.state();
  return statusBody(journal, {
    state,
    reason,
    rebuild,
    restarts,
    clockBehindS: Math.round(clockSkewMicros() / 1e6),
  });
}
