/**
 * `healthlog serve`: the service.
 *
 * Start: the data folder is taken over (take-over.ts) → runner → listen. Then one line on stdout, `listening on http://HOST:PORT`; the log goes to stderr, one JSON object per line.
 * Stop (SIGTERM, SIGINT): stop accepting → let uploads finish within the budget → stop flag → wait for the fold
 * within the same budget → close. When the budget runs out: a warning and exit 0, and nothing is closed under a
 * live transaction; what was not folded is still pending. A second signal ends the process at once.
 */
import { type Logger, pino } from 'pino';
import { createApp } from '../../api/app.js';
import { FIXED } from '../../api/limits.js';
import { Reader } from '../../api/reader.js';
import { Acceptor } from '../../journal/accept.js';
import { HealthlogError, platformCode } from '../../journal/errors.js';
import { nodeFiles } from '../../journal/files.js';
import { hadToReconcile } from '../../journal/reconcile-notes.js';
import { withoutTokens } from '../../journal/secrets.js';
import { TokenStore } from '../../journal/tokens.js';
import type { JournalStatus } from '../../projections/answers/status.js';
import { readyGeneration } from '../../projections/generations.js';
import { startRunner } from '../../projections/thread.js';
import type { Context } from '../context.js';
import { lagWarning } from '../lag.js';
import { print } from '../output.js';
import type { ServeSettings } from '../settings.js';
import { type TakenOver, takeOver } from '../take-over.js';
import { type FreshTokens, firstSteps } from '../welcome.js';

const MINUTE_MS = 60_000;
/** An idle fold stops within this, even when uploads have used up the budget. */
const FOLD_GRACE_MS = 250;
/** How soon is seen what another program did: an import, a delivery set aside, a generation that is ready. */
const LOOK_AROUND_MS = 1_000;

export async function serve({ folder, clock }: Context, settings: ServeSettings): Promise<number> {
  const log = openLog(settings.logLevel);
  const { lock, journal, ...found } = takeOver(folder, clock);
  logFound(found, log);

  const tokens = new TokenStore(journal, folder, nodeFiles, clock);
  const runner = startRunner({
    folder,
    log,
    ...(settings.foldMemory === null ? {} : { memoryMb: settings.foldMemory }),
  });
  const acceptor = new Acceptor({
    folder,
    clock,
    bodyBytesMax: settings.bodyLimit,
    commitGroupMax: settings.commitGroup,
    onAccepted: () => runner.wake(),
    onClockSkew: (aheadMicros) =>
      log.warn(
        { behind_s: Math.round(aheadMicros / 1e6) },
        'the clock of this machine was set back; the order of deliveries is kept',
      ),
  });
  const reader = new Reader({ folder, generationCounter: runner.generationCounter, log });
  const server = createApp({
    acceptor,
    tokens,
    runner,
    reader,
    log,
    trustedProxies: settings.trustedProxies,
    basePath: settings.basePath,
    limits: {
      ...FIXED,
      bodyBytesMax: settings.bodyLimit,
      uploadsMax: settings.uploadsMax,
      uploadTimeoutMs: settings.uploadTimeout * 1000,
      stallTimeoutMs: settings.stallTimeout * 1000,
      requestTimeoutMs: settings.requestTimeout * 1000,
    },
  });

  const readStatus = async (): Promise<JournalStatus> =>
    JSON.parse(await reader.ask({ kind: 'status', profile: null }));
  log.info({ pending: (await readStatus()).pending }, 'deliveries waiting to be folded at the start');

  let settled = false;
  const flushUses = (): void => {
    try {
      tokens.flushUses();
    } catch (error) {
      log.warn({ error: String(error) }, 'when tokens were used last could not be written');
    }
  };
  const everyMinute = async (): Promise<void> => {
    flushUses();
    const { state } = runner.state();
    settled ||= state === 'idle' || state === 'waiting';
    const { pending, oldest_pending_age_s } = await readStatus();
    const warning = lagWarning({ state, settled, pending, oldestPendingAgeS: oldest_pending_age_s });
    if (warning !== null)
      log.warn(
        warning,
        'folding falls behind: the oldest pending delivery has waited for more than five minutes',
      );
  };
  let seenVersion = journal.dataVersion();
  const lookAround = (): void => {
    const version = journal.dataVersion();
    if (version !== seenVersion || readyGeneration(folder) !== null) runner.wake();
    seenVersion = version;
  };
  const timers = [
    setInterval(() => {
      everyMinute().catch((error: unknown) =>
        log.error({ error: String(error) }, 'the look at the backlog failed'),
      );
    }, MINUTE_MS),
    setInterval(() => {
      try {
        lookAround();
      } catch (error) {
        log.error({ error: String(error) }, 'the look at what other programs did failed');
      }
    }, LOOK_AROUND_MS),
  ];

  const stopSignal = nextSignal();
  const address = await listen(server, settings);
  // Only now: a start that ends before it has printed them must not count as the first.
  const fresh = firstTokens(tokens);
  if (fresh !== null) for (const line of firstSteps(fresh, address, settings.basePath)) print(line);
  print(`listening on http://${hostText(address.host)}:${address.port}`);

  const signal = await stopSignal;
  log.info({ signal }, 'stopping');
  for (const timer of timers) clearInterval(timer);
  const endMs = performance.now() + settings.stopBudget * 1000;
  const left = (): number => Math.max(0, endMs - performance.now());
  const uploadsDone = await server.stop(left());
  const folded = await runner.stop(Math.max(left(), FOLD_GRACE_MS));
  if (!uploadsDone || !folded) {
    log.warn(
      { uploads_done: uploadsDone, fold_done: folded },
      'the stop budget ran out; what was not folded is still pending',
    );
    process.exit(0);
  }
  flushUses();
  await acceptor.close();
  await reader.stop();
  journal.close();
  lock.release();
  log.info({}, 'stopped');
  return 0;
}

