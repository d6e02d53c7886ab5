/**
 * Reader thread: answers questions about the read model and the journal, so that no question, however wide, holds
 * up an answer to a phone. Answers leave as finished JSON text: the main thread only passes them on.
 *
 * It opens the live generation for reading and opens it anew when the shared counter says that it was switched.
 * A damaged or missing read model is not its business to mend: it says that reading is unavailable, and the
 * runner builds a new one.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type Database from 'better-sqlite3';
import { systemClock } from '../journal/clock.js';
import { HealthlogError, platformCode } from '../journal/errors.js';
import { dataFolder } from '../journal/folder.js';
import { Journal } from '../journal/store.js';
import { getDelivery, listDeliveries } from '../projections/answers/deliveries.js';
import { metricAnswer } from '../projections/answers/metric.js';
import { listMetrics } from '../projections/answers/metrics.js';
import { journalStatus } from '../projections/answers/status.js';
import { openLive } from '../projections/generations.js';
import type { ReaderQuestion, ReaderReply, ReaderRequest, ReaderWorkerData } from './reader-protocol.js';

const { root, generationCounter }: ReaderWorkerData = workerData;
const switches = new Int32Array(generationCounter);
const folder = dataFolder(root);

let journal: Journal | null = null;
let live: { readonly db: Database.Database; readonly count: number } | null = null;

function openJournal(): Journal {
  journal ??= Journal.open(folder, 'read');
  return journal;
}

/** Null when there is no generation that this version can read; `why` says so then. */
function generation(): { readonly db: Database.Database | null; readonly why: string } {
  const count = Atomics.load(switches, 0);
  if (live !== null && live.count === count) return { db: live.db, why: '' };
  live?.db.close();
  live = null;
  const view = openLive(folder);
  if (view.kind !== 'open') {
    return {
      db: null,
      why:
        view.kind === 'none'
          ? 'the read model is being built'
          : `the read model is being built anew: ${view.reason}`,
    };
  }
  live = { db: view.db, count };
  return { db: view.db, why: '' };
}

function readable(): Database.Database {
  const { db, why } = generation();
  if (db !== null) return db;
  throw new HealthlogError('reading_unavailable', { reason: why });
}

function answer(question: ReaderQuestion): unknown {
  switch (question.kind) {
    case 'status':
      return journalStatus(openJournal(), generation().db, systemClock.now(), question.profile);
    case 'deliveries':
      return listDeliveries(openJournal(), generation().db, question.query);
    case 'delivery':
      return getDelivery(openJournal(), generation().db, question.id, question.profile);
    case 'metrics':
      return listMetrics(readable(), question);
    case 'metric':
      return metricAnswer(readable(), question.query);
  }
}

function failureOf(error: unknown): HealthlogError {
  if (error instanceof HealthlogError) return error;
  const code = platformCode(error);
  if (code?.startsWith('SQLITE_') !== true) return new HealthlogError('internal', {}, { cause: error });
  // Whatever it was, the next question opens the file anew.
  live?.db.close();
  live = null;
  return new HealthlogError(
    'reading_unavailable',
    { reason: `a database file cannot be read (${code})` },
    { cause: error },
  );
}

function reply(message: ReaderReply): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', ({ ticket, question }: ReaderRequest) => {
  try {
    reply({ ticket, json: JSON.stringify(answer(question)) });
  } catch (error) {
    const { code, message, hint } = failureOf(error);
    const detail =
      error instanceof HealthlogError || !(error instanceof Error) ? null : (error.stack ?? error.message);
    reply({ ticket, failure: { code, message, hint }, detail });
  }
});
