/**
 * Runs benches by name:
 *
 *     npm run bench                                  all of them, as a table
 *     npm run -s bench -- ack fold --quick --json    some, in less than 40 s, one JSON object per line
 *
 * Progress goes to stderr. Nothing here judges: aims are in docs/performance.md, and no test asserts a time.
 * Exit codes: 0 measured, 1 failed, 2 used wrongly.
 */
import { parseArgs } from 'node:util';
import { acceptRate } from './accept-rate.js';
import { ack } from './ack.js';
import { fold } from './fold.js';
import type { Bench, BenchRow } from './harness.js';

const BENCHES = new Map<string, Bench>([
  ['ack', ack],
  ['fold', fold],
  ['accept-rate', acceptRate],
]);

interface Request {
  readonly names: readonly string[];
  readonly quick: boolean;
  readonly json: boolean;
}

/** The reason is text for the person who typed the command. */
function readArguments(args: readonly string[]): Request | { readonly wrong: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
      allowPositionals: true,
    });
    const unknown = positionals.find((name) => !BENCHES.has(name));
    if (unknown !== undefined) return { wrong: `there is no bench "${unknown}"` };
    return { ...values, names: positionals.length === 0 ? [...BENCHES.keys()] : positionals };
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) };
  }
}

const COLUMNS: readonly (readonly [keyof BenchRow, string])[] = [
  ['bench', 'bench'],
  ['points', 'points'],
  ['bytes', 'bytes'],
  ['rounds', 'rounds'],
  ['median_ms', 'median ms'],
  ['floor_median_ms', 'floor ms'],
  ['ratio', 'ratio'],
  ['p99_ms', 'p99 ms'],
  ['floor_p99_ms', 'floor p99 ms'],
  ['commit_ms', 'commit ms'],
  ['connections', 'connections'],
  ['per_second', 'per second'],
  ['floor_per_second', 'floor per second'],
];

function table(rows: readonly BenchRow[]): string {
  const cells = [
    COLUMNS.map(([, title]) => title),
    ...rows.map((row) => COLUMNS.map(([key]) => String(row[key] ?? ''))),
  ];
  const widths = COLUMNS.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
  return cells
    .map((line) =>
      line
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
        .join('  '),
    )
    .join('\n');
}

async function main(): Promise<number> {
  const request = readArguments(process.argv.slice(2));
  if ('wrong' in request) {
    process.stderr.write(
      `bench: ${request.wrong}\n  known: ${[...BENCHES.keys()].join(', ')}; options: --quick, --json\n`,
    );
    return 2;
  }
  const note = (text: string): void => {
    process.stderr.write(`${text}\n`);
  };
  const rows: BenchRow[] = [];
  for (const name of request.names) {
    for await (const row of BENCHES.get(name)?.({ quick: request.quick, note }) ?? []) {
      rows.push(row);
      if (request.json) process.stdout.write(`${JSON.stringify(row)}\n`);
    }
  }
  if (!request.json) process.stdout.write(`${table(rows)}\n`);
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
}
