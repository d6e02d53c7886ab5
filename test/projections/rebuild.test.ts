import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { currentGeneration } from '../../src/projections/generations.js';
import { type RebuildOptions, type RebuildReport, rebuild } from '../../src/projections/rebuild.js';
import { rebuildLines } from '../../src/projections/rebuild-text.js';
import { Lab } from '../support/lab.js';
import { liveFacts } from '../support/live.js';
import { body, days, metric, minutes } from '../support/points.js';

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.close());

const D = '2026-03-10';
const hourly = body(metric('step_count', 'count', minutes(D, 600, 720, 60)));
const daily = body(metric('step_count', 'count', days([D, '2026-03-11'])));

function run(options: Partial<RebuildOptions> = {}): Promise<RebuildReport> {
  return rebuild({ folder: lab.folder, clock: lab.clock, dryRun: false, acceptLoss: false, ...options });
}

const verify = (options: Partial<RebuildOptions> = {}) => run({ dryRun: true, ...options });

function edit(sql: string): void {
  const db = new Database(currentGeneration(lab.folder)?.path ?? '');
  db.exec(sql);
  db.close();
}

const generations = (): string[] =>
  readdirSync(lab.folder.readmodel)
    .filter((name) => /^\d+\.db$/.test(name))
    .sort();

describe('rebuild', () => {
  it('builds the first read model from the archive', async () => {
    lab.add({ body: hourly });
    const report = await run();
    expect(report).toMatchObject({ exitCode: 0, result: 'switched', compared: false, deliveries: 1 });
    expect(liveFacts(lab).bucket).toHaveLength(2);
  });

  it('gives the same rows, proves it, and takes the place of the live one', async () => {
    lab.add({ body: hourly });
    lab.add({ body: daily });
    await run();
    const before = liveFacts(lab);
    const report = await run();
    expect(report).toMatchObject({ exitCode: 0, compared: true, differences: [], generation: '000002.db' });
    expect(liveFacts(lab)).toEqual(before);
    expect(generations()).toEqual(['000001.db', '000002.db']);
    expect(readdirSync(lab.folder.readmodel).filter((name) => name.includes('-wal'))).toEqual([]);
  });

  it('takes in a body that has no journal row', async () => {
    lab.add({ body: hourly });
    await run();
    lab.add({ body: daily, orphan: true });
    const report = await run();
    expect(report.orphans).toHaveLength(1);
    expect(lab.journal.count()).toBe(2);
    expect(liveFacts(lab).delivery_result).toHaveLength(2);
  });

  it('folds what the live one had not seen yet, or had pending', async () => {
    lab.add({ body: hourly });
    await run();
    const waiting = lab.add({ body: daily });
    edit(`INSERT INTO delivery_result (seq, delivery_id, received_at, evidence, profile, parse_status)
      VALUES (${waiting.seq}, '${waiting.id}', ${waiting.receivedAt}, ${waiting.receivedAt}, 'me', 'pending');
      UPDATE generation SET enrolled_seq = ${waiting.seq}, enrolled_id = '${waiting.id}'`);
    lab.add({ body: daily });
    expect(await run()).toMatchObject({ exitCode: 0, compared: true, differences: [], deliveries: 3 });
    expect(liveFacts(lab).delivery_result).toHaveLength(3);
  });

  it('folds once more in one order when what was pending changes what came after it', async () => {
    const giver = lab.add({ automation: 'A', body: hourly });
    lab.add({ automation: 'A', body: body(metric('protein', 'g', days([D]))) });
    await run();
    // In the live generation the taker was settled without the giver, which waits.
    edit(`UPDATE delivery_result SET parse_status = 'pending', class = NULL WHERE seq = ${giver.seq};
      DELETE FROM bucket; DELETE FROM delivery_series; DELETE FROM coverage;
      UPDATE delivery_result SET parse_status = 'failed', class = 'layer_unknown', layer = NULL, layer_from = NULL,
        layer_origin = 'unknown' WHERE seq = 2`);
    const report = await run();
    // The live rows were not what the journal gives, and the report still says so.
    expect(report).toMatchObject({ result: 'switched', compared: true, exitCode: 3 });
    expect(liveFacts(lab).delivery_result).toMatchObject([
      { layer: 'hour' },
      { layer: 'hour', layer_from: giver.id },
    ]);
  });

  it('does not switch when a body that is shown is gone, unless the loss is accepted', async () => {
    const row = lab.add({ body: hourly });
    lab.add({ body: daily });
    await run();
    rmSync(join(lab.folder.archive, row.archivePath));
    const report = await run();
    expect(report).toMatchObject({
      exitCode: 1,
      result: 'none',
      lost: [{ id: row.id, archivePath: row.archivePath }],
    });
    expect(rebuildLines(report, false).join('\n')).toContain(row.id);
    expect(currentGeneration(lab.folder)?.name).toBe('000001.db');
    expect(generations()).toEqual(['000001.db']);
    expect(await run({ acceptLoss: true })).toMatchObject({ exitCode: 1, result: 'switched' });
  });

  it('leaves everything as it was when it is cancelled', async () => {
    for (let i = 0; i < 4; i++) lab.add({ body: hourly });
    await run();
    const before = liveFacts(lab);
    let asked = 0;
    const report = await run({ cancelled: () => asked++ > 1 });
    expect(report).toMatchObject({ exitCode: 4, cancelled: true, result: 'none' });
    expect(liveFacts(lab)).toEqual(before);
    expect(generations()).toEqual(['000001.db']);
    expect(existsSync(join(lab.folder.readmodel, 'READY'))).toBe(false);
  });

  it('replaces a read model of another journal: nothing could be compared, and nothing is wrong', async () => {
    lab.add({ body: hourly });
    await run();
    edit("UPDATE generation SET journal_epoch = 'another'");
    expect(await verify()).toMatchObject({
      exitCode: 3,
      unreadable: expect.stringContaining('another journal'),
    });
    expect(await run()).toMatchObject({ exitCode: 0, result: 'switched', compared: false });
    expect(await verify()).toMatchObject({ exitCode: 0, compared: true });
  });

  it('counts progress up to the total', async () => {
    for (let i = 0; i < 3; i++) lab.add({ body: hourly });
    const told: number[] = [];
    await run({ onProgress: ({ done, total, points }) => told.push(done, total, points) });
    expect(told).toEqual([1, 3, 2, 2, 3, 4, 3, 3, 6]);
  });

  it('refuses a data folder without a journal in plain words', async () => {
    const empty = new Lab();
    empty.close();
    await expect(
      rebuild({ folder: empty.folder, clock: lab.clock, dryRun: true, acceptLoss: false }),
    ).rejects.toThrow(/no journal/);
  });
});

