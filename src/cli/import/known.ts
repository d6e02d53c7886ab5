/**
 * Known: whether an earlier delivery says all that importing its body once more would say.
 *
 * Asked inside the journal's write lock, with the rows of the same body and profile. What is said of the file, by a flag or
 * by the archive it comes from, must agree with what the earlier delivery has; what is not said makes no difference. Groupings and periods are compared
 * as the fold reads them: "days" is "Days". A date agrees with every time of its day.
 */
import type { JournalRow } from '../../journal/store.js';
import { declaredLayer, foldHeader } from '../../projections/layer.js';
import type { Said } from './flags.js';

/** The first of the rows that makes the import superfluous; null when none does. */
export function knownBy(said: Said, sameBody: readonly JournalRow[]): JournalRow | null {
  return sameBody.find((row) => agrees(said, row)) ?? null;
}

function agrees(
  { automation, aggregation, period, asOf }: Said,
  { automation: its, clockAt }: JournalRow,
): boolean {
  return (
    (automation === null || automation === (its.id ?? '')) &&
    (aggregation === null || declaredLayer(aggregation) === declaredLayer(its.aggregation)) &&
    (period === null || foldHeader(period) === foldHeader(its.period ?? '')) &&
    (asOf === null || (asOf.from <= clockAt && clockAt <= asOf.to))
  );
}
