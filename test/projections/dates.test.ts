import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dayOfYmd,
  formatDay,
  formatStamp,
  monthStart,
  nextMonthStart,
  nextYearStart,
  parseDay,
  parseStamp,
  weekStart,
  yearStart,
  ymdOfDay,
} from '../../src/projections/dates.js';

/** The platform's own calendar: an independent implementation to compare with. */
function platformDay(y: number, m: number, d: number): number {
  return Date.UTC(y, m - 1, d) / 86_400_000;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** The instant of a text with an offset, as the platform reads ISO 8601. */
function instant(iso: string): number {
  return new Date(iso).getTime();
}

/** A whole day from 1900-01-01 to 2200-12-31. */
const days = fc.integer({ min: platformDay(1900, 1, 1), max: platformDay(2200, 12, 31) });
const offsets = fc.integer({ min: -14 * 60 - 59, max: 14 * 60 + 59 });
const seconds = fc.integer({ min: 0, max: 86_399 });

function offsetText(offsetMin: number, colon: string): string {
  const size = Math.abs(offsetMin);
  return `${offsetMin < 0 ? '-' : '+'}${two(Math.floor(size / 60))}${colon}${two(size % 60)}`;
}

function clockText(second: number): string {
  return `${two(Math.floor(second / 3600))}:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`;
}

describe('a stamp of the usual form', () => {
  it('gives the instant, the offset, and the date and time as written', () => {
    expect(parseStamp('2024-03-14 00:02:00 -0400')).toEqual({
      epochMs: instant('2024-03-14T04:02:00Z'),
      offsetMin: -240,
      localDay: platformDay(2024, 3, 14),
      secondOfDay: 120,
      dateOnly: false,
    });
  });

  it('is read for every date, time and offset', () => {
    fc.assert(
      fc.property(days, seconds, offsets, (day, second, offsetMin) => {
        const text = `${formatDay(day)} ${clockText(second)} ${offsetText(offsetMin, '')}`;
        expect(parseStamp(text)).toStrictEqual({
          epochMs: day * 86_400_000 + second * 1000 - offsetMin * 60_000,
          offsetMin,
          localDay: day,
          secondOfDay: second,
          dateOnly: false,
        });
      }),
    );
  });

  it('keeps the local date when the instant lies on another date in UTC', () => {
    const early = parseStamp('2024-03-14 00:30:00 +0900');
    expect(early?.localDay).toBe(platformDay(2024, 3, 14));
    expect(early?.epochMs).toBe(instant('2024-03-13T15:30:00Z'));
  });

  it('tells the two hours of a clock change apart', () => {
    const before = parseStamp('2024-11-03 01:00:00 -0400');
    const after = parseStamp('2024-11-03 01:00:00 -0500');
    expect((after?.epochMs ?? 0) - (before?.epochMs ?? 0)).toBe(3_600_000);
    expect(after?.localDay).toBe(before?.localDay);
    expect(after?.secondOfDay).toBe(before?.secondOfDay);
  });

  it('takes "-0000" as plain zero', () => {
    expect(parseStamp('2024-03-14 00:02:00 -0000')?.offsetMin).toBe(0);
  });
});

describe('the same moment in other spellings', () => {
  const AT = '2024-09-21T07:57:00+10:00';
  const AFTERNOON = '2024-09-21T19:57:00+10:00';
  it.each([
    ['12-hour with a narrow no-break space', '2024-09-21 7:57:00\u202fam +1000', AT],
    ['12-hour with a no-break space', '2024-09-21 7:57:00\u00a0AM +1000', AT],
    ['12-hour with a thin space', '2024-09-21 7:57:00\u2009am +1000', AT],
    ['12-hour with a plain space', '2024-09-21 7:57:00 AM +1000', AT],
    ['12-hour without a space', '2024-09-21 7:57:00am +1000', AT],
    ['12-hour without seconds', '2024-09-21 7:57 am +1000', AT],
    ['a padded 12-hour time', '2024-09-21 07:57:00 Am +1000', AT],
    ['a.m.', '2024-09-21 7:57:00 a.m. +1000', AT],
    ['Spanish a. m.', '2024-09-21 7:57:00 a.\u00a0m. +1000', AT],
    ['AM before the time', '2024-09-21 AM 7:57:00 +1000', AT],
    ['Chinese before the time', '2024-09-21 上午7:57:00 +1000', AT],
    ['Chinese behind the time', '2024-09-21 7:57:00 上午 +1000', AT],
    ['Japanese before the time', '2024-09-21 午前7:57:00 +1000', AT],
    ['Korean before the time', '2024-09-21 오전 7:57:00 +1000', AT],
    ['Arabic', '٢٠٢٤-٠٩-٢١ ٧:٥٧:٠٠\u202fص +١٠٠٠', AT],
    ['pm', '2024-09-21 7:57:00\u202fpm +1000', AFTERNOON],
    ['PM', '2024-09-21 7:57:00 PM +1000', AFTERNOON],
    ['p.m.', '2024-09-21 7:57:00 p.m. +1000', AFTERNOON],
    ['Chinese afternoon', '2024-09-21 下午7:57:00 +1000', AFTERNOON],
    ['Japanese afternoon', '2024-09-21 午後7:57:00 +1000', AFTERNOON],
    ['Korean afternoon', '2024-09-21 오후 7:57:00 +1000', AFTERNOON],
    ['an hour that is not padded', '2024-09-21 7:57:00 +1000', AT],
    ['ISO 8601', '2024-09-21T07:57:00+10:00', AT],
    ['ISO 8601 without a colon in the offset', '2024-09-21T07:57:00+1000', AT],
    ['ISO 8601 with hours alone in the offset', '2024-09-21T07:57:00+10', AT],
    ['a space and an offset with a colon', '2024-09-21 07:57:00 +10:00', AT],
    ['an offset without a space before it', '2024-09-21 07:57:00+1000', AT],
    ['GMT with an offset', '2024-09-21 07:57:00 GMT+10', AT],
    ['no seconds', '2024-09-21 07:57 +1000', AT],
    ['spaces around it', '  2024-09-21 07:57:00 +1000 ', AT],
    ['full-width digits', '２０２４-０９-２１ ０７：５７：００ +１０００', AT],
    ['Persian digits', '۲۰۲۴-۰۹-۲۱ ۰۷:۵۷:۰۰ +۱۰۰۰', AT],
    ['Devanagari digits', '२०२४-०९-२१ ०७:५७:०० +१०००', AT],
    ['Thai digits', '๒๐๒๔-๐๙-๒๑ ๐๗:๕๗:๐๐ +๑๐๐๐', AT],
    ['digits beyond the basic plane', '𝟐𝟎𝟐𝟒-𝟎𝟗-𝟐𝟏 𝟎𝟕:𝟓𝟕:𝟎𝟎 +𝟏𝟎𝟎𝟎', AT],
    ['marks of writing direction', '\u200f2024-09-21 07:57:00 \u200e+1000', AT],
    ['a minus sign of its own', '2024-09-21 07:57:00 \u22120400', '2024-09-21T07:57:00-04:00'],
  ])('%s', (_name, text, iso) => {
    const stamp = parseStamp(text);
    expect(stamp).toStrictEqual(parseStamp(iso));
    expect(stamp?.epochMs).toBe(instant(iso));
  });

  it.each([
    '2026-05-01T10:00:00Z',
    '2026-05-01t10:00:00z',
    '2026-05-01 10:00:00 UTC',
    '2026-05-01 10:00:00 GMT',
    '2026-05-01 10:00:00 +0000',
  ])('%s is at offset zero', (text) => {
    expect(parseStamp(text)).toMatchObject({ epochMs: instant('2026-05-01T10:00:00Z'), offsetMin: 0 });
  });

  it.each([
    ['2026-05-01T10:00:00.5Z', 500],
    ['2026-05-01T10:00:00.123Z', 123],
    ['2026-05-01T10:00:00.123999+00:00', 123],
    ['2026-05-01T10:00:00,007Z', 7],
  ])('%s keeps its milliseconds', (text, ms) => {
    const stamp = parseStamp(text);
    expect(stamp?.epochMs).toBe(instant('2026-05-01T10:00:00Z') + ms);
    expect(stamp?.secondOfDay).toBe(36_000);
  });

  it.each([
    ['12:00:00 am', 0],
    ['12:30:00 am', 1800],
    ['11:59:59 am', 43_199],
    ['12:00:00 pm', 43_200],
    ['0:30:00 pm', 45_000], // Japanese phones count 0 … 11
    ['1:00:00 pm', 46_800],
    ['11:59:59 pm', 86_399],
  ])('%s is second %i of the day', (time, second) => {
    expect(parseStamp(`2024-03-14 ${time} +0000`)?.secondOfDay).toBe(second);
  });

  it('reads what a phone set to 12 hours writes for every minute as it reads 24 hours', () => {
    const twelve = new Intl.DateTimeFormat('en-US', {
      hour: 'numeric',
      minute: '2-digit',
      second: '2-digit',
      timeZone: 'UTC',
    });
    fc.assert(
      fc.property(days, seconds, offsets, (day, second, offsetMin) => {
        const written = twelve.format(new Date(second * 1000));
        const rest = offsetText(offsetMin, '');
        expect(parseStamp(`${formatDay(day)} ${written} ${rest}`)).toStrictEqual(
          parseStamp(`${formatDay(day)} ${clockText(second)} ${rest}`),
        );
      }),
    );
  });
});

describe('a stamp that says less', () => {
  it('has no offset when none is written, and takes the local reading as if it were UTC', () => {
    for (const text of ['2026-03-25 09:04', '2026-03-25 09:04:00', '2026-03-25T09:04:00']) {
      expect(parseStamp(text)).toStrictEqual({
        epochMs: instant('2026-03-25T09:04:00Z'),
        offsetMin: null,
        localDay: platformDay(2026, 3, 25),
        secondOfDay: 9 * 3600 + 4 * 60,
        dateOnly: false,
      });
    }
  });

  it('is a date only when no time is written', () => {
    expect(parseStamp('2024-02-06')).toStrictEqual({
      epochMs: instant('2024-02-06T00:00:00Z'),
      offsetMin: null,
      localDay: platformDay(2024, 2, 6),
      secondOfDay: 0,
      dateOnly: true,
    });
  });
});

describe('what names no moment is no stamp', () => {
  it.each([
    1_188_745_353.994098, // epoch base unproven
    0,
    null,
    undefined,
    true,
    {},
    [],
    '',
    ' ',
    'now',
    '1188745353',
    '2024-02-30 00:00:00 +0000',
    '2023-02-29 00:00:00 +0000',
    '2100-02-29',
    '2024-13-01 00:00:00 +0000',
    '2024-00-10 00:00:00 +0000',
    '2024-04-31 00:00:00 +0000',
    '2024-03-00 00:00:00 +0000',
    '2024-03-14 24:00:00 +0000',
    '2024-03-14 23:60:00 +0000',
    '2024-03-14 23:59:60 +0000',
    '2024-03-14 13:00:00 PM +0000',
    '2024-03-14 am +0000',
    '2024-03-14 7:57:00 am pm +0000',
    '2024-03-14 00:00:00 +1500',
    '2024-03-14 00:00:00 -1460',
    '2024-03-14 00:00:00 +5',
    '2024-03-14 00:00:00 +',
    '2024-03-14 00:00:00 GMT+',
    '2024-03-14 00:00:00 EST',
    '2024-03-14 00:00:00 +0000 and more',
    '2024-03-14 00',
    '2024-03-14 00:0',
    '2024-03-14T',
    '2024-03-14T10:00:00.Z',
    '2024-3-14 00:00:00 +0000',
    '14.03.2024 00:00:00 +0000',
    '2567-03-14 00:00:00 +0000', // Buddhist year
    '1899-12-31',
    '2201-01-01',
    '0001-01-01 00:00:00 +0000',
    `2024-03-14 00:00:00 ${' '.repeat(5_000_000)}+0000`,
  ])('%s', (value) => {
    expect(parseStamp(value)).toBeNull();
  });

  it('and no value makes the reading throw', () => {
    const pieces = fc.constantFrom(
      '2024-03-14',
      ' ',
      'T',
      '7:57',
      '07:57:00',
      '.',
      '5',
      'am',
      '上午',
      'GMT',
      '+',
      '-0400',
      'Z',
      '\u202f',
      '٣',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.string({ unit: 'binary' }),
          fc.array(pieces).map((parts) => parts.join('')),
        ),
        (value) => {
          const stamp = parseStamp(value);
          if (stamp === null) return;
          expect(Number.isSafeInteger(stamp.epochMs)).toBe(true);
          expect(stamp.secondOfDay).toBeGreaterThanOrEqual(0);
          expect(stamp.secondOfDay).toBeLessThan(86_400);
          const local = stamp.epochMs + (stamp.offsetMin ?? 0) * 60_000;
          expect(Math.floor(local / 1000)).toBe(stamp.localDay * 86_400 + stamp.secondOfDay);
        },
      ),
    );
  });

  it('every calendar date is accepted exactly when the platform knows it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1890, max: 2210 }),
        fc.integer({ min: 0, max: 13 }),
        fc.integer({ min: 0, max: 32 }),
        (y, m, d) => {
          const date = new Date(Date.UTC(y, m - 1, d));
          const exists =
            date.getUTCFullYear() === y &&
            date.getUTCMonth() === m - 1 &&
            date.getUTCDate() === d &&
            y >= 1900 &&
            y <= 2200;
          const text = `${y}-${two(m)}-${two(d)}`;
          expect(parseDay(text)).toBe(exists ? platformDay(y, m, d) : null);
          expect(parseStamp(`${text} 10:00:00 +0100`) !== null).toBe(exists);
        },
      ),
    );
  });
});

