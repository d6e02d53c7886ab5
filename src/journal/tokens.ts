/**
 * Tokens: who may do what, and for whose profile.
 *
 * - A token is `hl_` and 32 random bytes. It is shown once and kept nowhere: database and archive hold its
 *   sha256. A fast hash is enough, because nobody can guess 256 random bits.
 * - Every event (added, revoked) is appended to `archive/tokens.jsonl` and fsynced *before* the row is written:
 *   the journal can then be rebuilt from the archive without locking a phone out. Both happen inside the journal's
 *   write lock, so that rows and events change in one order. An event whose row failed is a token nobody has been
 *   shown, or a revocation that stands all the same: the next start writes the row.
 * - A secret that was made elsewhere can be registered: then it opens what a token opens.
 * - Answering never writes. When a token was used last is noted in memory and flushed now and then; a busy
 *   database puts that off to the next flush.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Statement } from 'better-sqlite3';
import type { Clock } from './clock.js';
import { HealthlogError, platformCode } from './errors.js';
import type { FileLayer } from './files.js';
import type { DataFolder } from './folder.js';
import { appendNote, type UnreadableLine } from './jsonl.js';
import { formatMicros, type Micros, micros } from './position.js';
import { SECRET_CHARS_MIN } from './secrets.js';
import type { Journal } from './store.js';
import { notedTokens, readTokenEvents, type Scope } from './token-events.js';

export { SCOPES, type Scope } from './token-events.js';

export interface TokenInfo {
  /** Hex sha256 of the token. */
  readonly hash: string;
  readonly profile: string;
  readonly scope: Scope;
  readonly label: string;
  readonly createdAt: Micros;
  readonly lastUsedAt: Micros | null;
  readonly revokedAt: Micros | null;
}

/** What a request may do, once its token was found. */
export type Grant = Pick<TokenInfo, 'hash' | 'profile' | 'scope' | 'label'>;

export interface WantedToken {
  readonly label: string;
  readonly scope: Scope;
  readonly profile: string;
}

/** What a start put right between the notes and the table, as counts. */
export interface TokensReconciled {
  /** Rows made from an event. */
  readonly restored: number;
  /** Rows that were valid, and that an event revokes. */
  readonly revoked: number;
  /** Events written for rows that had none. */
  readonly noted: number;
  readonly unreadable: readonly UnreadableLine[];
}

interface RawToken {
  readonly hash: string;
  readonly profile: string;
  readonly scope: Scope;
  readonly label: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
}

function toInfo(raw: RawToken): TokenInfo {
  return {
    hash: raw.hash,
    profile: raw.profile,
    scope: raw.scope,
    label: raw.label,
    createdAt: micros(raw.created_at),
    lastUsedAt: raw.last_used_at === null ? null : micros(raw.last_used_at),
    revokedAt: raw.revoked_at === null ? null : micros(raw.revoked_at),
  };
}

const PREFIX = 'hl_';
const SECRET_BYTES = 32;
/** Nothing longer is a token; it is not worth hashing. */
const PRESENTED_CHARS_MAX = 256;
/** What travels unchanged in a header: ASCII that is seen. */
const SECRET_PATTERN = /^[!-~]+$/;
/** Fewer digits of a hash are taken for a label. */
const HASH_PREFIX_CHARS_MIN = 6;

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

export class TokenStore {
  readonly #journal: Journal;
  readonly #folder: DataFolder;
  readonly #files: FileLayer;
  readonly #clock: Clock;
  readonly #insert: Statement<[string, string, string, string, number]>;
  readonly #all: Statement<[], RawToken>;
  readonly #byHash: Statement<[string], RawToken>;
  readonly #revoke: Statement<[number, string]>;
  readonly #use: Statement<[number, string, number]>;
  /** Last use by hash, not written yet. Bounded by the number of tokens. */
  readonly #uses = new Map<string, Micros>();

