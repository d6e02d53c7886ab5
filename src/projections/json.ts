/**
 * JSON as it came, in one spelling: the app's key order is random on every send (hae-format.md §1), so what is
 * kept verbatim is kept with its keys sorted. Nothing is kept that is nested deeper than a point can be.
 */

/** A point's `metadata` nests two deep; deeper than this is not data. */
const DEPTH_MAX = 32;

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Own property only: a body may well hold keys such as `__proto__` or `constructor`. */
export function own(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Null when the value is nested too deep to be kept. */
export function canonicalJson(value: unknown, depth = 0): string | null {
  if (depth > DEPTH_MAX) return null;
  if (Array.isArray(value)) {
    const parts: string[] = [];
    for (const item of value) {
      const part = canonicalJson(item, depth + 1);
      if (part === null) return null;
      parts.push(part);
    }
    return `[${parts.join(',')}]`;
  }
  if (isObject(value)) {
    const parts: string[] = [];
    for (const key of Object.keys(value).sort()) {
      const part = canonicalJson(value[key], depth + 1);
      if (part === null) return null;
      parts.push(`${JSON.stringify(key)}:${part}`);
    }
    return `{${parts.join(',')}}`;
  }
  return JSON.stringify(value);
}

/**
 * Half a character (a lone surrogate) is no text: it cannot be stored, and no address can name it. It becomes U+FFFD,
 * as everywhere in Unicode.
 */
export function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, '\uFFFD');
}

/** A finite number, also when a relay made it a text; null for everything else. */
export function finiteNumber(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.trim() === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
