/**
 * Budgets, with limits so small that they are met: what is slow, still, cut or never read is ended, is told why
 * where that is possible, leaves nothing, and keeps nobody else waiting. Waited for is the end, never a time.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { UploadFile } from '../../src/journal/files.js';
import { nodeFiles } from '../../src/journal/files.js';
import { type Answer, Api, BODY, type Client, head, post } from './support.js';

const NOTHING = { rows: 0, files: 0, incoming: 0 };
const codeOf = ({ body }: Answer): string => JSON.parse(body).error.code;

/** An upload that was asked for its body and has sent nothing of it, or only the beginning. */
async function begun(
  api: Api,
  token: string,
  length: number,
  first = '',
  path = '/v1/ingest',
): Promise<Client> {
  const client = api
    .open()
    .send(
      head(
        `POST ${path}`,
        `Authorization: Bearer ${token}`,
        `Content-Length: ${length}`,
        'Expect: 100-continue',
      ),
    );
  expect((await client.answer()).status).toBe(100);
  return client.send(first);
}

/** Keeps every fold, and with it every answer that waits for one, from coming. */
function blockFold(api: Api): void {
  const db = new BetterSqlite3(join(api.folder.root, 'readmodel', '000001.db'));
  db.exec('BEGIN IMMEDIATE');
  onTestFinished(() => void db.close());
}

describe('a connection', () => {
  it('that sends nothing is told and ended', async () => {
    const api = await Api.start({ limits: { headersTimeoutMs: 50, checkEveryMs: 20 } });
    const [answer] = await api.open().untilClosed();
    expect(answer?.status).toBe(408);
    expect(answer && codeOf(answer)).toBe('timed_out');
  });

  it('whose headers never end is told and ended', async () => {
    const api = await Api.start({ limits: { headersTimeoutMs: 50, checkEveryMs: 20 } });
    const [answer] = await api.open().send('POST /v1/ingest HTTP/1.1\r\nHost: x\r\nX-Slow: ').untilClosed();
    expect(answer?.status).toBe(408);
    expect(api.onDisk()).toEqual(NOTHING);
  });

  it('that is idle after its answer is ended', async () => {
    const api = await Api.start({ limits: { keepAliveMs: 20 } });
    const answers = await api.exchange(head('GET /healthz'));
    expect(answers.map(({ status }) => status)).toEqual([200]);
  });

  it('is closed for a new one when there are too many: the one that has been idle longest', async () => {
    const api = await Api.start({ limits: { connectionsMax: 2 } });
    const [first, second] = [api.open(), api.open()];
    for (const client of [first, second]) await client.send(head('GET /healthz')).answer();
    // Now the second has been idle longest.
    await first.send(head('GET /healthz')).answer(2);
    const third = api.open();
    expect((await third.send(head('GET /healthz')).answer()).status).toBe(200);
    await api.line(({ text }) => text.startsWith('too many connections'));
    await second.untilClosed();
    expect((await first.send(head('GET /healthz')).answer(3)).status).toBe(200);
  });

  it('is not closed for a new one while something is under way on it', async () => {
    const api = await Api.start({ limits: { connectionsMax: 1 } });
    const token = api.token();
    const upload = await begun(api, token, BODY.length, BODY.slice(0, 5));
    expect(await api.exchange(head('GET /healthz'))).toEqual([]);
    expect((await upload.send(BODY.slice(5)).answer(2)).status).toBe(200);
  });
});

