/** The clock as a value that is passed in, so that a test can set it, stop it or turn it back. */
import { type Micros, micros } from './position.js';

export interface Clock {
  /** Wall-clock time in microseconds UTC. It may jump in both directions. */
  now(): Micros;
}

export const systemClock: Clock = { now: () => micros(Date.now() * 1000) };
