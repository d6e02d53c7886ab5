/**
 * Exclusion drift: deliveries that a person set aside, or took back, after a generation was folded. A generation has no
 * list of its own: what it was folded without is what its ledger calls `excluded`. A pending delivery drifts nowhere,
 * because the journal is asked when its turn comes.
 */
import type Database from 'better-sqlite3';
import { z } from 'zod';

export const EXCLUSION_DRIFT = 'a delivery was set aside or taken back by a person';

/** What the outcome of a delivery that was set aside says. */
export function setAsideReasons(reason: string): string[] {
  return [`set aside by a person: ${reason}`];
}

const reasonList = z.array(z.string());

/** What a generation was folded without: the reasons in its ledger, by delivery id. */
export function setAsideIn(generation: Database.Database): Map<string, readonly string[]> {
  const rows = generation
    .prepare<[], { delivery_id: string; reasons: string }>(
      "SELECT delivery_id, reasons FROM delivery_result WHERE parse_status = 'excluded'",
    )
    .all();
  return new Map(rows.map((row) => [row.delivery_id, reasonList.parse(JSON.parse(row.reasons))]));
}

/**
 * @param exclusions the journal's: reason by delivery id
 * @returns ids of deliveries whose outcome in this generation is not what these exclusions give; sorted
 */
export function exclusionDrift(
  generation: Database.Database,
  exclusions: ReadonlyMap<string, string>,
): string[] {
  const drifted: string[] = [];
  const followed = setAsideIn(generation);
  for (const [id, reasons] of followed) {
    const reason = exclusions.get(id);
    if (reason === undefined || setAsideReasons(reason).join('\n') !== reasons.join('\n')) drifted.push(id);
  }
  const isFolded = generation
    .prepare<[string], number>(
      "SELECT 1 FROM delivery_result WHERE delivery_id = ? AND parse_status <> 'pending'",
    )
    .pluck();
  for (const id of exclusions.keys())
    if (!followed.has(id) && isFolded.get(id) !== undefined) drifted.push(id);
  return drifted.sort((a, b) => (a < b ? -1 : 1));
}