describe('an upload', () => {
  it('that stands still is told so, leaves nothing, and frees its place at once', async () => {
    const api = await Api.start({ limits: { stallTimeoutMs: 60, uploadsMax: 1 } });
    const token = api.token();
    const still = await begun(api, token, 300_000, `{"data":${' '.repeat(150_000)}`);
    const answer = await still.answer(2);
    expect([answer.status, codeOf(answer)]).toEqual([408, 'stalled']);
    expect(still.isClosed).toBe(false);
    expect(api.onDisk()).toEqual(NOTHING);
    expect((await api.open().send(post(token)).answer()).status).toBe(200);
  });

  it('before whose first byte nothing comes stands still as well', async () => {
    const api = await Api.start({ limits: { stallTimeoutMs: 60 } });
    const client = await begun(api, api.token(), 20);
    expect(codeOf(await client.answer(2))).toBe('stalled');
  });

  it('does not stand still while it is the disk that is slow', async () => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const writes: number[] = [];
    const slowFile = (file: UploadFile): UploadFile => ({
      ...file,
      write: async (bytes) => {
        writes.push(bytes.length);
        if (writes.length === 2) await gate;
        await file.write(bytes);
      },
      fsync: () => file.fsync(),
      close: () => file.close(),
    });
    const api = await Api.start({
      limits: { stallTimeoutMs: 500, bodyBytesMax: 50_000_000 },
      files: {
        ...nodeFiles,
        createUpload: async (path, small) => slowFile(await nodeFiles.createUpload(path, small)),
      },
    });
    const token = api.token();
    // Nothing that could be compressed: everything in between fills up while the disk stands still.
    const noise = Buffer.from(
      Array.from({ length: 12_000_000 }, (_, i) => 33 + ((i * 7919 + (i >> 3) * 104729) % 90)),
    );
    const body = Buffer.concat([
      Buffer.from('["'),
      noise.map((byte) => (byte === 34 || byte === 92 ? 35 : byte)),
      Buffer.from('"]'),
    ]);
    const client = api.open().send(post(token, body));
    // Another upload stands still for its whole time meanwhile, and this one is not ended by it.
    expect(codeOf(await (await begun(api, token, 20)).answer(2))).toBe('stalled');
    go();
    expect((await client.answer()).status).toBe(200);
  });

  it('that drips is ended when its whole time is over', async () => {
    const api = await Api.start({ limits: { uploadTimeoutMs: 150, stallTimeoutMs: 60_000 } });
    const client = await begun(api, api.token(), 1_000_000, '{');
    const drip = setInterval(() => client.send(' '), 5);
    onTestFinished(() => clearInterval(drip));
    const answer = await client.answer(2);
    expect([answer.status, codeOf(answer)]).toEqual([408, 'timed_out']);
    expect(api.onDisk()).toEqual(NOTHING);
  });

  it.each(['/v1/ingest', '/v1/ingest/', '/v1/%69ngest', '/api/data', '/home/v1/ingest'])(
    'to %s has a long time of its own, whatever the others have',
    async (path) => {
      const api = await Api.start({ limits: { requestTimeoutMs: 40 }, basePath: '/home' });
      const client = await begun(api, api.token(), BODY.length, '', path);
      // The reader thread has to start first: this request meets its limit, and the upload is older.
      const other = api.open().send(head('GET /v1/status', `X-API-Key: ${api.token('read')}`));
      expect((await other.answer()).status).toBe(503);
      expect((await client.send(BODY).answer(2)).status).toBe(200);
    },
  );
});

describe('any other request', () => {
  it('whose answer takes too long is told so', async () => {
    const api = await Api.start({ limits: { requestTimeoutMs: 1 } });
    // The reader thread has to start first, and that takes longer.
    const [answer] = await api.exchange(
      head('GET /v1/status', `X-API-Key: ${api.token('read')}`, 'Connection: close'),
    );
    expect(answer?.status).toBe(503);
    expect(answer && codeOf(answer)).toBe('took_too_long');
  });

  it('whose large answer is never read is ended', async () => {
    const api = await Api.start({ limits: { requestTimeoutMs: 1_500 } });
    const token = api.token();
    const reading = api.token('read');
    await Promise.all(Array.from({ length: 300 }, () => api.open().send(post(token)).answer()));
    const request = head('GET /v1/deliveries', `X-API-Key: ${reading}`);
    // The first answer is slow, because the reader thread has to start.
    while ((await api.open().send(request).answer()).status !== 200);
    const client = api.open();
    client.socket.pause();
    // More than the buffers of the system take.
    client.send(request.repeat(200));
    // Nobody reads: only the end of the connection on the other side can bring this line.
    await api.line(({ text, path }) => text === 'answer not delivered' && path === '/v1/deliveries');
  });

  it('is answered in its turn when several come at once', async () => {
    const api = await Api.start();
    const token = api.token();
    const client = api
      .open()
      .send(Buffer.concat([post(token), post('hl_wrong'), post(token, 'x'), post(token)]));
    await client.answer(4);
    expect(client.answers().map(({ status }) => status)).toEqual([200, 401, 422, 200]);
    expect(api.onDisk()).toEqual({ rows: 2, files: 2, incoming: 0 });
  });
});

