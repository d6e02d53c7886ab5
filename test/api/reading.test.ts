/** The reading routes over real HTTP: shapes that others rely on, paging, refusals, and life around a lost read model. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { body, days, metric, minutes } from '../support/points.js';
import { Service, stopAll } from '../support/service.js';

let service: Service;
let ids: string[] = [];

beforeAll(async () => {
  service = await Service.start();
  const week = ['2026-03-09', '2026-03-10', '2026-03-11', '2026-03-12'];
  const sent = [
    [
      body(metric('step_count', 'count', days(week)), metric('active_energy', 'kJ', days(week))),
      { 'automation-aggregation': 'Days', 'automation-id': 'A' },
    ],
    [
      body(metric('step_count', 'count', minutes('2026-03-13', 600, 660, 1))),
      { 'automation-aggregation': 'Minutes', 'automation-id': 'B' },
    ],
    ['{nonsense}', {}],
  ] as const;
  ids = [];
  for (const [what, headers] of sent) {
    const response = await service.post(
      typeof what === 'string' ? what : JSON.stringify(what),
      { ...headers },
      '?wait=30',
    );
    ids.push(z.object({ id: z.string() }).parse(await response.json()).id);
  }
});
afterAll(stopAll);

const page = z.object({ items: z.array(z.looseObject({})), next: z.string().nullable() });

async function walk(path: string): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  let cursor: string | null = null;
  do {
    const { body: answer } = await service.get(
      `${path}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    const { items: part, next } = page.parse(answer);
    items.push(...part);
    cursor = next;
  } while (cursor !== null);
  return items;
}

describe('liveness and readiness', () => {
  it('healthz needs no token and says ok; readyz needs one', async () => {
    expect(await (await fetch(`${service.url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect(await service.get('/readyz')).toEqual({ status: 200, body: { status: 'ready' } });
  });
});

describe('deliveries', () => {
  it('have the shape of the contract, newest first', async () => {
    const { body: answer } = await service.get('/v1/deliveries');
    expect(page.parse(answer).items.map(({ id }) => id)).toEqual([...ids].reverse());
    const [, , first] = page.parse(answer).items;
    expect(first).toMatchObject({
      id: ids[0],
      received_at: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/),
      profile: 'me',
      automation: { id: 'A', name: null, aggregation: 'Days', period: null },
      body_bytes: expect.any(Number),
      parse_status: 'parsed',
      class: 'folded',
      layer: 'day',
      layer_origin: 'declared',
      layer_from: null,
      counters: { points: 8, skipped: 0 },
    });
  });

  it('are paged by position without a gap or a repeat', async () => {
    expect((await walk('/v1/deliveries?limit=1')).map(({ id }) => id)).toEqual([...ids].reverse());
  });

  it('are filtered by status, class and automation', async () => {
    expect((await walk('/v1/deliveries?parse_status=failed')).map(({ id }) => id)).toEqual([ids[2]]);
    expect((await walk('/v1/deliveries?class=malformed')).map(({ id }) => id)).toEqual([ids[2]]);
    expect((await walk('/v1/deliveries?automation=B')).map(({ id }) => id)).toEqual([ids[1]]);
  });
});

describe('metrics', () => {
  it('lists what this person really has', async () => {
    expect((await walk('/v1/metrics?limit=1')).map(({ metric: name, grains }) => [name, grains])).toEqual([
      ['active_energy', ['day']],
      ['step_count', ['minute', 'day']],
    ]);
  });

  it.each([
    ['raw', 60],
    ['minute', 60],
    ['hour', 1],
    ['day', 5],
    ['week', 1],
    ['month', 1],
  ])('answers in buckets of %s', async (bucket, count) => {
    const { status, body: answer } = await service.get(`/v1/metrics/step_count?bucket=${bucket}`);
    expect(status).toBe(200);
    expect(answer).toMatchObject({ metric: 'step_count', unit: 'count', bucket, next: null });
    expect(page.parse(answer).items).toHaveLength(count);
  });

  it('takes from as inclusive, a bare date as the whole local day, and pages', async () => {
    const range = 'bucket=day&from=2026-03-10&to=2026-03-11';
    expect((await walk(`/v1/metrics/step_count?${range}&limit=1`)).map(({ start }) => start)).toEqual([
      '2026-03-10',
      '2026-03-11',
    ]);
    expect(await walk('/v1/metrics/step_count?bucket=day&from=2026-03-10&to=2026-03-10')).toHaveLength(1);
  });

  it('serves the canonical unit, or another one that is asked for', async () => {
    const canonical = page.parse((await service.get('/v1/metrics/active_energy?bucket=day')).body).items[0];
    const asked = page.parse((await service.get('/v1/metrics/active_energy?bucket=day&unit=kJ')).body)
      .items[0];
    expect(asked).toMatchObject({ value: 1000 });
    expect(Number(canonical?.value)).toBeCloseTo(1000 / 4.184, 6);
  });

  it.each([
    ['/v1/metrics/step_count?bucket=fortnight', 400, 'bad_request'],
    ['/v1/metrics/step_count?from=soon', 400, 'bad_request'],
    ['/v1/metrics/step_count?limit=0', 400, 'bad_request'],
    ['/v1/metrics/step_count?cursor=nonsense', 400, 'bad_request'],
    ['/v1/metrics/step_count?unit=parsec', 400, 'bad_request'],
    ['/v1/metrics/step_count?sneaky=1', 400, 'bad_request'],
    ['/v1/metrics/moon_gazing', 404, 'not_found'],
    ['/v1/deliveries/00000000-0000-4000-8000-000000000000', 404, 'not_found'],
    ['/v1/deliveries/..%2f..%2fetc', 404, 'not_found'],
    ['/v1/nothing', 404, 'not_found'],
    ['/%', 400, 'bad_request'],
  ])('%s: %i %s, in the one shape of errors', async (path, status, code) => {
    const answer = await service.get(path);
    expect(answer).toMatchObject({
      status,
      body: { error: { code, message: expect.any(String), hint: expect.any(String) } },
    });
  });
});

describe('a read model that is lost', () => {
  it('is built again at the next start, and the answers are the same', async () => {
    const own = await Service.start();
    await own.post(
      JSON.stringify(body(metric('step_count', 'count', days(['2026-03-09'])))),
      { 'automation-aggregation': 'Days' },
      '?wait=30',
    );
    const token = own.token('reading');
    const before = await own.get('/v1/metrics/step_count', token);
    await own.stop();
    for (const harm of [
      () => rmSync(join(own.data, 'readmodel'), { recursive: true }),
      () => writeFileSync(join(own.data, 'readmodel', '000001.db'), 'this is no database'),
    ]) {
      harm();
      const again = await Service.start({ data: own.data });
      await again.waitForOutput(/switched to a new generation/);
      expect(await again.get('/v1/metrics/step_count', token)).toEqual(before);
      await again.stop();
    }
  });
});