/** What had to be put right. */
function logFound(found: Omit<TakenOver, 'lock' | 'journal'>, log: Logger): void {
  const { replaced, swept, adopted, damaged, notes } = found;
  if (replaced !== null)
    log.warn(
      { set_aside: replaced.setAside },
      'finished a recovery that was cut short: the journal was replaced by the one made from the archive',
    );
  if (swept.length > 0)
    log.info({ files: swept.length }, 'removed what uploads cut short by a crash had left');
  if (adopted.length > 0) log.warn({ deliveries: adopted.length }, 'took in bodies that had no journal row');
  for (const file of damaged)
    log.error(file, 'a body in the archive has no journal row and is damaged; it stays where it is');
  if (hadToReconcile(notes))
    log.warn(
      { tokens: notes.tokens, exclusions: notes.exclusions },
      'the journal and the notes in the archive differed about tokens or deliveries set aside, and were put together',
    );
  for (const line of notes.unreadable)
    log.warn(line, 'a line of the notes in the archive cannot be read; it stays where it is');
}

/** On stderr, one JSON object per line. Whatever a line is made of, no token leaves in it. */
function openLog(level: ServeSettings['logLevel']): Logger {
  const stderr = pino.destination({ dest: 2, sync: true });
  // A log that cannot be written (its disk is full, its reader is gone) has nobody to be told, and must not end a
  // service whose own disk is sound. Lines that were lost are missing, nothing else.
  stderr.on('error', () => undefined);
  return pino(
    { level, base: { pid: process.pid } },
    { write: (line: string) => stderr.write(withoutTokens(line)) },
  );
}

/** Tokens for a journal that has none. */
function firstTokens(tokens: TokenStore): FreshTokens | null {
  if (tokens.list().length > 0) return null;
  return {
    ingest: tokens.add({ label: 'phone', scope: 'ingest', profile: 'me' }),
    read: tokens.add({ label: 'reading', scope: 'read', profile: 'me' }),
  };
}

type Server = ReturnType<typeof createApp>;

async function listen(
  server: Server,
  { host, port }: ServeSettings,
): Promise<{ host: string; port: number }> {
  try {
    return await server.listen(host, port);
  } catch (error) {
    throw new HealthlogError(
      'cannot_listen',
      { host, port, reason: platformCode(error) ?? String(error) },
      { cause: error },
    );
  }
}

function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** The first signal; a second one, of either kind and at any moment, ends the process at once. */
function nextSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let heard = false;
    for (const name of STOP_SIGNALS) {
      process.on(name, (signal) => {
        if (heard) process.exit(1);
        heard = true;
        resolve(signal);
      });
    }
  });
}
