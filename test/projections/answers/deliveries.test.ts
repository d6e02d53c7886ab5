import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HealthlogError } from '../../../src/journal/errors.js';
import { deliveryId, micros } from '../../../src/journal/position.js';
import { Journal, type JournalRow } from '../../../src/journal/store.js';
import {
  type DeliveriesQuestion,
  type DeliveryItem,
  getDelivery,
  listDeliveries,
} from '../../../src/projections/answers/deliveries.js';
import { journalStatus } from '../../../src/projections/answers/status.js';
import { ReadModelBuilder } from '../../support/readmodel.js';
import { tmpData } from '../../support/tmp.js';

const SECOND = 1_000_000;
const START = Date.parse('2026-11-30T22:00:00Z') * 1000;

let journal: Journal;
let generation: Database;

beforeEach(() => {
  const folder = tmpData();
  journal = Journal.open(folder, 'write');
  generation = new ReadModelBuilder({ path: join(folder.root, '000003.db'), epoch: journal.meta().epoch }).db;
});
afterEach(() => {
  journal.close();
  generation.close();
});

interface Arrival {
  readonly at?: number;
  readonly clock?: number;
  readonly id?: string;
  readonly profile?: string;
  readonly automation?: string | null;
  readonly name?: string;
}

/** A row of the journal; times are seconds after 22:00. */
function arrive(given: Arrival = {}): JournalRow {
  const at = given.at ?? journal.count() + 1;
  const row = {
    id: deliveryId(given.id ?? randomUUID()),
    receivedAt: micros(START + at * SECOND),
    clockAt: micros(START + (given.clock ?? at) * SECOND),
    profile: given.profile ?? 'me',
    automation: {
      id: given.automation === undefined ? 'AUTO-1' : given.automation,
      name: given.name ?? 'Health Metrics',
      aggregation: 'Minutes',
      period: 'Default',
    },
    sessionId: 'SESSION',
    contentType: 'application/json',
    source: 'http' as const,
    adopted: false,
    bodyBytes: 21,
    bodySha256: 'a'.repeat(64),
    archivePath: `2026/11/30/${at}.json.gz`,
  };
  const seq = journal.db.transaction(() => journal.insert(row)).immediate();
  return { seq, ...row };
}

interface Fold {
  readonly status: 'pending' | 'parsed' | 'partial' | 'failed' | 'excluded';
  readonly class?: string;
  readonly sections?: readonly string[];
  readonly reasons?: readonly string[];
  readonly foldedAt?: number;
}

/** What the fold writes when it takes a delivery in, and when it has folded it. */
function fold(row: JournalRow, { status, class: name, sections, reasons, foldedAt }: Fold): void {
  const counters = {
    points: 3,
    sections: Object.fromEntries(
      (sections ?? ['metrics']).map((section) => [section, { points: 3, skipped: 0 }]),
    ),
  };
  const pending = status === 'pending';
  generation
    .prepare(
      `INSERT INTO delivery_result (seq, delivery_id, received_at, evidence, profile, automation_id, parse_status, class,
         declared, layer, layer_origin, counters, reasons, fold_ms, folded_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'minute', 'minute', 'declared', ?, ?, ?, ?)`,
    )
    .run(
      row.seq,
      row.id,
      row.receivedAt,
      row.receivedAt,
      row.profile,
      row.automation.id,
      status,
      pending ? null : (name ?? 'folded'),
      pending ? null : JSON.stringify(counters),
      pending ? null : JSON.stringify(reasons ?? []),
      pending ? null : 1.5,
      pending ? null : START + (foldedAt ?? 100) * SECOND,
    );
  generation
    .prepare('UPDATE generation SET enrolled_seq = max(enrolled_seq, ?), enrolled_id = ?')
    .run(row.seq, row.id);
}

function list(q: DeliveriesQuestion = {}): DeliveryItem[] {
  return listDeliveries(journal, generation, q).items;
}

function ids(q: DeliveriesQuestion = {}): string[] {
  return list(q).map(({ id }) => id);
}

