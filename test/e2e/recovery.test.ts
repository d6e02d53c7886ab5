/**
 * Every way home: only archive/ survives, and a journal that is put back from an older copy. The compiled program, real
 * HTTP; the service is killed, never asked.
 */
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { archivePath, encodeHeader } from '../../src/journal/archive.js';
import { dataFolder } from '../../src/journal/folder.js';
import { deliveryId, micros } from '../../src/journal/position.js';
import { healthlog, Service, stopAll } from '../support/service.js';
import { tmpData, tmpDir } from '../support/tmp.js';

afterEach(stopAll);

const SECRET = 'the-key-of-the-server-before-2026';

const accepted = z.object({ id: z.string(), parse_status: z.string() });

/** Steps of one day, so that it shows whose numbers are there. */
function steps(qty: number, day = '2026-03-10'): string {
  const data = [{ date: `${day} 00:00:00 +0100`, qty, source: 'Watch' }];
  return JSON.stringify({ data: { metrics: [{ name: 'step_count', units: 'count', data }] } });
}

const AUTOMATION = { 'automation-id': 'A', 'automation-name': 'Steps', 'automation-aggregation': 'Days' };

async function post(url: string, token: string, body: string, headers = AUTOMATION): Promise<string> {
  const response = await fetch(`${url}/v1/ingest?wait=30`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
  });
  expect(response.status).toBe(200);
  return accepted.parse(await response.json()).id;
}

async function statusOf(url: string, token: string): Promise<number> {
  const response = await fetch(`${url}/v1/status`, { headers: { 'x-api-key': token } });
  return response.status;
}

async function numbers(url: string, token: string): Promise<unknown> {
  const response = await fetch(`${url}/v1/metrics/step_count?bucket=day`, {
    headers: { 'x-api-key': token },
  });
  expect(response.status).toBe(200);
  return response.json();
}

const item = z.looseObject({ id: z.string(), received_at: z.string(), parse_status: z.string() });

/** Every delivery as `journal ls` shows it, but for what tells of this journal and this fold alone. */
function listed(data: string): z.infer<typeof item>[] {
  const { stdout, code } = healthlog(['journal', 'ls', '--all', '--json', '--data', data]);
  expect(code).toBe(0);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { adopted, fold_ms, folded_at, ...rest } = item.parse(JSON.parse(line));
      return rest;
    });
}

const tokenRow = z.object({ label: z.string(), hash: z.string(), revoked_at: z.string().nullable() });

function tokensOf(data: string): z.infer<typeof tokenRow>[] {
  return healthlog(['token', 'ls', '--json', '--data', data])
    .stdout.trimEnd()
    .split('\n')
    .map((line) => tokenRow.parse(JSON.parse(line)));
}

