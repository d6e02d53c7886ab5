/** docs/errors.md and the catalogue of errors say the same. */
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../src/journal/errors.js';
import { code, page, tableRows } from './markdown.js';

const rows = tableRows(page('docs/errors.md'), ['code', 'status', 'exit code', 'message', 'hint']);

describe('docs/errors.md', () => {
  it('lists every error of the catalogue once, in its order, and no other', () => {
    expect(rows.map(([name]) => code(name))).toEqual(Object.keys(ERRORS));
  });

  it('gives each error the status, exit code, message and hint that the program gives it', () => {
    const listed = Object.fromEntries(
      rows.map(([name, status, exitCode, message, hint]) => [
        code(name),
        { status: Number(status), exitCode: Number(exitCode), message, hint },
      ]),
    );
    expect(listed).toEqual(ERRORS);
  });
});
