/** Zip: writes ZIP files for tests, as programs write them, and as damaged or odd ones come. */
import { deflateRawSync } from 'node:zlib';
import { crc32 } from '../../src/cli/import/crc32.js';

export interface ZipPart {
  /** A text is written as UTF-8. */
  readonly name: string | Buffer;
  readonly data: string | Buffer;
  readonly stored?: boolean;
  /** Length and checksum behind the data, as programs write that do not know them in front. */
  readonly descriptor?: boolean;
  /** When the entry was changed, on this machine's clock; the time that means "not known" when left out. */
  readonly modified?: Date;
  /** What the table of contents claims instead of the truth. */
  readonly claims?: {
    readonly crc?: number;
    readonly size?: number;
    readonly method?: number;
    readonly flags?: number;
  };
}

const DESCRIPTOR_FLAG = 0x08;

function dosTime(date: Date | undefined): { time: number; date: number } {
  if (date === undefined) return { time: 0, date: (1 << 5) | 1 };
  return {
    time: (date.getHours() << 11) | (date.getMinutes() << 5) | (date.getSeconds() >> 1),
    date: ((date.getFullYear() - 1980) << 9) | ((date.getMonth() + 1) << 5) | date.getDate(),
  };
}

function fields(...parts: readonly (readonly [bytes: 2 | 4, value: number])[]): Buffer {
  return Buffer.concat(
    parts.map(([bytes, value]) => {
      const field = Buffer.alloc(bytes);
      field.writeUIntLE(value, 0, bytes);
      return field;
    }),
  );
}

export function zipOf(parts: readonly ZipPart[]): Buffer {
  const bodies: Buffer[] = [];
  const table: Buffer[] = [];
  let offset = 0;
  for (const {
    name: named,
    data: given,
    stored = false,
    descriptor = false,
    modified,
    claims = {},
  } of parts) {
    const name = Buffer.from(named);
    const data = Buffer.from(given);
    const packed = stored ? data : deflateRawSync(data);
    const crc = claims.crc ?? crc32(data);
    const size = claims.size ?? data.length;
    const method = claims.method ?? (stored ? 0 : 8);
    const flags = claims.flags ?? (descriptor ? DESCRIPTOR_FLAG : 0);
    const { time, date } = dosTime(modified);
    const known = descriptor ? 0 : 1;
    const local = Buffer.concat([
      fields([4, 0x04034b50], [2, 20], [2, flags], [2, method], [2, time], [2, date]),
      fields([4, crc * known], [4, packed.length * known], [4, size * known], [2, name.length], [2, 0]),
      name,
    ]);
    const behind = descriptor
      ? fields([4, 0x08074b50], [4, crc], [4, packed.length], [4, size])
      : Buffer.alloc(0);
    bodies.push(local, packed, behind);
    table.push(
      fields([4, 0x02014b50], [2, 20], [2, 20], [2, flags], [2, method], [2, time], [2, date]),
      fields([4, crc], [4, packed.length], [4, size], [2, name.length], [2, 0], [2, 0], [2, 0], [2, 0]),
      fields([4, 0], [4, offset]),
      name,
    );
    offset += local.length + packed.length + behind.length;
  }
  const contents = Buffer.concat(table);
  const end = fields(
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, parts.length],
    [2, parts.length],
    [4, contents.length],
    [4, offset],
    [2, 0],
  );
  return Buffer.concat([...bodies, contents, end]);
}
