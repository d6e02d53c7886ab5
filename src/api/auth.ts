/**
 * Auth: a request carries a token in `Authorization: Bearer`, `X-API-Key` or `api-key` (the header the app
 * vendor's own server expects). A token belongs to one profile and one scope: a phone's token can only ingest, a
 * read token sees its own profile, an admin token may do everything.
 *
 * One right token is enough (presented-tokens.ts). It is looked up first and let through at once; only a request
 * without any is slowed down (slowdown.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HealthlogError } from '../journal/errors.js';
import type { Grant, Scope, TokenStore } from '../journal/tokens.js';
import type { RunnerLog } from '../projections/thread.js';
import { logQuietly } from './access-log.js';
import { clientAddress } from './client.js';
import type { HeldAnswers } from './held-answers.js';
import { presentedTokens } from './presented-tokens.js';
import type { Slowdown } from './slowdown.js';

export interface GateDeps {
  readonly tokens: TokenStore;
  readonly slowdown: Slowdown;
  readonly held: HeldAnswers;
  readonly log: RunnerLog;
}

export class Gate {
  readonly #deps: GateDeps;

  constructor(deps: GateDeps) {
    this.#deps = deps;
  }

  /** @throws HealthlogError unauthorized, too_many_attempts, forbidden */
  async admit(request: FastifyRequest, reply: FastifyReply, needed: Scope): Promise<Grant> {
    const { tokens } = this.#deps;
    let other: Grant | null = null;
    for (const token of presentedTokens(request.raw.headersDistinct)) {
      const grant = tokens.find(token);
      if (grant === null) continue;
      if (grant.scope === needed || grant.scope === 'admin') {
        tokens.noteUse(grant.hash);
        return grant;
      }
      other = grant;
    }
    if (other !== null) throw new HealthlogError('forbidden', { scope: other.scope, needed });
    return this.#refuse(request, reply);
  }

  async #refuse(request: FastifyRequest, reply: FastifyReply): Promise<never> {
    const { slowdown, held, log } = this.#deps;
    const remote = clientAddress(request);
    const { delayMs, report } = slowdown.fail(remote);
    if (report !== null) log.warn({ remote, attempts: report }, 'requests without a valid token');
    if (delayMs > 0 && !(await held.hold(reply.raw, delayMs))) {
      logQuietly(request);
      // The next attempt costs a new connection.
      void reply.header('connection', 'close');
      throw new HealthlogError('too_many_attempts');
    }
    throw new HealthlogError('unauthorized');
  }
}

/** The profile a reader may see; an admin sees every profile, or the one it asks for. */
export function visibleProfile(grant: Grant, asked: string | undefined): string | null {
  if (grant.scope === 'admin') return asked ?? null;
  if (asked !== undefined && asked !== grant.profile) {
    throw new HealthlogError('forbidden', { scope: grant.scope, needed: 'admin' });
  }
  return grant.profile;
}
