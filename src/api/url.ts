/**
 * URLs: what is routed, and what may be logged.
 *
 * Routed is the path without what stands in front of it: a scheme and host (a client that thinks it speaks to a
 * proxy sends them), and the base path, whether the proxy in front strips it or not. Logged is the path as it
 * came, without query string and fragment, where people put tokens and targets, and with tokens blanked.
 */
import type { FastifyRequest } from 'fastify';
import { withoutTokens } from '../journal/secrets.js';
import { presentedTokens } from './presented-tokens.js';

const ORIGIN = /^https?:\/\/[^/?#]*/i;
/** Name and password in front of a host. */
const LOGIN = /^(https?:\/\/)[^/?#]*@/i;
const LOGGED_CHARS_MAX = 200;

/** @param basePath begins with `/` and does not end with it; null for none */
export function routedUrl(url: string, basePath: string | null): string {
  const local = url.replace(ORIGIN, '');
  const path = local === '*' ? local : `/${local.replace(/^\/+/, '')}`;
  if (basePath === null || !path.startsWith(basePath)) return path;
  const rest = path.slice(basePath.length);
  if (rest === '' || rest.startsWith('?')) return `/${rest}`;
  return rest.startsWith('/') ? rest : path;
}

/** Percent signs can hide a token, more than once; what is no valid coding stays as it is. */
function decodedAscii(text: string): string {
  let decoded = text;
  for (let round = 0; round < 3 && decoded.includes('%'); round++) {
    decoded = decoded.replace(/%([2-7][0-9a-f])/gi, (_whole, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
  return decoded;
}

/**
 * What a log line or an answer may say of an address.
 *
 * @param presented the tokens of the request
 */
export function shownPath(url: string, presented: readonly string[] = []): string {
  const end = url.search(/[?#;]/);
  const path = (end < 0 ? url : url.slice(0, end)).replace(LOGIN, '$1');
  const decoded = decodedAscii(path);
  const blanked = withoutTokens(decoded, presented);
  const shown = blanked === decoded ? path : blanked;
  return shown.length <= LOGGED_CHARS_MAX ? shown : `${shown.slice(0, LOGGED_CHARS_MAX)}…`;
}

/** The same of a request: what it presents as its token is blanked too, whatever that looks like. */
export function pathOf({ originalUrl, raw }: FastifyRequest): string {
  return shownPath(originalUrl, presentedTokens(raw.headersDistinct));
}
