/**
 * Auth: a request carries a token in `Authorization: Bearer`, `X-API-Key` or `api-key` (the header the app
 * vendor's own server expects). A token belongs to one profile and one scope: a phone's token can only ingest, a
 * read token sees its own profile, an admin token may do everything.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { HealthlogError } from '../journal/errors.js';
import type { Grant, Scope, TokenStore } from '../journal/tokens.js';

/** The token as presented; null when there is none. */
function presentedToken(headers: IncomingHttpHeaders): string | null {
  const bearer = /^\s*bearer\s+(\S+)\s*$/i.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  for (const name of ['x-api-key', 'api-key']) {
    const value = headers[name];
    const text = (Array.isArray(value) ? value[0] : value)?.trim();
    if (text !== undefined && text !== '') return text;
  }
  return null;
}

/** @throws HealthlogError unauthorized, forbidden */
export function authorize(headers: IncomingHttpHeaders, tokens: TokenStore, needed: Scope): Grant {
  const presented = presentedToken(headers);
  const grant = presented === null ? null : tokens.find(presented);
  if (grant === null) throw new HealthlogError('unauthorized');
  if (grant.scope !== needed && grant.scope !== 'admin') {
    throw new HealthlogError('forbidden', { scope: grant.scope, needed });
  }
  tokens.noteUse(grant.hash);
  return grant;
}

/** The profile a reader may see; an admin sees every profile, or the one it asks for. */
export function visibleProfile(grant: Grant, asked: string | undefined): string | null {
  if (grant.scope === 'admin') return asked ?? null;
  if (asked !== undefined && asked !== grant.profile) {
    throw new HealthlogError('forbidden', { scope: grant.scope, needed: 'admin' });
  }
  return grant.profile;
}
