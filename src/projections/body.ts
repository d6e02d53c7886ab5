/**
 * Body: from the bytes of a delivery to parsed JSON, within bounds.
 *
 * Memory limits and deadlines do not stop a body such as 60 MiB of `[{},{},…`: parsing it takes gigabytes and
 * can take the whole process down inside JSON.parse. So the bytes are looked at before they are parsed: every
 * value costs at least one `,`, `{` or `[`. A body shorter than the cap cannot hold more of them than it has
 * bytes, and is not scanned.
 */
import { isAscii } from 'node:buffer';
import { BodyTooLarge, MalformedBody } from './failure.js';

/** A real body of 200 MiB holds 5.6 million of these characters. */
export const STRUCTURE_MAX = 20_000_000;
/**
 * An empty object costs its own bytes, a slot in the list around it, and that list once more while it grows; it takes
 * two of the counted characters. Heap bytes per counted character, with room for the rest of the fold.
 */
const HEAP_BYTES_PER_CHARACTER = 100;

/** How many of these characters a heap of so many bytes can take: beyond that V8 ends the whole process. */
export function structureMaxOf(heapBytes: number): number {
  return Math.min(STRUCTURE_MAX, Math.floor(heapBytes / HEAP_BYTES_PER_CHARACTER));
}

/** The app nests 6 deep; a relay may wrap that. */
export const DEPTH_MAX = 200;

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;

/** Throws BodyTooLarge when the body holds more values or is nested deeper than the fold takes. */
export function checkStructure(bytes: Uint8Array, structureMax = STRUCTURE_MAX): void {
  let count = 0;
  let depth = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (inString) {
      if (byte === BACKSLASH) i += 1;
      else if (byte === QUOTE) inString = false;
      continue;
    }
    if (byte === QUOTE) inString = true;
    else if (byte === COMMA) count += 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      count += 1;
      depth += 1;
      if (depth > DEPTH_MAX) throw new BodyTooLarge(`the body is nested more than ${DEPTH_MAX} deep`);
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
    if (count > structureMax) throw new BodyTooLarge(`the body holds more than ${structureMax} values`);
  }
}

/**
 * @param bytes the content-decoded body
 * @param structureMax how many values it may hold, counted in `,`, `{` and `[`
 * @throws MalformedBody when the text is not JSON, BodyTooLarge when it is beyond the bounds
 */
export function parseBody(bytes: Buffer, structureMax = STRUCTURE_MAX): unknown {
  const text = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
  if (text.length > structureMax) checkStructure(text, structureMax);
  const json = isAscii(text) ? text.toString('latin1') : text.toString('utf8');
  try {
    return JSON.parse(json);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new MalformedBody('the body is not JSON');
  }
}
