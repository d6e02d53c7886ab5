/**
 * Many phones and several imports at once, and what must hold afterwards:
 *
 * - every delivery whose 200 was read has its row at that position, and its body, byte for byte;
 * - positions are unique and rise in the order of the commits, and on every connection in the order of its answers;
 * - whatever was imported is there once;
 * - a client that hung up left a whole delivery or nothing;
 * - no body without a row, nothing in `incoming/`.
 *
 * Bodies, sizes and hang-ups follow from the seed; how requests interleave does not.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomFrom } from '../../bench/body.js';
import { Connection, postBytes } from '../../bench/connection.js';
import { ROOT, withFolder } from '../../bench/harness.js';
import { makeToken, phoneHeaders, startService } from '../../bench/service.js';
import { readArchive } from '../../src/journal/archive.js';
import { archivePaths } from '../../src/journal/archive-walk.js';
import { nodeFiles } from '../../src/journal/files.js';
import { type DataFolder, dataFolder } from '../../src/journal/folder.js';
import { formatMicros } from '../../src/journal/position.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';

export interface LoadOptions {
  readonly seed: number;
  /** How long the phones send. */
  readonly seconds: number;
  readonly connections: number;
  /** Processes that import meanwhile. */
  readonly importers: number;
  /** Files of each. */
  readonly files: number;
}

export interface LoadReport extends LoadOptions {
  /** 200s that were read. */
  readonly accepted: number;
  readonly hungUp: number;
  readonly imported: number;
  /** Rows of the journal afterwards: accepted, imported, and what was recorded for clients that hung up. */
  readonly rows: number;
  readonly perSecond: number;
  /** What does not hold, in words; empty when all is well. */
  readonly faults: readonly string[];
}

interface Receipt {
  readonly id: string;
  readonly receivedAt: string;
  readonly sha256: string;
}

function sha256(body: Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}

/** An envelope nobody else sends, of up to some hundred kilobytes, mostly small as the app's are. */
function envelope(name: string, random: () => number): Buffer {
  const points = random() < 0.05 ? Math.floor(random() * 1500) : Math.floor(random() * 40);
  const data = Array.from({ length: points }, (_, minute) => ({
    qty: Math.round(random() * 1000) / 10,
    date: `2026-03-${String(1 + (minute % 28)).padStart(2, '0')} 10:${String(minute % 60).padStart(2, '0')}:00 +0100`,
    source: name,
  }));
  const metrics = [{ name: 'step_count', units: 'count', data }];
  return Buffer.from(JSON.stringify({ data: { metrics }, sentBy: name }, null, 2));
}

const HANG_UP_SHARE = 0.02;

interface Sent {
  readonly receipts: Receipt[];
  hungUp: number;
}

/** One phone: sends one delivery after another until the time is over; now and then it hangs up instead. */
async function phone(url: URL, token: string, nth: number, { seed, seconds }: LoadOptions): Promise<Sent> {
  const random = randomFrom(seed * 1000 + nth);
  const sent: Sent = { receipts: [], hungUp: 0 };
  const endMs = performance.now() + seconds * 1000;
  let connection = await Connection.open(url);
  for (let count = 0; performance.now() < endMs; count++) {
    const body = envelope(`phone ${nth}, ${count}`, random);
    const request = postBytes('/v1/ingest', phoneHeaders(token), body);
    if (random() < HANG_UP_SHARE) {
      const bytes = random() < 0.5 ? request : request.subarray(0, Math.floor(random() * request.length));
      await connection.hangUpAfter(bytes);
      sent.hungUp += 1;
      connection = await Connection.open(url);
      continue;
    }
    const answer = await connection.ask(request);
    if (answer.status !== 200) throw new Error(`phone ${nth} was answered ${answer.status}: ${answer.body}`);
    sent.receipts.push({ ...receiptOf(answer.body), sha256: sha256(body) });
  }
  connection.close();
  return sent;
}

function receiptOf(text: string): { id: string; receivedAt: string } {
  const answer: unknown = JSON.parse(text);
  if (typeof answer !== 'object' || answer === null || !('id' in answer) || !('received_at' in answer))
    throw new Error(`an answer without id and position: ${text}`);
  return { id: String(answer.id), receivedAt: String(answer.received_at) };
}

const importing = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of importing) child.kill('SIGKILL');
});

/** One process that imports a folder of its own files; gives the hashes of their bodies. */
async function importer(
  folder: string,
  data: string,
  nth: number,
  { seed, files }: LoadOptions,
): Promise<string[]> {
  const random = randomFrom(seed * 1000 + 500 + nth);
  const source = join(folder, `import-${nth}`);
  mkdirSync(source);
  const bodies = Array.from({ length: files }, (_, count) => envelope(`import ${nth}, ${count}`, random));
  for (const [count, body] of bodies.entries())
    writeFileSync(join(source, `${String(count).padStart(5, '0')}.json`), body);
  const args = ['bin/healthlog', 'import', source, '--data', data, '--no-wait', '--json'];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] });
  importing.add(child);
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-2000);
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  importing.delete(child);
  if (code !== 0) throw new Error(`import ${nth} ended with code ${code}: ${complaints}`);
  return bodies.map(sha256);
}

