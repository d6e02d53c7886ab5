/**
 * Numbers into the unit of the answer. A number that is already in that unit is passed on untouched, digit by
 * digit; a unit that cannot be converted keeps its number and is named beside it.
 */
import { HealthlogError } from '../../journal/errors.js';
import { type Convert, converter, unitFactor } from '../units.js';

export class Converter {
  /** The unit of the answer. */
  readonly unit: string;
  /** The unit of the metric: what a point means that came without one (hae-format.md §4). */
  readonly #own: string;
  readonly #known = new Map<string, Convert | null>();

  constructor(unit: string, own: string) {
    this.unit = unit;
    this.#own = own;
  }

  /** How numbers in `unit` become numbers of the answer, null when nobody knows. */
  from(unit: string): Convert | null {
    let conversion = this.#known.get(unit);
    if (conversion === undefined) {
      conversion = converter(unit === '' ? this.#own : unit, this.unit);
      this.#known.set(unit, conversion);
    }
    return conversion;
  }
}

/**
 * The unit of an answer: the one asked for, else the one of the metric.
 * @throws HealthlogError bad_request when the unit asked for cannot be made from the metric's own.
 */
export function answerUnit(metric: string, own: string, asked: string | undefined): string {
  if (asked === undefined || asked === own) return own;
  if (unitFactor(own, asked) === null) {
    throw new HealthlogError('bad_request', {
      reason: `${metric} is kept in "${own}", which cannot be converted to "${asked}"`,
    });
  }
  return asked;
}
