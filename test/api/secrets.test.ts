/** A secret is sent in every place there is, to the real program; then everything it wrote is searched for it. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withoutTokens } from '../../src/journal/secrets.js';
import { healthlog, Service, stopAll } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';

const BODY = '{"data":{"metrics":[]}}';

async function send(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const received: Buffer[] = [];
  socket.on('data', (chunk) => received.push(chunk));
  socket.on('error', () => undefined);
  socket.end(bytes);
  await once(socket, 'close');
  return Buffer.concat(received).toString();
}

/** Every place in a request where somebody could put a token. */
function requests(token: string): readonly string[] {
  let client = 0;
  // Each from an address of its own: none of them has to be slowed down.
  const request = (first: string, lines: readonly string[] = [], body = BODY): string =>
    [
      `${first} HTTP/1.1`,
      'Host: x',
      `X-Forwarded-For: 203.0.113.${client++}`,
      `Content-Length: ${body.length}`,
      ...lines,
      '',
      body,
    ].join('\r\n');
  const auth = `Authorization: Bearer ${token}`;
  const login = `Authorization: Basic ${Buffer.from(`user:${token}`).toString('base64')}`;
  const hidden = [...token].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('');
  const kept = [
    'automation-name',
    'automation-id',
    'automation-aggregation',
    'automation-period',
    'session-id',
  ];
  const places = [
    ...kept,
    'User-Agent',
    'Content-Type',
    'Cookie',
    'X-Anything',
    'Referer',
    'X-Forwarded-For',
  ];
  return [
    request('POST /v1/ingest', [auth]),
    request(`POST /v1/ingest?token=${token}`, [auth]),
    request(`POST /v1/ingest?token=${token}`),
    request(`POST /v1/ingest?wait=${token}`, [auth]),
    request(`POST /v1/ingest/${token}`, [auth]),
    request(`POST /v1/ingest/${hidden}`, [auth]),
    request(`POST /v1/ingest/${hidden.replaceAll('%', '%25')}`, [auth]),
    request(`POST /v1/ingest;${token}`, [auth]),
    request(`POST /v1/${token}/%zz`, [auth]),
    request(`POST http://user:${token}@host/v1/ingest`, [auth]),
    request(`GET /v1/metrics/${token}?x=${token}`, [auth], ''),
    request(`GET /v1/deliveries/${token}`, [auth], ''),
    request(`GET /v1/deliveries?cursor=${token}&profile=${token}`, [auth], ''),
    request(`PUT /v1/ingest?${token}`, [auth]),
    request(`PROPFIND /${token}`, [auth]),
    request(`CONNECT ${token}:443`, [auth], ''),
    request('POST /v1/ingest', [login]),
    request('POST /v1/ingest', [login, `X-API-Key: ${token}`]),
    request('POST /v1/ingest', [`api-key: ${token}`]),
    ...places.map((name) => request('POST /v1/ingest', [auth, `${name}: a ${token} b`])),
    ...places.map((name) => request('POST /v1/ingest', [`${name}: a ${token} b`])),
    request('POST /v1/ingest', [auth, `Content-Type: image/${token}`]),
    request('POST /v1/ingest', [auth, `Content-Encoding: ${token}`]),
    request('POST /v1/ingest', [auth, `Expect: ${token}`]),
    request('POST /v1/ingest', [auth, `Transfer-Encoding: ${token}`]),
    request('POST /v1/ingest', [auth, `X-Pad: ${token.repeat(500)}`]),
    request('POST /v1/ingest', [auth, `${token}`]),
    request('POST /v1/ingest', [auth], token),
    request('POST /v1/ingest', [auth], `{"data":${token}`),
    `${token} /v1/ingest HTTP/1.1\r\n\r\n`,
    `POST /v1/ingest HTTP/${token}\r\n\r\n`,
    `POST /v1/ingest HTTP/1.1\r\n${auth}\r\nContent-Length: 99\r\n\r\n${token}`,
    `POST /v1/ingest HTTP/1.1\r\nHost: x\r\n${auth}\r\nTransfer-Encoding: chunked\r\n\r\n${token}\r\n`,
  ];
}

/** Everything in the data folder that holds one of the texts; gzip is undone. */
function filesWith(root: string, secrets: readonly string[]): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const bytes = readFileSync(path);
      const text = path.endsWith('.gz') ? gunzipSync(bytes) : bytes;
      return secrets.some((secret) => text.includes(secret));
    });
}

describe('a secret', () => {
  let service: Service;
  const secrets: string[] = [];
  const answers: string[] = [];
  beforeAll(async () => {
    service = await Service.start({ args: ['--log-level', 'debug', '--trusted-proxies', 'loopback'] });
    const { stdout } = healthlog([
      'token',
      'add',
      'other phone',
      '--scope',
      'admin',
      '--json',
      '--data',
      service.data,
    ]);
    const valid: string = JSON.parse(stdout).token;
    const unknown = `hl_${randomBytes(32).toString('base64url')}`;
    // Made elsewhere, of no form that could be known.
    const registered = `Sesame.${randomBytes(12).toString('hex')}.${randomBytes(6).toString('hex')}`;
    const key = join(tmpDir(), 'key');
    writeFileSync(key, registered);
    const added = ['old server', '--scope', 'admin', '--secret-from', key, '--data', service.data];
    expect(healthlog(['token', 'add', ...added]).code).toBe(0);
    for (const token of [valid, unknown, registered]) {
      answers.push(...(await Promise.all(requests(token).map((bytes) => send(service.port, bytes)))));
      secrets.push(token, Buffer.from(`user:${token}`).toString('base64'), token.slice(3));
    }
    // One more is under way when the service is told to stop.
    const socket = connect(service.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(
      `POST /v1/ingest?${valid} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${valid}\r\nautomation-name: ${valid}\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n`,
    );
    await once(socket, 'data');
    const stopped = service.stop();
    await service.waitForOutput(/"msg":"stopping"/);
    socket.end(valid);
    await stopped;
  });
  afterAll(stopAll);

  it('is sent in places that are logged and kept', () => {
    expect(service.stderr).toContain('[token]');
    expect(service.stderr).toContain('"status":200');
    expect(filesWith(join(service.data, 'archive'), ['[token]']).length).toBeGreaterThan(5);
  });

  it('is not in the log', () => {
    const lines = `${service.stdout}\n${service.stderr}`.split('\n');
    expect(lines.filter((line) => secrets.some((secret) => line.includes(secret)))).toEqual([]);
  });

  it('is in no answer', () => {
    expect(answers.filter((answer) => answer.includes('"error"')).length).toBeGreaterThan(50);
    expect(answers.filter((answer) => secrets.some((secret) => answer.includes(secret)))).toEqual([]);
  });

  it('is in no file of the data folder', () => {
    expect(filesWith(service.data, secrets)).toEqual([]);
  });
});

describe('what looks like a token', () => {
  const token = `hl_${'aB3-_'.repeat(9).slice(0, 43)}`;
  it.each([
    [token, '[token]'],
    [`Bearer ${token}, and ${token}!`, 'Bearer [token], and [token]!'],
    [token.slice(0, -5), '[token]'],
    [`${token}${token}`, '[token]'],
    ['api-key sk-0123456789abcdef', 'api-key [token]'],
    ['a task-of-the-day', 'a task-of-the-day'],
    ['hl_short', 'hl_short'],
    ['Health Metrics', 'Health Metrics'],
  ])('%s becomes %s', (text, blanked) => {
    expect(withoutTokens(text)).toBe(blanked);
  });
});
