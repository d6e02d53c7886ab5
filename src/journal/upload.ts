/**
 * Upload: from the request's stream to a finished, fsynced file in `archive/incoming/`. The commit section
 * (commit-section.ts) gives it its name.
 *
 * - The body streams through length → sha256 → first and last non-blank byte → gzip and is never parsed, so the
 *   time it takes follows its bytes, not its points.
 * - The shape check is cheap on purpose: JSON begins with `{`, `[` or `"` and ends with what fits; CSV only has
 *   to be there. What is inside is the fold's business, and a body that was kept can be folded again.
 * - "The stream ended" is not "the body is complete": the caller says whether the message was, and a declared
 *   length has to match.
 * - Whatever goes wrong, nothing stays behind: no file of an upload that was not handed on.
 * - The stream is never destroyed here, because with it goes the socket that the answer needs. After a refusal
 *   the rest of the body is unread; the caller drains it or closes the connection.
 */
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip, type Gunzip, gzipSync, type ZlibOptions } from 'node:zlib';
import { type ArchiveHeader, encodeHeader } from './archive.js';
import type { BodyKind } from './content-type.js';
import { HealthlogError, platformCode } from './errors.js';
import type { DeliverySource } from './event.js';
import type { FileLayer, UploadFile } from './files.js';
import type { DeliveryId, Micros } from './position.js';
import { ShapeCheck } from './shape.js';

export interface IncomingDelivery {
  readonly profile: string;
  readonly source: DeliverySource;
  readonly contentType: string | null;
  /** Content-Encoding as it came; null when there was none. */
  readonly contentCoding: string | null;
  /** Only what may be kept for ever: the result of keptHeaders(). */
  readonly headers: Record<string, string>;
  /** Content-Length, of the body as it travels. */
  readonly declaredBytes: number | null;
  readonly kind: BodyKind;
  /** Asked after the stream has ended: did the message end too? */
  readonly complete: () => boolean;
  /** When the body was made, if that is known better than by the clock (import --as-of). */
  readonly clockAt?: Micros;
}

/** An upload that is safely on disk and has no place in the journal yet. */
export interface Upload {
  readonly id: DeliveryId;
  readonly tmpPath: string;
  readonly header: ArchiveHeader;
  /** Content-decoded. */
  readonly bodyBytes: number;
  /** Hex, of the body content-decoded. */
  readonly bodySha256: string;
}

export interface UploadDeps {
  readonly incomingDir: string;
  readonly files: FileLayer;
  readonly id: DeliveryId;
  readonly clockAt: Micros;
  /** Limit for the body, as it travels and decoded. */
  readonly bodyBytesMax: number;
}

/** The client went away before its last byte. Nothing was stored and nobody is there to be answered. */
export class UploadAborted extends Error {
  readonly receivedBytes: number;

  constructor(receivedBytes: number, options?: { cause?: unknown }) {
    super(`the client went away after ${receivedBytes} bytes`, options);
    this.name = 'UploadAborted';
    this.receivedBytes = receivedBytes;
  }
}

/** Names of files this process is at work on, so that a sweep can tell them from those of a dead namesake. */
const inProgress = new Set<string>();

export function uploadName(pid: number, id: DeliveryId): string {
  return `${pid}-${id}.tmp`;
}

export function isInProgress(name: string): boolean {
  return inProgress.has(name);
}

/** The upload was committed or given up: its temporary name means nothing to this process any more. */
export function endUpload(tmpPath: string): void {
  inProgress.delete(basename(tmpPath));
}

/** The error of the catalogue for a file or database error; anything without a platform code stays what it is. */
export function storageError(error: unknown): unknown {
  const code = error instanceof HealthlogError ? null : platformCode(error);
  if (code === null) return error;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL') {
    return new HealthlogError('disk_full', {}, { cause: error });
  }
  return new HealthlogError('storage_failed', { reason: code }, { cause: error });
}

async function onDisk<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    throw storageError(error);
  }
}

