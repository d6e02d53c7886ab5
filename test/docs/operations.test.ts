/** docs/operations.md and the settings of the program say the same. */
import { describe, expect, it } from 'vitest';
import { DATA, SERVE } from '../../src/cli/settings.js';
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

  it('lists every exit code', () => {
    const rows = tableRows(operations, ['exit code', 'meaning']);
    expect(rows.map(([exitCode]) => Number(exitCode))).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
