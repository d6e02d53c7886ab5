import { afterEach, describe, expect, it, vi } from 'vitest';
import { bytes, duration, harmless, printJson, table } from '../../src/cli/output.js';

afterEach(() => vi.restoreAllMocks());

const HEAD = ['received', 'automation', 'points'];
const LONG = 'Every five minutes, silently, in the night and on holidays as well';

function widest(drawn: string): number {
  return Math.max(...drawn.split('\n').map((line) => line.length));
}

describe('a table', () => {
  it.each([120, 80, 50])('fits a terminal of %d columns, and shortens the longest column first', (width) => {
    const drawn = table(HEAD, [['2026-11-30', LONG, '16001']], width);
    expect(widest(drawn)).toBeLessThanOrEqual(width);
    expect(drawn).toContain('2026-11-30');
    expect(drawn).toContain('16001');
    if (width < 100) expect(drawn).toContain('…');
  });

  it('shortens nothing in a pipe, also where letters are wide', () => {
    const drawn = table(HEAD, [['2026-11-30', `歩数 👣 ${LONG}`, '1']], Number.POSITIVE_INFINITY);
    expect(drawn).toContain(`歩数 👣 ${LONG}`);
  });

  it('holds every row of a very long list, drawn in blocks with a head each', () => {
    const rows = Array.from({ length: 20_001 }, (_, i) => [String(i)]);
    const lines = table(['n'], rows, 80).split('\n');
    expect(lines.filter((line) => /^│ \d+ +│$/.test(line))).toHaveLength(rows.length);
    expect(lines.filter((line) => line.includes(' n '))).toHaveLength(3);
  });

  it('keeps its lines whatever a phone calls its automation', () => {
    const drawn = table(['a', 'b'], [['one\ntwo\u001b[2J', 'x']]);
    expect(drawn).toContain('one two\u{FFFD}[2J');
    expect(drawn.split('\n')).toHaveLength(table(['a', 'b'], [['one', 'x']]).split('\n').length);
  });
});

describe('what a phone sent', () => {
  it('cannot steer the terminal', () => {
    expect(harmless('a\u001b]0;title\u0007\u009b31m\tb\nc')).toBe(
      'a\u{FFFD}]0;title\u{FFFD}\u{FFFD}31m\u{FFFD}b\nc',
    );
  });

  it('is the same again after JSON', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const value = { name: 'a\u001b\u009b\u007f\n👣' };
    printJson(value);
    const line = String(write.mock.calls[0]?.[0]);
    expect(line).not.toMatch(/[^\P{Cc}\n]/u);
    expect(line.trimEnd()).not.toContain('\n');
    expect(JSON.parse(line)).toEqual(value);
  });
});

describe('figures', () => {
  it.each([
    [0, '0 seconds'],
    [119, '119 seconds'],
    [120, '2 minutes'],
    [7199, '119 minutes'],
    [7200, '2 hours'],
    [172_800, '2 days'],
  ])('%d seconds are told as %s', (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });

  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [200 * 1024 * 1024, '200 MiB'],
    [5 * 1024 ** 4, '5120 GiB'],
  ])('%d bytes are told as %s', (count, text) => {
    expect(bytes(count)).toBe(text);
  });
});