  /** @param journal open for writing */
  constructor(journal: Journal, folder: DataFolder, files: FileLayer, clock: Clock) {
    this.#journal = journal;
    this.#folder = folder;
    this.#files = files;
    this.#clock = clock;
    const { db } = journal;
    this.#insert = db.prepare(
      'INSERT INTO token (hash, profile, scope, label, created_at) VALUES (?, ?, ?, ?, ?)',
    );
    this.#all = db.prepare('SELECT * FROM token ORDER BY created_at, label, hash');
    this.#byHash = db.prepare('SELECT * FROM token WHERE hash = ?');
    this.#revoke = db.prepare('UPDATE token SET revoked_at = ? WHERE hash = ?');
    this.#use = db.prepare(
      'UPDATE token SET last_used_at = ? WHERE hash = ? AND coalesce(last_used_at, -1) < ?',
    );
  }

  /**
   * Makes a token and gives its text, which nobody can ask for again.
   *
   * @throws HealthlogError usage when the label is blank, or belongs to a token that is still valid; journal_busy
   */
  add(wanted: WantedToken): string {
    const token = `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64url')}`;
    this.#put(wanted, hashOf(token));
    return token;
  }

  /**
   * Makes a token of a secret that exists already, and gives its hash.
   *
   * @param given blanks around it do not count
   * @throws HealthlogError usage when it is too short, too long, not visible ASCII, or known already; and as add()
   */
  register(wanted: WantedToken, given: string): string {
    const secret = given.trim();
    if (secret.length < SECRET_CHARS_MIN || secret.length > PRESENTED_CHARS_MAX) {
      throw new HealthlogError('usage', {
        reason: `A secret has ${SECRET_CHARS_MIN} to ${PRESENTED_CHARS_MAX} characters; this one has ${secret.length}.`,
      });
    }
    if (!SECRET_PATTERN.test(secret)) {
      throw new HealthlogError('usage', {
        reason: 'A secret is made of visible ASCII characters, without blanks and line ends.',
      });
    }
    const hash = hashOf(secret);
    this.#put(wanted, hash);
    return hash;
  }

  #put(wanted: WantedToken, hash: string): void {
    const label = wanted.label.trim();
    const profile = wanted.profile.trim();
    if (label === '' || profile === '') {
      throw new HealthlogError('usage', { reason: 'A token needs a name and a profile.' });
    }
    this.#journal.write(() => {
      if (this.list().some((token) => token.label === label && token.revokedAt === null)) {
        throw new HealthlogError('usage', {
          reason: `There is already a token named "${label}". Choose another name, or revoke that one first.`,
        });
      }
      // The notes as well: a journal that was lost has no row for a secret that was revoked.
      if (
        this.#byHash.get(hash) !== undefined ||
        notedTokens(readTokenEvents(this.#folder).events).has(hash)
      ) {
        throw new HealthlogError('usage', {
          reason: 'This secret is a token already, or was one. Choose another one.',
        });
      }
      this.#insertNoted({ hash, profile, scope: wanted.scope, label, createdAt: this.#clock.now() });
    });
  }

  #insertNoted(token: Omit<TokenInfo, 'lastUsedAt' | 'revokedAt'>): void {
    this.#noteAdded(token);
    this.#insert.run(token.hash, token.profile, token.scope, token.label, token.createdAt);
  }

  /** All tokens, the revoked ones too, oldest first. */
  list(): TokenInfo[] {
    return this.#all.all().map(toInfo);
  }

  /**
   * Revokes the one valid token with this label, or whose hash begins with these digits (at least six).
   *
   * @throws HealthlogError not_found, usage when several fit, journal_busy
   */
  revoke(labelOrHashPrefix: string): TokenInfo {
    return this.#journal.write(() => {
      const token = this.#oneValid(labelOrHashPrefix.trim());
      const at = this.#clock.now();
      this.#noteRevoked(token.hash, at);
      this.#revoke.run(at, token.hash);
      return { ...token, revokedAt: at };
    });
  }

  #oneValid(wanted: string): TokenInfo {
    const valid = this.list().filter((token) => token.revokedAt === null);
    const labelled = valid.filter((token) => token.label === wanted);
    const hashed =
      wanted.length < HASH_PREFIX_CHARS_MIN ? [] : valid.filter((token) => token.hash.startsWith(wanted));
    const fitting = labelled.length > 0 ? labelled : hashed;
    const [token, other] = fitting;
    if (token === undefined) throw new HealthlogError('not_found', { what: `valid token "${wanted}"` });
    if (other !== undefined) {
      throw new HealthlogError('usage', {
        reason: `"${wanted}" fits ${fitting.length} tokens. Give more digits of the hash.`,
      });
    }
    return token;
  }

  /**
   * Puts the table and the notes in the archive together, both ways. Doing it twice changes nothing.
   *
   * @throws HealthlogError journal_busy; what the file system throws
   */
  reconcile(): TokensReconciled {
    return this.#journal.write(() => {
      const rows = new Map(this.list().map((token) => [token.hash, token]));
      const { events, unreadable } = readTokenEvents(this.#folder);
      const notes = notedTokens(events);
      const counts = { restored: 0, revoked: 0, noted: 0 };
      for (const token of rows.values()) {
        const note = notes.get(token.hash);
        if ((note?.added ?? null) === null) {
          this.#noteAdded(token);
          counts.noted += 1;
        }
        if (token.revokedAt !== null && (note?.revokedAt ?? null) === null) {
          this.#noteRevoked(token.hash, token.revokedAt);
          counts.noted += 1;
        }
      }
      for (const [hash, { added, revokedAt }] of notes) {
        const row = rows.get(hash);
        if (row === undefined && added !== null) {
          this.#insert.run(hash, added.profile, added.scope, added.label, added.at);
          counts.restored += 1;
        }
        if (revokedAt === null || (row?.revokedAt ?? null) !== null) continue;
        this.#revoke.run(revokedAt, hash);
        if (row !== undefined) counts.revoked += 1;
      }
      return { ...counts, unreadable };
    });
  }

  /** Whose token this is; null when it is unknown or revoked. */
  find(presented: string): Grant | null {
    if (presented === '' || presented.length > PRESENTED_CHARS_MAX) return null;
    const raw = this.#byHash.get(hashOf(presented));
    if (raw === undefined || raw.revoked_at !== null) return null;
    return { hash: raw.hash, profile: raw.profile, scope: raw.scope, label: raw.label };
  }

  /** Remembers that a token was used now. Writes nothing. */
  noteUse(hash: string): void {
    this.#uses.set(hash, this.#clock.now());
  }

  /** Writes the remembered uses, all in one transaction. A busy database keeps them for the next time. */
  flushUses(): void {
    if (this.#uses.size === 0) return;
    const { db } = this.#journal;
    const flush = db.transaction(() => {
      for (const [hash, at] of this.#uses) this.#use.run(at, hash, at);
    });
    const timeoutMs = Number(db.pragma('busy_timeout', { simple: true }));
    db.pragma('busy_timeout = 0');
    try {
      flush.immediate();
    } catch (error) {
      if (platformCode(error)?.startsWith('SQLITE_BUSY')) return;
      throw error;
    } finally {
      db.pragma(`busy_timeout = ${timeoutMs}`);
    }
    this.#uses.clear();
  }

  #noteAdded({ hash, profile, scope, label, createdAt }: Omit<TokenInfo, 'lastUsedAt' | 'revokedAt'>): void {
    this.#append({ event: 'added', at: formatMicros(createdAt), hash, profile, scope, label });
  }

  #noteRevoked(hash: string, at: Micros): void {
    this.#append({ event: 'revoked', at: formatMicros(at), hash });
  }

  #append(event: Readonly<Record<string, string>>): void {
    appendNote(this.#folder, this.#files, this.#folder.tokens, event);
  }
}
