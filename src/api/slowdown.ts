/**
 * Slowdown: guessing tokens is made slow without ever locking a phone out.
 *
 * - Only requests with no valid token come here. A right token is looked up before anything else and answered at
 *   once, whatever its address has been doing and however full this memory is (auth.ts).
 * - The first failures of an address are answered at once: a person who mistypes a token notices nothing. Then
 *   each failure doubles the delay, up to a limit; an address that has been quiet for a while starts anew.
 * - An address is what one household or one machine has: an IPv4 address, or the /64 network of an IPv6 one,
 *   inside which addresses cost nothing.
 * - The memory is bounded. When it is full the address that was quiet for longest is forgotten.
 *
 * Nothing here waits: time is passed in, and the caller holds the answer back (held-answers.ts).
 */
import { isIP } from 'node:net';

export interface SlowdownLimits {
  /** Failures of an address that are answered at once. */
  readonly freeFailures: number;
  readonly delayMsMin: number;
  readonly delayMsMax: number;
  /** An address without a failure for this long starts anew. */
  readonly forgetAfterMs: number;
  readonly addressesMax: number;
  /** How often an address is reported, at most. */
  readonly reportEveryMs: number;
}

export const SLOWDOWN: SlowdownLimits = {
  freeFailures: 5,
  delayMsMin: 100,
  delayMsMax: 5_000,
  forgetAfterMs: 15 * 60_000,
  addressesMax: 10_000,
  reportEveryMs: 60_000,
};

export interface Verdict {
  /** How long the answer is to be held back. */
  readonly delayMs: number;
  /** Failures of this address since the last report; null when it is too early for the next. */
  readonly report: number | null;
}

interface Failing {
  failures: number;
  lastMs: number;
  unreported: number;
  reportedMs: number | null;
}

export class Slowdown {
  readonly #now: () => number;
  readonly #limits: SlowdownLimits;
  /** In the order of the last failure, oldest first. */
  readonly #byAddress = new Map<string, Failing>();

  /** @param now milliseconds of a clock that never goes back */
  constructor(now: () => number, limits: SlowdownLimits = SLOWDOWN) {
    this.#now = now;
    this.#limits = limits;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#byAddress.size;
  }

  /** Notes one request from `address` that had no valid token. */
  fail(address: string): Verdict {
    const { forgetAfterMs, addressesMax, reportEveryMs } = this.#limits;
    const nowMs = this.#now();
    const key = networkOf(address);
    const known = this.#byAddress.get(key);
    const failing: Failing =
      known !== undefined && nowMs - known.lastMs < forgetAfterMs
        ? known
        : { failures: 0, lastMs: nowMs, unreported: 0, reportedMs: null };
    failing.failures += 1;
    failing.unreported += 1;
    failing.lastMs = nowMs;
    this.#byAddress.delete(key);
    this.#byAddress.set(key, failing);
    if (this.#byAddress.size > addressesMax) this.#forgetOldest();

    const isDue = failing.reportedMs === null || nowMs - failing.reportedMs >= reportEveryMs;
    const report = isDue ? failing.unreported : null;
    if (isDue) {
      failing.reportedMs = nowMs;
      failing.unreported = 0;
    }
    return { delayMs: this.#delayMs(failing.failures), report };
  }

  #delayMs(failures: number): number {
    const { freeFailures, delayMsMin, delayMsMax } = this.#limits;
    const slowed = failures - freeFailures;
    return slowed <= 0 ? 0 : Math.min(delayMsMax, delayMsMin * 2 ** (slowed - 1));
  }

  #forgetOldest(): void {
    const oldest = this.#byAddress.keys().next();
    if (oldest.done !== true) this.#byAddress.delete(oldest.value);
  }
}

/** The eight groups of an IPv6 address, each as a number. */
function groupsOf(address: string): readonly number[] {
  const parse = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const [front = '', back] = address.split('::');
  if (back === undefined) return parse(front);
  const [head, tail] = [parse(front), parse(back)];
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail];
}

/** What counts as one address; text that is none counts as itself. */
export function networkOf(address: string): string {
  const plain = address.replace(/%.*$/, '').toLowerCase();
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  if (isIP(plain) !== 6) return plain;
  // The dotted end that some addresses have lies behind the first four groups.
  const [a, b, c, d] = groupsOf(plain.replace(/\d+\.\d+\.\d+\.\d+$/, '0:0'));
  return `${[a, b, c, d].map((group) => (group ?? 0).toString(16)).join(':')}::/64`;
}