describe('days as whole numbers', () => {
  it('agree with the platform calendar in both directions', () => {
    fc.assert(
      fc.property(days, (day) => {
        const date = new Date(day * 86_400_000);
        const ymd = { y: date.getUTCFullYear(), m: date.getUTCMonth() + 1, d: date.getUTCDate() };
        expect(ymdOfDay(day)).toEqual(ymd);
        expect(dayOfYmd(ymd.y, ymd.m, ymd.d)).toBe(day);
        expect(formatDay(day)).toBe(date.toISOString().slice(0, 10));
        expect(parseDay(formatDay(day))).toBe(day);
      }),
    );
  });

  it('know the Monday of their week', () => {
    expect(formatDay(weekStart(platformDay(2024, 3, 14)))).toBe('2024-03-11');
    fc.assert(
      fc.property(days, (day) => {
        const monday = weekStart(day);
        expect(new Date(monday * 86_400_000).getUTCDay()).toBe(1);
        expect(day - monday).toBeGreaterThanOrEqual(0);
        expect(day - monday).toBeLessThan(7);
      }),
    );
  });

  it('know their month and year and the next ones', () => {
    fc.assert(
      fc.property(days, (day) => {
        const date = new Date(day * 86_400_000);
        const y = date.getUTCFullYear();
        const m = date.getUTCMonth() + 1;
        expect(monthStart(day)).toBe(platformDay(y, m, 1));
        expect(nextMonthStart(day)).toBe(platformDay(y, m + 1, 1));
        expect(yearStart(day)).toBe(platformDay(y, 1, 1));
        expect(nextYearStart(day)).toBe(platformDay(y + 1, 1, 1));
      }),
    );
  });

  it.each([
    '2024-3-14',
    '2024-03-14 ',
    ' 2024-03-14',
    '2024-03-1',
    '2024/03/14',
    '2024-03-14T00:00:00Z',
    '',
    '2024-02-30',
  ])('"%s" is no day', (text) => {
    expect(parseDay(text)).toBeNull();
  });
});

