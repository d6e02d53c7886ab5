/**
 * Secrets: our tokens are shown once and kept nowhere (tokens.ts). People put them where they do not belong: into
 * the path, the name of an automation, a user agent. Whatever is logged or kept goes through here first.
 */

/**
 * A token is `hl_` and 43 characters of base64url. One that was cut short counts as well: with most of it known the
 * rest can be guessed. Keys of the app vendor's server begin with `sk-` (hae-format.md §2.1), and people register them.
 */
const TOKEN = /hl_[a-z0-9_-]{32,}|\bsk-[a-z0-9_-]{12,}/gi;

/** A shorter one could be guessed over the network; and blanking it wherever it stands would tear ordinary words. */
export const SECRET_CHARS_MIN = 16;

const BLANKED = '[token]';

/**
 * The text with everything blanked that looks like a token.
 *
 * @param presented what the request at hand presents as its token: a secret that was made elsewhere looks like anything
 */
export function withoutTokens(text: string, presented: readonly string[] = []): string {
  let blanked = text.replace(TOKEN, BLANKED);
  for (const secret of presented)
    if (secret.length >= SECRET_CHARS_MIN) blanked = blanked.replaceAll(secret, BLANKED);
  return blanked;
}
