/** `journal recover` as people run it, and the error that sends them there. */

import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { archivePaths } from '../../src/journal/archive-walk.js';
import { nodeFiles } from '../../src/journal/files.js';
import { dataFolder } from '../../src/journal/folder.js';
import { healthlog, Service, stopAll } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';

afterEach(stopAll);

const PROGRAM = fileURLToPath(new URL('../../bin/healthlog', import.meta.url));
const BODY = '{"data":{"metrics":[]}}';

/** A data folder with two deliveries and the two tokens of the first start; its service is down. */
async function used(): Promise<Service> {
  const service = await Service.start();
  for (let i = 0; i < 2; i++) expect((await service.post(BODY)).status).toBe(200);
  await service.stop();
  return service;
}

const recover = (data: string, ...flags: string[]) =>
  healthlog(['journal', 'recover', '--data', data, ...flags]);

describe('journal recover', () => {
  it('is what a damaged journal asks for; afterwards the service starts and the phone’s token works', async () => {
    const before = await used();
    writeFileSync(join(before.data, 'journal.db'), 'this is no journal at all, it is a text of some length');
    const refused = healthlog(['serve', '--data', before.data, '--port', '0']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('healthlog journal recover');

    const done = recover(before.data);
    expect(done.stdout).toContain('The journal could not be used (it is no database)');
    expect(done.stdout).toContain('2 deliveries, 2 tokens and 0 deliveries set aside');
    expect(done.stderr).toBe('');
    expect(done.code).toBe(0);
    const aside = readdirSync(before.data).find((name) => name.startsWith('set-aside-')) ?? '';
    expect(done.stdout).toContain(aside);
    expect(readFileSync(join(before.data, aside, 'journal.db'), 'utf8')).toContain('no journal at all');

    const after = await Service.start({ data: before.data });
    expect(after.stdout).not.toContain('token');
    const response = await fetch(`${after.url}/v1/ingest`, {
      method: 'POST',
      body: BODY,
      headers: { authorization: `Bearer ${before.token('phone')}`, 'content-type': 'application/json' },
    });
    expect(response.status).toBe(200);
  });

  it('leaves a sound journal in place and says so, in words and in JSON', async () => {
    const { data } = await used();
    expect(recover(data)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/sound; it was not replaced[\s\S]*nothing that it lacked/),
    });
    expect(JSON.parse(recover(data, '--json').stdout)).toEqual({
      exit_code: 0,
      journal: 'completed',
      damage: null,
      set_aside: null,
      deliveries: 2,
      adopted: 0,
      tokens: 2,
      exclusions: 0,
      notes: {
        tokens: { restored: 0, revoked: 0, noted: 0 },
        exclusions: { excluded: 0, included: 0, noted: 0 },
      },
      unreadable: [],
      damaged: [],
    });
  });

  it('says what a journal lacked', async () => {
    const { data } = await used();
    const { tokens } = dataFolder(data);
    const notes = readFileSync(tokens, 'utf8');
    rmSync(tokens);
    expect(recover(data).stdout).toContain('2 events that the notes in the archive lacked');
    expect(readFileSync(tokens, 'utf8')).toBe(notes);
  });

  it('ends with exit code 1 and names when a body or a line cannot be read', async () => {
    const { data } = await used();
    const folder = dataFolder(data);
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${folder.journal}${suffix}`, { force: true });
    const [first = ''] = [...archivePaths(folder, nodeFiles)];
    truncateSync(join(folder.archive, first), 100);
    appendFileSync(folder.tokens, '{"torn');
    const done = recover(data);
    expect(done.code).toBe(1);
    expect(done.stdout).toContain('There was no journal');
    expect(done.stdout).toContain(`${first}: it is cut short`);
    expect(done.stdout).toContain('tokens.jsonl, line 3: it was cut short by a crash');
    expect(JSON.parse(recover(data, '--json').stdout)).toMatchObject({
      exit_code: 1,
      damaged: [{ path: first }],
    });
  });

  it('is refused beside a running service, and names it', async () => {
    const service = await Service.start();
    const refused = recover(service.data);
    expect(refused.code).toBe(5);
    expect(refused.stderr).toContain(`process ${service.pid}`);
  });

  it('makes nothing where there is nothing', () => {
    const nowhere = join(tmpDir(), 'nowhere');
    expect(recover(nowhere)).toMatchObject({ code: 1, stderr: expect.stringContaining('no archive') });
    expect(existsSync(nowhere)).toBe(false);
  });
});

describe('token add --secret-from', () => {
  const SECRET = 'sk-0123456789abcdefABCDEF';

  it('registers a secret from a file or from stdin, without ever showing it', async () => {
    const service = await Service.start();
    const file = join(tmpDir(), 'secret');
    writeFileSync(file, `${SECRET}\n`);
    const run = (...args: string[]) => healthlog(['token', 'add', ...args, '--data', service.data]);
    const added = run('old phone', '--secret-from', file, '--json');
    expect(JSON.parse(added.stdout)).toEqual({ token: null, hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(added.stderr).toContain('long and random');
    expect(added.stdout + added.stderr).not.toContain(SECRET);
    const response = await fetch(`${service.url}/v1/ingest`, {
      method: 'POST',
      body: BODY,
      headers: { 'x-api-key': SECRET, 'content-type': 'application/json' },
    });
    expect(response.status).toBe(200);

    const twice = run('again', '--secret-from', file);
    expect(twice).toMatchObject({ code: 2, stdout: '' });
    expect(twice.stderr).not.toContain(SECRET);
    writeFileSync(file, 'short');
    expect(run('short', '--secret-from', file)).toMatchObject({ code: 2 });
    expect(run('none', '--secret-from', join(tmpDir(), 'none'))).toMatchObject({ code: 1 });
    const piped = spawnSync(
      process.execPath,
      [PROGRAM, 'token', 'add', 'piped', '--secret-from', '-', '--data', service.data],
      {
        input: `${SECRET}2\n`,
        encoding: 'utf8',
      },
    );
    expect(piped).toMatchObject({ status: 0, stdout: expect.stringContaining('the token "piped" (hash ') });
    expect(healthlog(['token', 'add', 'empty', '--secret-from', '-', '--data', service.data]).code).toBe(2);
    expect(service.stderr).not.toContain(SECRET);
  });
});
