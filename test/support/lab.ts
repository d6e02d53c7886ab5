/**
 * Lab: a data folder with real archive files and a real journal in which a test puts deliveries at positions it
 * chooses, and a runner over a real generation. Nothing here waits.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type Database from 'better-sqlite3';
import { archivePath, automationOf, encodeHeader } from '../../src/journal/archive.js';
import type { Clock } from '../../src/journal/clock.js';
import { type DataFolder, dataFolder } from '../../src/journal/folder.js';
import { type DeliveryId, deliveryId, type Micros, micros } from '../../src/journal/position.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { COMPARED_TABLES } from '../../src/projections/compared.js';
import { nextGeneration } from '../../src/projections/generations.js';
import { createGeneration } from '../../src/projections/readmodel.js';
import { Runner, type RunnerOptions } from '../../src/projections/runner.js';

export interface Given {
  /** A value to be sent as JSON, or the exact text or bytes. */
  readonly body: unknown;
  /** ISO time of the position; a minute after the delivery before it when left out. */
  readonly at?: string;
  /** ISO time of the clock as read; the position's when left out. */
  readonly clockAt?: string;
  readonly id?: DeliveryId;
  readonly automation?: string;
  readonly aggregation?: string;
  readonly period?: string;
  readonly session?: string;
  readonly profile?: string;
  readonly source?: 'http' | 'import';
  /** Leaves the body in the archive without a journal row. */
  readonly orphan?: boolean;
}

export function iso(text: string): Micros {
  return micros(Date.parse(text) * 1000);
}

/** The n-th delivery id: small numbers sort like themselves. */
export function idOf(n: number): DeliveryId {
  return deliveryId(`00000000-0000-4000-8000-${String(n).padStart(12, '0')}`);
}

function bytesOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

export class Lab {
  readonly folder: DataFolder;
  readonly journal: Journal;
  readonly clock: Clock = { now: () => this.#now };
  #now: Micros = iso('2026-06-01T00:00:00Z');
  #count = 0;
  #last: Micros = iso('2026-05-01T00:00:00Z');
  readonly #open: Database.Database[] = [];

  constructor() {
    this.folder = dataFolder(mkdtempSync(join(tmpdir(), 'healthlog-lab-')));
    this.journal = Journal.open(this.folder, 'write');
    mkdirSync(this.folder.incoming, { recursive: true });
  }

  setClock(at: string): void {
    this.#now = iso(at);
  }

  /** Puts a delivery into archive and journal. */
  add(given: Given): JournalRow {
    const body = bytesOf(given.body);
    this.#count += 1;
    const id = given.id ?? idOf(this.#count);
    const receivedAt = given.at === undefined ? micros(this.#last + 60_000_000) : iso(given.at);
    this.#last = micros(Math.max(this.#last, receivedAt));
    const clockAt = given.clockAt === undefined ? receivedAt : iso(given.clockAt);
    const headers: Record<string, string> = {};
    if (given.automation !== undefined) headers['automation-id'] = given.automation;
    if (given.aggregation !== undefined) headers['automation-aggregation'] = given.aggregation;
    if (given.period !== undefined) headers['automation-period'] = given.period;
    if (given.session !== undefined) headers['session-id'] = given.session;
    const bodySha256 = createHash('sha256').update(body).digest('hex');
    const path = archivePath({ receivedAt, id }, bodySha256);
    const file = join(this.folder.archive, path);
    const profile = given.profile ?? 'me';
    const source = given.source ?? 'http';
    const header = encodeHeader({
      format: 1,
      profile,
      source,
      clockAt,
      contentType: 'application/json',
      contentCoding: null,
      headers,
    });
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, Buffer.concat([header, gzipSync(body, { level: 1 })]));
    const row: Omit<JournalRow, 'seq'> = {
      id,
      receivedAt,
      clockAt,
      profile,
      ...automationOf(headers),
      contentType: 'application/json',
      source,
      adopted: false,
      bodyBytes: body.length,
      bodySha256,
      archivePath: path,
    };
    if (given.orphan === true) return { seq: 0, ...row };
    const seq = this.journal.db.transaction(() => this.journal.insert(row)).immediate();
    return { seq, ...row };
  }

  /** A fresh, empty generation. */
  generation(): Database.Database {
    const db = createGeneration(nextGeneration(this.folder).path, this.journal.meta().epoch);
    this.#open.push(db);
    return db;
  }

  runner(generation: Database.Database, options: Partial<RunnerOptions> = {}): Runner {
    return new Runner({
      journal: this.journal,
      generation,
      archiveRoot: this.folder.archive,
      clock: this.clock,
      onFault: (id, error) => {
        throw new Error(`fault in ${id}`, { cause: error });
      },
      ...options,
    });
  }

  /** Folds everything into a fresh generation. */
  folded(options: Partial<RunnerOptions> = {}): Database.Database {
    const generation = this.generation();
    const report = this.runner(generation, options).pass();
    if (report.end !== 'caught_up') throw new Error(`the pass ended ${report.end}: ${report.reason}`);
    return generation;
  }

  close(): void {
    for (const db of this.#open) db.close();
    this.journal.close();
    rmSync(this.folder.root, { recursive: true, force: true });
  }
}

/** The facts of a generation, sorted; two generations of the same facts are equal. */
export function facts(generation: Database.Database): Record<string, unknown[]> {
  const all: Record<string, unknown[]> = {};
  for (const { name, columns, sql } of COMPARED_TABLES) {
    const order = columns.map((_, index) => index + 1).join(', ');
    all[name] = generation.prepare(`SELECT * FROM (${sql('main')}) ORDER BY ${order}`).all();
  }
  return all;
}

export interface ResultRow {
  readonly delivery_id: string;
  readonly parse_status: string;
  readonly class: string | null;
  readonly layer: string | null;
  readonly layer_origin: string | null;
  readonly layer_from: string | null;
  readonly counters: string | null;
  readonly reasons: string | null;
}

export function resultOf(generation: Database.Database, id: string): ResultRow {
  const row = generation
    .prepare<[string], ResultRow>(
      'SELECT delivery_id, parse_status, class, layer, layer_origin, layer_from, counters, reasons FROM delivery_result WHERE delivery_id = ?',
    )
    .get(id);
  if (row === undefined) throw new Error(`no result for ${id}`);
  return row;
}
