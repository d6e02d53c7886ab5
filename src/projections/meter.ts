/** Meter: how far a rebuild is, and how long the rest takes if it is like what is done. */

export interface RebuildProgress {
  readonly done: number;
  readonly total: number;
  readonly points: number;
  readonly pointsPerSecond: number;
  /** Null until there is something to reckon with. */
  readonly secondsLeft: number | null;
}

export class Meter {
  readonly #total: number;
  readonly #tell: ((progress: RebuildProgress) => void) | undefined;
  readonly #startedMs = performance.now();
  #done = 0;
  #points = 0;

  constructor(total: number, tell: ((progress: RebuildProgress) => void) | undefined) {
    this.#total = total;
    this.#tell = tell;
  }

  count(points: number): void {
    this.#done += 1;
    this.#points += points;
    const seconds = (performance.now() - this.#startedMs) / 1000;
    this.#tell?.({
      done: this.#done,
      total: Math.max(this.#total, this.#done),
      points: this.#points,
      pointsPerSecond: seconds > 0 ? this.#points / seconds : 0,
      secondsLeft: this.#done === 0 ? null : (seconds / this.#done) * Math.max(0, this.#total - this.#done),
    });
  }
}
