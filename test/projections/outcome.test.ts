import { readFileSync } from 'node:fs';
import { DeciderSpecification } from '@event-driven-io/emmett';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { ArchiveDamaged } from '../../src/journal/archive.js';
import {
  attemptOf,
  DeadlineExceeded,
  isCircumstance,
  isDamage,
  MalformedBody,
  PutOff,
} from '../../src/projections/failure.js';
import {
  type Attempt,
  addOutcome,
  addOutcomes,
  CLASSES,
  classifier,
  countersOf,
  type DeliveryClassified,
  exitCodeOf,
  NO_COUNTERS,
  NO_OUTCOMES,
  type Outcome,
  outcomeOf,
} from '../../src/projections/outcome.js';

const given = DeciderSpecification.for(classifier);

/** The specification accepts subsets, so the outcome is held against the whole expectation as well. */
function becomes(attempt: Attempt, outcome: Outcome): void {
  const event: DeliveryClassified = { type: 'DeliveryClassified', data: { outcome } };
  given([]).when(attempt).then(event);
  expect(classifier.decide(attempt, classifier.initialState())).toEqual(event);
}

const read = {
  counters: { ...NO_COUNTERS, points: 3 },
  layer: { declared: 'day', layer: 'day', origin: 'declared', from: 'nobody' },
  reasons: [],
} as const;

describe('the class of one attempt', () => {
  it.each<[string, Attempt, Outcome]>([
    [
      'applied as a whole',
      { type: 'Applied', data: { ...read, incomplete: false, layerUnknown: false, folded: 3 } },
      { ...read, class: 'folded', parseStatus: 'parsed' },
    ],
    [
      'applied in part',
      { type: 'Applied', data: { ...read, incomplete: true, layerUnknown: false, folded: 3 } },
      { ...read, class: 'folded', parseStatus: 'partial' },
    ],
    [
      'its layer unknown, other sections folded',
      { type: 'Applied', data: { ...read, incomplete: true, layerUnknown: true, folded: 1 } },
      { ...read, class: 'layer_unknown', parseStatus: 'partial' },
    ],
    [
      'its layer unknown, nothing else folded',
      { type: 'Applied', data: { ...read, incomplete: true, layerUnknown: true, folded: 0 } },
      { ...read, class: 'layer_unknown', parseStatus: 'failed' },
    ],
    [
      'set aside',
      { type: 'Failed', data: { class: 'excluded', reasons: ['x'] } },
      { class: 'excluded', parseStatus: 'excluded', reasons: ['x'] },
    ],
    [
      'malformed',
      attemptOf(new MalformedBody('m')),
      { class: 'malformed', parseStatus: 'failed', reasons: ['m'] },
    ],
    [
      'its file damaged',
      attemptOf(new ArchiveDamaged('p', 'r')),
      { class: 'unreadable', parseStatus: 'failed', reasons: ['r'] },
    ],
    [
      'too slow',
      attemptOf(new DeadlineExceeded('d')),
      { class: 'deadline', parseStatus: 'failed', reasons: ['d'] },
    ],
    [
      'too long for one text',
      attemptOf(Object.assign(new Error('x'), { code: 'ERR_STRING_TOO_LONG' })),
      { class: 'too_large', parseStatus: 'failed', reasons: ['the body is too long for one text in memory'] },
    ],
    [
      'our fault',
      attemptOf(new TypeError('x')),
      { class: 'broken', parseStatus: 'failed', reasons: ['a fault in healthlog: TypeError'] },
    ],
    [
      'waiting for another',
      attemptOf(new PutOff('w')),
      { class: 'deferred', parseStatus: 'pending', reasons: ['w'], endsPass: false },
    ],
  ])('%s', (_what, attempt, outcome) => becomes(attempt, outcome));
});

