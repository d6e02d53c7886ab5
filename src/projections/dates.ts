/**
 * Dates as the app writes them (hae-format.md §7), and days as whole numbers.
 *
 * Rules:
 *  - A stamp is text. A number is no date: the epoch it counts from is unproven.
 *  - Nothing is converted to UTC before the local date is taken: the label of a day is the text's own date.
 *  - An offset is kept as written; a text without one has none. It is not guessed.
 *  - A text that names no possible moment (30 February, hour 24, second 60, offset beyond ±14:59) is no stamp,
 *    and neither is a year outside 1900 … 2200, such as the Buddhist 2567.
 *
 * `parseStamp` runs once per point. `2024-03-14 00:02:00 -0400` is read by its character codes alone; other
 * spellings are scanned once from left to right. No regular expressions, no `Date`.
 */

const YEAR_MIN = 1900;
const YEAR_MAX = 2200;
const DAY_MS = 86_400_000;
/** The easternmost zone is +14:00; a little room for history, none for nonsense. */
const OFFSET_HOURS_MAX = 14;
/** Longest real spelling is about 40 characters; a text of megabytes is not scanned. */
const TEXT_MAX = 64;

/** A stamp as written. */
export interface Stamp {
  /** The instant, milliseconds since 1970 UTC; without an offset the local reading taken as if it were UTC. */
  readonly epochMs: number;
  /** Minutes east of UTC as written; null when the text had no offset. */
  readonly offsetMin: number | null;
  /** Days since 1970-01-01 of the local date as written. */
  readonly localDay: number;
  /** 0 … 86399: whole seconds on the local clock as written. */
  readonly secondOfDay: number;
  /** True when the text had no time of day. */
  readonly dateOnly: boolean;
}

export interface Ymd {
  readonly y: number;
  /** 1 … 12 */
  readonly m: number;
  /** 1 … 31 */
  readonly d: number;
}

/** Days since 1970-01-01 of a date of the Gregorian calendar; `m` is 1 … 12. The date is not checked. */
export function dayOfYmd(y: number, m: number, d: number): number {
  // Years counted from March, so that the leap day is the last day of its year; 400 years are 146 097 days.
  const year = m <= 2 ? y - 1 : y;
  const era = Math.floor(year / 400);
  const yearOfEra = year - era * 400;
  const dayOfYear = Math.floor((153 * (m > 2 ? m - 3 : m + 9) + 2) / 5) + d - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  // 719 468 days lie between 0000-03-01 and 1970-01-01.
  return era * 146_097 + dayOfEra - 719_468;
}

/** The date of a day counted from 1970-01-01. */
export function ymdOfDay(day: number): Ymd {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const m = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return {
    y: yearOfEra + era * 400 + (m <= 2 ? 1 : 0),
    m,
    d: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  };
}

/** `2024-03-14` of a day counted from 1970-01-01. */
export function formatDay(day: number): string {
  const { y, m, d } = ymdOfDay(day);
  return `${pad(y, 4)}-${pad(m, 2)}-${pad(d, 2)}`;
}

/** Days since 1970-01-01 of exactly `YYYY-MM-DD`; null for any other text and for years outside 1900 … 2200. */
export function parseDay(text: string): number | null {
  return text.length === 10 ? dayAt(text) : null;
}

/** The Monday of the ISO week this day lies in. */
export function weekStart(day: number): number {
  // 1970-01-01 was a Thursday, three days after a Monday.
  const afterMonday = (day + 3) % 7;
  return day - (afterMonday < 0 ? afterMonday + 7 : afterMonday);
}

/** The first day of the month this day lies in. */
export function monthStart(day: number): number {
  return day - ymdOfDay(day).d + 1;
}

/** The first day of the month after the one this day lies in. */
export function nextMonthStart(day: number): number {
  const { y, m } = ymdOfDay(day);
  return m === 12 ? dayOfYmd(y + 1, 1, 1) : dayOfYmd(y, m + 1, 1);
}

/** 1 January of the year this day lies in. */
export function yearStart(day: number): number {
  return dayOfYmd(ymdOfDay(day).y, 1, 1);
}

/** 1 January of the year after the one this day lies in. */
export function nextYearStart(day: number): number {
  return dayOfYmd(ymdOfDay(day).y + 1, 1, 1);
}

/**
 * ISO 8601 text on the clock as written: `2024-03-14T00:02:00-04:00`, milliseconds only when there are any,
 * nothing behind the time when there was no offset.
 * @param epochMs milliseconds since 1970 UTC, as in {@link Stamp}
 * @param offsetMin minutes east of UTC, or null
 */
export function formatStamp(epochMs: number, offsetMin: number | null): string {
  const local = epochMs + (offsetMin ?? 0) * 60_000;
  const day = Math.floor(local / DAY_MS);
  const msOfDay = local - day * DAY_MS;
  const second = Math.floor(msOfDay / 1000);
  const ms = msOfDay - second * 1000;
  const time = `${pad(Math.floor(second / 3600), 2)}:${pad(Math.floor(second / 60) % 60, 2)}:${pad(second % 60, 2)}`;
  const fraction = ms === 0 ? '' : `.${pad(ms, 3)}`;
  return `${formatDay(day)}T${time}${fraction}${offsetMin === null ? '' : formatOffset(offsetMin)}`;
}

