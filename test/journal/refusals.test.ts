import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type IncomingDelivery, UploadAborted } from '../../src/journal/accept.js';
import type { ErrorCode } from '../../src/journal/errors.js';
import { nodeFiles } from '../../src/journal/files.js';
import type { JournalRow } from '../../src/journal/store.js';
import { accepting, archived, BODY, incoming } from './support.js';

const LONG = `[${'1,'.repeat(100_000)}1]`;

interface Refusal {
  readonly name: string;
  readonly body: string | Buffer;
  readonly changes?: Partial<IncomingDelivery>;
  readonly code: ErrorCode;
}

const REFUSALS: Refusal[] = [
  { name: 'nothing', body: '', code: 'empty_body' },
  { name: 'blanks only', body: ' \r\n\t ', code: 'empty_body' },
  { name: 'a byte order mark only', body: '\ufeff', code: 'empty_body' },
  { name: 'CSV without anything', body: '\n', changes: { kind: 'csv' }, code: 'empty_body' },
  { name: 'a word', body: 'hello', code: 'shapeless_body' },
  { name: 'a bare null', body: 'null', code: 'shapeless_body' },
  { name: 'a page of HTML', body: `<html>${LONG}</html>`, code: 'shapeless_body' },
  { name: 'half a byte order mark', body: Buffer.from([0xef, 0xbb, 0x7b, 0x7d]), code: 'shapeless_body' },
  { name: 'UTF-16', body: Buffer.from('\ufeff{}', 'utf16le'), code: 'not_utf8' },
  { name: 'UTF-16 without a mark', body: Buffer.from('{"data":{}}', 'utf16le'), code: 'not_utf8' },
  { name: 'UTF-16, the other byte first', body: Buffer.from('{}', 'utf16le').swap16(), code: 'not_utf8' },
  { name: 'an object without its end', body: '{"data":{"metrics":[', code: 'truncated' },
  { name: 'a list closed as an object', body: '[1}', code: 'truncated' },
  { name: 'an opening bracket', body: '{', code: 'truncated' },
  { name: 'one quote', body: '"', code: 'truncated' },
  { name: 'a long body without its end', body: LONG.slice(0, -1), code: 'truncated' },
  { name: 'fewer bytes than announced', body: BODY, changes: { declaredBytes: 99 }, code: 'truncated' },
  { name: 'more bytes than announced', body: BODY, changes: { declaredBytes: 9 }, code: 'truncated' },
  { name: 'a message that did not end', body: BODY, changes: { complete: () => false }, code: 'truncated' },
  {
    name: 'a long message that did not end',
    body: LONG,
    changes: { complete: () => false },
    code: 'truncated',
  },
  { name: 'too many bytes', body: `[${'1,'.repeat(600_000)}1]`, code: 'too_large' },
  { name: 'too many announced bytes', body: BODY, changes: { declaredBytes: 1_000_001 }, code: 'too_large' },
  {
    name: 'a few bytes that become too many',
    body: gzipSync(`[${'1,'.repeat(600_000)}1]`),
    changes: { contentCoding: 'gzip' },
    code: 'too_large',
  },
  { name: 'plain text called gzip', body: BODY, changes: { contentCoding: 'gzip' }, code: 'bad_gzip' },
  {
    name: 'gzip that stops',
    body: gzipSync(LONG).subarray(0, -12),
    changes: { contentCoding: 'gzip' },
    code: 'bad_gzip',
  },
  { name: 'an unknown coding', body: BODY, changes: { contentCoding: 'br' }, code: 'unsupported_coding' },
];

describe('a refused body', () => {
  it.each(REFUSALS)('leaves nothing on disk and no row: $name', async ({ body, changes, code }) => {
    const { accept, folder, journal, accepted } = accepting();
    await expect(accept(body, changes)).rejects.toMatchObject({ name: 'HealthlogError', code });
    expect(archived(folder)).toEqual([]);
    expect(journal.count()).toBe(0);
    expect(accepted).toEqual([]);
    await expect(accept(BODY)).resolves.toMatchObject({ seq: 1 });
  });

  it('leaves the stream alive, because the answer needs its socket', async () => {
    const { acceptor } = accepting();
    const body = Readable.from([Buffer.from('x'), Buffer.from(LONG)]);
    await expect(acceptor.accept(body, incoming())).rejects.toMatchObject({ code: 'shapeless_body' });
    expect(body.destroyed).toBe(false);
  });
});

describe('a client over HTTP', () => {
  /** A server whose every request goes to the acceptor; `outcome` is what became of the first. */
  async function server(
    opened: ReturnType<typeof accepting>,
    onRequest?: (message: IncomingMessage) => void,
  ) {
    let settle: (outcome: Promise<JournalRow>) => void = () => undefined;
    const outcome = new Promise<JournalRow>((resolve) => {
      settle = resolve;
    });
    outcome.catch(() => undefined);
    const http = createServer((message, reply) => {
      onRequest?.(message);
      const length = message.headers['content-length'];
      const accepted = opened.acceptor.accept(
        message,
        incoming({
          declaredBytes: length === undefined ? null : Number(length),
          complete: () => message.complete,
        }),
      );
      settle(accepted);
      accepted.then(
        () => reply.end('ok'),
        () => reply.destroy(),
      );
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    onTestFinished(() => {
      http.closeAllConnections();
      http.close();
    });
    // A server on a TCP port has an AddressInfo; only a pipe has a name.
    const { port } = http.address() as AddressInfo;
    return { port, outcome };
  }

  it.each([
    ['a declared length', 'Content-Length: 500000', (part: string) => part],
    ['chunks', 'Transfer-Encoding: chunked', (part: string) => `${part.length.toString(16)}\r\n${part}\r\n`],
  ])('that hangs up before its last byte leaves nothing (%s)', async (_name, header, frame) => {
    const opened = accepting();
    const { port, outcome } = await server(opened);
    const socket = connect(port, '127.0.0.1');
    const part = LONG.slice(0, 100_000);
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n${frame(part)}`);
    // A body above the small size has its file by now; the hang-up must take it away again.
    while (archived(opened.folder).length === 0) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    const error: unknown = await outcome.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UploadAborted);
    expect(error).toMatchObject({ receivedBytes: part.length });
    expect(archived(opened.folder)).toEqual([]);
    expect(opened.journal.count()).toBe(0);
  });

  it('that hangs up after its last byte is recorded all the same', async () => {
    let hangUp: () => void = () => undefined;
    const opened = accepting({
      files: {
        ...nodeFiles,
        rename: (from, to) => {
          hangUp();
          nodeFiles.rename(from, to);
        },
      },
    });
    const { port, outcome } = await server(opened, (message) => {
      hangUp = () => message.socket.destroy();
    });
    const client = request({ port, host: '127.0.0.1', method: 'POST' });
    client.on('error', () => undefined);
    client.end(BODY);
    await expect(outcome).resolves.toMatchObject({ seq: 1, bodyBytes: BODY.length });
    expect(opened.journal.count()).toBe(1);
  });

  it('without a Content-Length is as welcome as one with it', async () => {
    const opened = accepting();
    const { port, outcome } = await server(opened);
    const client = request({ port, host: '127.0.0.1', method: 'POST' });
    client.write(LONG.slice(0, 10));
    client.end(LONG.slice(10));
    await expect(outcome).resolves.toMatchObject({ bodyBytes: LONG.length });
  });
});
