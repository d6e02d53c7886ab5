/**
 * Kind: what a file is taken for. Containers are told by their first bytes, whatever they are called; a name only
 * decides whether a file that nobody named himself is an export at all, and whether text is CSV.
 */
import { open } from 'node:fs/promises';
import { fileError } from './raw.js';

const GZIP_MAGIC = Buffer.from([0x1f, 0x8b]);
const ZIP_MAGIC = Buffer.from('PK\x03\x04', 'latin1');
/** A ZIP with nothing in it has only its end. */
const EMPTY_ZIP_MAGIC = Buffer.from('PK\x05\x06', 'latin1');

export const MAGIC_BYTES = 4;

export function isGzip(head: Buffer): boolean {
  return head.subarray(0, GZIP_MAGIC.length).equals(GZIP_MAGIC);
}

export function isZip(head: Buffer): boolean {
  const magic = head.subarray(0, MAGIC_BYTES);
  return magic.equals(ZIP_MAGIC) || magic.equals(EMPTY_ZIP_MAGIC);
}

/** @throws HealthlogError file_unreadable */
export async function firstBytes(path: string | Buffer): Promise<Buffer> {
  try {
    const file = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(MAGIC_BYTES), 0, MAGIC_BYTES, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw fileError(error);
  }
}

/** The last part of a path, with `/` or `\` between the parts. */
export function baseName(name: string): string {
  return name.split(/[/\\]/).at(-1) ?? name;
}

/** Why a file that was found, not named, is left out; null when its name is that of an export. */
export function leftOutByName(name: string): string | null {
  const base = baseName(name).toLowerCase();
  if (base.startsWith('.')) return 'its name begins with a dot';
  if (base.endsWith('.zip') || isExportName(base)) return null;
  return 'its name is not that of a JSON, CSV, gzip or ZIP file';
}

/** `.json`, `.csv`, both with `.gz` behind them, and `.gz` behind a name without an extension. */
function isExportName(base: string): boolean {
  const inner = base.replace(/\.gz$/, '');
  return /\.(json|csv)$/.test(inner) || (inner !== base && !inner.includes('.'));
}

export function isCsvName(name: string): boolean {
  return /\.csv(\.gz)?$/i.test(name);
}