describe('verify', () => {
  it('is clean and changes nothing', async () => {
    lab.add({ body: hourly });
    await run();
    const before = readFileSync(currentGeneration(lab.folder)?.path ?? '');
    expect(await verify()).toMatchObject({ exitCode: 0, compared: true, differences: [], result: 'none' });
    expect(generations()).toEqual(['000001.db']);
    expect(readFileSync(currentGeneration(lab.folder)?.path ?? '')).toEqual(before);
  });

  it('names a value that was changed by hand, with both values', async () => {
    lab.add({ body: hourly });
    await run();
    edit('UPDATE bucket SET value = value + 1 WHERE start = (SELECT min(start) FROM bucket)');
    const report = await verify();
    expect(report.exitCode).toBe(3);
    expect(report.differences).toMatchObject([
      {
        table: 'bucket',
        onlyLive: 1,
        onlyRebuilt: 1,
        first: [
          { side: 'live', row: { value: 2 } },
          { side: 'rebuilt', row: { value: 1 } },
        ],
      },
    ]);
    expect(rebuildLines(report, true).join('\n')).toContain('step_count');
  });

  it('names a result whose inherited layer the journal does not support', async () => {
    lab.add({ automation: 'A', body: hourly });
    const taker = lab.add({ automation: 'A', body: body(metric('protein', 'g', days([D]))) });
    await run();
    edit(
      "UPDATE delivery_result SET layer_from = '00000000-0000-4000-8000-000000000099' WHERE layer_origin = 'inherited'",
    );
    const report = await verify();
    expect(report.exitCode).toBe(3);
    expect(report.mismatches).toMatchObject([{ id: taker.id }]);
  });

  it('names a damaged body: one flipped bit', async () => {
    const row = lab.add({ body: hourly });
    await run();
    appendFileSync(join(lab.folder.archive, row.archivePath), 'x');
    const report = await verify();
    expect(report.exitCode).toBe(1);
    expect(report.lost).toMatchObject([{ id: row.id }]);
  });

  it('reports an orphan without taking it in', async () => {
    lab.add({ body: hourly });
    await run();
    const orphan = lab.add({ body: daily, orphan: true });
    expect(await verify()).toMatchObject({ exitCode: 1, orphans: [orphan.archivePath] });
    expect(lab.journal.count()).toBe(1);
  });
});