/** Waits for the service to have folded everything, however often it builds anew. */
async function settled(service: Service, token: string): Promise<void> {
  for (;;) {
    const response = await fetch(`${service.url}/v1/status`, { headers: { 'x-api-key': token } });
    const { state, pending } = z
      .object({ state: z.string(), pending: z.number() })
      .parse(await response.json());
    if (state === 'idle' && pending === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A body as `healthlog import` leaves it: made earlier than it was taken in. */
function putImported(data: string, body: string): void {
  const sha256 = createHash('sha256').update(body).digest('hex');
  const receivedAt = micros(Date.parse('2026-03-20T08:00:00Z') * 1000);
  const position = { receivedAt, id: deliveryId('3f2504e0-4f89-41d3-9a0c-0305e82c3301') };
  const header = encodeHeader({
    format: 1,
    profile: 'me',
    source: 'import',
    clockAt: micros(Date.parse('2026-03-02T00:00:00Z') * 1000),
    contentType: null,
    contentCoding: null,
    headers: { 'automation-aggregation': 'Days' },
  });
  const path = join(dataFolder(data).archive, archivePath(position, sha256));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Buffer.concat([header, gzipSync(body)]));
}

interface Life {
  readonly data: string;
  readonly phone: string;
  readonly reading: string;
  readonly hers: string;
  readonly revoked: string;
  readonly deliveries: ReturnType<typeof listed>;
  readonly tokens: ReturnType<typeof tokensOf>;
  readonly numbers: unknown;
}

/** A data folder that was in use, killed, with nothing left but archive/. */
async function onlyArchiveSurvives(): Promise<Life> {
  const { root: data } = tmpData();
  putImported(data, steps(500, '2026-03-01'));
  const service = await Service.start({ data });
  const { url } = service;
  const run = (...args: string[]) => {
    const { code, stdout, stderr } = healthlog([...args, '--data', data]);
    expect(code, stderr).toBe(0);
    return stdout.trim();
  };
  const phone = service.token('phone');
  const reading = service.token('reading');
  const hers = run('token', 'add', 'her phone', '--profile', 'her');
  const revoked = run('token', 'add', 'lost phone');
  const file = join(tmpDir(), 'secret');
  writeFileSync(file, SECRET);
  run('token', 'add', 'old server', '--secret-from', file);

  await post(url, phone, steps(1000));
  await post(url, hers, steps(7));
  await post(url, revoked, steps(1001));
  run('token', 'revoke', 'lost phone');
  await post(url, SECRET, steps(1002, '2026-03-11'));
  const wrong = await post(url, phone, steps(99_999));
  run('journal', 'exclude', wrong, '--reason', 'a test');
  const taken = await post(url, phone, steps(1003, '2026-03-12'));
  run('journal', 'exclude', taken, '--reason', 'a mistake');
  run('journal', 'include', taken);
  const statuses = () => listed(data).map((row) => row.parse_status);
  const wanted = ['parsed', 'excluded', 'parsed', 'parsed', 'parsed', 'parsed', 'parsed'];
  while (statuses().join() !== wanted.join()) await settled(service, reading);
  const life = {
    data,
    phone,
    reading,
    hers,
    revoked,
    deliveries: listed(data),
    tokens: tokensOf(data),
    numbers: await numbers(url, reading),
  };
  await service.stop('SIGKILL');
  for (const name of readdirSync(data)) if (name !== 'archive') rmSync(join(data, name), { recursive: true });
  return life;
}

/** Everything is as it was, for phones, for readers and for whoever asks where a number comes from. */
async function expectAsBefore(life: Life, service: Service): Promise<void> {
  expect(service.stdout).toBe(`listening on ${service.url}\n`);
  await settled(service, life.reading);
  expect(listed(life.data)).toEqual(life.deliveries);
  expect(tokensOf(life.data).map(({ hash, revoked_at }) => ({ hash, revoked_at }))).toEqual(
    life.tokens.map(({ hash, revoked_at }) => ({ hash, revoked_at })),
  );
  expect(await numbers(service.url, life.reading)).toEqual(life.numbers);
  expect(await statusOf(service.url, life.revoked)).toBe(401);
  for (const token of [life.phone, life.hers, SECRET]) {
    expect(await statusOf(service.url, token)).toBe(403);
    await post(service.url, token, steps(1, '2026-04-01'));
  }
  await settled(service, life.reading);
  const newest = listed(life.data);
  expect(newest.slice(3)).toEqual(life.deliveries);
  expect((await service.stop()).code).toBe(0);
  const verified = healthlog(['verify', '--data', life.data]);
  expect(verified.stdout).toContain('row for row');
  expect(verified.code).toBe(0);
}

describe('when only archive/ survives', () => {
  let survived: Life;
  beforeAll(async () => {
    survived = await onlyArchiveSurvives();
  });

  /** The same archive in a data folder of its own. */
  function copied(): Life {
    const { root: data } = tmpData();
    cpSync(survived.data, data, { recursive: true });
    return { ...survived, data };
  }

  it('journal recover gives back every delivery, position, token and exclusion', async () => {
    const life = copied();
    const { code, stdout } = healthlog(['journal', 'recover', '--json', '--data', life.data]);
    expect(JSON.parse(stdout)).toMatchObject({
      exit_code: 0,
      journal: 'anew',
      deliveries: 7,
      tokens: 5,
      exclusions: 1,
    });
    expect(code).toBe(0);
    await expectAsBefore(life, await Service.start({ data: life.data }));
  });

  it('a service that just starts does the same', async () => {
    const life = copied();
    const service = await Service.start({ data: life.data });
    expect(service.stderr).toMatch(/"restored":5,"revoked":0,"noted":0/);
    expect(service.stderr).toMatch(/"excluded":1,"included":0,"noted":0/);
    await expectAsBefore(life, service);
  });
});

describe('a journal that is put back from an older copy', () => {
  /** Four deliveries; the copy was made after the second, while nothing ran. */
  async function older() {
    const first = await Service.start();
    const { data } = first;
    const phone = first.token('phone');
    const reading = first.token('reading');
    await post(first.url, phone, steps(1));
    await post(first.url, phone, steps(2, '2026-03-11'));
    await first.stop();
    const { journal } = dataFolder(data);
    const copy = join(tmpDir(), 'journal.db');
    copyFileSync(journal, copy);
    const second = await Service.start({ data });
    const late = [
      await post(second.url, phone, steps(3)),
      await post(second.url, phone, steps(4, '2026-03-12')),
    ];
    const token = healthlog(['token', 'add', 'newer', '--scope', 'read', '--data', data]).stdout.trim();
    healthlog(['token', 'revoke', 'reading', '--data', data]);
    await settled(second, token);
    await second.stop('SIGKILL');
    const before = listed(data);
    for (const suffix of ['-wal', '-shm']) rmSync(`${journal}${suffix}`, { force: true });
    copyFileSync(copy, journal);
    return { data, phone, reading, token, late, before };
  }

  it('takes in the newer bodies of the archive, and the newer tokens, and what arrives then comes after them', async () => {
    const { data, phone, reading, token, before } = await older();
    const service = await Service.start({ data });
    const fresh = await post(service.url, phone, steps(5));
    await settled(service, token);
    expect(listed(data).slice(1)).toEqual(before);
    expect(listed(data)[0]).toMatchObject({ id: fresh, parse_status: 'parsed' });
    expect(await numbers(service.url, token)).toMatchObject({
      items: [
        { value: 5, delivery_id: fresh },
        { value: 2, delivery_id: before[2]?.id },
        { value: 4, delivery_id: before[0]?.id },
      ],
    });
    // Revoked after the copy was made: a revocation stands.
    expect(await statusOf(service.url, reading)).toBe(401);
    await service.stop();
    expect(healthlog(['verify', '--data', data]).code).toBe(0);
  });

  it('whose newer bodies are lost too is noticed; their numbers go, and new deliveries take no other’s place', async () => {
    const { data, phone, token, late, before } = await older();
    const { archive } = dataFolder(data);
    for (const name of readdirSync(archive, { recursive: true, encoding: 'utf8' }))
      if (late.some((id) => name.includes(id))) rmSync(join(archive, name));
    const kept = join(tmpDir(), 'kept');
    cpSync(data, kept, { recursive: true });

    const service = await Service.start({ data });
    const fresh = [
      await post(service.url, phone, steps(5, '2026-03-13')),
      await post(service.url, phone, steps(6)),
    ];
    await settled(service, token);
    expect(service.stderr).toContain('the journal was restored from another copy');
    expect(listed(data).map(({ id }) => id)).toEqual([fresh[1], fresh[0], before[2]?.id, before[3]?.id]);
    expect(listed(data).every((row) => row.parse_status === 'parsed')).toBe(true);
    expect(await numbers(service.url, token)).toMatchObject({
      items: [
        { start: '2026-03-10', value: 6, delivery_id: fresh[1] },
        { start: '2026-03-11', value: 2, delivery_id: before[2]?.id },
        { start: '2026-03-13', value: 5, delivery_id: fresh[0] },
      ],
    });
    await service.stop();
    expect(healthlog(['verify', '--data', data]).code).toBe(0);

    // Taken in while no service ran, so that every seq is there again when the service looks for the first time.
    for (const name of readdirSync(archive, { recursive: true, encoding: 'utf8' }))
      if (fresh.some((id) => name.includes(id)))
        writeFileSync(join(dataFolder(kept).archive, name), readFileSync(join(archive, name)));
    expect(healthlog(['journal', 'recover', '--data', kept]).stdout).toContain('2 deliveries that it lacked');
    const again = await Service.start({ data: kept });
    await settled(again, token);
    expect(again.stderr).toContain('the journal was restored from another copy');
    expect(listed(kept)).toEqual(listed(data));
    await again.stop();
    expect(healthlog(['verify', '--data', kept]).code).toBe(0);
  });
});