function formatOffset(offsetMin: number): string {
  const size = Math.abs(offsetMin);
  return `${offsetMin < 0 ? '-' : '+'}${pad(Math.floor(size / 60), 2)}:${pad(size % 60, 2)}`;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

const ZERO = 48;
const COLON = 58;
const SPACE = 32;
const PLUS = 43;
const MINUS = 45;
const DOT = 46;
const COMMA = 44;

/**
 * Reads one date of a body, in every spelling of hae-format.md §7.
 * @returns null when the value names no moment that can be read
 */
export function parseStamp(value: unknown): Stamp | null {
  if (typeof value !== 'string') return null;
  return parseUsual(value) ?? parseAny(value);
}

/** `2024-03-14 00:02:00 -0400`, and nothing else. */
function parseUsual(text: string): Stamp | null {
  if (text.length !== 25) return null;
  if (text.charCodeAt(10) !== SPACE || text.charCodeAt(13) !== COLON) return null;
  if (text.charCodeAt(16) !== COLON || text.charCodeAt(19) !== SPACE) return null;
  const localDay = dayAt(text);
  if (localDay === null) return null;
  const secondOfDay = clock(twoDigits(text, 11), twoDigits(text, 14), twoDigits(text, 17));
  const sign = text.charCodeAt(20);
  if (secondOfDay < 0 || (sign !== PLUS && sign !== MINUS)) return null;
  const offsetMin = offset(sign, twoDigits(text, 21), twoDigits(text, 23));
  return offsetMin === null ? null : stamp(localDay, secondOfDay, 0, offsetMin);
}

function stamp(localDay: number, secondOfDay: number, ms: number, offsetMin: number | null): Stamp {
  const epochMs = localDay * DAY_MS + secondOfDay * 1000 + ms - (offsetMin ?? 0) * 60_000;
  return { epochMs, offsetMin, localDay, secondOfDay, dateOnly: false };
}

/** 0 … 9, or -1. */
function digit(text: string, at: number): number {
  const code = text.charCodeAt(at) - ZERO;
  return code >= 0 && code <= 9 ? code : -1;
}

/** 0 … 99, or -1; past the end of the text as well. */
function twoDigits(text: string, at: number): number {
  const tens = digit(text, at);
  const ones = digit(text, at + 1);
  return tens < 0 || ones < 0 ? -1 : tens * 10 + ones;
}

/** Seconds of the day, or -1 when there is no such time. */
function clock(hour: number, minute: number, second: number): number {
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1;
  return hour * 3600 + minute * 60 + second;
}

/** Minutes east of UTC, or null when there is no such offset. */
function offset(sign: number, hours: number, minutes: number): number | null {
  if (hours < 0 || hours > OFFSET_HOURS_MAX || minutes < 0 || minutes > 59) return null;
  const size = hours * 60 + minutes;
  return sign === MINUS ? 0 - size : size; // 0 - 0 is 0, while -0 would be a value of its own
}

/** The day that `YYYY-MM-DD` at the beginning of the text names, or null. */
function dayAt(text: string): number | null {
  if (text.charCodeAt(4) !== MINUS || text.charCodeAt(7) !== MINUS) return null;
  const century = twoDigits(text, 0);
  const yearOfCentury = twoDigits(text, 2);
  const m = twoDigits(text, 5);
  const d = twoDigits(text, 8);
  if (century < 0 || yearOfCentury < 0) return null;
  const y = century * 100 + yearOfCentury;
  if (y < YEAR_MIN || y > YEAR_MAX || m < 1 || m > 12 || d < 1 || d > daysInMonth(y, m)) return null;
  return dayOfYmd(y, m, d);
}

function daysInMonth(y: number, m: number): number {
  if (m === 2) return y % 4 === 0 && (y % 100 !== 0 || y % 400 === 0) ? 29 : 28;
  return m === 4 || m === 6 || m === 9 || m === 11 ? 30 : 31;
}

/** Half of the day, as phones write it; `true` is the afternoon. Longer spellings first. */
const HALVES: readonly (readonly [string, boolean])[] = [
  ['a. m.', false],
  ['p. m.', true],
  ['a.m.', false],
  ['p.m.', true],
  ['am', false],
  ['pm', true],
  ['上午', false],
  ['下午', true],
  ['午前', false],
  ['午後', true],
  ['오전', false],
  ['오후', true],
  ['ص', false],
  ['م', true],
];

/** The general reading: one scan from left to right. */
function parseAny(written: string): Stamp | null {
  if (written.length > TEXT_MAX) return null;
  const text = fold(written);
  const localDay = dayAt(text);
  if (localDay === null) return null;
  let at = 10;
  if (at === text.length) {
    return { epochMs: localDay * DAY_MS, offsetMin: null, localDay, secondOfDay: 0, dateOnly: true };
  }
  if (text[at] === 't') at += 1;
  else if (text.charCodeAt(at) !== SPACE) return null;
  at = skipSpaces(text, at);

  let half = halfAt(text, at);
  if (half !== null) at = skipSpaces(text, at + half[0].length);

  const padded = twoDigits(text, at);
  const hour = padded < 0 ? digit(text, at) : padded;
  at += padded < 0 ? 1 : 2;
  if (text.charCodeAt(at) !== COLON) return null;
  const minute = twoDigits(text, at + 1);
  at += 3;
  let second = 0;
  let ms = 0;
  if (text.charCodeAt(at) === COLON) {
    second = twoDigits(text, at + 1);
    at += 3;
    const mark = text.charCodeAt(at);
    if (mark === DOT || mark === COMMA) {
      const from = at + 1;
      at = from;
      while (digit(text, at) >= 0) at += 1;
      if (at === from) return null;
      // Milliseconds are what is kept; finer digits are cut off.
      for (let place = 0; place < 3; place++) ms = ms * 10 + Math.max(0, digit(text, from + place));
    }
  }
  at = skipSpaces(text, at);

  if (half === null) {
    half = halfAt(text, at);
    if (half !== null) at = skipSpaces(text, at + half[0].length);
  }
  const secondOfDay = clock(half === null ? hour : hourOfDay(hour, half[1]), minute, second);
  if (secondOfDay < 0) return null;
  const offsetMin = offsetAt(text, at);
  return offsetMin === undefined ? null : stamp(localDay, secondOfDay, ms, offsetMin);
}

/** 12 am is 0 and 12 pm is 12; Japanese phones count 0 … 11 in both halves. -1 when there is no such hour. */
function hourOfDay(hour: number, afternoon: boolean): number {
  if (hour < 0 || hour > 12) return -1;
  return (hour % 12) + (afternoon ? 12 : 0);
}

function halfAt(text: string, at: number): readonly [string, boolean] | null {
  const code = text.charCodeAt(at);
  if (Number.isNaN(code) || digit(text, at) >= 0 || code === PLUS || code === MINUS) return null;
  for (const half of HALVES) if (text.startsWith(half[0], at)) return half;
  return null;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) === SPACE) at += 1;
  return at;
}

