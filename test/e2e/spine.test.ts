/**
 * The whole way: POST → archive and journal → 200 → fold in the worker → read model → query → rebuild gives the
 * same → verify is clean. Real HTTP, the compiled program, the shared fixtures.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { healthlog, Service, stopAll } from '../support/service.js';

afterEach(stopAll);

const fixtures = new URL('../fixtures/', import.meta.url);

function fixture(name: string): Buffer {
  const bytes = readFileSync(new URL(name, fixtures));
  return name.endsWith('.gz') ? gunzipSync(bytes) : bytes;
}

const envelope = z.object({
  data: z.object({
    metrics: z.array(
      z.object({
        name: z.string(),
        units: z.string(),
        data: z.array(
          z.looseObject({
            date: z.string().optional(),
            qty: z.number().optional(),
            Min: z.number().optional(),
            Avg: z.number().optional(),
            Max: z.number().optional(),
          }),
        ),
      }),
    ),
  }),
});

function metricsIn(name: string) {
  const parsed: unknown = JSON.parse(fixture(name).toString('utf8'));
  return z
    .union([envelope.transform((one) => [one]), z.array(envelope)])
    .parse(parsed)
    .flatMap(({ data }) => data.metrics)
    .filter(({ name: metric }) => metric !== 'sleep_analysis');
}

const answerSchema = z.object({
  id: z.string(),
  parse_status: z.string(),
  class: z.string(),
  layer: z.string().nullable(),
  reasons: z.array(z.string()),
  counters: z.object({ points: z.number(), skipped: z.number() }),
});

const itemSchema = z.object({
  start: z.string(),
  value: z.number().optional(),
  min: z.number().optional(),
  max: z.number().optional(),
  grain: z.string(),
  complete: z.boolean(),
  delivery_id: z.string(),
});

const pageSchema = z.object({ unit: z.string(), items: z.array(itemSchema), next: z.string().nullable() });

async function allItems(
  service: Service,
  metric: string,
  bucket: string,
): Promise<z.infer<typeof itemSchema>[]> {
  const items: z.infer<typeof itemSchema>[] = [];
  let cursor: string | null = null;
  do {
    const { status, body } = await service.get(
      `/v1/metrics/${encodeURIComponent(metric)}?bucket=${bucket}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    expect(status).toBe(200);
    const page = pageSchema.parse(body);
    items.push(...page.items);
    cursor = page.next;
  } while (cursor !== null);
  return items;
}

/** Sections that this version leaves out, and therefore the only reasons a fixture may be `partial` for. */
const LEFT_OUT = /the section "(sleep|workouts)" is not read by this version yet/;

async function send(service: Service, name: string, headers: Record<string, string> = {}) {
  const response = await service.post(fixture(name), headers, '?wait=30');
  expect(response.status).toBe(200);
  return answerSchema.parse(await response.json());
}

function verified(service: Service): void {
  const { code, stdout } = healthlog(['verify', '--data', service.data]);
  expect(stdout).toContain('row for row');
  expect(code).toBe(0);
}

