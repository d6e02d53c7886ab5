/**
 *     npm run -s load -- --seconds 60 --connections 64 --importers 2 --files 500 --seed 1 --json
 *
 * Prints what was sent and what does not hold afterwards. Exit codes: 0 all is well, 1 something is not, 2 usage.
 */
import { parseArgs } from 'node:util';
import { compile } from '../../bench/service.js';
import { acceptLoad, type LoadOptions } from './accept-load.js';

const DEFAULTS = { seconds: '60', connections: '64', importers: '2', files: '500', seed: '1' };
const SECONDS_MAX = 600;

function readOptions(): LoadOptions & { readonly json: boolean } {
  const text = (fallback: string) => ({ type: 'string' as const, default: fallback });
  const { values } = parseArgs({
    options: {
      seconds: text(DEFAULTS.seconds),
      connections: text(DEFAULTS.connections),
      importers: text(DEFAULTS.importers),
      files: text(DEFAULTS.files),
      seed: text(DEFAULTS.seed),
      json: { type: 'boolean', default: false },
    },
  });
  const whole = (name: keyof typeof DEFAULTS, max: number): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= 0 && value <= max) return value;
    throw new TypeError(`--${name} is a whole number up to ${max}`);
  };
  return {
    seconds: whole('seconds', SECONDS_MAX),
    connections: whole('connections', 500),
    importers: whole('importers', 16),
    files: whole('files', 20_000),
    seed: whole('seed', 1_000_000),
    json: values.json,
  };
}

async function main(): Promise<number> {
  let options: ReturnType<typeof readOptions>;
  try {
    options = readOptions();
  } catch (error) {
    process.stderr.write(`load: ${error instanceof Error ? error.message : String(error)}\n`);
    return 2;
  }
  compile();
  const { json, ...load } = options;
  const report = await acceptLoad(load);
  if (json) process.stdout.write(`${JSON.stringify(report)}\n`);
  else {
    const { accepted, perSecond, hungUp, imported, rows, faults } = report;
    process.stdout.write(
      `${accepted} deliveries confirmed (${perSecond} a second), ${hungUp} clients hung up, ${imported} files imported, ${rows} rows\n`,
    );
    for (const fault of faults) process.stdout.write(`fault: ${fault}\n`);
    process.stdout.write(faults.length === 0 ? 'nothing is missing\n' : `${faults.length} faults\n`);
  }
  return report.faults.length === 0 ? 0 : 1;
}

process.exitCode = await main();
