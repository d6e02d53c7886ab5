/** File time: when a file or an entry of a ZIP says it was made. */
import { type Micros, micros } from '../../journal/position.js';

/** Programs that lose times leave the beginning of time behind: 1970 on a disk, 1980 in a ZIP. */
const UNKNOWN_BEFORE_MS = Date.UTC(1981, 0, 1);

/** @param ms milliseconds since 1970; null when they say nothing */
export function fileTime(ms: number): Micros | null {
  return ms < UNKNOWN_BEFORE_MS ? null : micros(Math.floor(ms * 1000));
}
