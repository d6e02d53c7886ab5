/**
 * ZIP: the entries of the app's manual export, read by the table of contents at its end.
 *
 * - Nothing is unpacked to the disk: an entry is a stream of bytes.
 * - What an entry holds is compared with the length and the checksum that the table gives; yauzl looks at the length
 *   only. A table that announces more than the limit is believed, one that announces less is found out.
 * - Names are for people and for telling kinds; no path is made of them. Their encoding is often not what the flag in
 *   the file says: UTF-8 is tried first.
 * - A ZIP within a ZIP stays closed.
 */
import { close, open } from 'node:fs';
import { promisify } from 'node:util';
import { type Entry, fromBufferPromise, fromFdPromise, getFileNameLowLevel, type ZipFile } from 'yauzl';
import { HealthlogError, platformCode } from '../../journal/errors.js';
import type { Micros } from '../../journal/position.js';
import { crc32 } from './crc32.js';
import { fileTime } from './file-time.js';
import { leftOutByName } from './kind.js';
import { fileError, streamBytes } from './raw.js';

export interface ZipEntry {
  readonly name: string;
  /** Null when the ZIP does not say. */
  readonly modifiedAt: Micros | null;
  /** Why it is no delivery; null when it is one. */
  readonly leftOut: string | null;
  /** @throws HealthlogError file_damaged, file_unreadable, too_large */
  bytes(): AsyncGenerator<Buffer>;
}

export interface OpenZip {
  readonly entries: readonly ZipEntry[];
  close(): void;
}

const openFile = promisify(open);
const closeFile = promisify(close);
/** Names are decoded here: yauzl would give up the whole file for one odd name. */
const OPTIONS = { autoClose: false, decodeStrings: false };

/** @throws HealthlogError file_unreadable, file_damaged */
export async function openZipFile(path: string | Buffer, bytesMax: number): Promise<OpenZip> {
  let fd: number;
  try {
    fd = await openFile(path, 'r');
  } catch (error) {
    throw fileError(error);
  }
  let zip: ZipFile;
  try {
    zip = await fromFdPromise(fd, OPTIONS);
  } catch (error) {
    await closeFile(fd);
    throw zipError(error);
  }
  return opened(zip, bytesMax);
}

/** The same for one that lies in memory. */
export async function openZipBuffer(bytes: Buffer, bytesMax: number): Promise<OpenZip> {
  try {
    return await opened(await fromBufferPromise(bytes, OPTIONS), bytesMax);
  } catch (error) {
    throw zipError(error);
  }
}

async function opened(zip: ZipFile, bytesMax: number): Promise<OpenZip> {
  // Failures of reading reach the reader of the entry; a failure to close a file that was only read is nobody's.
  zip.on('error', () => undefined);
  const entries: ZipEntry[] = [];
  try {
    for await (const entry of zip.eachEntry()) {
      const name = nameOf(entry);
      if (name.endsWith('/')) continue;
      entries.push({
        name,
        modifiedAt: fileTime(entry.getLastModDate().getTime()),
        leftOut: leftOutOfZip(name),
        bytes: () => entryBytes(zip, entry, bytesMax),
      });
    }
  } catch (error) {
    zip.close();
    throw zipError(error);
  }
  return { entries, close: () => zip.close() };
}

async function* entryBytes(zip: ZipFile, entry: Entry, bytesMax: number): AsyncGenerator<Buffer> {
  if (entry.isEncrypted()) throw new HealthlogError('file_unreadable', { reason: 'it is encrypted' });
  if (!entry.canDecodeFileData()) {
    throw new HealthlogError('file_unreadable', { reason: 'it is compressed in a way that is not known' });
  }
  if (entry.uncompressedSize > bytesMax) throw new HealthlogError('too_large', { limit: bytesMax });
  let checksum = 0;
  try {
    for await (const chunk of streamBytes(await zip.openReadStreamPromise(entry))) {
      checksum = crc32(chunk, checksum);
      yield chunk;
    }
  } catch (error) {
    throw zipError(error);
  }
  if (checksum !== entry.crc32) {
    throw new HealthlogError('file_damaged', { reason: 'it is not what its checksum was made of' });
  }
}

/** yauzl's own complaints are errors without a code. */
function zipError(error: unknown): unknown {
  if (error instanceof HealthlogError || !(error instanceof Error)) return error;
  const code = platformCode(error);
  if (code !== null && !code.startsWith('Z_')) return fileError(error);
  const reason = error.message.startsWith('End of central directory')
    ? 'the table of contents at the end of the ZIP is missing'
    : `the ZIP is not well formed (${code ?? error.message.replace(/\.$/, '')})`;
  return new HealthlogError('file_damaged', { reason }, { cause: error });
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

function nameOf(entry: Entry): string {
  try {
    return strictUtf8.decode(entry.fileNameRaw).replaceAll('\\', '/');
  } catch {
    // Not UTF-8: then it is the encoding of the first ZIP programs, in which every byte means something.
    return getFileNameLowLevel(entry.generalPurposeBitFlag, entry.fileNameRaw, entry.extraFields, false);
  }
}

function leftOutOfZip(name: string): string | null {
  if (/\.zip$/i.test(name)) return 'a ZIP within a ZIP is not opened';
  const parts = name.split('/');
  if (parts.includes('..')) return 'its name leads out of the ZIP';
  // Some programs write `./` in front of every name.
  const hidden = parts.some((part) => part.startsWith('.') && part !== '.');
  return hidden ? 'its name begins with a dot' : leftOutByName(name);
}