describe('a delivery in the list', () => {
  it('says everything the journal and the fold know of it', () => {
    const row = arrive({ at: 5, clock: 4 });
    fold(row, {
      status: 'partial',
      sections: ['metrics', 'ecg'],
      reasons: ['The section ecg is not read yet.'],
    });
    expect(list()).toEqual([
      {
        id: row.id,
        received_at: '2026-11-30T22:00:05.000000Z',
        clock_at: '2026-11-30T22:00:04.000000Z',
        profile: 'me',
        automation: { id: 'AUTO-1', name: 'Health Metrics', aggregation: 'Minutes', period: 'Default' },
        session_id: 'SESSION',
        source: 'http',
        adopted: false,
        content_type: 'application/json',
        body_bytes: 21,
        body_sha256: 'a'.repeat(64),
        parse_status: 'partial',
        class: 'folded',
        layer: 'minute',
        layer_origin: 'declared',
        layer_from: null,
        counters: {
          points: 3,
          sections: { metrics: { points: 3, skipped: 0 }, ecg: { points: 3, skipped: 0 } },
        },
        reasons: ['The section ecg is not read yet.'],
        declared: 'minute',
        fold_ms: 1.5,
        folded_at: '2026-11-30T22:01:40.000000Z',
        archive_path: '2026/11/30/5.json.gz',
      },
    ]);
  });

  it('is pending while the generation has not taken it in, and when there is no generation', () => {
    const row = arrive();
    expect(list()).toMatchObject([
      { id: row.id, parse_status: 'pending', class: null, counters: null, reasons: [] },
    ]);
    fold(row, { status: 'parsed' });
    expect(list()).toMatchObject([{ parse_status: 'parsed' }]);
    expect(listDeliveries(journal, null, {}).items).toMatchObject([
      { parse_status: 'pending', folded_at: null },
    ]);
  });

  it('is pending when the generation took in another delivery at that place of the journal', () => {
    const row = arrive();
    fold({ ...row, id: deliveryId(randomUUID()) }, { status: 'parsed' });
    expect(list()).toMatchObject([{ id: row.id, parse_status: 'pending' }]);
  });
});

describe('the list of deliveries', () => {
  it('is in the order of positions, newest first, an adopted one at its own place', () => {
    const [a, b, adopted] = [arrive({ at: 10 }), arrive({ at: 20 }), arrive({ at: 15 })];
    expect(ids()).toEqual([b.id, adopted.id, a.id]);
    expect(ids({ order: 'oldest' })).toEqual([a.id, adopted.id, b.id]);
  });

  it.each<'newest' | 'oldest'>(['newest', 'oldest'])(
    'is paged by position, %s first, also while new ones arrive',
    (order) => {
      const rows = Array.from({ length: 5 }, () => arrive());
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: { items: DeliveryItem[]; next: string | null } = listDeliveries(journal, generation, {
          order,
          limit: 2,
          cursor,
        });
        seen.push(...page.items.map(({ id }) => id));
        if (order === 'newest') arrive({ at: 100 + seen.length });
        cursor = page.next;
      } while (cursor !== null);
      const expected = rows.map(({ id }) => id as string);
      expect(seen).toEqual(order === 'newest' ? expected.reverse() : expected);
    },
  );

  it('is filtered by profile, automation, and the time of receipt', () => {
    const a = arrive({ at: 10 });
    const b = arrive({ at: 20, profile: 'anna', automation: 'AUTO-2' });
    const c = arrive({ at: 30, automation: null });
    expect(ids({ profile: 'me' })).toEqual([c.id, a.id]);
    expect(ids({ profile: null })).toHaveLength(3);
    expect(ids({ automation: 'AUTO-2' })).toEqual([b.id]);
    expect(ids({ since: '2026-11-30T22:00:20.000000Z' })).toEqual([c.id, b.id]);
    expect(ids({ until: '2026-11-30T23:00:20+01:00' })).toEqual([a.id]);
    expect(ids({ since: '2026-11-30', until: '2026-11-30' })).toHaveLength(3);
    expect(ids({ since: '2026-12-01' })).toEqual([]);
    expect(ids({ since: START + 25 * SECOND })).toEqual([c.id]);
  });

  it('is filtered by what became of the deliveries', () => {
    const [parsed, failed, workouts, waiting, unseen] = [arrive(), arrive(), arrive(), arrive(), arrive()];
    fold(parsed, { status: 'parsed' });
    fold(failed, { status: 'failed', class: 'malformed', sections: [] });
    fold(workouts, { status: 'partial', sections: ['workouts'] });
    fold(waiting, { status: 'pending' });
    expect(ids({ parse_status: 'parsed' })).toEqual([parsed.id]);
    expect(ids({ parse_status: 'failed' })).toEqual([failed.id]);
    expect(ids({ class: 'malformed' })).toEqual([failed.id]);
    expect(ids({ class: 'folded' })).toEqual([workouts.id, parsed.id]);
    expect(ids({ section: 'workouts' })).toEqual([workouts.id]);
    expect(ids({ parse_status: 'pending' })).toEqual([unseen.id, waiting.id]);
    expect(ids({ parse_status: 'pending', limit: 1 })).toEqual([unseen.id]);
    expect(listDeliveries(journal, null, { parse_status: 'pending' }).items).toHaveLength(5);
    expect(listDeliveries(journal, null, { parse_status: 'failed' }).items).toEqual([]);
  });

  it.each<[string, DeliveriesQuestion]>([
    ['parse_status', { parse_status: "failed' OR 1" }],
    ['class', { class: 'deferred' }],
    ['since', { since: 'yesterday' }],
    ['limit', { limit: -1 }],
    ['cursor', { cursor: 'bm9uc2Vuc2U' }],
  ])('refuses what it cannot understand and names it: %s', (name, q) => {
    expect(() => list(q)).toThrow(HealthlogError);
    expect(() => list(q)).toThrow(new RegExp(name));
  });
});

