/**
 * Which request headers are kept for ever, and what the app says in them (hae-format.md §2.2).
 *
 * An allow-list, because a deny-list forgets: Authorization, API keys, cookies and whatever a proxy adds never
 * reach the disk. A request line is not a header: query strings, where keys are common, are not kept either. A
 * token that was typed into a kept header is blanked there.
 */
import type { Automation } from './event.js';
import { withoutTokens } from './secrets.js';

const KEPT = [
  'automation-name',
  'automation-id',
  'automation-aggregation',
  'automation-period',
  'session-id',
  'user-agent',
  'content-type',
  'content-encoding',
  'content-length',
] as const;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Node hands header values over as latin-1. The app's encoding of a user-typed name is not documented: UTF-8 is
 * tried first, and what is not UTF-8 stays as it is.
 */
function decodeValue(value: string): string {
  const isLatin1 = [...value].every((char) => (char.codePointAt(0) ?? 0) <= 0xff);
  if (!isLatin1) return value;
  try {
    return strictUtf8.decode(Buffer.from(value, 'latin1'));
  } catch {
    // Not UTF-8: the latin-1 reading is the fallback the format asks for, and no reason to refuse a delivery.
    return value;
  }
}

/**
 * The headers that go into the archive, by lower-case name. A header sent twice is joined with `, `.
 *
 * @param presented the tokens of the request
 */
export function keptHeaders(
  raw: Readonly<Record<string, string | readonly string[] | undefined>>,
  presented: readonly string[] = [],
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of KEPT) {
    const value = raw[name];
    if (value === undefined) continue;
    const text = decodeValue(typeof value === 'string' ? value : value.join(', '));
    kept[name] = withoutTokens(text, presented);
  }
  return kept;
}

/** What the kept headers say about the export job; blank is the same as missing. */
export function automationOf(headers: Readonly<Record<string, string>>): {
  automation: Automation;
  sessionId: string | null;
} {
  const text = (name: string): string | null => headers[name]?.trim() || null;
  return {
    automation: {
      id: text('automation-id'),
      name: text('automation-name'),
      aggregation: text('automation-aggregation'),
      period: text('automation-period'),
    },
    sessionId: text('session-id'),
  };
}
