/**
 * Which grain answers for a day or an hour (design §9). Grains are never added to each other.
 *
 *  1. A grain answers *completely* when a delivery covers the whole span: then the buckets that the latest covering
 *     delivery, or a later one, names are put together. A bucket that none of them names is one the phone no longer
 *     has. It is the naming that counts, not the winning: a bucket in front of the beginning of the covering
 *     delivery's second dense metric may have been won by an earlier delivery. A part of a bucket that came only
 *     afterwards does not count, since the covering delivery knew the span without it.
 *     Among complete grains the one with the latest covering delivery wins, on a tie the coarser.
 *  2. Otherwise all buckets of a grain are put together and the answer is incomplete. Metrics that add up: the
 *     greatest wins, since a part of a day can only be short. Others: the grain with the latest winner. On a tie
 *     the coarser.
 *  3. Raw samples answer only when there is no bucket at all: overlapping devices are not merged in them, so for a
 *     metric that adds up each hour counts its largest set of devices alone.
 *
 * A reading of 0 that means "not measured" is left out as soon as anything was measured.
 */
import type { Grain } from '../layer.js';
import { amountOf, combine, type Rules } from './combine.js';
import { type Figure, localStartOf, type Piece, type Point } from './point.js';

export interface GrainView {
  readonly grain: Grain;
  /** Seq of the latest delivery that covers the whole span, null when none does. */
  readonly covering: number | null;
  /** The buckets of this grain in the span; read when first needed. */
  readonly points: () => readonly Point[];
}

export interface Question extends Rules {
  /** From the coarsest to the finest. */
  readonly views: readonly GrainView[];
  /** The raw samples of the span; read when there is no bucket. */
  readonly samples: () => readonly Point[];
}

interface Complete {
  readonly grain: Grain;
  readonly covering: number;
  readonly points: readonly Point[];
}

/** Points that were measured; all of them when none was. */
function measuredOf(points: readonly Point[]): readonly Point[] {
  const measured = points.filter((point) => point.measured);
  return measured.length > 0 ? measured : points;
}

function figureOf(grain: Grain, pieces: readonly Piece[], complete: boolean, rules: Rules): Figure | null {
  const combined = combine(pieces, rules);
  if (combined === null) return null;
  const { whole, ...numbers } = combined;
  return { ...numbers, grain, complete: complete && whole };
}

/** Named by the covering delivery or after it, and not a part that came only afterwards. */
function trusted(points: readonly Point[], covering: number, { order }: Rules): readonly Point[] {
  return points.filter(
    ({ delivery, named, complete }) =>
      order.compare(named, covering) >= 0 && (complete || order.compare(delivery, covering) <= 0),
  );
}

/** Complete answers, the best one first; the buckets of a grain are read only when its turn comes. */
function* completeAnswers(question: Question): Generator<Complete> {
  const found = question.views.flatMap((view) =>
    view.covering === null ? [] : [{ view, covering: view.covering }],
  );
  // The sort is stable: on a tie the coarser grain stays in front.
  found.sort((a, b) => question.order.compare(b.covering, a.covering));
  for (const { view, covering } of found) {
    yield { grain: view.grain, covering, points: trusted(view.points(), covering, question) };
  }
}

function bestIncomplete(question: Question, measuredOnly: boolean): Figure | null {
  let best: Figure | null = null;
  for (const view of question.views) {
    const points = measuredOnly ? view.points().filter((point) => point.measured) : view.points();
    const figure = figureOf(view.grain, points, false, question);
    if (figure === null) continue;
    if (best === null || beats(figure, best, question)) best = figure;
  }
  return best;
}

function beats(challenger: Figure, best: Figure, { summed, order, converter }: Rules): boolean {
  if (!summed) return order.compare(challenger.delivery, best.delivery) > 0;
  // Numbers of different units cannot be compared: the one in the unit of the answer stays or comes first.
  if (challenger.unit !== best.unit) return challenger.unit === converter.unit;
  return amountOf(challenger) > amountOf(best);
}

/** The samples that count: for a metric that adds up, the largest set of devices of each hour. */
function countedSamples(samples: readonly Point[], rules: Rules): readonly Point[] {
  if (!rules.summed) return measuredOf(samples);
  const hours = new Map<number, Map<number, Point[]>>();
  for (const sample of samples) {
    const hour = localStartOf(sample, 3600);
    const sets = hours.get(hour) ?? new Map<number, Point[]>();
    hours.set(hour, sets);
    const set = sets.get(sample.sourceSet);
    if (set === undefined) sets.set(sample.sourceSet, [sample]);
    else set.push(sample);
  }
  return [...hours.values()].flatMap((sets) => largest([...sets.values()], rules));
}

function largest(sets: readonly Point[][], rules: Rules): Point[] {
  let best: Point[] = [];
  let bestAmount = Number.NEGATIVE_INFINITY;
  for (const set of sets) {
    const figure = combine(set, rules);
    const amount = figure === null ? Number.NEGATIVE_INFINITY : amountOf(figure);
    if (best.length === 0 || amount > bestAmount) {
      best = set;
      bestAmount = amount;
    }
  }
  return best;
}

/** The figure of raw samples alone. Never complete: nobody can see which samples are missing. */
export function sampleFigure(samples: readonly Point[], rules: Rules): Figure | null {
  return figureOf('raw', countedSamples(samples, rules), false, rules);
}

/** The figure of one bucket, or of several that are put together without a choice of grain. */
export function bucketFigure(
  grain: Grain,
  points: readonly Point[],
  complete: boolean,
  rules: Rules,
): Figure | null {
  return figureOf(grain, rules.summed ? points : measuredOf(points), complete, rules);
}

/** The answer for one span, null when nothing is known of it. */
export function chooseFigure(question: Question): Figure | null {
  let unmeasured: Figure | null = null;
  for (const { grain, points } of completeAnswers(question)) {
    const measured = question.summed ? points : points.filter((point) => point.measured);
    const figure = figureOf(grain, measured, true, question);
    if (figure !== null) return figure;
    unmeasured ??= figureOf(grain, points, true, question);
  }
  return (
    (question.summed ? null : bestIncomplete(question, true)) ??
    unmeasured ??
    bestIncomplete(question, false) ??
    sampleFigure(question.samples(), question)
  );
}
