/** `healthlog token add|ls|revoke`: who may send and who may read. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { HealthlogError } from '../../journal/errors.js';
import { nodeFiles } from '../../journal/files.js';
import { formatMicros, type Micros } from '../../journal/position.js';
import { Journal } from '../../journal/store.js';
import { SCOPES, type TokenInfo, TokenStore, type WantedToken } from '../../journal/tokens.js';
import type { Context } from '../context.js';
import { print, printJson, say, table } from '../output.js';

/** @throws HealthlogError not_found when a journal that is only read does not exist */
function withStore<T>({ folder, clock }: Context, mode: 'read' | 'write', work: (store: TokenStore) => T): T {
  const journal = Journal.open(folder, mode);
  try {
    return work(new TokenStore(journal, folder, nodeFiles, clock));
  } finally {
    journal.close();
  }
}

const scopeSchema = z.enum(SCOPES);

export interface TokenAddFlags {
  readonly scope: string;
  readonly profile: string;
  /** File with a secret that exists already; `-` is standard input. */
  readonly secretFrom?: string;
}

const STDIN = 0;

export function tokenAdd(context: Context, label: string, flags: TokenAddFlags): number {
  const scope = scopeSchema.safeParse(flags.scope);
  if (!scope.success) {
    throw new HealthlogError('usage', {
      reason: `--scope cannot be "${flags.scope}": it is one of ${SCOPES.join(', ')}.`,
    });
  }
  const wanted = { label, scope: scope.data, profile: flags.profile };
  if (flags.secretFrom !== undefined) return registerSecret(context, wanted, flags.secretFrom);
  const token = withStore(context, 'write', (store) => store.add(wanted));
  if (context.json) printJson({ token });
  else {
    print(token);
    say('Keep it now: only its hash is stored, so it cannot be shown again.');
  }
  return 0;
}

/** For phones that send to another server already: they keep their key, and only the address changes. */
function registerSecret(context: Context, wanted: WantedToken, from: string): number {
  const secret = readFileSync(from === '-' ? STDIN : from, 'utf8');
  const hash = withStore(context, 'write', (store) => store.register(wanted, secret));
  if (context.json) printJson({ token: null, hash });
  else print(`The secret is registered as the token "${wanted.label.trim()}" (hash ${hash.slice(0, 12)}).`);
  say('Whoever guesses it can do what the token can: it should be long and random. Only its hash is stored.');
  return 0;
}

export function tokenList(context: Context): number {
  const list = withStore(context, 'read', (store) => store.list());
  if (context.json) for (const token of list) printJson(toJson(token));
  else if (list.length === 0) say('There are no tokens. "healthlog token add NAME" makes one.');
  else {
    const time = (at: Micros | null): string => (at === null ? '' : formatMicros(at).slice(0, 19));
    print(
      table(
        ['label', 'scope', 'profile', 'hash', 'made', 'last used', 'revoked'],
        list.map((t) => [
          t.label,
          t.scope,
          t.profile,
          t.hash.slice(0, 12),
          time(t.createdAt),
          time(t.lastUsedAt),
          time(t.revokedAt),
        ]),
      ),
    );
  }
  return 0;
}

export function tokenRevoke(context: Context, which: string): number {
  // Looked at first, so that a misspelt --data makes no new journal.
  withStore(context, 'read', () => undefined);
  const revoked = withStore(context, 'write', (store) => store.revoke(which));
  if (context.json) printJson(toJson(revoked));
  else print(`The token "${revoked.label}" is revoked. What it sent stays.`);
  return 0;
}

function toJson({
  hash,
  label,
  scope,
  profile,
  createdAt,
  lastUsedAt,
  revokedAt,
}: TokenInfo): Record<string, unknown> {
  const time = (at: Micros | null): string | null => (at === null ? null : formatMicros(at));
  return {
    hash,
    label,
    scope,
    profile,
    created_at: time(createdAt),
    last_used_at: time(lastUsedAt),
    revoked_at: time(revokedAt),
  };
}
