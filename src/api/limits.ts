/**
 * Limits of the HTTP side. What a person may have a reason to change is a setting; the rest is fixed here, and
 * injected all the same so that tests can make it small. docs/operations.md names every one of them; a test
 * compares the fixed ones.
 */

export interface SetLimits {
  readonly bodyBytesMax: number;
  readonly uploadsMax: number;
  /** For receiving the body of an upload. */
  readonly uploadTimeoutMs: number;
  /** For the next byte of an upload. */
  readonly stallTimeoutMs: number;
  /** For every other request until its answer is out, and for the answer to an upload. */
  readonly requestTimeoutMs: number;
}

export interface FixedLimits {
  /** For the headers of a request, and for the first byte on a new connection. */
  readonly headersTimeoutMs: number;
  readonly headerBytesMax: number;
  /** How often node looks for requests that are late. */
  readonly checkEveryMs: number;
  /** How long a connection may be idle between two requests. */
  readonly keepAliveMs: number;
  /**
   * Connections that are open at the same time: more would leave no file handles for the archive. For one more, the
   * one that has been idle longest is closed.
   */
  readonly connectionsMax: number;
  /** Refusals of wrong tokens that are held back at the same time. */
  readonly heldAnswersMax: number;
}

export const FIXED: FixedLimits = {
  headersTimeoutMs: 30_000,
  headerBytesMax: 16 * 1024,
  checkEveryMs: 5_000,
  keepAliveMs: 10_000,
  connectionsMax: 1_000,
  heldAnswersMax: 100,
};

export type ApiLimits = SetLimits & FixedLimits;