describe('a stamp written out', () => {
  it('is ISO 8601 on the clock as written', () => {
    const stamp = parseStamp('2024-03-14 00:02:00 -0400');
    expect(formatStamp(stamp?.epochMs ?? 0, stamp?.offsetMin ?? null)).toBe('2024-03-14T00:02:00-04:00');
    expect(formatStamp(instant('2024-03-14T00:02:00.050Z'), 0)).toBe('2024-03-14T00:02:00.050+00:00');
    expect(formatStamp(instant('2024-03-14T00:02:00Z'), null)).toBe('2024-03-14T00:02:00');
    expect(formatStamp(-1, 330)).toBe('1970-01-01T05:29:59.999+05:30');
  });

  it('reads back as itself, with an offset and without', () => {
    fc.assert(
      fc.property(
        days,
        seconds,
        fc.integer({ min: 0, max: 999 }),
        fc.option(offsets),
        (day, second, ms, offsetMin) => {
          const epochMs = day * 86_400_000 + second * 1000 + ms - (offsetMin ?? 0) * 60_000;
          const text = formatStamp(epochMs, offsetMin);
          expect(parseStamp(text)).toStrictEqual({
            epochMs,
            offsetMin,
            localDay: day,
            secondOfDay: second,
            dateOnly: false,
          });
          if (offsetMin !== null) expect(instant(text)).toBe(epochMs);
        },
      ),
    );
  });
});
