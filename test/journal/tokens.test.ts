import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FileLayer, nodeFiles } from '../../src/journal/files.js';
import type { DataFolder } from '../../src/journal/folder.js';
import { Journal } from '../../src/journal/store.js';
import { TokenStore } from '../../src/journal/tokens.js';
import { tmpData } from '../support/tmp.js';
import { NOON, platformError, SetClock, watchedFiles } from './support.js';

const PHONE = { label: 'phone', scope: 'ingest', profile: 'me' } as const;

function store(files: FileLayer = nodeFiles, folder: DataFolder = tmpData()) {
  const journal = Journal.open(folder, 'write');
  onTestFinished(() => journal.close());
  const clock = new SetClock();
  return { folder, journal, clock, tokens: new TokenStore(journal, folder, files, clock) };
}

function events(folder: DataFolder): unknown[] {
  return readFileSync(folder.tokens, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line));
}

describe('a token', () => {
  it('is found by its text, with what it may do and for whom', () => {
    const { tokens } = store();
    const token = tokens.add(PHONE);
    const other = tokens.add({ label: 'panel', scope: 'read', profile: 'her' });
    expect(token).toMatch(/^hl_[A-Za-z0-9_-]{43}$/);
    expect(tokens.find(token)).toMatchObject(PHONE);
    expect(tokens.find(other)).toMatchObject({ label: 'panel', scope: 'read', profile: 'her' });
    expect(['', 'hl_', `${token}x`, 'x'.repeat(10_000)].map((text) => tokens.find(text))).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  it('is written nowhere', () => {
    const { tokens, folder, journal } = store();
    const token = tokens.add(PHONE);
    journal.db.pragma('wal_checkpoint(TRUNCATE)');
    for (const entry of readdirSync(folder.root, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      expect(readFileSync(join(entry.parentPath, entry.name)).includes(token.slice(3))).toBe(false);
    }
  });

  it('that is revoked opens nothing any more, and stays in the list', () => {
    const { tokens, clock } = store();
    const token = tokens.add(PHONE);
    clock.set(NOON + 7);
    expect(tokens.revoke('phone')).toMatchObject({ label: 'phone', revokedAt: NOON + 7 });
    expect(tokens.find(token)).toBeNull();
    expect(tokens.list()).toMatchObject([{ label: 'phone', createdAt: NOON, revokedAt: NOON + 7 }]);
    expect(tokens.add(PHONE)).not.toBe(token);
  });

  it('is revoked by its name or by the first digits of its hash, and only if that is one token', () => {
    const { tokens } = store();
    tokens.add(PHONE);
    const hash = tokens.list()[0]?.hash ?? '';
    expect(() => tokens.revoke('tablet')).toThrow('There is no valid token "tablet"');
    expect(() => tokens.revoke(hash.slice(0, 5))).toThrow('There is no valid token');
    expect(tokens.revoke(hash.slice(0, 8)).label).toBe('phone');
    expect(() => tokens.revoke('phone')).toThrow('There is no valid token');
  });

  it('has a name of its own', () => {
    const { tokens } = store();
    tokens.add(PHONE);
    expect(() => tokens.add({ ...PHONE, label: ' phone ' })).toThrow('already a token named "phone"');
    expect(() => tokens.add({ ...PHONE, label: ' ' })).toThrow('needs a name');
  });
});

describe('the events of tokens', () => {
  it('are in the archive, with hashes only', () => {
    const { tokens, folder } = store();
    tokens.add(PHONE);
    tokens.revoke('phone');
    const hash = tokens.list()[0]?.hash;
    const at = '2026-11-30T12:00:00.000000Z';
    expect(events(folder)).toEqual([
      { event: 'added', at, hash, ...PHONE },
      { event: 'revoked', at, hash },
    ]);
  });

  it('are there, with their folder entry, before the row is', () => {
    const folder = tmpData();
    const seen: string[] = [];
    const files = watchedFiles((step, path) => {
      const rows = Journal.open(folder, 'read');
      const states = rows.db.prepare('SELECT revoked_at IS NULL FROM token').pluck().all().join();
      rows.close();
      if (path === folder.tokens) seen.push(`${step} [${states}]`);
    });
    const { tokens } = store(files, folder);
    tokens.add(PHONE);
    tokens.revoke('phone');
    expect(seen).toEqual(['appendLine []', 'appendLine [1]']);
  });

  it('that cannot be written leave no row', () => {
    const { tokens } = store(
      watchedFiles((step) => {
        if (step === 'appendLine') throw platformError('EIO');
      }),
    );
    expect(() => tokens.add(PHONE)).toThrow('EIO');
    expect(tokens.list()).toEqual([]);
  });

  it('begin on a line of their own behind one that a crash has torn', () => {
    const { tokens, folder } = store();
    tokens.add(PHONE);
    appendFileSync(folder.tokens, '{"event":"add');
    tokens.revoke('phone');
    const lines = readFileSync(folder.tokens, 'utf8').split('\n');
    expect(lines.length).toBe(4);
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({ event: 'revoked' });
  });
});

describe('a secret that was made elsewhere', () => {
  const SECRET = 'sk-Correct_Horse.Battery/Staple+2026';

  it('opens what a token opens, and is written nowhere', () => {
    const { tokens, folder } = store();
    const hash = tokens.register(PHONE, `  ${SECRET}\n`);
    expect(tokens.find(SECRET)).toEqual({ hash, ...PHONE });
    expect(events(folder)).toMatchObject([{ event: 'added', hash, ...PHONE }]);
    expect(readFileSync(folder.tokens, 'utf8')).not.toContain(SECRET);
  });

  it.each([
    ['is too short', 'x'.repeat(15), '16 to 256 characters; this one has 15'],
    ['is too long', 'x'.repeat(257), '16 to 256'],
    ['holds a blank', 'correct horse battery', 'visible ASCII'],
    ['holds a line end', 'correct-horse\nbattery-staple', 'visible ASCII'],
    ['is not ASCII', 'pässwort-pässwort', 'visible ASCII'],
  ])('is refused when it %s, and not repeated', (_what, secret, text) => {
    const { tokens } = store();
    expect(() => tokens.register(PHONE, secret)).toThrow(text);
    expect(() => tokens.register(PHONE, secret)).not.toThrow(secret);
    expect(tokens.list()).toEqual([]);
  });

  it('is refused when it is a token already, or was one', () => {
    const { tokens } = store();
    const token = tokens.add(PHONE);
    tokens.register({ ...PHONE, label: 'relay' }, SECRET);
    tokens.revoke('relay');
    for (const known of [token, SECRET])
      expect(() => tokens.register({ ...PHONE, label: 'other' }, known)).toThrow(
        'a token already, or was one',
      );
  });

  it('that was revoked stays so when the journal was lost', () => {
    const { tokens, journal } = store();
    tokens.register(PHONE, SECRET);
    tokens.revoke('phone');
    journal.db.exec('DELETE FROM token');
    expect(() => tokens.register(PHONE, SECRET)).toThrow('a token already, or was one');
  });
});

describe('putting the notes of tokens and their rows together', () => {
  const NOTHING = { restored: 0, revoked: 0, noted: 0, unreadable: [] };

  it('brings every token of a lost journal back, the revoked ones revoked', () => {
    const { tokens, journal, clock } = store();
    const phone = tokens.add(PHONE);
    const panel = tokens.add({ label: 'panel', scope: 'read', profile: 'her' });
    clock.set(NOON + 7);
    tokens.revoke('panel');
    const before = tokens.list();
    journal.db.exec('DELETE FROM token');
    expect(tokens.reconcile()).toEqual({ ...NOTHING, restored: 2 });
    expect(tokens.list()).toEqual(before);
    expect(tokens.find(phone)).toMatchObject(PHONE);
    expect(tokens.find(panel)).toBeNull();
    expect(tokens.reconcile()).toEqual(NOTHING);
  });

  it('revokes again what an older copy of the journal takes for valid', () => {
    const { tokens, journal } = store();
    const phone = tokens.add(PHONE);
    tokens.revoke('phone');
    journal.db.exec('UPDATE token SET revoked_at = NULL');
    expect(tokens.find(phone)).not.toBeNull();
    expect(tokens.reconcile()).toEqual({ ...NOTHING, revoked: 1 });
    expect(tokens.find(phone)).toBeNull();
    expect(tokens.reconcile()).toEqual(NOTHING);
  });

  it('writes the events of rows that the notes do not know', () => {
    const { tokens, folder } = store();
    tokens.add(PHONE);
    tokens.revoke('phone');
    const before = events(folder);
    rmSync(folder.tokens);
    expect(tokens.reconcile()).toEqual({ ...NOTHING, noted: 2 });
    expect(events(folder)).toEqual(before);
    expect(tokens.reconcile()).toEqual(NOTHING);
  });

  it('keeps a revocation that stands before its token in the file, and one without a token makes none', () => {
    const { tokens, folder } = store();
    const phone = tokens.add(PHONE);
    const added = readFileSync(folder.tokens, 'utf8');
    const hash = tokens.list()[0]?.hash ?? '';
    const revoked = (of: string) => `{"event":"revoked","at":"2026-11-30T11:00:00.000000Z","hash":"${of}"}\n`;
    writeFileSync(folder.tokens, `${revoked(hash)}${revoked('0'.repeat(64))}${added}`);
    expect(tokens.reconcile()).toEqual({ ...NOTHING, revoked: 1 });
    expect(tokens.find(phone)).toBeNull();
    expect(tokens.list()).toHaveLength(1);
  });

  it('reports lines that cannot be read, without what is in them', () => {
    const { tokens, folder, journal } = store();
    tokens.add(PHONE);
    appendFileSync(folder.tokens, '{"event":"added","hash":"secret"}\n{"event":"add');
    journal.db.exec('DELETE FROM token');
    expect(tokens.reconcile()).toEqual({
      ...NOTHING,
      restored: 1,
      unreadable: [
        { file: 'tokens.jsonl', line: 2, reason: 'it is no event that this version knows' },
        { file: 'tokens.jsonl', line: 3, reason: 'it was cut short by a crash' },
      ],
    });
  });
});

describe('the last use of a token', () => {
  it('is noted without a write and flushed later', () => {
    const { tokens, journal, clock } = store();
    tokens.add(PHONE);
    const hash = tokens.list()[0]?.hash ?? '';
    const changes = () => journal.db.prepare('SELECT total_changes()').pluck().get();
    const before = changes();
    clock.set(NOON + 5);
    tokens.noteUse(hash);
    expect(changes()).toBe(before);
    tokens.flushUses();
    tokens.flushUses();
    expect(changes()).toBe(Number(before) + 1);
    expect(tokens.list()[0]?.lastUsedAt).toBe(NOON + 5);
  });

  it('waits when the journal is busy, without waiting for it', () => {
    const { tokens, folder, journal } = store();
    tokens.add(PHONE);
    tokens.noteUse(tokens.list()[0]?.hash ?? '');
    const other = new BetterSqlite3(folder.journal);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    tokens.flushUses();
    expect(tokens.list()[0]?.lastUsedAt).toBeNull();
    expect(journal.db.pragma('busy_timeout', { simple: true })).toBeGreaterThan(0);
    other.exec('ROLLBACK');
    tokens.flushUses();
    expect(tokens.list()[0]?.lastUsedAt).toBe(NOON);
  });
});
