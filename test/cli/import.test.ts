/** `healthlog import` as people run it: beside a service and without one, twice, and at the same moment. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { dataFolder } from '../../src/journal/folder.js';
import {
  children,
  endAll,
  lines,
  newData,
  Running,
  summary,
  WEEK_FLAGS,
  week,
} from '../support/import-run.js';
import { body, files, rows } from '../support/importing.js';
import { healthlog, Service } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';
import { zipOf } from '../support/zip.js';

const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url));

afterEach(endAll);

const pageSchema = z.object({
  items: z.array(z.looseObject({ start: z.string() })),
  next: z.string().nullable(),
});

async function days(service: Service, metric: string): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  let cursor: string | null = null;
  do {
    const query = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body: answer } = await service.get(
      `/v1/metrics/${encodeURIComponent(metric)}?bucket=day${query}`,
    );
    expect(status).toBe(200);
    const page = pageSchema.parse(answer);
    items.push(...page.items.map(({ delivery_id: _, ...item }) => item));
    cursor = page.next;
  } while (cursor !== null);
  return items;
}

async function stepsOn(service: Service, day: string): Promise<unknown> {
  return (await days(service, 'step_count')).find(({ start }) => String(start).startsWith(day))?.value;
}

describe('import without a service', () => {
  it('takes the files in, folds them by itself, and leaves a data folder any service can go on with', async () => {
    const data = newData();
    const root = files({ 'a.json': week(1000, '2026-03-10'), 'notes.txt': 'x' });
    const { code, stdout, stderr } = healthlog(['import', root, '--data', data, ...WEEK_FLAGS]);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^taken in {7}1 delivery$/m);
    expect(stdout).toMatch(/^outcomes {7}1 folded \(parsed\)$/m);
    expect(stdout).toMatch(/^points {9}7 read/m);
    expect(stdout).toContain('Left out: 1 file.');
    expect(stdout).toContain('notes.txt');
    expect(existsSync(join(data, 'lock.json'))).toBe(false);
    expect(readdirSync(join(data, 'archive/incoming'))).toEqual([]);
    const service = await Service.start({ data });
    expect(await stepsOn(service, '2026-03-10')).toBe(1000);
    expect(healthlog(['verify', '--data', data]).code).toBe(0);
  });

  it('adopts what a crash left before it folds, as a service does', async () => {
    const data = newData();
    const root = files({ 'a.json': body('a'), 'b.json': body('b') });
    healthlog(['import', join(root, 'a.json'), '--data', data]);
    for (const name of ['journal.db', 'journal.db-wal', 'journal.db-shm']) {
      const path = join(data, name);
      if (existsSync(path)) writeFileSync(path, '');
    }
    const { code, stderr } = healthlog(['import', root, '--data', data, ...WEEK_FLAGS]);
    expect([code, stderr]).toEqual([0, 'Took in bodies of the archive that had no journal row: 1.\n']);
  });

  it('--no-wait leaves the folding to the next start', async () => {
    const data = newData();
    const root = files({ 'a.json': week(1000, '2026-03-10') });
    const { code, stdout } = healthlog([
      'import',
      root,
      '--data',
      data,
      '--no-wait',
      '--json',
      ...WEEK_FLAGS,
    ]);
    expect(code).toBe(0);
    expect(lines(stdout)).toMatchObject([
      { file: join(root, 'a.json'), result: 'imported', parse_status: 'pending' },
      { summary: { imported: 1, pending: 1, exit_code: 0 } },
    ]);
    const second = healthlog(['import', root, '--data', data, '--json']);
    expect([second.code, lines(second.stdout)[0]]).toMatchObject([
      0,
      { result: 'known', parse_status: 'parsed', class: 'folded' },
    ]);
  });

  it('makes no data folder when there is nothing to take in', () => {
    const data = newData();
    const { code, stdout } = healthlog(['import', 'no/such/file', '--data', data]);
    expect(code).toBe(1);
    expect(stdout).toContain('no/such/file was refused: The file cannot be read: there is no such file.');
    expect(existsSync(data)).toBe(false);
  });
});

describe('import beside a running service', () => {
  it('is folded by the service, and waits for it', async () => {
    const service = await Service.start();
    const root = files({ 'a.zip': zipOf([{ name: 'b.json', data: week(2000, '2026-03-10') }]) });
    const { stdout, code } = await new Running([
      root,
      '--data',
      service.data,
      '--json',
      ...WEEK_FLAGS,
    ]).ended();
    expect(code).toBe(0);
    const [line] = lines(stdout);
    expect(line).toMatchObject({
      file: join(root, 'a.zip/b.json'),
      result: 'imported',
      clock_at: '2026-03-10T00:00:00.000000Z',
      parse_status: 'parsed',
      class: 'folded',
      counters: { points: 7 },
    });
    expect(line).not.toHaveProperty('error');
    expect(line).not.toHaveProperty('reasons');
    expect(await stepsOn(service, '2026-03-10')).toBe(2000);
    const { body: delivery } = await service.get(`/v1/deliveries/${String(line?.delivery_id)}`);
    expect(delivery).toMatchObject({ source: 'import', received_at: line?.received_at });
  });

  it('folds by itself when the service was stopped meanwhile', async () => {
    const service = await Service.start();
    const fifo = join(tmpDir(), 'pipe');
    execFileSync('mkfifo', [fifo]);
    const running = new Running([fifo, '--data', service.data, '--json', ...WEEK_FLAGS]);
    const pipe = spawn('sh', ['-c', 'cat >"$0"', fifo], { stdio: ['pipe', 'ignore', 'inherit'] });
    children.add(pipe);
    await service.stop();
    pipe.stdin?.end(week(3000, '2026-03-10'));
    const { code, stdout } = await running.ended();
    expect([code, lines(stdout)[0]]).toMatchObject([0, { file: fifo, parse_status: 'parsed' }]);
  });

  it('waits for a journal that is busy', async () => {
    const service = await Service.start();
    const other = new BetterSqlite3(dataFolder(service.data).journal);
    other.exec('BEGIN IMMEDIATE');
    const root = files({ 'a.json': week(1, '2026-03-10') });
    const running = new Running([root, '--data', service.data, ...WEEK_FLAGS]);
    const incoming = join(service.data, 'archive/incoming');
    while (readdirSync(incoming).length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(rows(dataFolder(service.data))).toEqual([]);
    other.exec('ROLLBACK');
    other.close();
    expect((await running.ended()).code).toBe(0);
    expect(rows(dataFolder(service.data)).length).toBe(1);
    expect(readdirSync(incoming)).toEqual([]);
  });
});

describe('the same file', () => {
  it('imported twice is recognised and said, with the earlier delivery and when', () => {
    const data = newData();
    const root = files({ 'a.json': week(1, '2026-03-10') });
    const args = ['import', join(root, 'a.json'), '--data', data, ...WEEK_FLAGS];
    healthlog(args);
    const { code, stdout } = healthlog(args);
    const [row] = rows(dataFolder(data));
    expect(code).toBe(0);
    expect(stdout).toContain(`a.json is known already: delivery ${row?.id}, received 20`);
    expect(stdout).toContain('--again');
    expect(rows(dataFolder(data)).length).toBe(1);
    expect(healthlog([...args, '--again']).code).toBe(0);
    expect(rows(dataFolder(data)).length).toBe(2);
  });

  it('and many others are counted, not listed', () => {
    const data = newData();
    const root = files(
      Object.fromEntries([...Array(9).keys()].map((n) => [`${n}.json`, week(n, '2026-03-10')])),
    );
    const args = ['import', root, '--data', data, ...WEEK_FLAGS];
    healthlog(args);
    const { stdout } = healthlog(args);
    expect(stdout.match(/is known already/g)).toHaveLength(5);
    expect(stdout).toContain('and 4 more');
    expect(stdout).toMatch(/^already known +9$/m);
  });

  it('that was set aside says so', () => {
    const data = newData();
    const args = ['import', join(files({ 'a.json': week(1, '2026-03-10') }), 'a.json'), '--data', data];
    healthlog([...args, ...WEEK_FLAGS]);
    const [row] = rows(dataFolder(data));
    expect(healthlog(['journal', 'exclude', row?.id ?? '', '--data', data]).code).toBe(0);
    expect(healthlog(['rebuild', '--data', data]).code).toBe(0);
    const { code, stdout } = healthlog(args);
    expect(code).toBe(0);
    expect(stdout).toContain(`"healthlog journal include ${row?.id}" takes it back`);
  });

  it('whose grouping nothing tells fails, says what to do, and folds when that is done', () => {
    const data = newData();
    // One point of one metric at one midnight: no rule tells its grouping.
    const root = files({ 'a.json': body('count') });
    const args = ['import', join(root, 'a.json'), '--data', data];
    const first = healthlog(args);
    expect(first.code).toBe(1);
    expect(first.stdout).toContain('nothing of it could be folded: layer_unknown');
    expect(first.stdout).toContain('what to do: import it again and say how it was grouped');
    expect(healthlog(args).code).toBe(1);
    const second = healthlog([...args, '--aggregation', 'Days', '--json']);
    expect([second.code, lines(second.stdout)[0]]).toMatchObject([
      0,
      { result: 'imported', class: 'folded' },
    ]);
    expect(
      healthlog(['import', join(root, 'a.json'), '--data', data, '--aggregation', 'days']).stdout,
    ).toContain('is known already');
    expect(rows(dataFolder(data)).map(({ automation }) => automation.aggregation)).toEqual([null, 'Days']);
  });

  it('imported by two processes at the same moment is recorded once, and both see its outcome', async () => {
    const data = newData();
    const list = Object.fromEntries([1, 2, 3, 4, 5].map((n) => [`${n}.json`, week(n, '2026-03-10')]));
    const args = [files(list), '--data', data, '--json', ...WEEK_FLAGS];
    const both = await Promise.all([new Running(args).ended(), new Running(args).ended()]);
    expect(both.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(rows(dataFolder(data)).length).toBe(5);
    const [a, b] = both.map(({ stdout }) => summary(stdout));
    expect(Number(a?.imported) + Number(b?.imported)).toBe(5);
    expect(Number(a?.known) + Number(b?.known)).toBe(5);
  });
});

describe('the position of an import is now, its evidence is when the file was made', () => {
  it('so an old file does not beat newer data, in whatever order they come', async () => {
    const data = newData();
    const root = files({ 'new.json': week(5000, '2026-03-10'), 'old.json': week(4000, '2026-03-09') });
    for (const name of ['new.json', 'old.json'])
      expect(healthlog(['import', join(root, name), '--data', data, ...WEEK_FLAGS]).code).toBe(0);
    const [first, second] = rows(dataFolder(data));
    expect(Number(second?.receivedAt)).toBeGreaterThan(Number(first?.receivedAt));
    expect(Number(second?.clockAt)).toBeLessThan(Number(first?.clockAt));
    const service = await Service.start({ data });
    expect(await stepsOn(service, '2026-03-09')).toBe(5000);
    expect(await stepsOn(service, '2026-03-03')).toBe(4000);
    // Said to be made later, the same file has the last word.
    const args = [join(root, 'old.json'), '--data', data, '--as-of', '2026-03-12', ...WEEK_FLAGS];
    expect((await new Running(args).ended()).code).toBe(0);
    expect(await stepsOn(service, '2026-03-09')).toBe(4000);
  });

  it('so an old file does not beat what the phone sent', async () => {
    const service = await Service.start();
    const headers = { 'automation-aggregation': 'Days', 'automation-period': 'Previous 7 Days' };
    expect((await service.post(week(7000, '2026-03-10'), headers, '?wait=30')).status).toBe(200);
    const root = files({ 'old.json': week(6000, '2026-03-10') });
    expect((await new Running([root, '--data', service.data, ...WEEK_FLAGS]).ended()).code).toBe(0);
    expect(await stepsOn(service, '2026-03-10')).toBe(7000);
  });

  it('so fixtures imported give the day numbers of the same fixtures posted', async () => {
    // By age, because a posted delivery is as new as its arrival.
    const names = [
      'metrics-minutes-4-days.json.gz',
      'metrics-days-week-v9.json',
      'metrics-days-22-months-v8.json.gz',
    ];
    const data = newData();
    const { code, stdout } = healthlog([
      'import',
      ...names.map((name) => join(FIXTURES, name)),
      '--data',
      data,
      '--json',
    ]);
    expect(code).toBe(0);
    expect(lines(stdout).map(({ file }) => file)).toEqual([
      ...names.map((name) => join(FIXTURES, name)),
      undefined,
    ]);
    const made = rows(dataFolder(data)).map(({ clockAt }) => clockAt);
    expect(made).toEqual([...made].sort((a, b) => a - b));

    const posted = await Service.start();
    for (const name of names) {
      const bytes = readFileSync(join(FIXTURES, name));
      const response = await posted.post(name.endsWith('.gz') ? gunzipSync(bytes) : bytes, {}, '?wait=30');
      expect(response.status).toBe(200);
    }
    const imported = await Service.start({ data });
    const { body: metrics } = await posted.get('/v1/metrics');
    const list = z.object({ items: z.array(z.looseObject({ metric: z.string() })) }).parse(metrics).items;
    expect(list.length).toBeGreaterThan(20);
    for (const { metric } of list)
      expect(await days(imported, metric), metric).toEqual(await days(posted, metric));
  });
});