/** Bodies up to here are compressed in one go: setting up a stream costs more than they do. */
const SMALL_BYTES = 64 * 1024;
/** With zlib's default of 16 KiB the reading side stalls on every chunk. */
const HIGH_WATER_BYTES = 1024 * 1024;
const GZIP: ZlibOptions & { highWaterMark: number } = {
  level: 1,
  chunkSize: 64 * 1024,
  highWaterMark: HIGH_WATER_BYTES,
};

/** `identity` changes nothing, however often it is named. */
function isGzip(coding: string | null): boolean {
  const names = (coding ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  const [name] = names;
  if (name === undefined) return false;
  if (names.length === 1 && (name === 'gzip' || name === 'x-gzip')) return true;
  throw new HealthlogError('unsupported_coding', { coding: names.join(', ').slice(0, 40) });
}

/** The request's bytes as they travel, counted and held to limit, declared length and completeness. */
async function* travelling(
  body: Readable,
  incoming: IncomingDelivery,
  bodyBytesMax: number,
): AsyncGenerator<Buffer> {
  let received = 0;
  const chunks: AsyncIterableIterator<Buffer | string> = body.iterator({ destroyOnReturn: false });
  try {
    for await (const chunk of chunks) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      received += bytes.length;
      if (received > bodyBytesMax) throw new HealthlogError('too_large', { limit: bodyBytesMax });
      yield bytes;
    }
  } catch (error) {
    // Only the stream itself fails in here: what the consumer throws never comes back through a yield.
    throw error instanceof HealthlogError ? error : new UploadAborted(received, { cause: error });
  }
  if (!incoming.complete()) {
    throw new HealthlogError('truncated', { reason: `the message ended after ${received} bytes` });
  }
  if (incoming.declaredBytes !== null && incoming.declaredBytes !== received) {
    const reason = `${incoming.declaredBytes} bytes were announced and ${received} came`;
    throw new HealthlogError('truncated', { reason });
  }
}

/**
 * The content-decoded bytes. A small body that decompresses to a huge one stops at the limit. What follows the
 * last gzip member (some tools pad with zeros) is read all the same: whether the message was whole and as long as
 * announced is known at its end only.
 */
async function* decoded(source: AsyncGenerator<Buffer>, gzip: boolean): AsyncGenerator<Buffer> {
  if (!gzip) {
    yield* source;
    return;
  }
  const gunzip = createGunzip({ chunkSize: 256 * 1024 });
  // Heard below while it is read; what comes after its end is no longer anybody's.
  gunzip.on('error', () => undefined);
  const feeding = feed(source, gunzip);
  try {
    for await (const chunk of gunzip) yield chunk;
  } catch (error) {
    if (platformCode(error)?.startsWith('Z_')) throw new HealthlogError('bad_gzip', {}, { cause: error });
    throw error;
  }
  const failure = await feeding;
  if (failure !== null) throw failure;
}

/** Never rejects: gives what went wrong with the source, which the reader of `gunzip` is told as well. */
async function feed(source: AsyncGenerator<Buffer>, gunzip: Gunzip): Promise<unknown> {
  const closed = new Promise<void>((resolve) => gunzip.once('close', resolve));
  try {
    for await (const bytes of source) {
      // It failed, or its reader has had enough.
      if (gunzip.destroyed && !gunzip.readableEnded) return null;
      if (gunzip.readableEnded || gunzip.write(bytes)) continue;
      await Promise.race([new Promise<void>((resolve) => gunzip.once('drain', resolve)), closed]);
    }
    if (!gunzip.destroyed) gunzip.end();
    return null;
  } catch (error) {
    gunzip.destroy(error instanceof Error ? error : new Error(String(error)));
    return error;
  }
}

/** Everything that is learned of a body while it passes by. */
class Meter {
  bytes = 0;
  readonly #hash = createHash('sha256');
  readonly #shape: ShapeCheck;
  readonly #bodyBytesMax: number;

