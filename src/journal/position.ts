/**
 * Position: the one total order of accepted deliveries.
 *
 * A position is the pair `(received_at, id)`, compared as a row value: first the instant, then the id as
 * text. `received_at` is an integer number of microseconds since 1970 in UTC. Until the year 2255 it fits in
 * a double without loss, so a plain `number` carries it; the brand keeps it apart from milliseconds and
 * seconds.
 */

declare const microsBrand: unique symbol;
declare const deliveryIdBrand: unique symbol;

/** Microseconds since 1970-01-01T00:00:00Z, an integer. */
export type Micros = number & { readonly [microsBrand]: true };

/** Identity of a delivery: a lower-case UUID. */
export type DeliveryId = string & { readonly [deliveryIdBrand]: true };

export interface Position {
  readonly receivedAt: Micros;
  readonly id: DeliveryId;
}

/** Before every position: the cursor a pass begins with. */
export const POSITION_ZERO: Position = { receivedAt: -1 as Micros, id: '' as DeliveryId };

const ID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Brands an integer count of microseconds. Throws RangeError for anything that is not a safe integer. */
export function micros(value: number): Micros {
  if (!Number.isSafeInteger(value)) throw new RangeError(`not a count of microseconds: ${value}`);
  return value as Micros;
}

export function isDeliveryId(text: string): text is DeliveryId {
  return ID_PATTERN.test(text);
}

/** Brands a delivery id. Throws RangeError when the text is not a lower-case UUID. */
export function deliveryId(text: string): DeliveryId {
  if (!isDeliveryId(text)) throw new RangeError(`not a delivery id: ${text}`);
  return text;
}

/** Negative when `a` comes before `b` in the journal, 0 when they are the same position. */
export function comparePosition(a: Position, b: Position): number {
  if (a.receivedAt !== b.receivedAt) return a.receivedAt - b.receivedAt;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** ISO 8601 in UTC with six digits of fraction: `2026-11-30T22:05:18.123456Z`. */
export function formatMicros(at: Micros): string {
  const ms = Math.floor(at / 1000);
  const rest = at - ms * 1000;
  return `${new Date(ms).toISOString().slice(0, 23)}${String(rest).padStart(3, '0')}Z`;
}

const ISO_PATTERN = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,6})\d*)?Z$/;

/** The inverse of {@link formatMicros}; null when the text is not such a time. */
export function parseMicros(text: string): Micros | null {
  const match = ISO_PATTERN.exec(text);
  if (!match) return null;
  const ms = Date.parse(`${match[1]}Z`);
  const at = ms * 1000 + Number((match[2] ?? '').padEnd(6, '0'));
  // NaN, and years in which microseconds are no longer exact: nothing was ever recorded there.
  return Number.isSafeInteger(at) ? micros(at) : null;
}

/** The form used in archive names: `20261130T220518.123456Z`. */
export function fileStamp(at: Micros): string {
  return formatMicros(at).replace(/[-:]/g, '');
}

const STAMP_PATTERN = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})\.(\d{6})Z$/;

/** The inverse of {@link fileStamp}; null when the text is not such a stamp. */
export function parseFileStamp(text: string): Micros | null {
  const m = STAMP_PATTERN.exec(text);
  if (!m) return null;
  const at = parseMicros(`${m[1]}-${m[2]}-${m[3]}T${m[4]}:${m[5]}:${m[6]}.${m[7]}Z`);
  return at !== null && fileStamp(at) === text ? at : null;
}
