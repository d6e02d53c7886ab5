/**
 * Archive: the exact bytes of every delivery, and the ultimate source of truth.
 *
 *     archive/2026/11/30/20261130T220518.123456Z_<id>_<sha16>.json.gz
 *
 * - The name holds the position (`received_at`, `id`) and the first 16 hex digits of the body's sha256. It is
 *   given by the rename inside the commit section, when the position is known.
 * - The file is two gzip members. The first holds one line of JSON with everything about the delivery but its
 *   body, and ends with a line feed; the second holds the body, content-decoded and otherwise byte for byte. So
 *   `zcat FILE | tail -n +2` gives the body.
 * - journal.db can be rebuilt from these files alone. Nothing about a delivery is known to the fold that is not here.
 * - The first member is written before the body has arrived. Its clock is therefore the clock as read when the
 *   upload *began*; length and hash, which are known at the end, are not in it.
 * - A file cut behind its first member still decompresses without an error: a reader must compare the hash.
 * - Never kept: Authorization, API keys, cookies, query strings. Headers are kept by an allow-list.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { platformCode } from './errors.js';
import type { Automation, DeliverySource } from './event.js';
import { automationOf } from './headers.js';
import {
  fileStamp,
  formatMicros,
  isDeliveryId,
  type Micros,
  type Position,
  parseFileStamp,
  parseMicros,
} from './position.js';

export { automationOf, keptHeaders } from './headers.js';

export interface ArchiveHeader {
  readonly format: 1;
  readonly profile: string;
  readonly source: DeliverySource;
  /** The clock as read when the upload began (an import: when the file was made). */
  readonly clockAt: Micros;
  readonly contentType: string | null;
  /** The coding the body travelled in; in the archive it is always decoded. */
  readonly contentCoding: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ArchivedDelivery {
  readonly position: Position;
  readonly header: ArchiveHeader;
  readonly automation: Automation;
  readonly sessionId: string | null;
  readonly body: Buffer;
  /** Hex. */
  readonly bodySha256: string;
}

/** The archive file is missing or is not what was written. `reason` is in plain words. */
export class ArchiveDamaged extends Error {
  readonly reason: string;

  constructor(path: string, reason: string, options?: { cause?: unknown }) {
    super(`archive file ${path}: ${reason}`, options);
    this.name = 'ArchiveDamaged';
    this.reason = reason;
  }
}

/** The body is longer than the reader allows. The file itself may be sound. */
export class ArchiveTooLarge extends Error {
  readonly bodyBytesMax: number;

  constructor(path: string, bodyBytesMax: number) {
    super(`archive file ${path}: the body is longer than ${bodyBytesMax} bytes`);
    this.name = 'ArchiveTooLarge';
    this.bodyBytesMax = bodyBytesMax;
  }
}

const SHA_DIGITS = 16;
const NAME_PATTERN = /^(\d{4})\/(\d{2})\/(\d{2})\/([0-9TZ.]{23})_([0-9a-f-]{36})_([0-9a-f]{16})\.json\.gz$/;

/** Path of the archive file relative to the archive folder, with `/` on every platform. */
export function archivePath(position: Position, bodySha256: string): string {
  const stamp = fileStamp(position.receivedAt);
  const day = `${stamp.slice(0, 4)}/${stamp.slice(4, 6)}/${stamp.slice(6, 8)}`;
  return `${day}/${stamp}_${position.id}_${bodySha256.slice(0, SHA_DIGITS)}.json.gz`;
}

/** The inverse of {@link archivePath}; null for every path that it cannot have made. */
export function parseArchivePath(rel: string): { position: Position; sha16: string } | null {
  const match = NAME_PATTERN.exec(rel);
  if (match === null) return null;
  const [, year = '', month = '', day = '', stamp = '', id = '', sha16 = ''] = match;
  const receivedAt = parseFileStamp(stamp);
  if (receivedAt === null || !Number.isSafeInteger(receivedAt) || !isDeliveryId(id)) return null;
  return stamp.startsWith(`${year}${month}${day}T`) ? { position: { receivedAt, id }, sha16 } : null;
}

/** The same for a file that was carried away from its day folder: its name alone. */
export function parseArchiveName(name: string): { position: Position; sha16: string } | null {
  return parseArchivePath(`${name.slice(0, 4)}/${name.slice(4, 6)}/${name.slice(6, 8)}/${name}`);
}

/** The first gzip member: one line of JSON, the line feed inside. */
export function encodeHeader(header: ArchiveHeader): Buffer {
  const line = JSON.stringify({
    format: header.format,
    profile: header.profile,
    source: header.source,
    clock_at: formatMicros(header.clockAt),
    content_type: header.contentType,
    content_coding: header.contentCoding,
    headers: header.headers,
  });
  // The usual level spends three times as long on a line of this length and saves a few bytes.
  return gzipSync(`${line}\n`, { level: 1 });
}

const headerLine = z.object({
  format: z.literal(1),
  profile: z.string().min(1),
  source: z.enum(['http', 'import']),
  clock_at: z.string().transform((text, context) => {
    const at = parseMicros(text);
    if (at !== null) return at;
    context.addIssue({ code: 'custom', message: 'not a time' });
    return z.NEVER;
  }),
  content_type: z.string().nullable(),
  content_coding: z.string().nullable(),
  headers: z.record(z.string(), z.string()),
});