  constructor(kind: BodyKind, bodyBytesMax: number) {
    this.#shape = new ShapeCheck(kind);
    this.#bodyBytesMax = bodyBytesMax;
  }

  async *through(source: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      this.bytes += chunk.length;
      if (this.bytes > this.#bodyBytesMax) {
        throw new HealthlogError('too_large', { limit: this.#bodyBytesMax });
      }
      this.#hash.update(chunk);
      this.#shape.add(chunk);
      yield chunk;
    }
    this.#shape.end();
  }

  sha256(): string {
    return this.#hash.digest('hex');
  }
}

/** Reads until more than a small body is there; `whole` when the body ended before. */
async function readHead(source: AsyncGenerator<Buffer>): Promise<{ head: Buffer; whole: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  while (bytes <= SMALL_BYTES) {
    const next = await source.next();
    if (next.done) return { head: Buffer.concat(chunks), whole: true };
    chunks.push(next.value);
    bytes += next.value.length;
  }
  return { head: Buffer.concat(chunks), whole: false };
}

async function* joined(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* rest;
}

/** Writes both gzip members; the file is complete and fsynced when this resolves. */
async function writeMembers(
  file: UploadFile,
  firstMember: Buffer,
  body: { head: Buffer; whole: boolean },
  rest: AsyncGenerator<Buffer>,
): Promise<void> {
  if (body.whole) {
    await onDisk(file.write(Buffer.concat([firstMember, gzipSync(body.head, { level: 1 })])));
  } else {
    await onDisk(file.write(firstMember));
    await pipeline(
      joined(body.head, rest),
      createGzip(GZIP),
      async (compressed: AsyncIterable<Buffer>): Promise<void> => {
        for await (const chunk of compressed) await onDisk(file.write(chunk));
      },
    );
  }
  await onDisk(file.fsync());
}

/**
 * Receives one body.
 *
 * @throws HealthlogError too_large, bad_gzip, unsupported_coding, empty_body, shapeless_body, truncated,
 *   disk_full, storage_failed; UploadAborted when the client went away. In every case its file is gone.
 */
export async function receiveUpload(
  body: Readable,
  incoming: IncomingDelivery,
  deps: UploadDeps,
): Promise<Upload> {
  const { files, bodyBytesMax, id } = deps;
  const gzip = isGzip(incoming.contentCoding);
  if (incoming.declaredBytes !== null && incoming.declaredBytes > bodyBytesMax) {
    throw new HealthlogError('too_large', { limit: bodyBytesMax });
  }
  const header: ArchiveHeader = {
    format: 1,
    profile: incoming.profile,
    source: incoming.source,
    clockAt: incoming.clockAt ?? deps.clockAt,
    contentType: incoming.contentType,
    contentCoding: incoming.contentCoding,
    headers: incoming.headers,
  };
  const meter = new Meter(incoming.kind, bodyBytesMax);
  const chunks = meter.through(decoded(travelling(body, incoming, bodyBytesMax), gzip));
  // A small body that is refused never touches the disk.
  const start = await readHead(chunks);

  const name = uploadName(process.pid, id);
  const tmpPath = join(deps.incomingDir, name);
  inProgress.add(name);
  try {
    const file = await onDisk(files.createUpload(tmpPath, start.whole));
    try {
      await writeMembers(file, encodeHeader(header), start, chunks);
    } finally {
      await onDisk(file.close());
    }
    return { id, tmpPath, header, bodyBytes: meter.bytes, bodySha256: meter.sha256() };
  } catch (error) {
    discardUpload(files, tmpPath);
    throw error;
  }
}

/**
 * Removes the file of an upload that will not be committed. When even that fails the file stays until the next
 * start sweeps it: the error that the caller is about to see is the one that matters, and both come from the same disk.
 */
export function discardUpload(files: FileLayer, tmpPath: string): void {
  endUpload(tmpPath);
  try {
    files.unlink(tmpPath);
  } catch (error) {
    if (platformCode(error) === null) throw error;
  }
}
