/**
 * Presented tokens: what a request offers as its token.
 *
 * How it is written into its header matters little, since only the right one opens anything: people type `Bearer`
 * twice, leave it out, or put quotes around. A proxy may use Authorization for itself, so every place is looked at.
 */
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
