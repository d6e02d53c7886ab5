import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ArchiveDamaged,
  type ArchiveHeader,
  ArchiveTooLarge,
  archivePath,
  automationOf,
  encodeHeader,
  keptHeaders,
  parseArchivePath,
  readArchive,
} from '../../src/journal/archive.js';
import { deliveryId, micros } from '../../src/journal/position.js';
import { tmpDir } from '../support/tmp.js';
import { at } from './support.js';

const ID = deliveryId('3f2504e0-4f89-41d3-9a0c-0305e82c3301');
const POSITION = { receivedAt: at('2026-11-30T22:05:18.123456Z'), id: ID };
const HEADER: ArchiveHeader = {
  format: 1,
  profile: 'me',
  source: 'http',
  clockAt: at('2026-11-30T22:05:17.000001Z'),
  contentType: 'application/json',
  contentCoding: 'gzip',
  headers: { 'automation-name': 'Šaty 🩺', 'automation-id': 'A1', 'session-id': ' S ' },
};

function sha256(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}

/** Puts a file where `body` belongs; `content` says what is really in it. */
function put(body: Buffer, content?: Buffer): { root: string; rel: string; path: string } {
  const root = tmpDir();
  const rel = archivePath(POSITION, sha256(body));
  const path = join(root, rel);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content ?? Buffer.concat([encodeHeader(HEADER), gzipSync(body)]));
  return { root, rel, path };
}

function damage(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ArchiveDamaged) return error.reason;
    throw error;
  }
  throw new Error('the file was read as if it were sound');
}

describe('the name of an archive file', () => {
  it('holds the position and the first digits of the hash', () => {
    const rel = archivePath(POSITION, 'ab12'.repeat(16));
    expect(rel).toBe(`2026/11/30/20261130T220518.123456Z_${ID}_ab12ab12ab12ab12.json.gz`);
    expect(parseArchivePath(rel)).toEqual({ position: POSITION, sha16: 'ab12ab12ab12ab12' });
  });

  it('gives back every position it was made from', () => {
    const instants = fc.integer({ min: 0, max: at('2200-01-01T00:00:00Z') });
    fc.assert(
      fc.property(instants, fc.uuid(), (instant, id) => {
        const position = { receivedAt: micros(instant), id: deliveryId(id) };
        expect(parseArchivePath(archivePath(position, '0'.repeat(64)))?.position).toEqual(position);
      }),
    );
  });

  it.each([
    'incoming/12-x.tmp',
    `2026/11/29/20261130T220518.123456Z_${ID}_ab12ab12ab12ab12.json.gz`,
    `2026/11/30/20261131T220518.123456Z_${ID}_ab12ab12ab12ab12.json.gz`,
    `9999/11/30/99991130T220518.123456Z_${ID}_ab12ab12ab12ab12.json.gz`,
    `2026/11/30/20261130T220518.123456Z_${ID}_ab12ab12ab12ab12.json.gz.bak`,
    `../2026/11/30/20261130T220518.123456Z_${ID}_ab12ab12ab12ab12.json.gz`,
  ])('is not %s', (rel) => {
    expect(parseArchivePath(rel)).toBeNull();
  });
});