/** `z`, `utc`, `gmt`, `±HH`, `±HHMM`, `±HH:MM`, `gmt±H` up to the end; null for nothing, undefined for anything else. */
function offsetAt(text: string, from: number): number | null | undefined {
  let at = from;
  if (at === text.length) return null;
  if (text[at] === 'z' && at + 1 === text.length) return 0;
  const named = text.startsWith('utc', at) || text.startsWith('gmt', at);
  if (named) {
    at += 3;
    if (at === text.length) return 0;
  }
  const sign = text.charCodeAt(at);
  if (sign !== PLUS && sign !== MINUS) return undefined;
  at += 1;
  let hours = twoDigits(text, at);
  if (hours >= 0) at += 2;
  else if (named) {
    hours = digit(text, at);
    at += 1;
  }
  let minutes = 0;
  if (at !== text.length) {
    if (text.charCodeAt(at) === COLON) at += 1;
    minutes = twoDigits(text, at);
    at += 2;
  }
  if (at !== text.length) return undefined;
  return offset(sign, hours, minutes) ?? undefined;
}

/**
 * Lower case, plain spaces, ASCII digits and signs, no marks of writing direction, nothing around it. A phone
 * formats dates in its own locale (hae-format.md §7), so every script's digits may turn up.
 */
function fold(text: string): string {
  let plain = true;
  for (let at = 0; at < text.length && plain; at++) plain = text.charCodeAt(at) < 128;
  if (plain) return text.trim().toLowerCase();
  let folded = '';
  for (const character of text) folded += foldCharacter(character);
  return folded.trim().toLowerCase();
}

function foldCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 128) return character;
  if (character.trim() === '') return ' '; // U+00A0, U+2009, U+202F, U+3000 …
  switch (code) {
    case 0x200e: // left-to-right mark
    case 0x200f: // right-to-left mark
    case 0x061c: // Arabic letter mark
      return '';
    case 0x2212: // minus sign
    case 0x2010: // hyphen
    case 0x2011: // non-breaking hyphen
      return '-';
    case 0xff1a: // full-width colon
      return ':';
    default:
      return isDecimalDigit(code) ? String(digitValue(code)) : character;
  }
}

const DECIMAL_DIGIT = /^\p{Nd}$/u;

function isDecimalDigit(code: number): boolean {
  return DECIMAL_DIGIT.test(String.fromCodePoint(code));
}

/** Unicode keeps decimal digits in runs 0 … 9, so the value is the distance from where the run begins. */
function digitValue(code: number): number {
  let first = code;
  while (isDecimalDigit(first - 1)) first -= 1;
  return (code - first) % 10;
}
