/**
 * The shape check: does this look like a whole JSON document, or like anything at all when CSV is announced?
 * It sees bytes as they pass and keeps four numbers, so it costs nothing on a body of any width.
 */
import type { BodyKind } from './content-type.js';
import { HealthlogError } from './errors.js';

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const QUOTE = 0x22;

/** What the last byte must be, by the first. A quote: some relays send the document as a JSON string. */
const LAST_OF = new Map([
  [OPEN_BRACE, CLOSE_BRACE],
  [OPEN_BRACKET, CLOSE_BRACKET],
  [QUOTE, QUOTE],
]);

/** The app sends no byte order mark, Windows tools between it and us do. */
const BOM = [0xef, 0xbb, 0xbf];

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export class ShapeCheck {
  readonly #kind: BodyKind;
  #seenBytes = 0;
  /** How many bytes in front belong to a byte order mark. */
  #bomBytes = 0;
  #first = -1;
  #last = -1;
  #isSingle: boolean = true;

  constructor(kind: BodyKind) {
    this.#kind = kind;
  }

  /** @throws HealthlogError not_utf8, shapeless_body as soon as the first bytes show it */
  add(chunk: Uint8Array): void {
    if (this.#kind === 'json' && this.#seenBytes < 2) this.#refuseUtf16(chunk);
    let from = 0;
    for (; from < chunk.length && this.#first < 0; from++) {
      const byte = chunk[from];
      const place = this.#seenBytes + from;
      if (byte === BOM[place] && this.#bomBytes === place) {
        this.#bomBytes += 1;
        continue;
      }
      if (byte === undefined || (isBlank(byte) && !this.#isInsideBom())) continue;
      if (this.#kind === 'json' && (!LAST_OF.has(byte) || this.#isInsideBom()))
        throw new HealthlogError('shapeless_body');
      this.#first = byte;
      this.#last = byte;
    }
    this.#seenBytes += chunk.length;
    for (let at = chunk.length - 1; at >= from; at--) {
      const byte = chunk[at];
      if (byte === undefined || isBlank(byte)) continue;
      this.#last = byte;
      this.#isSingle = false;
      return;
    }
  }

  /** JSON begins with an ASCII character: in UTF-16 or UTF-32 a zero stands beside it, or their own mark in front. */
  #refuseUtf16(chunk: Uint8Array): void {
    for (let place = this.#seenBytes; place < 2; place++) {
      const byte = chunk[place - this.#seenBytes];
      if (byte === 0 || (place === 0 && (byte === 0xff || byte === 0xfe)))
        throw new HealthlogError('not_utf8');
    }
  }

  #isInsideBom(): boolean {
    return this.#bomBytes > 0 && this.#bomBytes < BOM.length;
  }

  /** @throws HealthlogError empty_body, truncated */
  end(): void {
    if (this.#first < 0) throw new HealthlogError('empty_body');
    if (this.#kind === 'csv') return;
    if (this.#isSingle || this.#last !== LAST_OF.get(this.#first)) {
      const opened = String.fromCharCode(this.#first);
      throw new HealthlogError('truncated', {
        reason: `what begins with ${opened} is not closed at its end`,
      });
    }
  }
}