export async function acceptLoad(options: LoadOptions): Promise<LoadReport> {
  let report: LoadReport | null = null;
  for await (const made of withFolder(async function* (folder) {
    yield await runIn(folder, options);
  }))
    report = made;
  if (report === null) throw new Error('the load was not run');
  return report;
}

async function runIn(folder: string, options: LoadOptions): Promise<LoadReport> {
  const data = join(folder, 'data');
  const uploads = String(options.connections * 2);
  const service = await startService(data, '--log-level', 'warn', '--uploads-max', uploads);
  let sent: Sent[];
  let imported: string[][];
  try {
    const token = await makeToken(data, 'load', 'ingest');
    const numbers = (count: number): number[] => [...Array(count).keys()];
    [sent, imported] = await Promise.all([
      Promise.all(numbers(options.connections).map((nth) => phone(service.url, token, nth, options))),
      Promise.all(numbers(options.importers).map((nth) => importer(folder, data, nth, options))),
    ]);
  } finally {
    await service.stop();
  }
  const receipts = sent.map((one) => one.receipts);
  const hungUp = sent.reduce((sum, one) => sum + one.hungUp, 0);
  const { rows, faults } = check(dataFolder(data), receipts, imported.flat(), hungUp);
  return {
    ...options,
    accepted: receipts.flat().length,
    hungUp,
    imported: imported.flat().length,
    rows,
    perSecond: Math.round(receipts.flat().length / options.seconds),
    faults,
  };
}

function check(
  folder: DataFolder,
  receipts: readonly (readonly Receipt[])[],
  imported: readonly string[],
  hungUp: number,
): { rows: number; faults: string[] } {
  const faults: string[] = [];
  const journal = Journal.open(folder, 'read');
  try {
    const rows = new Map<string, JournalRow>();
    const bodies = new Map<string, number>();
    let last = -1;
    for (
      let page = journal.after(0, 1000);
      page.length > 0;
      page = journal.after(page.at(-1)?.seq ?? 0, 1000)
    ) {
      for (const row of page) {
        if (row.receivedAt <= last) faults.push(`the position of ${row.id} does not rise`);
        last = row.receivedAt;
        rows.set(row.id, row);
        bodies.set(row.bodySha256, (bodies.get(row.bodySha256) ?? 0) + 1);
        faults.push(...bodyFaults(folder, row));
      }
    }
    for (const ofOne of receipts) faults.push(...receiptFaults(ofOne, rows));
    for (const hash of imported)
      if (bodies.get(hash) !== 1) faults.push(`an imported body is there ${bodies.get(hash) ?? 0} times`);
    const answered = receipts.flat().length + imported.length;
    if (rows.size < answered || rows.size > answered + hungUp)
      faults.push(`${rows.size} rows for ${answered} confirmed deliveries and ${hungUp} hang-ups`);
    const paths = new Set([...rows.values()].map(({ archivePath }) => archivePath));
    for (const path of archivePaths(folder, nodeFiles))
      if (!paths.has(path)) faults.push(`${path} has no row`);
    for (const name of readdirSync(folder.incoming)) faults.push(`incoming/${name} was left behind`);
    return { rows: rows.size, faults };
  } finally {
    journal.close();
  }
}

function bodyFaults(folder: DataFolder, row: JournalRow): string[] {
  try {
    const { bodySha256 } = readArchive(folder.archive, row.archivePath, { bodyBytesHint: row.bodyBytes });
    return bodySha256 === row.bodySha256 ? [] : [`the body of ${row.id} is another one`];
  } catch (error) {
    return [String(error)];
  }
}

/** The answers of one connection, in the order they were read. */
function receiptFaults(receipts: readonly Receipt[], rows: ReadonlyMap<string, JournalRow>): string[] {
  const faults: string[] = [];
  let last = '';
  for (const { id, receivedAt, sha256: hash } of receipts) {
    const row = rows.get(id);
    if (row === undefined) faults.push(`${id} was answered 200 and has no row`);
    else if (row.bodySha256 !== hash) faults.push(`the body of ${id} is not the one that was sent`);
    else if (formatMicros(row.receivedAt) !== receivedAt) faults.push(`${id} lies at another position`);
    if (receivedAt <= last) faults.push(`${id} was answered later and lies before`);
    last = receivedAt;
  }
  return faults;
}