describe('the spine, over real HTTP', () => {
  it('takes every fixture, folds it, and leaves out only what this version does not read', async () => {
    const service = await Service.start();
    for (const name of readdirSync(fixtures).filter((file) => file.includes('.json'))) {
      const answer = await send(service, name);
      expect(answer.class, name).toBe('folded');
      expect(answer.counters.skipped, name).toBe(0);
      if (answer.parse_status === 'partial')
        for (const reason of answer.reasons) expect(reason).toMatch(LEFT_OUT);
      else expect(answer.parse_status).toBe('parsed');
    }
    const { body } = await service.get('/v1/status');
    expect(body).toMatchObject({
      state: expect.stringMatching(/idle|folding/),
      pending: 0,
      deliveries: 7,
      failed: 0,
    });
    verified(service);
    const rebuilt = healthlog(['rebuild', '--json', '--data', service.data]);
    expect(JSON.parse(rebuilt.stdout)).toMatchObject({
      exit_code: 0,
      result: 'switched',
      compared: true,
      differences: [],
    });
    verified(service);
    expect((await service.stop()).code).toBe(0);
    verified(service);
  });

  it('gives for each day of the minute fixture the sum of its step_count minutes', async () => {
    const service = await Service.start();
    await send(service, 'metrics-minutes-4-days.json.gz');
    const sums = new Map<string, number>();
    for (const { date, qty } of metricsIn('metrics-minutes-4-days.json.gz').find(
      ({ name }) => name === 'step_count',
    )?.data ?? []) {
      const day = date?.slice(0, 10) ?? '';
      sums.set(day, (sums.get(day) ?? 0) + (qty ?? 0));
    }
    const days = await allItems(service, 'step_count', 'day');
    expect(Object.fromEntries(days.map(({ start, value }) => [start, value]))).toEqual(
      Object.fromEntries(sums),
    );
    expect(sums.size).toBe(4);
  });

  it.each([
    'metrics-days-22-months-v8.json.gz',
    'metrics-days-week-v9.json',
    'metrics-days-week-v9-array.json',
  ])('gives the values of %s as they stand in the file', async (name) => {
    const service = await Service.start();
    await send(service, name);
    for (const { name: metric, data } of metricsIn(name)) {
      const days = await allItems(service, metric, 'day');
      const found = days.map(({ start, value, min, max }) => [start, value, min, max]);
      const expected = data.map(({ date, qty, Avg, Min, Max }) => [date?.slice(0, 10), qty ?? Avg, Min, Max]);
      expect(found, metric).toEqual(expected.sort(([a], [b]) => String(a).localeCompare(String(b))));
    }
  });

  it('counts nothing twice when one automation sends minutes and another sends days of the same time', async () => {
    const service = await Service.start();
    const minutes = metricsIn('metrics-minutes-4-days.json.gz').filter(({ name }) =>
      ['step_count', 'active_energy', 'heart_rate'].includes(name),
    );
    const byDay = minutes
      .filter(({ name }) => name !== 'heart_rate')
      .map(({ name, units, data }) => {
        const sums = new Map<string, number>();
        for (const { date, qty } of data)
          sums.set(date?.slice(0, 10) ?? '', (sums.get(date?.slice(0, 10) ?? '') ?? 0) + (qty ?? 0));
        return {
          name,
          units,
          data: [...sums].map(([day, qty]) => ({ date: `${day} 00:00:00 -0400`, qty, source: 'Watch' })),
        };
      });
    const post = (metrics: unknown, automation: string, aggregation: string) =>
      service.post(
        JSON.stringify({ data: { metrics } }),
        {
          'automation-id': automation,
          'automation-aggregation': aggregation,
          'automation-period': 'Previous 7 Days',
        },
        '?wait=30',
      );
    const before: Record<string, unknown> = {};
    await post(minutes, 'MINUTES', 'Minutes');
    const buckets = ['minute', 'hour', 'day', 'week', 'month'] as const;
    for (const bucket of buckets)
      before[bucket] = (await allItems(service, 'step_count', bucket)).map(({ start, value }) => [
        start,
        value,
      ]);
    await post(byDay, 'DAYS', 'Days');
    for (const bucket of buckets) {
      const after = (await allItems(service, 'step_count', bucket)).map(({ start, value }) => [start, value]);
      const rounded = (list: unknown) =>
        JSON.parse(JSON.stringify(list), (_key, value) =>
          typeof value === 'number' ? Math.round(value * 1e6) / 1e6 : value,
        );
      expect(rounded(after), bucket).toEqual(rounded(before[bucket]));
    }
    expect((await allItems(service, 'step_count', 'day')).map(({ grain }) => grain)).toContain('day');
  });

  it('shows where a number came from: delivery, grain, completeness', async () => {
    const service = await Service.start();
    const { id } = await send(service, 'metrics-days-week-v9.json');
    const days = await allItems(service, 'step_count', 'day');
    expect(new Set(days.map((item) => item.delivery_id))).toEqual(new Set([id]));
    const { body } = await service.get(`/v1/deliveries/${id}`);
    expect(body).toMatchObject({
      id,
      parse_status: 'partial',
      class: 'folded',
      layer: 'day',
      layer_origin: 'content',
      body_bytes: 34292,
    });
    const shown = healthlog(['journal', 'show', id, '--json', '--data', service.data]);
    expect(JSON.parse(shown.stdout)).toEqual(body);
    expect(healthlog(['journal', 'cat', id, '--data', service.data]).stdout).toBe(
      fixture('metrics-days-week-v9.json').toString('utf8'),
    );
  });
});
