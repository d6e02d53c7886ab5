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

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value));
}

/** For people who look on: progress, hints. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Tells the error and what to do; gives the exit code. */
export function tellError(error: unknown, json: boolean): number {
  const known = knownError(error);
  const message = known?.message ?? (error instanceof Error ? error.message : String(error));
  if (json) process.stderr.write(`${JSON.stringify((known ?? new HealthlogError('internal')).toBody())}\n`);
  else {
    process.stderr.write(`healthlog: ${message}\n`);
    if (known !== null) process.stderr.write(`  what to do: ${known.hint}\n`);
    else if (error instanceof Error && error.stack !== undefined) process.stderr.write(`${error.stack}\n`);
  }
  return known?.exitCode ?? 1;
}

function knownError(error: unknown): HealthlogError | null {
  if (error instanceof HealthlogError) return error;
  const code = platformCode(error);
  if (code?.startsWith('SQLITE_') !== true) return null;
  return new HealthlogError(
    'reading_unavailable',
    { reason: `a database file cannot be read (${code})` },
    { cause: error },
  );
}

const NARROW = 80;
/** Border and padding of one column. */
const COLUMN_COST = 3;

function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
}

/**
 * A table that fits the terminal: the widest columns are shortened first, with an ellipsis. In a pipe nothing is
 * shortened.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const room = Math.max(NARROW, terminalWidth()) - head.length * COLUMN_COST - 1;
  while (sum(widths) > room) {
    const widest = widths.indexOf(Math.max(...widths));
    const width = widths[widest] ?? 0;
    if (width <= 8) break;
    widths[widest] = width - 1;
  }
  const drawn = new Table({
    head: [...head],
    style: { head: [], border: [] },
    colWidths: widths.map((width) => width + 2),
    truncate: '…',
  });
  for (const row of rows) drawn.push([...row]);
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
