import { describe, expect, it } from 'vitest';
import { DATA, refuseUnknownEnv, resolveSetting, SERVE, serveSettings } from '../../src/cli/settings.js';

describe('a setting', () => {
  it('is the flag, else the environment variable, else the default', () => {
    expect(resolveSetting(SERVE.port, '1', { HEALTHLOG_PORT: '2' })).toBe(1);
    expect(resolveSetting(SERVE.port, undefined, { HEALTHLOG_PORT: '2' })).toBe(2);
    expect(resolveSetting(SERVE.port, undefined, {})).toBe(8477);
    expect(resolveSetting(DATA, undefined, {})).toBe('./data');
    expect(resolveSetting(SERVE.foldMemory, undefined, {})).toBeNull();
  });

  it.each(['', ' ', '7.5', '-1', '1e3', '0x10', 'seven', '65536'])(
    'is refused for a port of "%s"',
    (text) => {
      expect(() => resolveSetting(SERVE.port, text, {})).toThrow(`--port cannot be "${text}"`);
    },
  );

  it('is not left empty by an empty variable', () => {
    expect(() => resolveSetting(SERVE.port, undefined, { HEALTHLOG_PORT: '' })).toThrow('HEALTHLOG_PORT');
    expect(() => resolveSetting(DATA, undefined, { HEALTHLOG_DATA: '' })).toThrow('HEALTHLOG_DATA');
  });

  it('that does not exist is refused by its name, and other variables are nobody’s business', () => {
    expect(() => refuseUnknownEnv({ HEALTHLOG_PROT: '1' })).toThrow('HEALTHLOG_PROT is not a setting');
    expect(() => refuseUnknownEnv({ HEALTHLOG_PORT: '1', PATH: '/bin' })).not.toThrow();
  });
});

describe('the settings of the service', () => {
  it('go by the names of their flags, so that each is found among them', () => {
    const camel = (flag: string): string =>
      flag.replace(/-([a-z])/g, (_dash, char: string) => char.toUpperCase());
    expect(Object.keys(SERVE)).toEqual(Object.values(SERVE).map(({ flag }) => camel(flag)));
  });

  it('are taken all together', () => {
    const settings = serveSettings({ basePath: '/health' }, { HEALTHLOG_STALL_TIMEOUT: '5' });
    expect(Object.keys(settings)).toEqual(Object.keys(SERVE));
    expect(settings).toMatchObject({
      basePath: '/health',
      stallTimeout: 5,
      port: 8477,
      trustedProxies: null,
    });
  });
});

describe('a base path and the addresses of the service', () => {
  const read = (text: string) => resolveSetting(SERVE.basePath, text, {});

  it.each(['/v1', '/api/health', '/healthz', '/docs'])('is not an address of the service: %s', (text) => {
    expect(() => read(text)).toThrow(/--base-path cannot be .* addresses of its own/);
  });

  it('may look like one', () => {
    expect(read('/v1x/api')).toBe('/v1x/api');
  });
});

describe('trusted proxies', () => {
  const read = (text: string) => resolveSetting(SERVE.trustedProxies, text, {});

  it('are addresses, networks and the names of networks', () => {
    expect(read('127.0.0.1')).toEqual(['127.0.0.1']);
    expect(read(' Loopback, 10.0.0.0/8 ,fd00::/8,::1,uniquelocal')).toEqual([
      'loopback',
      '10.0.0.0/8',
      'fd00::/8',
      '::1',
      'uniquelocal',
    ]);
  });

  it.each([
    '',
    ',',
    'proxy.home',
    '10.0.0.0/0',
    '::/0',
    '10.0.0.0/33',
    '10.0.0.0/8/8',
    '10.0.0.0/x',
    '10.0.0',
    'loopback,',
  ])('are refused plainly when one is "%s"', (text) => {
    expect(() => read(text)).toThrow(/--trusted-proxies cannot be .* is neither an address/);
  });

  it('are what the framework takes', async () => {
    const { default: Fastify } = await import('fastify');
    for (const text of [
      'loopback,linklocal,uniquelocal',
      '10.0.0.0/8,fd00::/8',
      '192.0.2.1/32,::1/128',
      'fe80::1%eth0',
    ])
      expect(() => Fastify({ trustProxy: [...(read(text) ?? [])] })).not.toThrow();
  });
});

describe('a base path', () => {
  const read = (text: string) => resolveSetting(SERVE.basePath, text, {});

  it.each(['/health', '/a/b-c/d_e.f~g', '/.well'])('may be %s', (text) => {
    expect(read(text)).toBe(text);
  });

  it.each([
    '',
    '/',
    'health',
    '/health/',
    '//health',
    '/a//b',
    '/a b',
    '/%61',
    '/a?b',
    '/a/..',
    '/./a',
    '/ä',
  ])('is refused plainly when it is "%s"', (text) => {
    expect(() => read(text)).toThrow(/--base-path cannot be .* begins with/);
  });
});
