/**
 * Bodies to measure with: what the app sends under time grouping Minutes, for any number of points.
 *
 * - Layout, key order and number formats are the app's (hae-format.md §3.1): pretty-printed with two spaces and
 *   a space before the colon, `/` escaped, keys in random order, doubles with up to 17 digits. That decides how
 *   long a body is, how well it compresses and how fast it parses.
 * - Metrics and their shares follow the measured densities of a watch that is worn (§4.3).
 * - The same arguments give the same bytes on every machine: the randomness comes from the seed alone.
 */
import { formatDay } from '../src/projections/dates.js';

/** What the app sends when there is nothing: 21 bytes (hae-format.md §3.1). */
export const EMPTY_RUN = Buffer.from('{\n  "data" : {\n\n  }\n}');

const MINUTES_PER_DAY = 1440;
const OFFSET = '-0400';
export const OFFSET_MIN = -240;

type Shape = 'joined' | 'range' | 'plain';

/** Name, unit, points a day, shape: `joined` sources, min/avg/`range`, or `plain` without a source. */
const METRICS: readonly (readonly [string, string, number, Shape])[] = [
  ['basal_energy_burned', 'kcal', 1280, 'joined'],
  ['active_energy', 'kcal', 790, 'joined'],
  ['step_count', 'count', 370, 'joined'],
  ['walking_running_distance', 'mi', 370, 'joined'],
  ['apple_stand_time', 'min', 310, 'joined'],
  ['heart_rate', 'count\\/min', 270, 'range'],
  ['physical_effort', 'kcal\\/hr·kg', 210, 'plain'],
  ['time_in_daylight', 'min', 150, 'joined'],
  ['environmental_audio_exposure', 'dBASPL', 48, 'plain'],
  ['apple_exercise_time', 'min', 46, 'joined'],
  ['respiratory_rate', 'count\\/min', 39, 'plain'],
  ['walking_speed', 'mi\\/hr', 31, 'plain'],
  ['walking_step_length', 'in', 31, 'plain'],
  ['walking_double_support_percentage', '%', 29, 'plain'],
  ['headphone_audio_exposure', 'dBASPL', 23, 'plain'],
  ['walking_asymmetry_percentage', '%', 22, 'plain'],
  ['blood_oxygen_saturation', '%', 16, 'plain'],
  ['apple_stand_hour', 'count', 13, 'joined'],
  ['heart_rate_variability', 'ms', 10, 'plain'],
  ['flights_climbed', 'count', 9, 'joined'],
];

export const POINTS_PER_DAY = METRICS.reduce((sum, [, , perDay]) => sum + perDay, 0);

export interface BodyOptions {
  readonly points: number;
  readonly seed: number;
  /** Days since 1970-01-01 of the first local date. */
  readonly firstDay: number;
  /** Text of this many bytes on top, in the `metadata` of one point. It compresses as points do. */
  readonly fillerBytes?: number;
}

/** How many days a body of so many points spans. */
export function daysOf(points: number): number {
  return Math.max(1, Math.ceil(points / POINTS_PER_DAY));
}

/** 0 ≤ x < 1, from a 32-bit seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const copy = [...list];
  for (let at = copy.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    const [a, b] = [copy[at], copy[other]];
    if (a === undefined || b === undefined) continue;
    copy[at] = b;
    copy[other] = a;
  }
  return copy;
}

/** One delivery body with exactly `points` points, as the bytes that travel. */
export function deliveryBody({ points, seed, firstDay, fillerBytes = 0 }: BodyOptions): Buffer {
  const random = randomFrom(seed);
  let filler = fillerBytes > 0 ? fillerText(fillerBytes, seed + 1, firstDay) : null;
  const parts: string[] = [];
  for (const [metric, count] of shuffled(shares(points), random)) {
    const [name, unit, , shape] = metric;
    const texts: string[] = [];
    for (const minute of minutes(count, daysOf(points) * MINUTES_PER_DAY, random)) {
      const fields = [...pointFields(shape, random), `"date" : "${stamp(firstDay, minute)}"`];
      if (filler !== null) {
        fields.push(`"metadata" : {\n              "note" : "${filler}"\n            }`);
        filler = null;
      }
      texts.push(block(shuffled(fields, random), '          '));
    }
    const data = texts.length === 0 ? '[\n\n        ]' : `[\n${texts.join(',\n')}\n        ]`;
    const fields = [`"name" : "${name}"`, `"units" : "${unit}"`, `"data" : ${data}`];
    parts.push(block(shuffled(fields, random), '      '));
  }
  return Buffer.concat([
    Buffer.from('{\n  "data" : {\n    "metrics" : [\n'),
    ...parts.flatMap((part, at) => [Buffer.from(at === 0 ? '' : ',\n'), Buffer.from(part)]),
    Buffer.from('\n    ]\n  }\n}'),
  ]);
}

