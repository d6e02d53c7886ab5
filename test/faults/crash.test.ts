/** The process is killed or told to stop at a bad moment: what was accepted is folded by the next ordinary pass. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { dataFolder } from '../../src/journal/folder.js';
import { currentGeneration } from '../../src/projections/generations.js';
import { openGeneration } from '../../src/projections/readmodel.js';
import { resultOf } from '../support/lab.js';
import { healthlog, Service, stopAll } from '../support/service.js';

afterEach(stopAll);

const wide = gunzipSync(readFileSync(new URL('../fixtures/metrics-minutes-4-days.json.gz', import.meta.url)));

async function accepted(response: Response): Promise<string> {
  expect(response.status).toBe(200);
  const body: unknown = await response.json();
  if (typeof body !== 'object' || body === null || !('id' in body) || typeof body.id !== 'string')
    throw new Error('no id');
  return body.id;
}

async function foldedStatus(service: Service, token: string, id: string): Promise<unknown> {
  for (;;) {
    const { body } = await service.get(`/v1/deliveries/${id}`, token);
    if (
      typeof body === 'object' &&
      body !== null &&
      'parse_status' in body &&
      body.parse_status !== 'pending'
    )
      return body.parse_status;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('SIGKILL right after the 200', () => {
  it('loses nothing: after a restart the delivery is folded, and its body is there byte for byte', async () => {
    const first = await Service.start();
    const reading = first.token('reading');
    const ids: string[] = [];
    for (let i = 0; i < 3; i++)
      ids.push(await accepted(await first.post(wide, { 'automation-aggregation': 'Minutes' })));
    await first.stop('SIGKILL');
    const second = await Service.start({ data: first.data });
    for (const id of ids) {
      expect(await foldedStatus(second, reading, id)).toBe('partial');
      expect(healthlog(['journal', 'cat', id, '--data', first.data]).stdout).toBe(wide.toString('utf8'));
    }
    expect(readdirSync(join(first.data, 'archive', 'incoming'))).toEqual([]);
    expect(healthlog(['verify', '--data', first.data]).code).toBe(0);
  });
});

describe('SIGTERM during a fold', () => {
  it('ends with 0 within the budget, and no delivery is half written', async () => {
    const service = await Service.start();
    const ids: string[] = [];
    for (let i = 0; i < 6; i++)
      ids.push(await accepted(await service.post(wide, { 'automation-aggregation': 'Minutes' })));
    // The answers came before the folds: at least one of them is under way or waits.
    expect(await service.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(service.stderr).toContain('"stopped"');
    const live = currentGeneration(dataFolder(service.data));
    if (live === null) throw new Error('nothing is live');
    const db = openGeneration(live.path, 'read');
    const enrolled = db.prepare<[], { id: string }>('SELECT delivery_id AS id FROM delivery_result').all();
    for (const { id } of enrolled) {
      const { parse_status, counters } = resultOf(db, id);
      const held = db
        .prepare<[string], { n: number }>(
          'SELECT count(*) AS n FROM delivery_series s JOIN delivery_result d ON d.seq = s.delivery WHERE d.delivery_id = ?',
        )
        .get(id);
      if (parse_status === 'pending') expect([counters, held?.n]).toEqual([null, 0]);
      else expect([parse_status, held?.n]).toEqual(['partial', 26]);
    }
    db.close();
    const again = await Service.start({ data: service.data });
    for (const id of ids) expect(await foldedStatus(again, service.token('reading'), id)).toBe('partial');
    await again.stop();
    expect(healthlog(['verify', '--data', service.data]).code).toBe(0);
  });
});

describe('a crash between rename and COMMIT', () => {
  it('leaves an orphan that the next start takes in at its own position', async () => {
    const service = await Service.start();
    const id = await accepted(await service.post('{"data":{"metrics":[]}}'));
    const reading = service.token('reading');
    await service.stop('SIGKILL');
    const journal = join(service.data, 'journal.db');
    // The journal as it was before the row: the body alone is left.
    const { default: Database } = await import('better-sqlite3');
    const db = new Database(journal);
    db.exec('DROP TRIGGER delivery_is_never_deleted; DELETE FROM delivery');
    db.close();
    const again = await Service.start({ data: service.data });
    expect(again.stderr).toContain('took in bodies that had no journal row');
    expect(await foldedStatus(again, reading, id)).toBe('parsed');
    const { body } = await again.get(`/v1/deliveries/${id}`, reading);
    expect(body).toMatchObject({ adopted: true });
  });
});
