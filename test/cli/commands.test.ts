/** The commands as people run them: what they print, what they exit with, beside a service and without one. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { archivePaths } from '../../src/journal/archive-walk.js';
import { nodeFiles } from '../../src/journal/files.js';
import { dataFolder } from '../../src/journal/folder.js';
import { healthlog, Service, stopAll } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';

afterEach(stopAll);

const BODY = JSON.stringify({
  data: {
    metrics: [{ name: 'step_count', units: 'count', data: [{ date: '2026-03-10 00:00:00 +0100', qty: 5 }] }],
  },
});

async function started(): Promise<Service> {
  const service = await Service.start();
  const response = await service.post(
    BODY,
    {
      'automation-aggregation': 'Days',
      'automation-id': 'A',
      'automation-name': Buffer.from('Schritte 👣').toString('latin1'),
    },
    '?wait=30',
  );
  expect(response.status).toBe(200);
  return service;
}

function json(stdout: string): Record<string, unknown>[] {
  return stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

describe('serve', () => {
  it('prints on its first start two tokens, the address and what to type into the phone; later only that it listens', async () => {
    const service = await started();
    expect(service.stdout).toContain('Header: Authorization = Bearer hl_');
    expect(service.stdout).toContain(`URL: ${service.url}/v1/ingest`);
    expect(service.stdout.trimEnd().split('\n').at(-1)).toBe(`listening on ${service.url}`);
    await service.stop();
    const again = await Service.start({ data: service.data });
    expect(again.stdout).toBe(`listening on ${again.url}\n`);
  });

  it('refuses a second one on the same data folder and names the holder', async () => {
    const service = await started();
    const second = healthlog(['serve', '--data', service.data, '--port', '0']);
    expect(second.code).toBe(5);
    expect(second.stderr).toContain(`process ${service.pid}`);
    expect(second.stderr).toContain('what to do:');
    expect((await service.get('/v1/status')).status).toBe(200);
  });

  it('starts again after it was killed: the lock goes with its holder', async () => {
    const service = await started();
    await service.stop('SIGKILL');
    const again = await Service.start({ data: service.data });
    expect((await again.stop()).code).toBe(0);
  });

  it('says which address it cannot listen on', async () => {
    const service = await started();
    const other = healthlog([
      'serve',
      '--data',
      join(tmpDir(), 'data'),
      '--host',
      '127.0.0.1',
      '--port',
      String(service.port),
    ]);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain(`127.0.0.1:${service.port} cannot be listened on (EADDRINUSE)`);
  });

  it('ends with 0 on SIGINT as on SIGTERM', async () => {
    const service = await started();
    expect(await service.stop('SIGINT')).toEqual({ code: 0, signal: null });
  });

  it.each([
    [['--port', 'seven'], {}, '--port cannot be "seven"'],
    [['--port', '70000'], {}, '--port cannot be "70000"'],
    [['--nonsense'], {}, 'unknown option'],
    [[], { HEALTHLOG_PORT: 'x' }, 'HEALTHLOG_PORT cannot be "x"'],
    [[], { HEALTHLOG_PROT: '1' }, 'HEALTHLOG_PROT is not a setting'],
  ] as const)('refuses %j with %j', (args, env, text) => {
    const { code, stderr } = healthlog(['serve', '--data', join(tmpDir(), 'data'), ...args], { ...env });
    expect(code).toBe(2);
    expect(stderr).toContain(text);
  });
});

describe('what was typed', () => {
  it.each([
    [['dance'], "unknown command 'dance'"],
    [['status', 'extra'], 'too many arguments'],
    [['token', 'add'], "missing required argument 'name'"],
    [['verify', '--accept-loss'], "unknown option '--accept-loss'"],
  ])('is refused when it is %j, with a next step, as text and as JSON', (args, text) => {
    const plain = healthlog(args);
    expect([plain.code, plain.stdout]).toEqual([2, '']);
    expect(plain.stderr).toContain(`healthlog: ${text}`);
    expect(plain.stderr).toContain('what to do: ');
    const asJson = healthlog([...args, '--json']);
    expect([asJson.code, JSON.parse(asJson.stderr)]).toMatchObject([2, { error: { code: 'usage' } }]);
  });

  it('can be a question for the version or for help', () => {
    expect(healthlog(['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
    for (const args of [['--help'], ['serve', '--help'], ['journal', 'ls', '--help']])
      expect(healthlog(args)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('Usage:'),
        stderr: '',
      });
  });

  it('names what is wrong with a data folder that cannot be one, without a stack', () => {
    const file = join(tmpDir(), 'file');
    writeFileSync(file, '');
    const { code, stderr } = healthlog(['serve', '--port', '0', '--data', join(file, 'data')]);
    expect(code).toBe(1);
    expect(stderr).toContain('The data folder cannot be used: ENOTDIR');
    expect(stderr).not.toContain('    at ');
  });
});

describe('status', () => {
  it('tells beside a running service, and without one', async () => {
    const service = await started();
    const up = json(healthlog(['status', '--json', '--data', service.data]).stdout)[0];
    expect(up).toMatchObject({
      state: 'idle',
      pending: 0,
      oldest_pending_age_s: null,
      deliveries: 1,
      generation: '000001.db',
      fold_version: 1,
      rebuild: null,
      automations: [{ id: 'A', name: 'Schritte 👣', aggregation: 'Days', period: null }],
    });
    expect(healthlog(['status', '--data', service.data]).stdout).toContain(`idle: process ${service.pid}`);
    await service.stop();
    expect(json(healthlog(['status', '--json', '--data', service.data]).stdout)[0]).toMatchObject({
      state: 'stopped',
      deliveries: 1,
    });
  });

  it('has the shape of /v1/status', async () => {
    const service = await started();
    const { body } = await service.get('/v1/status');
    const file = json(healthlog(['status', '--json', '--data', service.data]).stdout)[0] ?? {};
    expect(
      Object.keys(file)
        .filter((key) => key !== 'reason')
        .sort(),
    ).toEqual(
      Object.keys(body ?? {})
        .filter((key) => key !== 'reason')
        .sort(),
    );
  });

  it('says in plain words that there is nothing yet', () => {
    const { code, stderr } = healthlog(['status', '--data', join(tmpDir(), 'none')]);
    expect(code).toBe(1);
    expect(stderr).toContain('There is no journal in');
  });
});

describe('journal', () => {
  it('lists, shows and gives bodies back, with the service up and down', async () => {
    const service = await started();
    await service.post('{nonsense}', {}, '?wait=30');
    for (const up of [true, false]) {
      if (!up) await service.stop();
      const items = json(healthlog(['journal', 'ls', '--json', '--data', service.data]).stdout);
      expect(items.map(({ parse_status, class: name }) => [parse_status, name])).toEqual([
        ['failed', 'malformed'],
        ['parsed', 'folded'],
      ]);
      const [failed, parsed] = items.map(({ id }) => String(id));
      expect(healthlog(['journal', 'ls', '--data', service.data]).stdout).toContain('Schritte 👣');
      expect(
        json(healthlog(['journal', 'ls', '--status', 'failed', '--json', '--data', service.data]).stdout),
      ).toMatchObject([{ id: failed }]);
      expect(
        json(healthlog(['journal', 'ls', '--limit', '1', '--json', '--data', service.data]).stdout),
      ).toHaveLength(1);
      const shown = healthlog(['journal', 'show', parsed?.slice(0, 8) ?? '', '--data', service.data]).stdout;
      expect(shown).toContain('day, as its header says');
      expect(shown).toMatch(/^ {2}automation-aggregation +Days$/m);
      expect(shown).toMatch(/^ {2}content-type +application\/json$/m);
      expect(shown).toMatch(/^points +1 read, 0 unreadable/m);
      expect(shown).toMatch(/^folded +\S+Z, in [\d.]+ ms, \d+ \S+ after it arrived$/m);
      expect(shown.toLowerCase()).not.toMatch(/authorization|hl_/);
      expect(healthlog(['journal', 'show', failed ?? '', '--data', service.data]).stdout).toContain(
        'the body is not JSON',
      );
      expect(healthlog(['journal', 'cat', failed ?? '', '--data', service.data]).stdout).toBe('{nonsense}');
    }
  });

  it('says what is wrong: no such delivery, a bad limit, a missing argument', async () => {
    const service = await started();
    const gone = healthlog([
      'journal',
      'show',
      '00000000-0000-4000-8000-000000000000',
      '--data',
      service.data,
    ]);
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('There is no')]);
    expect(healthlog(['journal', 'ls', '--limit', 'x', '--data', service.data]).code).toBe(2);
    expect(healthlog(['journal', 'show', '--data', service.data]).code).toBe(2);
    expect(healthlog(['journal', 'dance']).code).toBe(2);
    expect(healthlog(['journal', 'show', 'ffffffff', 'eeeeeeee', '--data', service.data]).code).toBe(2);
    for (const filter of [
      ['--status', 'odd'],
      ['--class', 'odd'],
      ['--since', 'soon'],
    ]) {
      const { code, stderr } = healthlog(['journal', 'ls', ...filter, '--data', service.data]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('what to do: Run the command with --help')]);
    }
    const asJson = healthlog(['journal', 'show', 'ffffffff', '--json', '--data', service.data]);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'not_found' } });
  });

  it('refuses to give back a body that is damaged', async () => {
    const service = await started();
    await service.stop();
    const folder = dataFolder(service.data);
    const [path] = [...archivePaths(folder, nodeFiles)];
    rmSync(join(folder.archive, path ?? ''));
    const [item] = json(healthlog(['journal', 'ls', '--json', '--data', service.data]).stdout);
    const { code, stderr } = healthlog(['journal', 'cat', String(item?.id), '--data', service.data]);
    expect(code).toBe(1);
    expect(stderr).toContain('cannot be given back');
    expect(stderr).not.toContain('    at ');
    const shown = healthlog(['journal', 'show', String(item?.id), '--data', service.data]);
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining('damaged, it is missing')]);
  });

  it('finds deliveries by class, automation, profile, section and time', async () => {
    const service = await started();
    await service.post('{nonsense}', { 'automation-id': 'B' }, '?wait=30');
    await service.stop();
    const found = (...filter: string[]) =>
      json(healthlog(['journal', 'ls', '--json', ...filter, '--data', service.data]).stdout);
    const [bad, good] = found();
    expect(found('--class', 'malformed')).toEqual([bad]);
    expect(found('--automation', 'A')).toEqual([good]);
    expect(found('--section', 'metrics')).toEqual([good]);
    expect(found('--profile', 'anna')).toEqual([]);
    expect(found('--since', String(bad?.received_at))).toEqual([bad]);
    expect(found('--until', String(bad?.received_at))).toEqual([good]);
    expect(found('--limit', '1')).toEqual([bad]);
    expect(found('--limit', '1', '--all')).toEqual([bad, good]);
    const listed = healthlog(['journal', 'ls', '--limit', '1', '--data', service.data]);
    expect(listed.stderr).toContain('There are more');
    expect(healthlog(['journal', 'ls', '--profile', 'anna', '--data', service.data])).toEqual({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('No delivery matches'),
    });
  });
});

describe('rebuild and verify', () => {
  it('work with the service up: it takes the new generation over and goes on', async () => {
    const service = await started();
    const verified = healthlog(['verify', '--json', '--data', service.data]);
    expect([verified.code, JSON.parse(verified.stdout)]).toMatchObject([
      0,
      { exit_code: 0, compared: true, result: 'none' },
    ]);
    const rebuilt = healthlog(['rebuild', '--data', service.data]);
    expect([rebuilt.code, rebuilt.stdout]).toEqual([
      0,
      expect.stringContaining('It is live now (000002.db)'),
    ]);
    const answer = await service.get('/v1/metrics/step_count');
    expect(answer.body).toMatchObject({ items: [{ start: '2026-03-10', value: 5 }] });
    expect((await service.get('/v1/status')).body).toMatchObject({ generation: '000002.db' });
  });

  it('work without a service, and reindex is the same command', async () => {
    const service = await started();
    await service.stop();
    expect(healthlog(['verify', '--data', service.data]).code).toBe(0);
    const rebuilt = healthlog(['reindex', '--data', service.data]);
    expect([rebuilt.code, rebuilt.stdout]).toEqual([0, expect.stringContaining('It is live now')]);
    expect(readFileSync(join(service.data, 'readmodel', 'CURRENT'), 'utf8')).toMatch(/^\d{6}\.db\n$/);
  });

  it('exit with 1 and name the body that is missing', async () => {
    const service = await started();
    await service.stop();
    const folder = dataFolder(service.data);
    const [path] = [...archivePaths(folder, nodeFiles)];
    rmSync(join(folder.archive, path ?? ''));
    const { code, stdout } = healthlog(['verify', '--data', service.data]);
    expect([code, stdout]).toEqual([1, expect.stringContaining(path ?? '')]);
  });
});

describe('token', () => {
  it('makes no journal by only looking', () => {
    const data = join(tmpDir(), 'data');
    for (const args of [
      ['token', 'ls'],
      ['token', 'revoke', 'x'],
    ]) {
      const { code, stderr } = healthlog([...args, '--data', data]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('There is no journal in')]);
    }
    expect(existsSync(data)).toBe(false);
  });

  it('prints the token alone, so that it can be taken into a variable', () => {
    const data = join(tmpDir(), 'data');
    const made = healthlog([
      'token',
      'add',
      'laptop',
      '--scope',
      'read',
      '--profile',
      'anna',
      '--data',
      data,
    ]);
    expect(made.stdout).toMatch(/^hl_[\w-]{43}\n$/);
    expect(made.stderr).toContain('only its hash is stored');
    const [listed] = json(healthlog(['token', 'ls', '--json', '--data', data]).stdout);
    expect(listed).toMatchObject({ label: 'laptop', scope: 'read', profile: 'anna', revoked_at: null });
    expect(JSON.stringify(listed)).not.toContain(made.stdout.trim());
    expect(healthlog(['token', 'revoke', 'laptop', '--data', data]).stdout).toContain('revoked');
    expect(json(healthlog(['token', 'ls', '--json', '--data', data]).stdout)[0]).not.toMatchObject({
      revoked_at: null,
    });
  });

  it('refuses a scope that does not exist', () => {
    const { code, stderr } = healthlog([
      'token',
      'add',
      'x',
      '--scope',
      'root',
      '--data',
      join(tmpDir(), 'data'),
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('ingest, read, admin')]);
  });
});
