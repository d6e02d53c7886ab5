/**
 * Content: from the bytes of a piece to the body of a delivery.
 *
 * Bytes that begin like gzip are decompressed, all members of it. What then begins with the line of healthlog's own
 * archive gives that line as its header, and the rest as its body; when the piece still has the name the archive gave
 * it, the body must be the one the name speaks of, because a cut archive file decompresses without an error.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import {
  ARCHIVE_LINE_START,
  type ArchiveHeader,
  HEADER_BYTES_MAX,
  parseArchiveName,
  readArchiveLine,
} from '../../journal/archive.js';
import { HealthlogError, platformCode } from '../../journal/errors.js';
import { baseName, isGzip, MAGIC_BYTES } from './kind.js';
import type { Piece } from './pieces.js';
import { CHUNK_BYTES } from './raw.js';

export interface Content {
  /** What the archive said of the delivery; null for every other file. */
  readonly header: ArchiveHeader | null;
  /** The first character that is not blank opens a JSON object or list. */
  readonly looksLikeJson: boolean;
  /** Decompressed. @throws HealthlogError file_unreadable, file_damaged, too_large */
  readonly body: AsyncGenerator<Buffer>;
  /** To be called when the body is not read to its end; calling it always does no harm. */
  close(): Promise<void>;
}

type Bytes = AsyncGenerator<Buffer>;

/** Enough to tell the kind, blanks and a byte order mark in front included. */
const HEAD_BYTES = 1024;
const LINE_END = 0x0a;

/** Opens a piece at its beginning. @throws HealthlogError file_unreadable, file_damaged, too_large */
export async function openContent({ shown, bytes: open }: Piece): Promise<Content> {
  const named = parseArchiveName(baseName(shown));
  const raw = open();
  const magic = await readHead(raw, (head) => head.length >= MAGIC_BYTES);
  const bytes = isGzip(magic) ? gunzipped(joined(magic, raw)) : joined(magic, raw);
  const close = async (): Promise<void> => {
    await bytes.return(undefined);
    await raw.return(undefined);
  };
  try {
    const head = await readHead(bytes, isKindTold);
    const lineEnd = startsLikeArchive(head) ? head.indexOf(LINE_END) : -1;
    const header = lineEnd < 0 ? null : readArchiveLine(head.toString('utf8', 0, lineEnd));
    if (header === null) {
      if (named !== null) throw damagedArchive('its first line does not describe a delivery');
      return { header, looksLikeJson: looksLikeJson(head), body: joined(head, bytes), close };
    }
    const start = head.subarray(lineEnd + 1);
    const body = joined(start, bytes);
    return {
      header,
      looksLikeJson: looksLikeJson(start),
      body: named === null ? body : asNamed(body, named.sha16),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function isKindTold(head: Buffer): boolean {
  if (!startsLikeArchive(head)) return head.length >= HEAD_BYTES;
  return head.includes(LINE_END) || head.length >= HEADER_BYTES_MAX;
}

function startsLikeArchive(head: Buffer): boolean {
  return head.toString('latin1', 0, ARCHIVE_LINE_START.length) === ARCHIVE_LINE_START;
}

function looksLikeJson(head: Buffer): boolean {
  return /^(?:\xef\xbb\xbf)?\s*[{[]/.test(head.toString('latin1', 0, HEAD_BYTES));
}

function damagedArchive(reason: string): HealthlogError {
  return new HealthlogError('file_damaged', { reason: `by its name it is an archive file, but ${reason}` });
}

/** Reads until there is enough, or all. */
async function readHead(bytes: Bytes, isEnough: (head: Buffer) => boolean): Promise<Buffer> {
  let head = Buffer.alloc(0);
  while (!isEnough(head)) {
    const next = await bytes.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  return head;
}

async function* joined(head: Buffer, rest: Bytes): Bytes {
  try {
    if (head.length > 0) yield head;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}

async function* gunzipped(source: Bytes): Bytes {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // Both ends report the same failure; it is taken from the reading end below.
  const feeding = pipeline(Readable.from(source), gunzip).catch(() => undefined);
  try {
    for await (const chunk of gunzip) yield chunk;
  } catch (error) {
    throw gunzipError(error);
  } finally {
    await feeding;
  }
}

function gunzipError(error: unknown): unknown {
  const code = platformCode(error);
  if (code === null || !code.startsWith('Z_')) return error;
  const reason = code === 'Z_BUF_ERROR' ? 'it is cut short' : 'it cannot be decompressed';
  return new HealthlogError('file_damaged', { reason }, { cause: error });
}

async function* asNamed(body: Bytes, sha16: string): Bytes {
  const hash = createHash('sha256');
  for await (const chunk of body) {
    hash.update(chunk);
    yield chunk;
  }
  if (!hash.digest('hex').startsWith(sha16))
    throw damagedArchive('its body is another one (the hash differs)');
}
