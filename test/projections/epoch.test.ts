/** A journal that is another one than before: made anew, or put back from an older copy. */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { POSITION_ZERO } from '../../src/journal/position.js';
import { adoptOrphans } from '../../src/journal/reconcile.js';
import { recoverJournal } from '../../src/journal/recover.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { foreignReason } from '../../src/projections/belonging.js';
import { currentGeneration } from '../../src/projections/generations.js';
import { createGeneration, openGeneration } from '../../src/projections/readmodel.js';
import { rebuild } from '../../src/projections/rebuild.js';
import { Runner } from '../../src/projections/runner.js';
import { facts, Lab } from '../support/lab.js';
import { liveOf, settle } from '../support/live.js';
import { body, metric, minutes } from '../support/points.js';
import { tmpDir } from '../support/tmp.js';

let lab: Lab;
let journals: Journal[] = [];

beforeEach(() => {
  lab = new Lab();
  journals = [];
});
afterEach(() => {
  for (const journal of journals) journal.close();
  lab.close();
});

const D = '2026-03-10';
/** Bodies that say different things of the same hours, so that it shows whose numbers are there. */
const steps = (qty: number) =>
  body(
    metric(
      'step_count',
      'count',
      minutes(D, 600, 720, 60, () => qty),
    ),
  );

/** What the journal is now, in a file of its own: everything is in the database, nothing in its log. */
function copyJournal(): string {
  const path = join(lab.folder.root, 'copy of the journal');
  lab.journal.db.pragma('wal_checkpoint(TRUNCATE)');
  copyFileSync(lab.folder.journal, path);
  return path;
}

function putBack(copy: string): Journal {
  lab.journal.close();
  for (const suffix of ['-wal', '-shm']) rmSync(`${lab.folder.journal}${suffix}`, { force: true });
  copyFileSync(copy, lab.folder.journal);
  return opened();
}

function opened(): Journal {
  const journal = Journal.open(lab.folder, 'write');
  journals.push(journal);
  return journal;
}

/** What a service that starts does with it, until it rests; gives the reasons for which it built anew. */
function serve(): string[] {
  const reasons: string[] = [];
  const live = liveOf(lab, (reason) => reasons.push(reason));
  try {
    settle(live);
    return reasons;
  } finally {
    live.close();
  }
}

/** The live generation; its ledger is the journal, and its rows are those of a fold from nothing. */
function expectOf(journal: Journal): { facts: Record<string, unknown[]> } {
  const db = openGeneration(currentGeneration(lab.folder)?.path ?? '', 'read');
  try {
    expect(foreignReason(db, journal)).toBeNull();
    const live = facts(db);
    const fresh = createGeneration(join(tmpDir(), 'fresh.db'), journal.meta().epoch);
    new Runner({ journal, generation: fresh, archiveRoot: lab.folder.archive, clock: lab.clock }).pass();
    expect(live).toEqual(facts(fresh));
    fresh.close();
    const ledger = db
      .prepare('SELECT delivery_id FROM delivery_result ORDER BY received_at, delivery_id')
      .pluck();
    const rows = journal.page({ limit: 1000, after: POSITION_ZERO });
    expect(ledger.all()).toEqual(rows.map(({ id }) => id));
    return { facts: live };
  } finally {
    db.close();
  }
}

