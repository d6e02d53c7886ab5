/** What a person says of old files: understood, or refused with what would be. */
import { describe, expect, it } from 'vitest';
import { readAsOf } from '../../src/cli/import/as-of.js';
import { type ImportFlags, readFlags, type Said, saidHeaders } from '../../src/cli/import/flags.js';
import { knownBy } from '../../src/cli/import/known.js';
import { deliveryId, type Micros, micros } from '../../src/journal/position.js';
import type { JournalRow } from '../../src/journal/store.js';
import { at, NOON } from '../journal/support.js';

function read(flags: Partial<ImportFlags>): Said {
  return readFlags({ again: false, wait: true, ...flags }, NOON);
}

describe('--aggregation and --period', () => {
  it.each(['Default', 'Seconds', 'minutes', 'Hours', 'DAY', 'weeks', 'Months', 'Years'])(
    '%s is known',
    (word) => {
      expect(read({ aggregation: word }).aggregation).toBe(word);
    },
  );

  it.each([
    'Today',
    'default',
    'Yesterday',
    'Previous 7 Days',
    'previous-30-days',
    'Since Last Sync',
    'sinceLastSync',
  ])('%s is a period', (word) => {
    expect(read({ period: word }).period).toBe(word);
  });

  it.each([
    [{ aggregation: 'none' }, 'it is Default, Seconds, Minutes, Hours, Days, Weeks, Months or Years'],
    [{ period: 'last week' }, 'it is Default, Today, Yesterday, Previous 7 Days'],
    [{ period: 'Previous 0 Days' }, 'Since Last Sync'],
    [{ period: 'Previous -1 Days' }, 'Since Last Sync'],
    [{ automation: 'x'.repeat(201) }, '--automation is one line'],
    [{ automation: 'one\ntwo' }, '--automation is one line'],
    [{ automation: '  ' }, '--automation cannot be empty'],
    [{ profile: '' }, '--profile cannot be empty'],
  ])('%j is refused, with what is known', (flags, text) => {
    expect(() => read(flags)).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining(text) }),
    );
  });

  it('become the headers the phone would have sent', () => {
    expect(saidHeaders(read({ automation: ' A ', aggregation: 'Days', period: 'Today' }))).toEqual({
      'automation-id': 'A',
      'automation-aggregation': 'Days',
      'automation-period': 'Today',
    });
    expect(saidHeaders(read({}))).toEqual({});
  });
});

describe('--as-of', () => {
  const local = (...parts: [number, number, number, number?, number?, number?, number?]): number =>
    new Date(...parts).getTime() * 1000;

  it.each([
    ['2026-03-10', local(2026, 2, 11) - 1],
    ['2024-02-29', local(2024, 2, 1) - 1],
    ['2026-03-10T22:05', local(2026, 2, 10, 22, 5)],
    ['2026-03-10 22:05:06.789', local(2026, 2, 10, 22, 5, 6, 789)],
    ['2026-03-10T22:05:00+01:00', at('2026-03-10T21:05:00.000000Z')],
    ['2026-03-10 22:05:00 -0400', at('2026-03-11T02:05:00.000000Z')],
    ['2026-03-10T21:05:00.123456Z', at('2026-03-10T21:05:00.123456Z')],
  ])('%s is understood', (text, expected) => {
    expect(readAsOf(text, NOON).at).toBe(expected);
  });

  it("means now when it is today's date", () => {
    const now = new Date(NOON / 1000);
    const two = (n: number): string => String(n).padStart(2, '0');
    const today = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
    expect(readAsOf(today, NOON)).toMatchObject({
      at: NOON,
      from: local(now.getFullYear(), now.getMonth(), now.getDate()),
      to: local(now.getFullYear(), now.getMonth(), now.getDate() + 1) - 1,
    });
  });

  it.each([
    ['2026-12-24', 'in the future'],
    ['2026-11-30T12:00:01Z', 'in the future'],
    ['yesterday', 'it is a date like'],
    ['2026-02-30', 'it is a date like'],
    ['2026-02-30T00:00:00Z', 'it is a date like'],
    ['', 'it is a date like'],
    ['0001-01-01', 'it is a date like'],
    ['1969-12-31T23:59:59Z', 'it is a date like'],
  ])('%j is refused', (text, reason) => {
    expect(() => readAsOf(text, NOON)).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining(reason) }),
    );
  });
});

describe('a file that was imported before', () => {
  function row(n: number, parts: Partial<JournalRow['automation']> = {}): JournalRow {
    return {
      seq: n,
      id: deliveryId(`00000000-0000-4000-8000-00000000000${n}`),
      receivedAt: micros(NOON + n),
      clockAt: micros(NOON - n),
      profile: 'me',
      automation: { id: null, name: null, aggregation: null, period: null, ...parts },
      sessionId: null,
      contentType: 'application/json',
      source: 'http',
      adopted: false,
      bodyBytes: 2,
      bodySha256: '',
      archivePath: '',
    };
  }
  const plain = row(1);
  const days = row(2, { id: 'A', aggregation: 'Days', period: 'Previous 7 Days' });

  it.each<[string, Partial<ImportFlags>, JournalRow[], JournalRow | null]>([
    ['nothing has this body', {}, [], null],
    ['nothing is said', {}, [plain, days], plain],
    ['the automation is its own', { automation: 'A' }, [plain, days], days],
    ['the automation is another one', { automation: 'B' }, [plain, days], null],
    ['the grouping is said in another spelling', { aggregation: 'day' }, [plain, days], days],
    ['the grouping is another one', { aggregation: 'Hours' }, [plain, days], null],
    ['only the grouping differs from a plain one', { aggregation: 'Days' }, [plain], null],
    ['the period is said in another spelling', { period: 'previous-7-days' }, [plain, days], days],
    ['the period is another one', { period: 'Today' }, [plain, days], null],
    ['one of two differs', { automation: 'A', aggregation: 'Hours' }, [days], null],
  ])('is known or not: %s', (_name, flags, rows, expected) => {
    expect(knownBy(read(flags), rows)).toBe(expected);
  });

  it('is known by the time it was made, when that was said', () => {
    const exactly = (at: Micros) => ({ ...read({}), asOf: { at, from: at, to: at } });
    expect(knownBy(exactly(days.clockAt), [plain, days])).toBe(days);
    expect(knownBy(exactly(micros(days.clockAt - 1)), [plain, days])).toBe(null);
  });

  it('is known by the day it was made, also when that is today', () => {
    expect(knownBy(read({ asOf: '2026-11-30' }), [plain])).toBe(plain);
    expect(knownBy(read({ asOf: '2026-11-29' }), [plain])).toBe(null);
  });
});