function parseHeader(rel: string, line: string): ArchiveHeader {
  let raw: unknown;
  try {
    raw = JSON.parse(line);
  } catch (cause) {
    throw new ArchiveDamaged(rel, 'its first line is not JSON', { cause });
  }
  const parsed = headerLine.safeParse(raw);
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => issue.path.join('.') || 'the line').join(', ');
    throw new ArchiveDamaged(rel, `its first line does not describe a delivery (${where})`);
  }
  const { format, profile, source, clock_at, content_type, content_coding, headers } = parsed.data;
  return {
    format,
    profile,
    source,
    clockAt: clock_at,
    contentType: content_type,
    contentCoding: content_coding,
    headers,
  };
}

/** How the line of every archive file begins, so that a body of any other kind need not be searched for its end. */
export const ARCHIVE_LINE_START = '{"format":';

/** What a file's first line says, when it is that of an archive file; null for every other line. */
export function readArchiveLine(line: string): ArchiveHeader | null {
  try {
    return parseHeader('', line);
  } catch (error) {
    if (error instanceof ArchiveDamaged) return null;
    throw error;
  }
}

/** Node takes at most 16 KiB of headers; escaped as JSON and with names of profiles that is far below this. */
export const HEADER_BYTES_MAX = 256 * 1024;
/** Room for the usual first line. A longer one costs a second chunk, nothing else. */
const HEADER_SLACK_BYTES = 8 * 1024;
/** Deflate cannot do better than this, so a damaged length field cannot ask for more memory. */
const DEFLATE_RATIO_MAX = 1032;

/** The length of the last gzip member modulo 2^32, as its trailer says. */
function trailerLength(file: Buffer): number {
  return file.length < 4 ? 0 : file.readUInt32LE(file.length - 4);
}

/**
 * Decompresses both members into one chunk: zlib otherwise collects small ones and copies them together, which
 * doubles the memory of a wide delivery.
 */
function gunzipWhole(rel: string, file: Buffer, hintBytes: number, bodyBytesMax: number | null): Buffer {
  const expected = Math.min(hintBytes, file.length * DEFLATE_RATIO_MAX, bodyBytesMax ?? Infinity);
  try {
    return gunzipSync(file, {
      chunkSize: expected + HEADER_SLACK_BYTES,
      ...(bodyBytesMax === null ? {} : { maxOutputLength: bodyBytesMax + HEADER_BYTES_MAX }),
    });
  } catch (cause) {
    const code = platformCode(cause);
    if (code === 'ERR_BUFFER_TOO_LARGE') {
      throw new ArchiveTooLarge(rel, bodyBytesMax ?? Number.MAX_SAFE_INTEGER);
    }
    if (code === 'Z_BUF_ERROR') throw new ArchiveDamaged(rel, 'it is cut short', { cause });
    if (code === 'Z_DATA_ERROR' || code === 'Z_NEED_DICT') {
      throw new ArchiveDamaged(rel, 'it cannot be decompressed', { cause });
    }
    throw cause;
  }
}

function readFile(root: string, rel: string): Buffer {
  try {
    return readFileSync(join(root, rel));
  } catch (cause) {
    const code = platformCode(cause);
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new ArchiveDamaged(rel, 'it is missing', { cause });
    throw cause;
  }
}

const LINE_END = 0x0a;

/**
 * Reads one delivery back and proves that it is the one that was written.
 *
 * @param archiveRoot the archive folder
 * @param rel path as in the journal, relative to it
 * @param options `bodyBytesHint`: the length the journal recorded; it must match. `bodyBytesMax`: the longest
 *   body the caller can hold.
 * @throws ArchiveDamaged when the file is missing, cut, altered or not an archive file; ArchiveTooLarge; every
 *   other error of the platform (EIO, EMFILE, EACCES …) as it came, because it says nothing about the delivery.
 */
export function readArchive(
  archiveRoot: string,
  rel: string,
  options: { readonly bodyBytesHint?: number; readonly bodyBytesMax?: number } = {},
): ArchivedDelivery {
  const named = parseArchivePath(rel);
  if (named === null) throw new ArchiveDamaged(rel, 'its name is not that of an archive file');
  const { bodyBytesHint, bodyBytesMax = null } = options;
  if (bodyBytesMax !== null && bodyBytesHint !== undefined && bodyBytesHint > bodyBytesMax) {
    throw new ArchiveTooLarge(rel, bodyBytesMax);
  }

  const file = readFile(archiveRoot, rel);
  const whole = gunzipWhole(rel, file, bodyBytesHint ?? trailerLength(file), bodyBytesMax);
  const headerEnd = whole.subarray(0, HEADER_BYTES_MAX).indexOf(LINE_END);
  if (headerEnd < 0) throw new ArchiveDamaged(rel, 'its first line is missing');
  const header = parseHeader(rel, whole.toString('utf8', 0, headerEnd));
  const body = whole.subarray(headerEnd + 1);

  if (bodyBytesMax !== null && body.length > bodyBytesMax) throw new ArchiveTooLarge(rel, bodyBytesMax);
  if (bodyBytesHint !== undefined && body.length !== bodyBytesHint) {
    throw new ArchiveDamaged(rel, `its body has ${body.length} bytes, ${bodyBytesHint} were recorded`);
  }
  const bodySha256 = createHash('sha256').update(body).digest('hex');
  if (!bodySha256.startsWith(named.sha16)) {
    throw new ArchiveDamaged(rel, 'its body is not the one that was recorded (the hash differs)');
  }
  return { position: named.position, header, ...automationOf(header.headers), body, bodySha256 };
}
