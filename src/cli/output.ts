/**
 * Output: what people and scripts see. Results go to stdout, everything else to stderr, so that a pipe gets the
 * result alone. `--json` prints one JSON object per line.
 */
import Table from 'cli-table3';
import { HealthlogError, platformCode } from '../journal/errors.js';

/** Told to a pipe that may close early (`| head`): that is no error. */
export function quietPipe(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

/**
 * What a phone sent (names of automations and metrics) must not steer the terminal: control characters other than
 * the end of a line are shown as U+FFFD.
 */
export function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, '\u{FFFD}');
}

export function print(text: string): void {
  process.stdout.write(`${harmless(text)}\n`);
}

/** JSON escapes the control characters below the blank by itself; the others are escaped here. */
export function printJson(value: unknown): void {
  const json = JSON.stringify(value).replace(
    /\p{Cc}/gu,
    (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
  process.stdout.write(`${json}\n`);
}

/** For people who look on: progress, hints. */
export function say(text: string): void {
  process.stderr.write(`${harmless(text)}\n`);
}

/** Tells the error and what to do; gives the exit code. */
export function tellError(error: unknown, json: boolean): number {
  const known = knownError(error);
  if (json) process.stderr.write(`${JSON.stringify(known.toBody())}\n`);
  else say(`healthlog: ${known.message}\n  what to do: ${known.hint}`);
  // A fault of healthlog: whoever reports it needs the place.
  if (known.code === 'internal') say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return known.exitCode;
}

function knownError(error: unknown): HealthlogError {
  if (error instanceof HealthlogError) {
    // The routes of the API are no help to someone at a terminal.
    return error.code === 'bad_request' ? new HealthlogError('usage', { reason: error.message }) : error;
  }
  const code = platformCode(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code?.startsWith('SQLITE_') === true) {
    return new HealthlogError(
      'files_unusable',
      { reason: `SQLite says ${message} (${code})` },
      { cause: error },
    );
  }
  // Node's own complaints about arguments begin with ERR_; those would be faults of healthlog.
  if (code !== null && /^E(?!RR_)[A-Z0-9]+$/.test(code)) {
    return new HealthlogError('files_unusable', { reason: message }, { cause: error });
  }
  return new HealthlogError('internal', {}, { cause: error });
}

/** Border and padding of one column. */
const COLUMN_COST = 3;
/** A column is not made narrower than this, even where the table then does not fit. */
const COLUMN_MIN = 8;

/** Columns of the terminal; endless in a pipe. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
}

/** Null when everything fits in `width` columns; otherwise the widest columns are shortened first. */
function fitted(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] | null {
  const widths = head.map((title, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), title.length),
  );
  const room = width - head.length * COLUMN_COST - 1;
  if (sum(widths) <= room) return null;
  while (sum(widths) > room) {
    const widest = widths.indexOf(Math.max(...widths));
    const widthNow = widths[widest] ?? 0;
    if (widthNow <= COLUMN_MIN) break;
    widths[widest] = widthNow - 1;
  }
  return widths;
}

/** The library passes all rows as arguments of one call, and there is room for about 120 000. */
const BLOCK_ROWS = 10_000;

/**
 * A table that fits the terminal: what is too long ends with an ellipsis. In a pipe nothing is shortened. A very
 * long one is drawn in blocks, each with its head.
 *
 * @param width columns there are
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width: number = terminalWidth(),
): string {
  const widths = fitted(head, rows, width);
  const blocks: string[] = [];
  for (let start = 0; start === 0 || start < rows.length; start += BLOCK_ROWS)
    blocks.push(block(head, rows.slice(start, start + BLOCK_ROWS), widths));
  return blocks.join('\n');
}

/** `widths` is null when everything fits. */
function block(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  widths: readonly number[] | null,
): string {
  const drawn = new Table({
    head: [...head],
    style: { head: [], border: [] },
    // No line between rows: a list of fifty should take fifty lines.
    chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' },
    ...(widths === null ? {} : { colWidths: widths.map((column) => column + 2) }),
    truncate: '…',
  });
  // A line end or an escape sequence inside a cell would break the table's lines.
  for (const row of rows) drawn.push(row.map((cell) => harmless(cell).replaceAll('\n', ' ')));
  return drawn.toString();
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Aligned `name  value` lines. */
export function facts(list: readonly (readonly [string, string])[]): string {
  const width = Math.max(0, ...list.map(([name]) => name.length));
  return list.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

/** `3 days`, `5 minutes`, `12 seconds`: the largest unit that fits. */
export function duration(seconds: number): string {
  for (const [name, length] of [
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
  ] as const) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${name}s`;
  }
  return `${Math.round(seconds)} seconds`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  const units = ['KiB', 'MiB', 'GiB'];
  let value = count / 1024;
  for (const unit of units) {
    if (value < 1024 || unit === 'GiB') return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
    value /= 1024;
  }
  return `${count} B`;
}
