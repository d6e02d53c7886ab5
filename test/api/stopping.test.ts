/** A stop while requests are running: each of them still gets its answer, and none of them holds the stop up. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Service, stopAll } from '../support/service.js';

afterEach(stopAll);

const JSON_BODY = '{"data":{"metrics":[]}}';
/** More than the ten listeners after which Node suspects a leak. */
const WAITING = 12;

function beginUpload(service: Service, length: number): Socket {
  const socket = connect(service.port, '127.0.0.1');
  socket.write(
    [
      'POST /v1/ingest HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${service.token('phone')}`,
      `Content-Length: ${length}`,
      'Expect: 100-continue',
      '',
      '',
    ].join('\r\n'),
  );
  return socket;
}

function textOf(socket: Socket): () => string {
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

async function recorded(service: Service): Promise<number> {
  const { body } = await service.get('/v1/status');
  return z.object({ deliveries: z.number() }).parse(body).deliveries;
}

describe('a stop', () => {
  it('answers the clients that wait for the fold with pending, instead of waiting for it', async () => {
    const service = await Service.start();
    // Keeps the fold from happening.
    const blocker = new BetterSqlite3(join(service.data, 'readmodel', '000001.db'));
    blocker.exec('BEGIN IMMEDIATE');
    const answers = Array.from({ length: WAITING }, () => service.post(JSON_BODY, {}, '?wait=30'));
    while ((await recorded(service)) < WAITING);
    const stopped = service.stop();
    for (const response of await Promise.all(answers)) {
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ parse_status: 'pending' });
    }
    expect(await stopped).toEqual({ code: 0, signal: null });
    blocker.close();
    expect(service.stderr).not.toContain('the stop budget ran out');
    expect(service.stderr).not.toContain('MaxListenersExceededWarning');
  });

  it('lets an upload that is under way finish, and refuses nothing that was begun', async () => {
    const service = await Service.start();
    const socket = beginUpload(service, JSON_BODY.length);
    const received = textOf(socket);
    await once(socket, 'data');
    const stopped = service.stop();
    await service.waitForOutput(/"msg":"stopping"/);
    socket.write(JSON_BODY);
    await once(socket, 'close');
    expect(received()).toContain('200 OK');
    expect(await stopped).toEqual({ code: 0, signal: null });
    expect(service.stderr).toContain('"msg":"stopped"');
  });
});

describe('more uploads at once than allowed', () => {
  it('are refused with 429, and taken again as soon as one has ended', async () => {
    const service = await Service.start({ args: ['--uploads-max', '1'] });
    const socket = beginUpload(service, JSON_BODY.length);
    const received = textOf(socket);
    await once(socket, 'data');
    const refused = await service.post(JSON_BODY);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ error: { code: 'too_many_uploads' } });
    socket.write(JSON_BODY);
    while (!received().includes('200 OK')) await once(socket, 'data');
    socket.destroy();
    expect((await service.post(JSON_BODY)).status).toBe(200);
  });
});
