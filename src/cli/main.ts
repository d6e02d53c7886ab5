/**
 * Command line. Exit codes: 0 done · 1 failed · 2 usage · 3 rows differ · 4 cancelled or put off · 5 locked
 * (docs/operations.md).
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { z } from 'zod';
import { HealthlogError } from '../journal/errors.js';
import { PARSE_STATUSES, RECORDED_CLASSES } from '../projections/outcome.js';
import type { ListFlags } from './commands/journal.js';
import { type CommonFlags, type Context, contextOf } from './context.js';
import type { ImportFlags } from './import/flags.js';
import { quietPipe, tellError } from './output.js';
import { DATA, SERVE, serveSettings } from './settings.js';

type Run = (
  context: Context,
  args: readonly string[],
  flags: Record<string, unknown>,
) => number | Promise<number>;

/** Loaded when it is typed: no command should wait for what only another one needs. */
const load = {
  exclude: () => import('./commands/exclude.js'),
  import: () => import('./commands/import.js'),
  journal: () => import('./commands/journal.js'),
  rebuild: () => import('./commands/rebuild.js'),
  recover: () => import('./commands/recover.js'),
  serve: () => import('./commands/serve.js'),
  status: () => import('./commands/status.js'),
  token: () => import('./commands/token.js'),
} as const;

let exitCode = 0;

