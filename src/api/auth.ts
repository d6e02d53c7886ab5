/**
 * Auth: a request carries a token in `Authorization: Bearer`, `X-API-Key` or `api-key` (the header the app
 * vendor's own server expects). A token belongs to one profile and one scope: a phone's token can only ingest, a
 * read token sees its own profile, an admin token may do everything.
 *
 * How the token is written into its header matters little, since only the right one opens anything: people type
 * `Bearer` twice, leave it out, or put quotes around. A proxy may use Authorization for itself, so every place is
 * looked at, and one right token is enough. It is looked up first and let through at once; only a request without
 * any is slowed down (slowdown.ts).
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HealthlogError } from '../journal/errors.js';
import type { Grant, Scope, TokenStore } from '../journal/tokens.js';
import type { RunnerLog } from '../projections/thread.js';
import { clientAddress } from './client.js';
import type { HeldAnswers } from './held-answers.js';
import type { Slowdown } from './slowdown.js';

const TOKEN_HEADERS = ['authorization', 'x-api-key', 'api-key'] as const;
/** More different tokens than this in one request are no mistake of a person. */
const PRESENTED_MAX = 6;

type HeaderValues = Readonly<NodeJS.Dict<readonly string[]>>;

/** Every token that a request presents, in whatever way. */
export function presentedTokens(headers: HeaderValues): readonly string[] {
  const found = new Set<string>();
  for (const name of TOKEN_HEADERS) {
    for (const value of headers[name] ?? []) {
      const token = value
        .trim()
        .replace(/^(?:bearer\b[\s:]*)+/i, '')
        .replace(/^(["'])(.*)\1$/, '$2')
        .trim();
      if (token !== '' && !/\s/.test(token)) found.add(token);
    }
  }
  return [...found].slice(0, PRESENTED_MAX);
}

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
    if (delayMs > 0 && !(await held.hold(reply.raw, delayMs))) throw new HealthlogError('too_many_attempts');
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
