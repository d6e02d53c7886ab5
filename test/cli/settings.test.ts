import { describe, expect, it } from 'vitest';
import { DATA, refuseUnknownEnv, resolveSetting, SERVE } from '../../src/cli/settings.js';

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