/** Adds what every command takes, and runs it with its context. */
function command(parent: Command, usage: string, description: string, run: Run): Command {
  const made = parent
    .command(usage)
    .description(description)
    .option('--data <dir>', `${DATA.help} (${DATA.env}, default ${DATA.fallback})`)
    .option('--json', 'print JSON, one object per line');
  made.action(async (...given: unknown[]) => {
    // A list of arguments comes as one.
    const args = given.flat().filter((item): item is string => typeof item === 'string');
    const flags: CommonFlags & Record<string, unknown> = made.opts();
    try {
      exitCode = await run(contextOf(flags, process.env), args, flags);
    } catch (error) {
      // Threads may run already; nothing of theirs is half done that the next start would not finish.
      process.exit(tellError(error, flags.json === true));
    }
  });
  return made;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function program(): Command {
  const root = new Command('healthlog')
    .description('A home for the data of the iPhone app Health Auto Export.')
    .version(version())
    .allowExcessArguments(false)
    .configureOutput({ outputError: () => undefined })
    .exitOverride();

  const serving = command(root, 'serve', 'run the service', async (context, _args, flags) =>
    (await load.serve()).serve(context, serveSettings(flags, context.env)),
  );
  for (const { flag, env, help, fallback } of Object.values(SERVE)) {
    serving.option(
      `--${flag} <value>`,
      `${help} (${env}${fallback === null ? '' : `, default ${fallback}`})`,
    );
  }

  command(root, 'status', 'how things stand', async (context) => (await load.status()).status(context));

  const journal = root.command('journal').description('what arrived, and what became of it');
  command(journal, 'ls', 'list deliveries, newest first', async (context, _args, flags) =>
    (await load.journal()).journalList(context, listFlags(flags)),
  )
    .addOption(new Option('--status <status>', 'what became of it').choices(PARSE_STATUSES))
    .addOption(new Option('--class <class>', 'class of the outcome').choices(RECORDED_CLASSES))
    .option('--automation <id>', 'automation id')
    .option('--profile <name>', 'profile')
    .option('--section <name>', 'deliveries that hold this section')
    .option('--since <time>', 'received at or after')
    .option('--until <time>', 'received before')
    .option('--limit <n>', 'how many, 50 when not given')
    .option('--all', 'every one');
  command(journal, 'show <id>', 'one delivery: headers, outcome, layer, counters', async (context, [id]) =>
    (await load.journal()).journalShow(context, id ?? ''),
  );
  command(journal, 'cat <id>', 'the body of a delivery, byte for byte', async (context, [id]) =>
    (await load.journal()).journalCat(context, id ?? ''),
  );
  command(
    journal,
    'exclude <id>',
    'set a delivery aside: its numbers no longer count',
    async (context, [id], flags) =>
      (await load.exclude()).journalExclude(context, id ?? '', text(flags.reason)),
  ).option('--reason <text>', 'why, for whoever looks at it later', 'no reason was given');
  command(journal, 'include <id>', 'take back a delivery that was set aside', async (context, [id]) =>
    (await load.exclude()).journalInclude(context, id ?? ''),
  );
  command(journal, 'recover', 'make a lost or damaged journal anew from the archive', async (context) =>
    (await load.recover()).journalRecover(context),
  );

  command(root, 'import [file...]', 'take old files into the journal', async (context, args, flags) =>
    (await load.import()).importFiles(context, args, importFlags(flags)),
  )
    .option('--automation <id>', 'the automation they belong to')
    .option('--aggregation <grouping>', 'how they were grouped: Days, Hours, Minutes …')
    .option('--period <period>', 'the period they cover: Today, Yesterday, Previous 7 Days …')
    .option('--as-of <time>', 'when they were made; their newest date when not given')
    .option('--profile <name>', 'whose data it is; "me" when not given')
    .option('--again', 'record them although they are known')
    .option('--no-wait', 'do not wait until they are folded');

  command(
    root,
    'rebuild',
    'build the read model anew from the archive, compare, and switch to it',
    async (context, _args, flags) =>
      (await load.rebuild()).runRebuild(context, {
        dryRun: flags.dryRun === true,
        acceptLoss: flags.acceptLoss === true,
      }),
  )
    .alias('reindex')
    .option('--dry-run', 'stop before the switch')
    .option('--accept-loss', 'switch although bodies that are shown are gone');
  command(root, 'verify', 'prove that the read model is what the archive gives', async (context) =>
    (await load.rebuild()).runRebuild(context, { dryRun: true, acceptLoss: false }),
  );

  const token = root.command('token').description('who may send and who may read');
  command(token, 'add <name>', 'make a token; it is shown once', async (context, [name], flags) =>
    (await load.token()).tokenAdd(context, name ?? '', {
      scope: text(flags.scope),
      profile: text(flags.profile),
      ...(typeof flags.secretFrom === 'string' ? { secretFrom: flags.secretFrom } : {}),
    }),
  )
    .option('--scope <scope>', 'ingest, read or admin', 'ingest')
    .option('--profile <name>', 'whose data it is', 'me')
    .option('--secret-from <file>', 'register the secret in this file instead of making one; - reads stdin');
  command(token, 'ls', 'list tokens', async (context) => (await load.token()).tokenList(context));
  command(
    token,
    'revoke <name>',
    'revoke a token by its name or the beginning of its hash',
    async (context, [name]) => (await load.token()).tokenRevoke(context, name ?? ''),
  );
  return root;
}

const LIST_FLAGS = [
  'status',
  'class',
  'automation',
  'profile',
  'section',
  'since',
  'until',
  'limit',
] as const;

function listFlags(flags: Record<string, unknown>): ListFlags {
  const given = LIST_FLAGS.filter((name) => typeof flags[name] === 'string').map((name) => [
    name,
    text(flags[name]),
  ]);
  return { ...Object.fromEntries(given), all: flags.all === true };
}

const IMPORT_FLAGS = ['automation', 'aggregation', 'period', 'asOf', 'profile'] as const;

function importFlags(flags: Record<string, unknown>): ImportFlags {
  const given = IMPORT_FLAGS.filter((name) => typeof flags[name] === 'string').map((name) => [
    name,
    text(flags[name]),
  ]);
  return { ...Object.fromEntries(given), again: flags.again === true, wait: flags.wait !== false };
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return z.object({ version: z.string() }).parse(JSON.parse(text)).version;
}

const USAGE = 2;

/** What was typed is no command: told like every other error. Help and version come this way too. */
function usageError({ code, exitCode: given, message }: CommanderError): number {
  if (code.startsWith('commander.help') || code === 'commander.version') return given === 0 ? 0 : USAGE;
  const reason = message.replace(/^error: /, '');
  return tellError(new HealthlogError('usage', { reason }), process.argv.includes('--json'));
}

quietPipe(process.stdout);
try {
  await program().parseAsync(process.argv);
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  exitCode = usageError(error);
}
process.exitCode = exitCode;
