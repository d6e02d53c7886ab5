/** Signals and pipes: what is told to stop stops cleanly, and nothing is half written. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { dataFolder } from '../../src/journal/folder.js';
import { healthlog, Service, stopAll } from '../support/service.js';

const PROGRAM = fileURLToPath(new URL('../../bin/healthlog', import.meta.url));
const wide = gunzipSync(readFileSync(new URL('../fixtures/metrics-minutes-4-days.json.gz', import.meta.url)));
const EMPTY_RUN = '{"data":{"metrics":[]}}';

const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await stopAll();
});

/** A service that has answered for `count` wide deliveries; `?wait` leaves none of them pending. */
async function withWide(count: number, query = '', args: readonly string[] = []): Promise<Service> {
  const service = await Service.start({ args });
  for (let i = 0; i < count; i++) {
    const response = await service.post(wide, { 'automation-aggregation': 'Minutes' }, query);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  }
  return service;
}

/** Begins an upload and leaves it in the middle; resolves when its temporary file shows that the body is read. */
async function halfUpload(service: Service): Promise<Socket> {
  const socket = connect(service.port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write(
    `POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.token('phone')}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"data":${' '.repeat(100_000)}`,
  );
  while (readdirSync(join(service.data, 'archive', 'incoming')).length === 0) await turn();
  return socket;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

describe('rebuild and verify', () => {
  it.each(['rebuild', 'verify'])(
    '%s is cancelled by SIGINT: exit code 4, and all is as it was',
    async (command) => {
      const service = await withWide(8, '?wait=30');
      await service.stop();
      const readmodel = join(service.data, 'readmodel');
      const live = readFileSync(join(readmodel, 'CURRENT'), 'utf8');
      const child = spawn(process.execPath, [PROGRAM, command, '--json', '--data', service.data], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let stdout = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        stdout += text;
      });
      while (!existsSync(join(readmodel, 'build.json'))) await turn();
      child.kill('SIGINT');
      await once(child, 'close');
      expect([child.exitCode, JSON.parse(stdout)]).toMatchObject([
        4,
        { exit_code: 4, cancelled: true, result: 'none', generation: null },
      ]);
      expect(readFileSync(join(readmodel, 'CURRENT'), 'utf8')).toBe(live);
      expect(existsSync(join(readmodel, 'build.json'))).toBe(false);
      expect(readdirSync(readmodel).filter((name) => /^\d/.test(name))).toEqual([live.trim()]);
      expect(healthlog(['verify', '--data', service.data]).code).toBe(0);
    },
  );

  it('that was killed is not told as running for ever', async () => {
    const service = await withWide(4, '?wait=30');
    const readmodel = join(service.data, 'readmodel');
    const child = spawn(process.execPath, [PROGRAM, 'verify', '--data', service.data], { stdio: 'ignore' });
    while (!existsSync(join(readmodel, 'build.json'))) await turn();
    child.kill('SIGKILL');
    await once(child, 'close');
    const { stdout } = healthlog(['status', '--json', '--data', service.data]);
    expect(JSON.parse(stdout)).toMatchObject({ state: 'idle', pending: 0 });
    expect(healthlog(['verify', '--data', service.data]).code).toBe(0);
  });

  it.runIf(spawnSync('script', ['--version']).status === 0)(
    'draws progress on a terminal only: deliveries, points, rate, time left',
    async () => {
      const service = await withWide(2, '?wait=30');
      const command = [process.execPath, PROGRAM, 'verify', '--data', service.data];
      const drawn = spawnSync('script', ['-qec', command.map((part) => `'${part}'`).join(' '), '/dev/null'], {
        encoding: 'utf8',
        input: '',
      });
      expect(drawn.status).toBe(0);
      expect(drawn.stdout).toMatch(/1\/2 deliveries · \d+ points · \d+ points\/s · \d+ seconds left/);
      expect(drawn.stdout).toContain('row for row');
      const piped = healthlog(['verify', '--data', service.data]);
      expect(piped.stderr).toBe('');
      expect(piped.stdout).not.toContain('points/s');
    },
  );
});

describe('a stop', () => {
  it('lets an upload that is under way finish, and answers it', async () => {
    const service = await Service.start({ args: ['--stop-budget', '60'] });
    const socket = await halfUpload(service);
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    process.kill(service.pid, 'SIGTERM');
    await service.waitForOutput(/"msg":"stopping"/);
    const sent = 100_000 + '{"data":'.length;
    socket.write(`${' '.repeat(1_000_000 - sent - '{}}'.length)}{}}`);
    expect(await service.ended()).toEqual({ code: 0, signal: null });
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const again = await Service.start({ data: service.data });
    const { body } = await again.get('/v1/status', service.token('reading'));
    expect(body).toMatchObject({ deliveries: 1 });
  });

  it('out of budget with an upload under way: a warning, exit code 0, and nothing of it is kept', async () => {
    const service = await Service.start({ args: ['--stop-budget', '0'] });
    await halfUpload(service);
    expect(await service.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(service.stderr).toContain('the stop budget ran out');
    const again = await Service.start({ data: service.data });
    expect(readdirSync(join(service.data, 'archive', 'incoming'))).toEqual([]);
    const { body } = await again.get('/v1/status', service.token('reading'));
    expect(body).toMatchObject({ deliveries: 0 });
  });

  it('out of budget during a fold: exit code 0, what was not folded is pending, and the rows are whole', async () => {
    const service = await withWide(6, '', ['--stop-budget', '0']);
    expect(await service.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    const lines = healthlog(['journal', 'ls', '--json', '--data', service.data]).stdout.trim().split('\n');
    expect(lines).toHaveLength(6);
    for (const line of lines) expect(JSON.parse(line).parse_status).toMatch(/^(pending|partial)$/);
    // verify compares with what the interrupted worker left, before any pass goes on with it.
    expect(healthlog(['verify', '--data', service.data]).code).toBe(0);
  });

  it('is over at once with a second signal, whichever it is', async () => {
    const service = await Service.start({ args: ['--stop-budget', '60'] });
    await halfUpload(service);
    process.kill(service.pid, 'SIGTERM');
    await service.waitForOutput(/"msg":"stopping"/);
    expect(await service.stop('SIGINT')).toEqual({ code: 1, signal: null });
  });

  it('while another program holds the journal: who waits is told, and nothing of it stays', async () => {
    const service = await Service.start({ args: ['--stop-budget', '0'] });
    const other = new BetterSqlite3(dataFolder(service.data).journal);
    other.exec('BEGIN IMMEDIATE');
    const waiting = service.post(EMPTY_RUN);
    while (readdirSync(dataFolder(service.data).incoming).length === 0) await turn();
    process.kill(service.pid, 'SIGTERM');
    const answer = await waiting;
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain('"code":"stopping"');
    expect(await service.ended()).toEqual({ code: 0, signal: null });
    other.exec('ROLLBACK');
    other.close();
    expect(readdirSync(dataFolder(service.data).incoming)).toEqual([]);
  });

  it('ends well although the journal cannot take when tokens were used last', async () => {
    const service = await Service.start();
    await (await service.post(EMPTY_RUN, {}, '?wait=30')).arrayBuffer();
    const other = new BetterSqlite3(dataFolder(service.data).journal);
    other.exec("CREATE TRIGGER no BEFORE UPDATE ON token BEGIN SELECT RAISE(ABORT, 'no'); END");
    other.close();
    expect(await service.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(service.stderr).toContain('when tokens were used last could not be written');
  });
});

describe('a log that cannot be written', () => {
  it('does not end the service', async () => {
    const full = openSync('/dev/full', 'w');
    const service = await Service.start({ stderr: full });
    closeSync(full);
    for (let i = 0; i < 3; i++) expect((await service.post(EMPTY_RUN)).status).toBe(200);
    expect(await service.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  });
});

describe('a first start that cannot listen', () => {
  it('does not count as the first: the next one prints the tokens', async () => {
    const service = await Service.start();
    const data = join(service.data, '..', 'other');
    const args = ['serve', '--data', data, '--host', '127.0.0.1', '--port', String(service.port)];
    expect(healthlog(args).code).toBe(1);
    const next = await Service.start({ data });
    expect(next.token('phone')).toMatch(/^hl_/);
  });
});

describe('a pipe that closes early', () => {
  it('is no error', async () => {
    const service = await Service.start();
    // More than a pipe holds.
    for (let i = 0; i < 150; i++) await (await service.post(EMPTY_RUN)).arrayBuffer();
    const list = `'${process.execPath}' '${PROGRAM}' journal ls --all --json --data '${service.data}'`;
    const { stdout, stderr } = spawnSync('sh', ['-c', `(${list}; echo "code $?" >&2) | head -n 1`], {
      encoding: 'utf8',
    });
    expect(stdout.trim().split('\n')).toHaveLength(1);
    expect(stderr).toBe('code 0\n');
  });
});
