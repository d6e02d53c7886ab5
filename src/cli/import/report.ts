/**
 * Report: everything a run of `import` has to tell, collected as it becomes known, and the exit code that follows:
 * 0 everything is in (or was) and folded · 1 something was refused, or an outcome is `failed` · 4 the run was ended
 * early, or outcomes are still pending. 1 beats 4, because it needs a person.
 */
import type { HealthlogError } from '../../journal/errors.js';
import { formatMicros } from '../../journal/position.js';
import { addCounters, type Counters, NO_COUNTERS } from '../../projections/outcome.js';
import type { WithOutcome } from './outcomes.js';
import type { Taken } from './take.js';

export type Refused = Extract<Taken, { result: 'refused' }>;
export type LeftOut = Extract<Taken, { result: 'left_out' }>;
export type NotImported = Extract<Taken, { result: 'not_imported' }>;

export class Report {
  /** With what became of them, in the order in which that was known. */
  readonly imported: WithOutcome[] = [];
  readonly known: WithOutcome[] = [];
  readonly refused: Refused[] = [];
  readonly leftOut: LeftOut[] = [];
  readonly notImported: NotImported[] = [];
  /** Why deliveries are still pending; null when they are not, or nobody waited. */
  pendingReason: string | null = null;
  /** The person ended the run. */
  cancelled = false;
  readonly #waits: boolean;

  /** @param waits outcomes count, because the run waits for them */
  constructor(waits: boolean) {
    this.#waits = waits;
  }

  add(one: Refused | LeftOut | NotImported): void {
    if (one.result === 'refused') this.refused.push(one);
    else if (one.result === 'left_out') this.leftOut.push(one);
    else this.notImported.push(one);
  }

  addOutcome(one: WithOutcome): void {
    (one.result === 'known' ? this.known : this.imported).push(one);
  }

  /** Deliveries of this run, taken in now or known before. */
  get deliveries(): WithOutcome[] {
    return [...this.imported, ...this.known];
  }

  get failed(): WithOutcome[] {
    return this.deliveries.filter(({ item }) => item.parse_status === 'failed');
  }

  get pending(): WithOutcome[] {
    return this.deliveries.filter(({ item }) => item.parse_status === 'pending');
  }

  /** Of what was taken in now: how many deliveries have this class and status. */
  get outcomes(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { item } of this.imported) {
      if (item.class === null) continue;
      const name = `${item.class} (${item.parse_status})`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    return counts;
  }

  /** Of what was taken in now. */
  get counters(): Counters {
    return this.imported.reduce(
      (sum, { item }) => addCounters(sum, item.counters ?? NO_COUNTERS),
      NO_COUNTERS,
    );
  }

  /** There is nothing to tell. */
  get isEmpty(): boolean {
    return this.deliveries.length + this.refused.length + this.leftOut.length + this.notImported.length === 0;
  }

  /** Something is not in, or has not the outcome that was waited for. */
  get isUnfinished(): boolean {
    return this.notImported.length > 0 || (this.#waits && this.pending.length > 0);
  }

  get exitCode(): number {
    const broke = this.notImported.some(({ error }) => error !== null);
    if (this.refused.length > 0 || broke || (this.#waits && this.failed.length > 0)) return 1;
    return this.isUnfinished ? 4 : 0;
  }
}

/** The line of `--json` for one file. What is absent is left out. */
export function jsonLine(one: Refused | LeftOut | NotImported | WithOutcome): Record<string, unknown> {
  const start = { file: one.shown, result: one.result };
  switch (one.result) {
    case 'refused':
      return { ...start, ...errorOf(one.error) };
    case 'left_out':
      return { ...start, reasons: [one.reason] };
    case 'not_imported':
      return one.error === null ? start : { ...start, ...errorOf(one.error) };
    default: {
      const { item } = one;
      return {
        ...start,
        delivery_id: item.id,
        received_at: item.received_at,
        clock_at: item.clock_at,
        parse_status: item.parse_status,
        ...(item.class === null ? {} : { class: item.class }),
        ...(item.counters === null ? {} : { counters: item.counters }),
        ...(item.reasons.length === 0 ? {} : { reasons: item.reasons }),
      };
    }
  }
}

function errorOf(error: HealthlogError): object {
  return error.toBody();
}

export function jsonSummary(report: Report): Record<string, unknown> {
  return {
    summary: {
      imported: report.imported.length,
      known: report.known.length,
      refused: report.refused.length,
      left_out: report.leftOut.length,
      not_imported: report.notImported.length,
      failed: report.failed.length,
      pending: report.pending.length,
      outcomes: Object.fromEntries(report.outcomes),
      counters: report.counters,
      ...(report.pendingReason === null ? {} : { pending_reason: report.pendingReason }),
      cancelled: report.cancelled,
      exit_code: report.exitCode,
    },
  };
}

/** When a delivery was received, for people. */
export function receivedText({ row }: WithOutcome): string {
  return `${formatMicros(row.receivedAt).slice(0, 19).replace('T', ' ')} UTC`;
}
