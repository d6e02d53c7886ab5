/** Raw: the bytes of a file as they lie there, with every failure of reading as an error of the catalogue. */
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { HealthlogError, platformCode } from '../../journal/errors.js';

/** Where bytes are read in pieces, this is the size of a piece. */
export const CHUNK_BYTES = 256 * 1024;

const WORDS = new Map([
  ['ENOENT', 'there is no such file'],
  ['ENOTDIR', 'a part of its path is no folder'],
  ['EACCES', 'this user may not read it'],
  ['EPERM', 'this user may not read it'],
  ['EISDIR', 'it is a folder'],
  ['ELOOP', 'its links lead in a circle'],
  ['ENAMETOOLONG', 'its name is too long'],
]);

/** The error of the catalogue for a file that cannot be read; what the platform did not say stays what it is. */
export function fileError(error: unknown): unknown {
  const code = error instanceof HealthlogError ? null : platformCode(error);
  // Node's own complaints (ERR_) and those of zlib (Z_) are not about reading.
  if (code === null || !/^E(?!RR_)/.test(code)) return error;
  return new HealthlogError('file_unreadable', { reason: WORDS.get(code) ?? code }, { cause: error });
}

/** @throws HealthlogError file_unreadable */
export async function* fileBytes(path: string | Buffer): AsyncGenerator<Buffer> {
  yield* streamBytes(createReadStream(path, { highWaterMark: CHUNK_BYTES }));
}

/** The bytes of a stream, which is destroyed when they are not read to the end. */
export async function* streamBytes(stream: Readable): AsyncGenerator<Buffer> {
  const chunks: AsyncIterable<Buffer> = stream;
  try {
    for await (const chunk of chunks) yield chunk;
  } catch (error) {
    throw fileError(error);
  }
}

/** Everything, in memory. @throws HealthlogError too_large, file_unreadable */
export async function readAll(bytes: AsyncGenerator<Buffer>, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    length += chunk.length;
    if (length > bytesMax) throw new HealthlogError('too_large', { limit: bytesMax });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