describe('a client that goes away', () => {
  it('before the first byte of its body leaves nothing', async () => {
    const api = await Api.start();
    const client = await begun(api, api.token(), 20);
    client.socket.resetAndDestroy();
    const line = await api.line(({ abortedAfterBytes }) => abortedAfterBytes !== undefined);
    expect(line).toMatchObject({ level: 'warn', abortedAfterBytes: 0 });
    expect(line).not.toHaveProperty('status');
    expect(api.onDisk()).toEqual(NOTHING);
  });

  it.each(['reset', 'end'] as const)('in the middle (%s) leaves nothing', async (how) => {
    const api = await Api.start();
    const client = await begun(api, api.token(), 300_000, `{"data":${' '.repeat(150_000)}`);
    while (api.onDisk().incoming === 0) await new Promise((resolve) => setImmediate(resolve));
    if (how === 'end') client.socket.end();
    else client.socket.resetAndDestroy();
    const line = await api.line(({ abortedAfterBytes }) => abortedAfterBytes !== undefined);
    expect(line.text).toContain('aborted by the client');
    expect(line).not.toHaveProperty('status');
    expect(api.onDisk()).toEqual(NOTHING);
    // One that only shut its sending side still reads why.
    if (how === 'end') expect(codeOf(await client.answer(2))).toBe('cut_off');
  });

  it('after its last byte has its delivery recorded, and the log says that it was not told', async () => {
    const api = await Api.start();
    blockFold(api);
    const client = api.open().send(post(api.token(), BODY, { path: '/v1/ingest?wait=30' }));
    while (api.onDisk().rows === 0) await new Promise((resolve) => setImmediate(resolve));
    client.socket.resetAndDestroy();
    const line = await api.line(({ text }) => text === 'recorded, answer not delivered');
    expect(line).toMatchObject({ delivery: expect.any(String), bodyBytes: BODY.length });
    expect(api.onDisk()).toEqual({ rows: 1, files: 1, incoming: 0 });
  });

  it('and shuts its side only is answered, and the log says that nobody knows', async () => {
    const api = await Api.start();
    const client = api.open().send(post(api.token()));
    client.socket.end();
    expect((await client.answer()).status).toBe(200);
    const line = await api.line(({ text }) => text === 'recorded, answer not delivered');
    expect(line).toMatchObject({ status: 200, half_closed: true });
  });
});

describe('a client that is refused', () => {
  it.each([
    ['for its token', (): string => 'hl_wrong', 401],
    ['for the length it announces', (api: Api): string => api.token(), 413],
  ])('%s reads why, although it sends its whole body first', async (_why, tokenOf, status) => {
    const api = await Api.start();
    const client = api.open();
    client.send(post(tokenOf(api), Buffer.alloc(20_000_000, 0x20), { headers: ['Connection: close'] }));
    const answers = await client.untilClosed();
    expect(answers.map((answer) => answer.status)).toEqual([status]);
    expect(api.onDisk()).toEqual(NOTHING);
  });

  it('and shuts its side in the middle of its body is not waited for', async () => {
    const api = await Api.start();
    const client = api.open().send(post('hl_wrong', `{${' '.repeat(900)}`).subarray(0, 400));
    await client.answer();
    client.socket.end();
    expect((await client.untilClosed()).map(({ status }) => status)).toEqual([401]);
  });

  it('before its body was asked for need not send it', async () => {
    const api = await Api.start();
    const answers = await api.exchange(
      head(
        'POST /v1/ingest',
        'Authorization: Bearer hl_wrong',
        'Content-Length: 900',
        'Expect: 100-continue',
      ),
    );
    expect(answers.map(({ status, headers }) => [status, headers.connection])).toEqual([[401, 'close']]);
  });
});

describe('a stop', () => {
  it('closes an idle connection at once, and an answering one after its answer', async () => {
    const api = await Api.start();
    blockFold(api);
    const idle = api.open().send(head('GET /healthz'));
    await idle.answer();
    const busy = api.open().send(post(api.token(), BODY, { path: '/v1/ingest?wait=30' }));
    while (api.onDisk().rows === 0) await new Promise((resolve) => setImmediate(resolve));
    const silent = api.open();
    await new Promise<void>((resolve) => silent.socket.once('connect', () => resolve()));
    expect(await api.stop(60_000)).toBe(true);
    const [answer] = await busy.untilClosed();
    expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
    expect((await idle.untilClosed()).length).toBe(1);
    await silent.untilClosed();
  });

  it('lets an upload finish within its budget', async () => {
    const api = await Api.start();
    const client = await begun(api, api.token(), BODY.length);
    const stopped = api.stop(60_000);
    const answer = await client.send(BODY).answer(2);
    expect(answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
    expect(await stopped).toBe(true);
  });

  it('cuts an upload that is too slow: it is told, nothing is left, and the log says so', async () => {
    const api = await Api.start();
    const client = await begun(api, api.token(), 300_000, `{"data":${' '.repeat(150_000)}`);
    while (api.onDisk().incoming === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await api.stop(20)).toBe(false);
    expect(api.onDisk()).toEqual(NOTHING);
    expect(codeOf(await client.answer(2))).toBe('stopping');
    await client.untilClosed();
    const line = await api.line(({ text }) => text.startsWith('aborted because the service stops'));
    expect(line).toMatchObject({ level: 'warn', status: 503, refusedAfterBytes: 150_008 });
    expect(existsSync(api.folder.incoming)).toBe(true);
  });
});