describe('circumstances never count against a delivery', () => {
  const coded = (code: string) => Object.assign(new Error(code), { code });
  const rows: [string, boolean][] = [
    ['SQLITE_BUSY', false],
    ['SQLITE_BUSY_SNAPSHOT', false],
    ['SQLITE_LOCKED_SHAREDCACHE', false],
    ['SQLITE_FULL', true],
    ['SQLITE_IOERR_WRITE', true],
    ['SQLITE_CANTOPEN', false],
    ['SQLITE_READONLY_DBMOVED', true],
    ['SQLITE_NOMEM', false],
    ...['ENOSPC', 'EDQUOT', 'EIO', 'EMFILE', 'ENFILE', 'EACCES', 'EPERM', 'EROFS', 'ENOMEM'].map(
      (code): [string, boolean] => [code, false],
    ),
  ];
  it.each(rows)('%s puts the delivery off, and ends the pass: %s', (code, ends) => {
    expect(isCircumstance(coded(code))).toBe(true);
    expect(outcomeOf(attemptOf(coded(code)))).toMatchObject({
      class: 'deferred',
      parseStatus: 'pending',
      endsPass: ends,
    });
  });

  it('damage of the read model is nobody’s outcome', () => {
    for (const code of ['SQLITE_CORRUPT', 'SQLITE_CORRUPT_VTAB', 'SQLITE_NOTADB']) {
      expect(isDamage(coded(code))).toBe(true);
      expect(isCircumstance(coded(code))).toBe(false);
    }
    expect(isDamage(coded('SQLITE_CONSTRAINT'))).toBe(false);
  });
});

describe('the sum of outcomes', () => {
  const folded: Outcome = {
    ...read,
    class: 'folded',
    parseStatus: 'parsed',
    counters: { ...NO_COUNTERS, points: 2, sections: { metrics: { points: 2, skipped: 1 } } },
  };
  const broken: Outcome = { class: 'broken', parseStatus: 'failed', reasons: [] };

  it('counts deliveries by class and status, and takes counters only from what was folded', () => {
    const sum = [folded, broken, folded].reduce(addOutcome, NO_OUTCOMES);
    expect(sum).toEqual({
      deliveries: 3,
      byClass: { folded: 2, broken: 1 },
      byStatus: { parsed: 2, failed: 1 },
      counters: { ...NO_COUNTERS, points: 4, sections: { metrics: { points: 4, skipped: 2 } } },
    });
    expect(countersOf(broken)).toBe(NO_COUNTERS);
  });

  it('is what the decider evolves to, and what two halves add up to', () => {
    const events = [folded, broken].map(
      (outcome): DeliveryClassified => ({ type: 'DeliveryClassified', data: { outcome } }),
    );
    const evolved = events.reduce(classifier.evolve, classifier.initialState());
    const halves = [folded, broken].map((outcome) => addOutcome(NO_OUTCOMES, outcome));
    expect(halves.reduce(addOutcomes, NO_OUTCOMES)).toEqual(evolved);
  });

  it('gives a rebuild its exit code: 1 beats 4 beats 0', () => {
    const deferred: Outcome = { class: 'deferred', parseStatus: 'pending', reasons: [], endsPass: false };
    const code = (...list: Outcome[]) => exitCodeOf(list.reduce(addOutcome, NO_OUTCOMES));
    expect([code(), code(folded), code(folded, deferred), code(deferred, broken)]).toEqual([0, 0, 4, 1]);
  });
});

describe('one table of classes', () => {
  it('is what the read model’s schema accepts', () => {
    const sql = readFileSync(
      new URL('../../migrations/readmodel/0001_readmodel.sql', import.meta.url),
      'utf8',
    );
    const db = new Database(':memory:');
    db.exec(sql);
    const insert = db.prepare(
      "INSERT INTO delivery_result (delivery_id, received_at, evidence, profile, parse_status, class) VALUES (?, 0, 0, 'me', ?, ?)",
    );
    for (const [name, { statuses }] of Object.entries(CLASSES)) {
      for (const status of statuses)
        insert.run(`${name} ${status}`, status, name === 'deferred' ? null : name);
    }
    expect(() => insert.run('x', 'failed', 'no such class')).toThrow(/CHECK/);
    expect(() => insert.run('y', 'pending', 'folded')).toThrow(/CHECK/);
    db.close();
  });

  it('is what docs/architecture.md says', () => {
    const text = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');
    for (const [name, { statuses, means, comesBackBy }] of Object.entries(CLASSES)) {
      expect(text).toContain(`| ${name} | ${statuses.join(', ')} | ${means} | ${comesBackBy} |`);
    }
  });
});