describe('an archive file', () => {
  it('gives back the body byte for byte and everything that was said about it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 50_000 }), (bytes) => {
        const body = Buffer.from(bytes);
        const { root, rel } = put(body);
        const read = readArchive(root, rel, { bodyBytesHint: body.length });
        expect(read.body.equals(body)).toBe(true);
        expect(read).toMatchObject({
          position: POSITION,
          header: HEADER,
          automation: { id: 'A1', name: 'Šaty 🩺', aggregation: null, period: null },
          sessionId: 'S',
          bodySha256: sha256(body),
        });
      }),
      { numRuns: 20 },
    );
  });

  it('is read with ordinary tools: one line of JSON, then the body', () => {
    const body = Buffer.from('{"data":{}}');
    const { path } = put(body);
    expect(execFileSync('sh', ['-c', 'zcat "$1" | tail -n +2', 'sh', path])).toEqual(body);
    const line = execFileSync('sh', ['-c', 'zcat "$1" | head -n 1', 'sh', path]).toString();
    expect(JSON.parse(line)).toEqual({
      format: 1,
      profile: 'me',
      source: 'http',
      clock_at: '2026-11-30T22:05:17.000001Z',
      content_type: 'application/json',
      content_coding: 'gzip',
      headers: HEADER.headers,
    });
  });

  it('is decompressed into one piece of memory of the size that was recorded', () => {
    const body = Buffer.alloc(3_000_000, 'steps ');
    const { root, rel } = put(body);
    for (const options of [{ bodyBytesHint: body.length }, {}]) {
      expect(readArchive(root, rel, options).body.buffer.byteLength).toBeLessThan(body.length + 64 * 1024);
    }
  });

  it('that was cut behind its first member is found out, although it decompresses', () => {
    const { root, rel } = put(Buffer.from('{}'), encodeHeader(HEADER));
    expect(damage(() => readArchive(root, rel))).toContain('hash differs');
    expect(damage(() => readArchive(root, rel, { bodyBytesHint: 2 }))).toContain('0 bytes, 2 were recorded');
  });

  it('that is missing, cut, altered or somebody else’s is damaged, and says how', () => {
    const body = Buffer.from('{"data":{"metrics":[]}}');
    const { root, rel, path } = put(body);
    const whole = readFileSync(path);
    const reasonOf = (content: Buffer): string => {
      writeFileSync(path, content);
      return damage(() => readArchive(root, rel));
    };
    expect(reasonOf(whole.subarray(0, -9))).toBe('it is cut short');
    expect(reasonOf(Buffer.from('no gzip at all'))).toBe('it cannot be decompressed');
    expect(reasonOf(Buffer.concat([encodeHeader(HEADER), gzipSync('{"data":{}}')]))).toContain(
      'hash differs',
    );
    expect(reasonOf(gzipSync(body))).toBe('its first line is missing');
    expect(reasonOf(gzipSync('oh\n{}'))).toBe('its first line is not JSON');
    expect(reasonOf(gzipSync('{"format":2}\n{}'))).toContain('does not describe a delivery (format, profile');
    expect(reasonOf(Buffer.alloc(0))).toMatch(/cut short|first line is missing/);
    rmSync(path);
    expect(damage(() => readArchive(root, rel))).toBe('it is missing');
    expect(damage(() => readArchive(root, 'notes.txt'))).toContain('its name');
  });

  it('that cannot be read for a reason of the machine is not called damaged', () => {
    const { root, rel, path } = put(Buffer.from('{}'));
    rmSync(path);
    mkdirSync(path);
    expect(() => readArchive(root, rel)).toThrow(expect.objectContaining({ code: 'EISDIR' }));
  });

  it('with a longer body than the reader can hold is too large, with and without a recorded length', () => {
    const body = Buffer.alloc(2_000_000, '1');
    const { root, rel } = put(body);
    for (const options of [{ bodyBytesHint: body.length }, {}]) {
      for (const bodyBytesMax of [1000, body.length - 1]) {
        expect(() => readArchive(root, rel, { ...options, bodyBytesMax })).toThrow(ArchiveTooLarge);
      }
      expect(readArchive(root, rel, { ...options, bodyBytesMax: body.length }).body.length).toBe(body.length);
    }
  });
});

describe('the headers that are kept', () => {
  it('are those of the allow-list and no others, so that no secret reaches the disk', () => {
    expect(
      keptHeaders({
        authorization: 'Bearer hl_secret',
        'x-api-key': 'secret',
        'api-key': 'secret',
        cookie: 'secret',
        'x-forwarded-for': '192.0.2.1',
        'automation-name': 'Health Metrics',
        'automation-id': 'A',
        'automation-aggregation': 'Days',
        'automation-period': 'Today',
        'session-id': 'S',
        'user-agent': 'UA',
        'content-type': 'application/json',
        'content-encoding': 'gzip',
        'content-length': '2',
      }),
    ).toEqual({
      'automation-name': 'Health Metrics',
      'automation-id': 'A',
      'automation-aggregation': 'Days',
      'automation-period': 'Today',
      'session-id': 'S',
      'user-agent': 'UA',
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'content-length': '2',
    });
  });

  it.each([
    ['UTF-8 on the wire', Buffer.from('Můj telefon 🩺').toString('latin1'), 'Můj telefon 🩺'],
    ['latin-1 on the wire', 'Caf\u00e9', 'Café'],
    ['text that was decoded before', 'Můj', 'Můj'],
    ['plain ASCII', 'Health', 'Health'],
  ])('are decoded: %s', (_name, raw, decoded) => {
    expect(keptHeaders({ 'automation-name': raw })).toEqual({ 'automation-name': decoded });
  });

  it('are kept together when one came twice', () => {
    expect(keptHeaders({ 'session-id': ['a', 'b'] })).toEqual({ 'session-id': 'a, b' });
  });

  it('never fail, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        expect(typeof keptHeaders({ 'automation-name': value })['automation-name']).toBe('string');
      }),
    );
  });

  it('name the automation; what is blank is missing', () => {
    expect(automationOf({ 'automation-id': ' A ', 'automation-name': '  ', 'session-id': '' })).toEqual({
      automation: { id: 'A', name: null, aggregation: null, period: null },
      sessionId: null,
    });
  });
});
