/**
 * Secrets: our tokens are shown once and kept nowhere (tokens.ts). People put them where they do not belong: into
 * the path, the name of an automation, a user agent. Whatever is logged or kept goes through here first.
 */

/**
 * A token is `hl_` and 43 characters of base64url. One that was cut short counts as well: with most of it known the
 * rest can be guessed.
 */
const TOKEN = /hl_[a-z0-9_-]{32,}/gi;

export const BLANKED = '[token]';

/** The text with everything blanked that looks like one of our tokens. */
export function withoutTokens(text: string): string {
  return text.replace(TOKEN, BLANKED);
}
