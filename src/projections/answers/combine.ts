/**
 * Many buckets, samples or days put together into one figure.
 *
 *  - A single piece stays what it is: the number stored, no arithmetic but the unit's.
 *  - Metrics that add up are summed. The others are averaged, weighted by the number of readings behind each
 *    piece when every piece tells it; min and max are those of all pieces.
 *  - Metrics with several numbers (blood pressure) are put together number by number.
 *  - Pieces of one unit are put together first and converted once, so that the sum of delivered numbers is the sum
 *    a person gets from the file; pieces of mixed units are converted each. Units that cannot be converted are
 *    never added to others: when some pieces can be converted those make the figure, else the unit of the latest
 *    delivery does, and the figure says that it is not whole.
 */
import type { Converter } from './convert.js';
import type { DeliveryOrder } from './order.js';
import type { Piece } from './point.js';

export interface Rules {
  /** Whether buckets of this metric add up; otherwise they are averaged. */
  readonly summed: boolean;
  readonly converter: Converter;
  readonly order: DeliveryOrder;
}

export interface Combined extends Piece {
  readonly count: number;
  /** False when a piece had to be left out because of its unit. */
  readonly whole: boolean;
}

/** One number out of many. */
type Reduce = (values: readonly number[], weights: readonly number[] | null) => number;

const sum: Reduce = (values) => values.reduce((total, value) => total + value, 0);

const mean: Reduce = (values, weights) => {
  if (weights === null) return sum(values, null) / values.length;
  let total = 0;
  for (const [index, value] of values.entries()) total += value * (weights[index] ?? 0);
  return total / sum(weights, null);
};

function isNumber(value: number | null | undefined): value is number {
  return value !== null && value !== undefined;
}

function saysNothing(piece: Piece): boolean {
  return piece.value === null && piece.min === null && piece.max === null && (piece.parts?.size ?? 0) === 0;
}

function convertPiece(piece: Piece, converter: Converter): Piece {
  if (piece.unit === converter.unit) return piece;
  const conversion = converter.from(piece.unit);
  if (conversion === null) return piece;
  const convert = (value: number | null): number | null => (value === null ? null : conversion(value));
  return {
    value: convert(piece.value),
    min: convert(piece.min),
    max: convert(piece.max),
    parts:
      piece.parts &&
      new Map([...piece.parts].map(([name, value]): [string, number] => [name, conversion(value)])),
    unit: converter.unit,
    weight: piece.weight,
    delivery: piece.delivery,
  };
}

function latest(pieces: readonly Piece[], order: DeliveryOrder): number | null {
  let found: number | null = null;
  for (const { delivery } of pieces) found = found === null ? delivery : order.later(found, delivery);
  return found;
}

/** The pieces that can stand in one sum, in one unit. */
function inOneUnit(pieces: readonly Piece[], rules: Rules): readonly Piece[] {
  const [first] = pieces;
  if (first === undefined || pieces.every((piece) => piece.unit === first.unit)) return pieces;
  const converted = pieces
    .filter((piece) => rules.converter.from(piece.unit) !== null)
    .map((piece) => convertPiece(piece, rules.converter));
  if (converted.length > 0) return converted;
  const last = latest(pieces, rules.order);
  const unit = pieces.find((piece) => piece.delivery === last)?.unit;
  return pieces.filter((piece) => piece.unit === unit);
}

function reduceField(
  pieces: readonly Piece[],
  field: (piece: Piece) => number | null | undefined,
  reduce: Reduce,
): number | null {
  const holders = pieces.filter((piece) => isNumber(field(piece)));
  if (holders.length === 0) return null;
  const weights = holders.map((piece) => piece.weight).filter(isNumber);
  return reduce(holders.map(field).filter(isNumber), weights.length === holders.length ? weights : null);
}

function extreme(
  pieces: readonly Piece[],
  pick: (a: number, b: number) => number,
  side: 'min' | 'max',
): number | null {
  let found: number | null = null;
  for (const piece of pieces) {
    const value = piece[side] ?? piece.value;
    if (value !== null) found = found === null ? value : pick(found, value);
  }
  return found;
}

function putTogether(pieces: readonly Piece[], unit: string, delivery: number, { summed }: Rules): Piece {
  const reduce = summed ? sum : mean;
  const names = new Set(pieces.flatMap((piece) => [...(piece.parts?.keys() ?? [])]));
  const parts = new Map<string, number>();
  for (const name of names) {
    const value = reduceField(pieces, (piece) => piece.parts?.get(name), reduce);
    if (value !== null) parts.set(name, value);
  }
  const weights = pieces.map((piece) => piece.weight).filter(isNumber);
  return {
    value: reduceField(pieces, (piece) => piece.value, reduce),
    min: summed ? null : extreme(pieces, Math.min, 'min'),
    max: summed ? null : extreme(pieces, Math.max, 'max'),
    parts: parts.size > 0 ? parts : null,
    unit,
    weight: weights.length === pieces.length ? sum(weights, null) : null,
    delivery,
  };
}

/** One figure out of many pieces, in the unit of the answer where possible; null when none of them says anything. */
export function combine(pieces: readonly Piece[], rules: Rules): Combined | null {
  const speaking = pieces.every((piece) => !saysNothing(piece))
    ? pieces
    : pieces.filter((piece) => !saysNothing(piece));
  const chosen = inOneUnit(speaking, rules);
  const [first] = chosen;
  const delivery = latest(chosen, rules.order);
  if (first === undefined || delivery === null) return null;
  const piece = chosen.length === 1 ? first : putTogether(chosen, first.unit, delivery, rules);
  const { value, min, max, parts, unit, weight } = convertPiece(piece, rules.converter);
  return {
    value,
    min,
    max,
    parts,
    unit,
    weight,
    delivery,
    count: chosen.length,
    whole: chosen.length === speaking.length,
  };
}

/** How much a figure amounts to, to find the greatest: its value, or the sum of its parts. */
export function amountOf(piece: Piece): number {
  if (piece.value !== null) return piece.value;
  return piece.parts === null ? Number.NEGATIVE_INFINITY : sum([...piece.parts.values()], null);
}
