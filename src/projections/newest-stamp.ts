/**
 * Newest stamp: when a body of unknown age was made, as far as the body itself can tell. Nothing in it says so
 * (hae-format.md §2.2), but no export holds a stamp from after its making, forecasts aside; so the newest date of the
 * whole body, whatever it belongs to, is the best bound from below.
 *
 * - A text is a date when the fold reads it as one (dates.ts). Without an offset it is read as UTC.
 * - A relay may have packed the document into a JSON text (hae-format.md §3.2): such a text is opened as the envelope
 *   does it.
 * - A body the fold could not parse tells nothing. Parsing is held to the fold's own bounds (body.ts).
 */
import { type Micros, micros } from '../journal/position.js';
import { parseBody, STRUCTURE_MAX } from './body.js';
import { parseStamp } from './dates.js';
import { attemptOf } from './failure.js';
import { isObject } from './json.js';

/** Texts within texts within texts: as deep as the envelope goes. */
const PACKED_MAX = 4;
/** The year 2255, up to which microseconds are exact; relays write 9999 for "never". */
const EXACT_MS_MAX = Number.MAX_SAFE_INTEGER / 1000;
/** A document needs a few more characters than any date. */
const DOCUMENT_MIN = 64;

/**
 * The newest date in the body, in microseconds since 1970.
 *
 * @param body content-decoded
 * @param structureMax how many values it may hold, as in parseBody()
 * @returns null when it cannot be parsed within the bounds, or holds no date
 */
export function newestStamp(body: Buffer, structureMax = STRUCTURE_MAX): Micros | null {
  const newestMs = newestIn(body, structureMax, 0);
  return newestMs === null ? null : micros(Math.round(newestMs * 1000));
}

function newestIn(body: Buffer, structureMax: number, packed: number): number | null {
  let newestMs: number | null = null;
  // A list of what is left to look at, not a recursion: a short body may nest deeper than the stack.
  const left: unknown[] = [parsed(body, structureMax)];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string') {
      const ms = mayBeDocument(value)
        ? packedIn(value, structureMax, packed + 1)
        : (parseStamp(value)?.epochMs ?? null);
      if (ms !== null && Math.abs(ms) <= EXACT_MS_MAX && (newestMs === null || ms > newestMs)) newestMs = ms;
    } else if (Array.isArray(value)) for (const item of value) left.push(item);
    else if (isObject(value)) for (const key in value) left.push(value[key]);
  }
  return newestMs;
}

function packedIn(text: string, structureMax: number, packed: number): number | null {
  return packed > PACKED_MAX ? null : newestIn(Buffer.from(text), structureMax, packed);
}

/** Null for a body that the fold would refuse as well. */
function parsed(body: Buffer, structureMax: number): unknown {
  try {
    return parseBody(body, structureMax);
  } catch (error) {
    const attempt = attemptOf(error);
    if (attempt.type === 'Failed' && attempt.data.class !== 'broken') return null;
    throw error;
  }
}

function mayBeDocument(text: string): boolean {
  return text.length > DOCUMENT_MIN && /^\s*[{[]/.test(text);
}
