import { describe, expect, it } from 'vitest';
import { LAG_MAX_S, lagWarning } from '../../src/cli/lag.js';

const late = { state: 'folding', settled: true, pending: 3, oldestPendingAgeS: LAG_MAX_S + 1 } as const;

describe('the warning that folding falls behind', () => {
  it('comes when the oldest pending delivery has waited for more than five minutes', () => {
    expect(lagWarning(late)).toEqual({ pending: 3, waited_s: 301 });
    expect(lagWarning({ ...late, oldestPendingAgeS: LAG_MAX_S })).toBeNull();
    expect(lagWarning({ ...late, oldestPendingAgeS: null })).toBeNull();
  });

  it('comes although the worker stands still', () => {
    expect(lagWarning({ ...late, state: 'waiting' })).not.toBeNull();
    expect(lagWarning({ ...late, state: 'idle' })).not.toBeNull();
  });

  it.each([
    ['before the first pass has come to rest', { settled: false }],
    ['during a rebuild', { state: 'rebuilding' }],
    ['while a person has paused folding', { state: 'paused' }],
    ['while stopping', { state: 'stopping' }],
  ] as const)('does not come %s', (_when, change) => {
    expect(lagWarning({ ...late, ...change })).toBeNull();
  });
});
