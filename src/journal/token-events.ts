/**
 * Token events: what `archive/tokens.jsonl` says of tokens, hashes only.
 *
 * A token is what its `added` event says. A `revoked` event stands for ever, wherever in the file it is: a token that
 * somebody wanted to be worth nothing must not come back because an older journal was put back.
 */
import { z } from 'zod';
import type { DataFolder } from './folder.js';
import { type Notes, noteTime, readNotes } from './jsonl.js';
import type { Micros } from './position.js';

export const SCOPES = ['ingest', 'read', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];

const hash = z.string().regex(/^[0-9a-f]{64}$/);

const tokenEvent = z.discriminatedUnion('event', [
  z.object({
    event: z.literal('added'),
    at: noteTime,
    hash,
    profile: z.string().min(1),
    scope: z.enum(SCOPES),
    label: z.string().min(1),
  }),
  z.object({ event: z.literal('revoked'), at: noteTime, hash }),
]);

export type TokenEvent = z.output<typeof tokenEvent>;

export function readTokenEvents(folder: DataFolder): Notes<TokenEvent> {
  return readNotes(folder.tokens, tokenEvent);
}

/** What the notes come to for one token. */
export interface NotedToken {
  /** Null when only its revocation can be read. */
  readonly added: Extract<TokenEvent, { event: 'added' }> | null;
  readonly revokedAt: Micros | null;
}

const UNKNOWN: NotedToken = { added: null, revokedAt: null };

/** By hash. The first event of each kind counts, so that noting one twice changes nothing. */
export function notedTokens(events: readonly TokenEvent[]): Map<string, NotedToken> {
  const tokens = new Map<string, NotedToken>();
  for (const event of events) {
    const known = tokens.get(event.hash) ?? UNKNOWN;
    tokens.set(
      event.hash,
      event.event === 'added'
        ? { ...known, added: known.added ?? event }
        : { ...known, revokedAt: known.revokedAt ?? event.at },
    );
  }
  return tokens;
}