describe('one delivery', () => {
  const A = '0b7cf6c0-1111-4111-8111-111111111111';
  const B = '0b7cf6c0-2222-4222-8222-222222222222';

  it('is found by its id, in any case, and by a beginning that no other has', () => {
    arrive({ id: A });
    arrive({ id: B });
    expect(getDelivery(journal, generation, A.toUpperCase(), 'me').id).toBe(A);
    expect(getDelivery(journal, generation, '0b7cf6c0-2', null).id).toBe(B);
    expect(() => getDelivery(journal, generation, '0b7cf6c0', null)).toThrow(/several deliveries begin with/);
  });

  it('is not found by a short beginning, nor by somebody else', () => {
    arrive({ id: A });
    arrive({ id: B, profile: 'anna' });
    expect(() => getDelivery(journal, generation, '0b7cf6c', null)).toThrow(/There is no delivery/);
    expect(() => getDelivery(journal, generation, B, 'me')).toThrow(HealthlogError);
    expect(getDelivery(journal, generation, '0b7cf6c0', 'me').id).toBe(A);
  });
});

describe('the status of the journal', () => {
  const now = micros(START + 1000 * SECOND);

  it('is quiet on an empty journal', () => {
    expect(journalStatus(journal, null, now)).toEqual({
      pending: 0,
      oldest_pending_age_s: null,
      last_received_at: null,
      last_folded_at: null,
      deliveries: 0,
      failed: 0,
      partial: 0,
      generation: null,
      fold_version: null,
      automations: [],
    });
  });

  it('counts what waits in the ledger and what the ledger has not seen, and takes ages from the clock', () => {
    fold(arrive({ at: 1 }), { status: 'parsed', foldedAt: 50 });
    fold(arrive({ at: 2 }), { status: 'failed', class: 'malformed', foldedAt: 60 });
    // Its position runs ahead of the clock.
    fold(arrive({ at: 900, clock: 400 }), { status: 'pending' });
    arrive({ at: 901, clock: 401 });
    expect(journalStatus(journal, generation, now)).toMatchObject({
      pending: 2,
      oldest_pending_age_s: 600,
      last_received_at: '2026-11-30T22:15:01.000000Z',
      last_folded_at: '2026-11-30T22:01:00.000000Z',
      deliveries: 4,
      failed: 1,
      partial: 0,
      generation: '000003.db',
      fold_version: 1,
    });
  });

  it('knows the latest fold although an older delivery is put off', () => {
    fold(arrive(), { status: 'parsed', foldedAt: 50 });
    fold(arrive(), { status: 'pending' });
    fold(arrive(), { status: 'partial', foldedAt: 70 });
    expect(journalStatus(journal, generation, now)).toMatchObject({
      pending: 1,
      partial: 1,
      last_folded_at: '2026-11-30T22:01:10.000000Z',
    });
  });

  it('takes everything as pending when the generation was built from another journal', () => {
    fold(arrive({ at: 1 }), { status: 'parsed' });
    generation.prepare("UPDATE generation SET journal_epoch = 'another'").run();
    expect(journalStatus(journal, generation, now)).toMatchObject({
      pending: 1,
      oldest_pending_age_s: 999,
      last_folded_at: null,
    });
  });

  it('says when each automation last spoke, and what became of it', () => {
    fold(arrive({ at: 1, name: 'Old name' }), { status: 'failed', class: 'malformed' });
    fold(arrive({ at: 2, name: 'New name' }), { status: 'parsed' });
    arrive({ at: 3, automation: null, name: 'By hand' });
    arrive({ at: 4, profile: 'anna' });
    expect(journalStatus(journal, generation, now).automations).toMatchObject([
      { profile: 'anna', id: 'AUTO-1', deliveries: 1, last_status: 'pending' },
      { profile: 'me', id: null, name: 'By hand', deliveries: 1, last_status: 'pending' },
      {
        profile: 'me',
        id: 'AUTO-1',
        name: 'New name',
        deliveries: 2,
        last_received_at: '2026-11-30T22:00:02.000000Z',
        last_status: 'parsed',
      },
    ]);
  });

  it('scans no table, however long the journal', () => {
    const counts = ["parse_status = 'pending'", "parse_status = 'failed'", "parse_status = 'partial'"];
    for (const condition of counts) {
      const plan = generation
        .prepare<[], { detail: string }>(
          `EXPLAIN QUERY PLAN SELECT count(*) FROM delivery_result WHERE ${condition}`,
        )
        .all();
      expect(plan.map(({ detail }) => detail).join()).toMatch(/USING COVERING INDEX/);
    }
    const groups = journal.db
      .prepare<[], { detail: string }>(
        'EXPLAIN QUERY PLAN SELECT profile, automation_id, count(*) FROM delivery GROUP BY profile, automation_id',
      )
      .all();
    expect(groups.map(({ detail }) => detail)).toEqual([
      'SCAN delivery USING COVERING INDEX delivery_automation',
    ]);
  });
});