describe('a journal that is put back from an older copy', () => {
  function older(): { copy: string; late: JournalRow[] } {
    lab.add({ body: steps(1) });
    lab.add({ body: steps(2) });
    const copy = copyJournal();
    const late = [lab.add({ body: steps(3) }), lab.add({ body: steps(4) })];
    expect(serve()).toEqual(['there is no read model yet']);
    return { copy, late };
  }

  it('takes in again what the archive still holds, and changes nothing', () => {
    const { copy, late } = older();
    const journal = putBack(copy);
    expect(adoptOrphans({ folder: lab.folder, journal }).adopted.map(({ id }) => id)).toEqual(
      late.map(({ id }) => id),
    );
    // Adopted in the old order: every delivery has the seq that it had.
    expect(serve()).toEqual([]);
    expectOf(journal);
  });

  it('forgets what is gone from the archive too, and enrols what arrives then', () => {
    const { copy, late } = older();
    for (const row of late) rmSync(join(lab.folder.archive, row.archivePath));
    const journal = putBack(copy);
    expect(serve()).toEqual(['the journal was restored from another copy']);
    expect(expectOf(journal).facts.delivery_result).toHaveLength(2);
    // As many as were lost: the seq of the last one was that of another delivery.
    for (const qty of [5, 6]) {
      const row = lab.add({ body: steps(qty), orphan: true });
      adoptOrphans({ folder: lab.folder, journal });
      expect(journal.byId(row.id)?.seq).toBeGreaterThan(2);
    }
    expect(serve()).toEqual([]);
    expect(expectOf(journal).facts.bucket).toMatchObject([{ value: 6 }, { value: 6 }]);
  });

  it('that has as many rows again when the service looks is noticed by its last one', () => {
    const { copy, late } = older();
    for (const row of late) rmSync(join(lab.folder.archive, row.archivePath));
    const journal = putBack(copy);
    for (const qty of [5, 6]) lab.add({ body: steps(qty), orphan: true });
    adoptOrphans({ folder: lab.folder, journal });
    expect(serve()).toEqual(['the journal was restored from another copy']);
    expect(expectOf(journal).facts.bucket).toMatchObject([{ value: 6 }, { value: 6 }]);
  });

  it('is noticed although its last delivery is the old one, when others have changed places', () => {
    lab.add({ body: steps(1) });
    const copy = copyJournal();
    // Taken in late, below a delivery that was there: seq 3 stands before seq 2.
    lab.add({ at: '2026-05-01T00:20:00Z', body: steps(2) });
    lab.add({ at: '2026-05-01T00:10:00Z', body: steps(3) });
    const last = lab.add({ at: '2026-05-01T00:30:00Z', body: steps(4) });
    expect(serve()).toHaveLength(1);
    const journal = putBack(copy);
    adoptOrphans({ folder: lab.folder, journal });
    expect(journal.bySeq(4)?.id).toBe(last.id);
    expect(serve()).toEqual(['the journal was restored from another copy']);
    expectOf(journal);
  });

  it('is noticed when the read model never took one of its deliveries in', () => {
    lab.add({ body: steps(1) });
    const skipped = lab.add({ body: steps(2) });
    lab.add({ body: steps(3) });
    const generation = lab.folded();
    expect(foreignReason(generation, lab.journal)).toBeNull();
    generation.prepare('DELETE FROM delivery_result WHERE delivery_id = ?').run(skipped.id);
    expect(foreignReason(generation, lab.journal)).toBe('the journal was restored from another copy');
  });

  it('is not compared with a read model of the journal as it was', async () => {
    const { copy, late } = older();
    for (const row of late) rmSync(join(lab.folder.archive, row.archivePath));
    putBack(copy);
    const verified = await rebuild({ folder: lab.folder, clock: lab.clock, dryRun: true, acceptLoss: false });
    expect(verified).toMatchObject({ exitCode: 3, unreadable: 'the journal was restored from another copy' });
  });
});

describe('a journal that is made anew', () => {
  it('has another epoch: the read model is built anew and shows the same', () => {
    lab.add({ body: steps(1) });
    lab.add({ at: '2026-05-01T00:20:00Z', body: steps(2) });
    lab.add({ at: '2026-05-01T00:10:00Z', body: steps(3) });
    serve();
    const before = expectOf(lab.journal).facts;
    lab.journal.close();
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${lab.folder.journal}${suffix}`, { force: true });
    recoverJournal({ folder: lab.folder, clock: lab.clock });
    const journal = opened();
    expect(serve()).toEqual(['the journal was replaced by another one']);
    expect(expectOf(journal).facts).toEqual(before);
  });
});
