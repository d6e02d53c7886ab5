/** Behind a proxy: whose address counts, and under which paths the routes answer. */
import { describe, expect, it } from 'vitest';
import { routedUrl, shownPath } from '../../src/api/url.js';
import { Api, type ApiOptions, BODY, head, post } from './support.js';

async function remoteOf(options: ApiOptions, ...headers: readonly string[]): Promise<unknown> {
  const api = await Api.start(options);
  await api
    .open()
    .send(head('GET /healthz', ...headers))
    .answer();
  return (await api.line((line) => line.text === 'request')).remote;
}

describe('the address of a client', () => {
  const FORWARDED = 'X-Forwarded-For: 203.0.113.9';

  it.each<[string, readonly string[] | null, readonly string[], string]>([
    ['is that of the connection, whatever a header says', null, [FORWARDED], '127.0.0.1'],
    ['is what a trusted proxy says', ['loopback'], [FORWARDED], '203.0.113.9'],
    ['is that of the connection when another proxy is trusted', ['192.0.2.0/24'], [FORWARDED], '127.0.0.1'],
    [
      'is the last one that is no trusted proxy; what stands before it anybody can write',
      ['loopback', '10.0.0.0/8'],
      ['X-Forwarded-For: 198.51.100.7, 203.0.113.9, 10.1.1.1'],
      '203.0.113.9',
    ],
    ['is that of the connection when the proxy says nothing', ['127.0.0.1'], [], '127.0.0.1'],
    ['is never what is no address', ['loopback'], ['X-Forwarded-For: hl_nonsense'], '127.0.0.1'],
  ])('%s', async (_what, trustedProxies, headers, remote) => {
    expect(await remoteOf({ trustedProxies }, ...headers)).toBe(remote);
  });

  it('counts attempts for the client, not for the proxy', async () => {
    const api = await Api.start({ trustedProxies: ['loopback'] });
    for (const last of [1, 2, 2]) {
      const headers = [`X-Forwarded-For: 203.0.113.${last}`];
      await api
        .open()
        .send(post('hl_wrong', undefined, { headers }))
        .answer();
    }
    const lines = api.lines.filter(({ text }) => text === 'requests without a valid token');
    expect(lines.map(({ remote }) => remote)).toEqual(['203.0.113.1', '203.0.113.2']);
  });
});

describe('a base path', () => {
  it.each([
    ['/health/v1/ingest', '/v1/ingest'],
    ['/health/v1/ingest?a=/health', '/v1/ingest?a=/health'],
    ['/health', '/'],
    ['/health?x', '/?x'],
    ['/health/', '/'],
    ['/healthz', '/healthz'],
    ['/v1/ingest', '/v1/ingest'],
    ['/health/healthz', '/healthz'],
    ['http://home:8477/health/v1/ingest', '/v1/ingest'],
    ['https://home', '/'],
    ['http://home?x', '/?x'],
    ['//health//v1/ingest', '//v1/ingest'],
    ['*', '*'],
  ])('makes %s the route %s', (url, routed) => {
    expect(routedUrl(url, '/health')).toBe(routed);
  });

  it('is for every route, and the routes answer without it too; the log shows what came', async () => {
    const api = await Api.start({ basePath: '/health' });
    const token = api.token();
    for (const prefix of ['', '/health']) {
      expect(
        (
          await api
            .open()
            .send(head(`GET ${prefix}/healthz`))
            .answer()
        ).status,
      ).toBe(200);
      expect(
        (
          await api
            .open()
            .send(head(`GET ${prefix}/v1/status`))
            .answer()
        ).status,
      ).toBe(401);
      const sent = post(token, BODY, { path: `${prefix}/v1/ingest` });
      expect((await api.open().send(sent).answer()).status).toBe(200);
    }
    await api.line(({ path }) => path === '/health/v1/ingest');
    expect((await api.open().send(head('GET /healthier/healthz')).answer()).status).toBe(404);
  });
});

describe('what the log shows of an address', () => {
  const token = `hl_${'Ab-_5'.repeat(9).slice(0, 43)}`;
  const hidden = [...token].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('');

  it.each([
    ['/v1/ingest?token=x', '/v1/ingest'],
    ['/v1/ingest;x', '/v1/ingest'],
    ['/v1/ingest#x', '/v1/ingest'],
    [`/v1/ingest/${token}`, '/v1/ingest/[token]'],
    [`/v1/ingest/x${token}/y`, '/v1/ingest/x[token]/y'],
    [`/v1/${token.replace('_', '%5F')}`, '/v1/[token]'],
    [`/v1/${hidden}`, '/v1/[token]'],
    [`/v1/${hidden.replaceAll('%', '%25')}`, '/v1/[token]'],
    ['/v1/%zz', '/v1/%zz'],
    ['http://me:secret@home/v1/ingest', 'http://home/v1/ingest'],
    ['/v1/%C3%A4', '/v1/%C3%A4'],
  ])('%s is shown as %s', (url, shown) => {
    expect(shownPath(url)).toBe(shown);
  });

  it('is cut when it has no end', () => {
    expect(shownPath(`/${'x'.repeat(5_000)}`).length).toBeLessThan(250);
  });
});
