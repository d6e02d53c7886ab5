/**
 * The floor of `ack`: the least a server can do that answers 200 when a body is safe on disk.
 *
 * node:http → sha256 → two gzip members, level 1, with a high-water mark of 1 MB → fsync → rename → fsync of the
 * directory → 200. No framework, no authorisation, no shape check, no position, no row. Bodies under 64 KB are
 * compressed in one go, as the service does.
 *
 *     node --import tsx bench/ack-floor.ts FOLDER
 */
import { createHash, randomUUID } from 'node:crypto';
import { closeSync, createWriteStream, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, gzipSync, type ZlibOptions } from 'node:zlib';

const SMALL_BYTES = 64 * 1024;
const GZIP: ZlibOptions & { highWaterMark: number } = {
  level: 1,
  chunkSize: 64 * 1024,
  highWaterMark: 1024 * 1024,
};

const [root] = process.argv.slice(2);
if (root === undefined) throw new Error('usage: ack-floor FOLDER');
const incoming = join(root, 'incoming');
const day = join(root, 'day');
mkdirSync(incoming, { recursive: true });
mkdirSync(day, { recursive: true });

const FIRST_MEMBER = { profile: 'me', source: 'http', content_type: 'application/json', headers: {} };

function firstMember(): Buffer {
  return gzipSync(`${JSON.stringify({ ...FIRST_MEMBER, clock_at: new Date().toISOString() })}\n`);
}

async function storeSmall(request: IncomingMessage, path: string): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const sha256 = createHash('sha256').update(body).digest('hex');
  const fd = openSync(path, 'wx');
  writeSync(fd, Buffer.concat([firstMember(), gzipSync(body, { level: 1 })]));
  fsyncSync(fd);
  closeSync(fd);
  return sha256;
}

async function storeLarge(request: IncomingMessage, path: string): Promise<string> {
  const hash = createHash('sha256');
  request.on('data', (chunk: Buffer) => hash.update(chunk));
  const file = createWriteStream(path, { flags: 'wx', flush: true });
  file.write(firstMember());
  await pipeline(request, createGzip(GZIP), file);
  return hash.digest('hex');
}

async function store(request: IncomingMessage): Promise<string> {
  const id = randomUUID();
  const path = join(incoming, `${process.pid}-${id}.tmp`);
  const isSmall = Number(request.headers['content-length'] ?? Number.NaN) <= SMALL_BYTES;
  const sha256 = await (isSmall ? storeSmall : storeLarge)(request, path);
  renameSync(path, join(day, `${Date.now()}_${id}_${sha256.slice(0, 16)}.json.gz`));
  const fd = openSync(day, 'r');
  fsyncSync(fd);
  closeSync(fd);
  return id;
}

const server = createServer((request, response) => {
  store(request).then(
    (id) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ id, received_at: new Date().toISOString(), parse_status: 'pending' }));
    },
    (error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    },
  );
});
// As long as the service keeps one: a connection made anew would be counted as answer time.
server.keepAliveTimeout = 72_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  process.stdout.write(`listening on http://127.0.0.1:${address.port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
