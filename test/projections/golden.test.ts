/**
 * Law 11: one generation, one fold version. The facts that the fixtures and a set of awkward deliveries become
 * have a digest; it may only change together with FOLD_VERSION, and then history is read again everywhere.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { FOLD_VERSION } from '../../src/projections/readmodel.js';
import { facts, Lab } from '../support/lab.js';
import { at, body, days, metric, minutes } from '../support/points.js';

/** Digest of the facts, by fold version. Old lines stay: they say what every version made of the same input. */
const GOLDEN: Readonly<Record<number, string>> = {
  1: 'a516430f811dea24a9a335c6eb8afa6bba8d2d0d1d2a2458611b2ffac0038e9d',
};

const fixtures = new URL('../fixtures/', import.meta.url);

function fixture(name: string): Buffer {
  const bytes = readFileSync(new URL(name, fixtures));
  return name.endsWith('.gz') ? gunzipSync(bytes) : bytes;
}

/** The read model's schema without comments and layout: a new schema is a new generation. */
function schema(): string {
  const sql = readFileSync(new URL('../../migrations/readmodel/0001_readmodel.sql', import.meta.url), 'utf8');
  return sql.replace(/--.*$/gm, '').replace(/\s+/g, ' ').trim();
}

it('the facts that the fixtures become change only with the fold version', () => {
  const lab = new Lab();
  try {
    const D = '2026-03-10';
    for (const name of readdirSync(fixtures).sort())
      if (name.includes('.json')) lab.add({ body: fixture(name) });
    const week = [D, '2026-03-11', '2026-03-12'];
    lab.add({
      automation: 'A',
      aggregation: 'Hours',
      period: 'Default',
      body: body(metric('step_count', 'count', minutes(D, 0, 1440, 60))),
    });
    lab.add({ automation: 'A', body: body(metric('protein', 'g', days([D]))) });
    lab.add({
      automation: 'B',
      period: 'Previous 7 Days',
      session: 'S',
      body: body(metric('active_energy', 'kJ', days(week)), metric('step_count', '', days(week))),
    });
    lab.add({
      automation: 'B',
      period: 'Yesterday',
      session: 'S',
      source: 'import',
      clockAt: '2026-03-13T07:00:00Z',
      body: body(metric('active_energy', 'kcal', days(week))),
    });
    lab.add({
      body: body(
        metric(
          'protein',
          'g',
          [5, 20].map((qty) => ({ date: at(D, '12:00:01'), qty })),
        ),
      ),
    });
    lab.add({
      body: body(
        metric('blood_pressure', 'mmHg', [{ date: at(D, '08:00:30'), systolic: 120, diastolic: 80, odd: 1 }]),
      ),
    });
    lab.add({ body: 'not json' });
    lab.add({ body: { data: { ecg: [{}], moonPhases: [1] } } });
    const digest = createHash('sha256')
      .update(JSON.stringify([facts(lab.folded()), schema()]))
      .digest('hex');
    expect(digest, 'raise FOLD_VERSION in src/projections/readmodel.ts and add its digest here').toBe(
      GOLDEN[FOLD_VERSION],
    );
  } finally {
    lab.close();
  }
});
