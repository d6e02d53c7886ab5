/** `journal exclude` and `include` as people run them, beside a service and without one. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { dataFolder } from '../../src/journal/folder.js';
import { healthlog, Service, stopAll } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';

afterEach(stopAll);

const headers = { 'automation-aggregation': 'Days', 'automation-id': 'A' };
const day = (qty: number): string =>
  JSON.stringify({
    data: {
      metrics: [{ name: 'step_count', units: 'count', data: [{ date: '2026-03-10 00:00:00 +0100', qty }] }],
    },
  });

async function post(service: Service, qty: number): Promise<string> {
  const response = await service.post(day(qty), headers, '?wait=30');
  expect(response.status).toBe(200);
  const { id } = (await response.json()) as { id: string };
  return id;
}

async function steps(service: Service): Promise<number | undefined> {
  const { body } = await service.get('/v1/metrics/step_count?bucket=day');
  return (body as { items: { value: number }[] }).items[0]?.value;
}

function json(stdout: string): Record<string, unknown> {
  return JSON.parse(stdout);
}

/** The log line of a switch, once more than before. */
function switched(service: Service, times: number): Promise<void> {
  return service.waitForOutput(new RegExp(`(?:switched to a new generation[\\s\\S]*){${times}}`));
}

describe('journal exclude, beside a running service', () => {
  it('takes its numbers out within the running service, and include brings them back', async () => {
    const service = await Service.start();
    await post(service, 5);
    const wrong = await post(service, 500);
    expect(await steps(service)).toBe(500);
    const run = (...args: string[]) => healthlog(['journal', ...args, '--data', service.data]);

    const excluded = run('exclude', wrong.slice(0, 8), '--reason', 'a test');
    expect(excluded).toMatchObject({ code: 0, stdout: `Delivery ${wrong} is set aside: a test\n` });
    expect(excluded.stderr).toContain('builds the read model anew');
    await switched(service, 1);
    expect(await steps(service)).toBe(5);
    expect(json(run('show', wrong, '--json').stdout)).toMatchObject({
      parse_status: 'excluded',
      reasons: ['set aside by a person: a test'],
    });

    expect(run('include', wrong).stdout).toBe(`Delivery ${wrong} is taken back.\n`);
    await switched(service, 2);
    expect(await steps(service)).toBe(500);
    expect(run('include', wrong)).toMatchObject({
      code: 0,
      stdout: `Delivery ${wrong} was not set aside.\n`,
    });
    expect(service.stderr).toContain('a delivery was set aside or taken back by a person');
    expect((await service.stop()).code).toBe(0);
    expect(healthlog(['verify', '--data', service.data]).code).toBe(0);
  });
});

describe('journal exclude, without a service', () => {
  it('is followed by a rebuild; until then verify says so', async () => {
    const service = await Service.start();
    await post(service, 5);
    const wrong = await post(service, 500);
    await service.stop();
    const run = (...args: string[]) => healthlog([...args, '--data', service.data]);

    const excluded = run('journal', 'exclude', wrong, '--reason', 'a test', '--json');
    expect(json(excluded.stdout)).toEqual({
      delivery_id: wrong,
      excluded: true,
      changed: true,
      reason: 'a test',
    });
    const again = run('journal', 'exclude', wrong, '--reason', 'for another reason', '--json');
    expect(json(again.stdout)).toMatchObject({ changed: false, reason: 'a test' });
    expect(run('journal', 'exclude', wrong, '--reason', 'x').stdout).toContain(
      'was set aside already: a test',
    );

    const verified = run('verify');
    expect(verified.stdout).toContain('does not follow yet');
    expect(verified.code).toBe(0);
    const rebuilt = run('rebuild');
    expect(rebuilt.stdout).toContain('as it was before that');
    expect(rebuilt.stdout).toContain('1 × excluded');
    expect(rebuilt.code).toBe(0);
    expect(run('verify').stdout).not.toContain('does not follow yet');
    expect(json(run('journal', 'include', wrong, '--json').stdout)).toEqual({
      delivery_id: wrong,
      excluded: false,
      changed: true,
      reason: null,
    });
    expect(readFileSync(dataFolder(service.data).exclusions, 'utf8').trimEnd().split('\n')).toHaveLength(2);
  });

  it('refuses what it cannot do in plain words', async () => {
    const service = await Service.start();
    const id = await post(service, 5);
    await service.stop();
    const run = (...args: string[]) => healthlog(['journal', ...args, '--data', service.data]);
    expect(run('exclude', id, '--reason', ' ')).toMatchObject({ code: 2 });
    const unknown = run('exclude', 'ffffffff', '--reason', 'x');
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no delivery "ffffffff"'),
    });
    expect(existsSync(dataFolder(service.data).exclusions)).toBe(false);
    expect(run('exclude', id).stdout).toContain('is set aside: no reason was given');

    const nowhere = join(tmpDir(), 'nowhere');
    expect(healthlog(['journal', 'include', id, '--data', nowhere]).code).toBe(1);
    expect(existsSync(nowhere)).toBe(false);
  });
});
