/** Ingest over real HTTP and raw sockets: each request, its answer, and what lies on the disk afterwards. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { archivePaths } from '../../src/journal/archive-walk.js';
import { nodeFiles } from '../../src/journal/files.js';
import { dataFolder } from '../../src/journal/folder.js';
import { Journal } from '../../src/journal/store.js';
import { healthlog, Service, stopAll } from '../support/service.js';

let service: Service;
beforeAll(async () => {
  service = await Service.start({ args: ['--body-limit', '2000000'] });
});
afterAll(stopAll);

const errorSchema = z.object({
  error: z.object({ code: z.string(), message: z.string().min(10), hint: z.string().min(10) }),
});

function recorded(): number {
  const journal = Journal.open(dataFolder(service.data), 'read');
  try {
    return journal.count();
  } finally {
    journal.close();
  }
}

const bodies = (): number => [...archivePaths(dataFolder(service.data), nodeFiles)].length;
const leftovers = (): string[] => readdirSync(join(service.data, 'archive', 'incoming'));

interface Case {
  readonly what: string;
  readonly body?: string | Buffer;
  readonly headers?: Record<string, string>;
  readonly query?: string;
  readonly status: number;
  readonly code?: string;
}

const JSON_BODY = '{"data":{"metrics":[]}}';

describe('the answer to a POST, and what is on the disk afterwards', () => {
  it.each<Case>([
    { what: 'JSON', body: JSON_BODY, status: 200 },
    { what: 'an empty object', body: '{}', status: 200 },
    { what: 'an empty list', body: '[]', status: 200 },
    { what: 'sections that are null', body: '{"data":{"metrics":null}}', status: 200 },
    { what: 'a JSON text', body: JSON.stringify(JSON_BODY), status: 200 },
    { what: 'JSON with a byte order mark and blanks', body: `\ufeff \n${JSON_BODY}\n\n`, status: 200 },
    {
      what: 'a charset and odd case',
      body: JSON_BODY,
      headers: { 'content-type': 'APPLICATION/Json; charset=utf-8' },
      status: 200,
    },
    { what: 'no type worth the name', body: JSON_BODY, headers: { 'content-type': ';;;' }, status: 200 },
    {
      what: 'plain text that is JSON',
      body: JSON_BODY,
      headers: { 'content-type': 'text/plain' },
      status: 200,
    },
    { what: 'gzip', body: gzipSync(JSON_BODY), headers: { 'content-encoding': 'gzip' }, status: 200 },
    {
      what: 'CSV',
      body: 'Date,Step Count (count)\n2026-01-01,5\n',
      headers: { 'content-type': 'text/csv' },
      status: 200,
    },
    {
      what: 'a token in the query string beside the header',
      body: JSON_BODY,
      query: '?token=abc&target=home',
      status: 200,
    },
    { what: 'no token', body: JSON_BODY, headers: { authorization: '' }, status: 401, code: 'unauthorized' },
    {
      what: 'a wrong token',
      body: JSON_BODY,
      headers: { authorization: 'Bearer hl_wrong' },
      status: 401,
      code: 'unauthorized',
    },
    { what: 'an empty body', body: '', status: 422, code: 'empty_body' },
    { what: 'blanks', body: ' \n ', status: 422, code: 'empty_body' },
    { what: 'a word', body: 'hello', status: 422, code: 'shapeless_body' },
    { what: 'a cut object', body: '{"data":{"metrics":[', status: 400, code: 'truncated' },
    { what: 'a body over the limit', body: `["${'x'.repeat(2_000_001)}"]`, status: 413, code: 'too_large' },
    {
      what: 'a gzip bomb',
      body: gzipSync(`["${'x'.repeat(3_000_000)}"]`),
      headers: { 'content-encoding': 'gzip' },
      status: 413,
      code: 'too_large',
    },
    {
      what: 'gzip that is none',
      body: JSON_BODY,
      headers: { 'content-encoding': 'gzip' },
      status: 400,
      code: 'bad_gzip',
    },
    {
      what: 'another coding',
      body: JSON_BODY,
      headers: { 'content-encoding': 'br' },
      status: 415,
      code: 'unsupported_coding',
    },
    {
      what: 'an image',
      body: JSON_BODY,
      headers: { 'content-type': 'image/png' },
      status: 415,
      code: 'unsupported_type',
    },
    {
      what: 'a wait that is no number',
      body: JSON_BODY,
      query: '?wait=soon',
      status: 400,
      code: 'bad_request',
    },
    { what: 'a wait that is too long', body: JSON_BODY, query: '?wait=31', status: 400, code: 'bad_request' },
  ])('$what: $status', async ({ body = '', headers = {}, query = '', status, code }) => {
    const before = [recorded(), bodies()];
    const response = await service.post(body, headers, query);
    expect(response.status).toBe(status);
    if (code !== undefined) {
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(errorSchema.parse(await response.json()).error.code).toBe(code);
    } else
      expect(await response.json()).toMatchObject({
        parse_status: 'pending',
        received_at: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
      });
    const more = code === undefined ? 1 : 0;
    expect([recorded(), bodies()]).toEqual(before.map((n) => n + more));
    expect(leftovers()).toEqual([]);
  });

  it('takes the token in each of the three headers', async () => {
    const token = service.token('phone');
    for (const headers of [
      { authorization: `bearer ${token}` },
      { authorization: '', 'x-api-key': token },
      { authorization: '', 'api-key': token },
    ]) {
      expect((await service.post(JSON_BODY, headers)).status).toBe(200);
    }
  });

  it('takes the address of the vendor’s own server', async () => {
    const response = await fetch(`${service.url}/api/data`, {
      method: 'POST',
      body: JSON_BODY,
      headers: { 'api-key': service.token('phone') },
    });
    expect(response.status).toBe(200);
  });

  it('answers after the fold when it is asked to wait', async () => {
    const body = JSON.stringify({
      data: {
        metrics: [
          { name: 'step_count', units: 'count', data: [{ date: '2026-03-10 00:00:00 +0100', qty: 5 }] },
        ],
      },
    });
    const response = await service.post(body, { 'automation-aggregation': 'Days' }, '?wait=30');
    expect(await response.json()).toMatchObject({
      parse_status: 'parsed',
      class: 'folded',
      layer: 'day',
      layer_origin: 'declared',
      layer_from: null,
      counters: { points: 1 },
    });
  });

  it('says what failed when it is asked to wait', async () => {
    const response = await service.post('{nonsense}', {}, '?wait=30');
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      parse_status: 'failed',
      class: 'malformed',
      reasons: ['the body is not JSON'],
    });
  });

  it('keeps CSV and says that this version does not read it yet', async () => {
    const response = await service.post(
      'Date,Step Count (count)\n2026-01-01,5\n',
      { 'content-type': 'text/csv' },
      '?wait=30',
    );
    expect(await response.json()).toMatchObject({
      class: 'malformed',
      reasons: [expect.stringContaining('CSV')],
    });
  });

  it('names the parameter that is wrong', async () => {
    const response = await service.post(JSON_BODY, {}, '?wait=99');
    expect(errorSchema.parse(await response.json()).error.message).toContain('"wait"');
  });

  it('answers a browser readably', async () => {
    const response = await fetch(`${service.url}/v1/ingest`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('Health Auto Export');
  });

  it('never writes a token or a query string to the log', async () => {
    await service.post(JSON_BODY, {}, '?token=secret-in-the-query');
    await service.waitForOutput(/"path":"\/v1\/ingest"/);
    expect(service.stderr).not.toContain(service.token('phone'));
    expect(service.stderr).not.toContain('secret-in-the-query');
  });
});

describe('scopes', () => {
  it('a token that may only read may not send, and one that may only send may not read', async () => {
    const reading = service.token('reading');
    const refused = await service.post(JSON_BODY, { authorization: `Bearer ${reading}` });
    expect(refused.status).toBe(403);
    expect(errorSchema.parse(await refused.json()).error.code).toBe('forbidden');
    for (const path of ['/v1/status', '/v1/deliveries', '/v1/metrics', '/v1/metrics/step_count', '/readyz']) {
      expect((await service.get(path, service.token('phone'))).status, path).toBe(403);
    }
    expect((await service.get('/v1/status', 'hl_wrong')).status).toBe(401);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(401);
  });

  it('a read token sees its own profile alone, an admin token every one', async () => {
    const make = (scope: string, profile: string) =>
      JSON.parse(
        healthlog([
          'token',
          'add',
          `${scope}-${profile}`,
          '--scope',
          scope,
          '--profile',
          profile,
          '--json',
          '--data',
          service.data,
        ]).stdout,
      ).token;
    const anna = { ingest: make('ingest', 'anna'), read: make('read', 'anna') };
    const admin = make('admin', 'me');
    const sent = await service.post(JSON_BODY, { authorization: `Bearer ${anna.ingest}` }, '?wait=30');
    const { id } = z.object({ id: z.string() }).parse(await sent.json());
    expect((await service.get(`/v1/deliveries/${id}`)).status).toBe(404);
    expect((await service.get(`/v1/deliveries/${id}`, anna.read)).status).toBe(200);
    expect((await service.get(`/v1/deliveries/${id}`, admin)).status).toBe(200);
    expect((await service.get('/v1/deliveries', anna.read)).body).toMatchObject({
      items: [{ id, profile: 'anna' }],
      next: null,
    });
    expect((await service.get('/v1/status', anna.read)).body).toMatchObject({
      deliveries: 1,
      automations: [{ profile: 'anna' }],
    });
    expect((await service.get('/v1/deliveries?profile=anna')).status).toBe(403);
    expect((await service.get('/v1/deliveries?profile=anna', admin)).body).toMatchObject({ items: [{ id }] });
  });

  it('a revoked token is refused at once', async () => {
    const token = JSON.parse(
      healthlog([
        'token',
        'add',
        'lost phone',
        '--scope',
        'ingest',
        '--profile',
        'me',
        '--json',
        '--data',
        service.data,
      ]).stdout,
    ).token;
    expect((await service.post(JSON_BODY, { authorization: `Bearer ${token}` })).status).toBe(200);
    expect(healthlog(['token', 'revoke', 'lost phone', '--data', service.data]).code).toBe(0);
    expect((await service.post(JSON_BODY, { authorization: `Bearer ${token}` })).status).toBe(401);
  });
});

function open(): Promise<Socket> {
  const socket = connect(service.port, '127.0.0.1');
  return once(socket, 'connect').then(() => socket);
}

function head(length: number | null, extra: readonly string[] = []): string {
  return [
    'POST /v1/ingest HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${service.token('phone')}`,
    'Content-Type: application/json',
    length === null ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
    ...extra,
    '',
    '',
  ].join('\r\n');
}

describe('a client that hangs up', () => {
  it('before its last byte leaves nothing, and the log says aborted with the byte count, never a status', async () => {
    const before = [recorded(), bodies()];
    const socket = await open();
    socket.write(`${head(100_000)}{"data":`);
    await service.waitForOutput(/./);
    socket.end();
    await service.waitForOutput(/"abortedAfterBytes":8/);
    const line = service.stderr.split('\n').find((text) => text.includes('"abortedAfterBytes":8')) ?? '';
    expect(JSON.parse(line)).not.toHaveProperty('status');
    expect(line).toContain('aborted');
    expect([recorded(), bodies()]).toEqual(before);
    expect(leftovers()).toEqual([]);
  });

  it('after its last byte still has its delivery recorded, and the log says that the answer was not delivered', async () => {
    const before = recorded();
    const socket = await open();
    const body = JSON.stringify({ data: { metrics: [], pad: 'x'.repeat(500_000) } });
    socket.write(head(body.length));
    socket.write(body);
    await new Promise<void>((resolve) => socket.end(() => resolve()));
    socket.destroy();
    await service.waitForOutput(/"recorded, answer not delivered"/);
    expect(recorded()).toBe(before + 1);
  });

  it('chunked without a length is taken when it is whole, and not when it is cut', async () => {
    const socket = await open();
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk));
    socket.write(`${head(null, ['Connection: close'])}17\r\n${JSON_BODY}\r\n0\r\n\r\n`);
    await once(socket, 'close');
    expect(Buffer.concat(received).toString()).toContain('200 OK');
    const before = recorded();
    const cut = await open();
    cut.write(`${head(null)}17\r\n${JSON_BODY}\r\n`);
    await service.waitForOutput(/./);
    cut.end();
    await service.waitForOutput(/"abortedAfterBytes":23/);
    expect(recorded()).toBe(before);
  });
});

describe('what is no proper request', () => {
  const answer = async (text: string): Promise<string> => {
    const socket = await open();
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk));
    socket.end(text);
    await once(socket, 'close');
    return Buffer.concat(received).toString();
  };

  it.each([
    ['a body cut by a client that still listens', () => `${head(50)}{"data":`, 'HTTP/1.1 400', 'cut_off'],
    ['a chunk that is cut', () => `${head(null)}17\r\n{"da`, 'HTTP/1.1 400', 'cut_off'],
    ['a chunk size that is none', () => `${head(null)}zz\r\n`, 'HTTP/1.1 400', 'bad_http'],
    ['two lengths', () => head(5, ['Content-Length: 6']), 'HTTP/1.1 400', 'bad_http'],
    ['no HTTP at all', () => 'BLAH\r\n\r\n', 'HTTP/1.1 400', 'bad_http'],
    [
      'headers without end',
      () => head(5, [`X-Pad: ${'x'.repeat(20_000)}`]),
      'HTTP/1.1 431',
      'headers_too_large',
    ],
  ])('%s is told in the one shape of errors', async (_what, text, status, code) => {
    const before = recorded();
    const told = await answer(text());
    expect(told).toContain(status);
    expect(errorSchema.parse(JSON.parse(told.slice(told.indexOf('\r\n\r\n')))).error.code).toBe(code);
    expect(recorded()).toBe(before);
    expect(leftovers()).toEqual([]);
  });
});

describe('a refusal reaches a client that is still sending', () => {
  it.each([
    ['a wrong token', ['Authorization: Bearer hl_wrong'], 'unauthorized'],
    ['a declared length over the limit', [], 'too_large'],
  ])('%s', async (_what, extra, code) => {
    const socket = await open();
    const received: Buffer[] = [];
    socket.on('data', (chunk) => received.push(chunk));
    const lines = head(3_000_000, ['Connection: close'])
      .split('\r\n')
      .filter((line) => extra.length === 0 || !line.startsWith('Authorization'));
    lines.splice(1, 0, ...extra);
    socket.write(lines.join('\r\n'));
    socket.write('x'.repeat(1_000_000));
    socket.write('x'.repeat(2_000_000));
    await once(socket, 'close');
    expect(Buffer.concat(received).toString()).toContain(`"code":"${code}"`);
  });
});
