import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
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
