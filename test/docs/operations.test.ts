/** docs/operations.md and the settings of the program say the same. */
import { describe, expect, it } from 'vitest';
import { DRAIN_BYTES_MAX, DRAIN_MS_MAX } from '../../src/api/drain.js';
import { FIXED } from '../../src/api/limits.js';
import { SLOWDOWN } from '../../src/api/slowdown.js';
import { DATA, SERVE } from '../../src/cli/settings.js';
import { LIMIT_MAX } from '../../src/projections/answers/page.js';
import { code, page, tableRows } from './markdown.js';

const operations = page('docs/operations.md');
const settings = [DATA, ...Object.values(SERVE)];

describe('docs/operations.md', () => {
  it('lists every setting with its flag, environment variable and default, and no other', () => {
    const rows = tableRows(operations, ['flag', 'environment variable', 'default', 'what it sets']);
    const listed = rows.map(([flag, env, fallback]) => ({
      flag: code(flag),
      env: code(env),
      fallback: fallback === 'not set' ? null : code(fallback),
    }));
    expect(listed).toEqual(
      settings.map(({ flag, env, fallback }) => ({
        flag: `--${flag}`,
        env,
        fallback: fallback === null ? null : String(fallback),
      })),
    );
  });

  it('describes each setting in the words of --help', () => {
    const rows = tableRows(operations, ['flag', 'environment variable', 'default', 'what it sets']);
    expect(rows.map((row) => row[3])).toEqual(settings.map(({ help }) => help));
  });

  it('names every limit of the HTTP side with its setting, and the fixed ones with their numbers', () => {
    const rows = tableRows(operations, ['limit', 'default', 'setting']);
    const flags = rows.map((row) => row[2]).filter((cell) => cell !== 'fixed');
    const limiting = settings.filter(({ flag }) => /limit|max|timeout|group|budget|memory/.test(flag));
    expect(flags.map(code).sort()).toEqual(limiting.map(({ flag }) => `--${flag}`).sort());
    const told = (part: string): string | undefined => rows.find(([limit]) => limit?.includes(part))?.[1];
    const s = (ms: number): string => `${ms / 1000} s`;
    expect({
      headers: told('time for the headers'),
      bytes: told('bytes of the headers'),
      check: told('how often'),
      idle: told('may be idle'),
      connections: told('connections at the same time'),
      held: told('held back'),
      drained: told('rest of a refused body'),
      free: told('answered at once'),
      delay: told('delay of the answer'),
      quiet: told('quiet time'),
      addresses: told('addresses that are remembered'),
      page: told('one page'),
    }).toEqual({
      headers: s(FIXED.headersTimeoutMs),
      bytes: `${FIXED.headerBytesMax / 1024} KiB`,
      check: s(FIXED.checkEveryMs),
      idle: s(FIXED.keepAliveMs),
      connections: `${FIXED.connectionsMax}`,
      held: `${FIXED.heldAnswersMax}`,
      drained: `${DRAIN_BYTES_MAX / 2 ** 20} MiB, ${s(DRAIN_MS_MAX)}`,
      free: `${SLOWDOWN.freeFailures}`,
      delay: `${SLOWDOWN.delayMsMin} ms to ${s(SLOWDOWN.delayMsMax)}`,
      quiet: `${SLOWDOWN.forgetAfterMs / 60_000} minutes`,
      addresses: `${SLOWDOWN.addressesMax}`,
      page: `${LIMIT_MAX}`,
    });
  });

  it('lists every exit code', () => {
    const rows = tableRows(operations, ['exit code', 'meaning']);
    expect(rows.map(([exitCode]) => Number(exitCode))).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