/** A body of exactly `bytes` bytes with `points` points: to tell the cost of bytes from the cost of points. */
export function bodyOfBytes(options: Omit<BodyOptions, 'fillerBytes'>, bytes: number): Buffer {
  const missing = bytes - deliveryBody({ ...options, fillerBytes: 1 }).length + 1;
  if (missing < 1) throw new Error(`${options.points} points do not fit into ${bytes} bytes`);
  return deliveryBody({ ...options, fillerBytes: missing });
}

function block(fields: readonly string[], indent: string): string {
  return `${indent.slice(2)}  {\n${fields.map((field) => `${indent}  ${field}`).join(',\n')}\n${indent}}`;
}

/** How many of the points each metric gets; what rounding leaves goes to the densest. */
function shares(points: number): [(typeof METRICS)[number], number][] {
  let left = points;
  const list: [(typeof METRICS)[number], number][] = [];
  for (const metric of [...METRICS].reverse()) {
    const isDensest = metric === METRICS[0];
    const count = isDensest ? left : Math.min(left, Math.floor((points * metric[2]) / POINTS_PER_DAY));
    left -= count;
    list.push([metric, count]);
  }
  return list;
}

/** Ascending, no two the same, spread over the span. */
function* minutes(count: number, span: number, random: () => number): Generator<number> {
  const step = span / count;
  const play = Math.max(0, 1 - 1 / step);
  for (let at = 0; at < count; at++) yield Math.floor((at + random() * play) * step);
}

function stamp(firstDay: number, minute: number): string {
  const ofDay = minute % MINUTES_PER_DAY;
  const clock = `${String(Math.floor(ofDay / 60)).padStart(2, '0')}:${String(ofDay % 60).padStart(2, '0')}`;
  return `${formatDay(firstDay + Math.floor(minute / MINUTES_PER_DAY))} ${clock}:00 ${OFFSET}`;
}

const WATCH = 'N’s Apple\u00a0Watch';
const PHONE = 'N’s iPhone';

function pointFields(shape: Shape, random: () => number): string[] {
  const value = random() < 0.2 ? String(1 + Math.floor(random() * 40)) : String(random() * 90);
  if (shape === 'plain') return [`"qty" : ${value}`];
  if (shape === 'joined') {
    const roll = random();
    const source = roll < 0.6 ? WATCH : roll < 0.8 ? `${WATCH}|${PHONE}` : `${PHONE}|${WATCH}`;
    return [`"qty" : ${value}`, `"source" : "${source}"`];
  }
  const low = 50 + Math.floor(random() * 60);
  const high = low + Math.floor(random() * 20);
  const times = 1 + Math.floor(random() * 3);
  return [
    `"Min" : ${low}`,
    `"Avg" : ${low + random() * (high - low)}`,
    `"Max" : ${high}`,
    `"source" : "${Array(times).fill(WATCH).join('|')}"`,
  ];
}

/** The text of points without what a JSON string would have to escape. */
function fillerText(bytes: number, seed: number, firstDay: number): string {
  let text = '';
  for (let turn = 0; text.length < bytes; turn++) {
    const points = Math.min(4096, Math.ceil((bytes - text.length) / 100));
    const body = deliveryBody({ points, seed: seed + turn, firstDay: firstDay + turn }).toString('latin1');
    // One byte for one byte, so that the length stays and so does what a compressor sees.
    text += body.replace(/[^ !#-[\]-~]/gu, '_');
  }
  return text.slice(0, bytes);
}
