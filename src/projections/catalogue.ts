/**
 * Catalogue: what is known about each metric before any point of it is seen (hae-format.md §4.3).
 *
 * Names differ by app version, so every spelling that was ever seen leads to one canonical name. A metric that
 * is not here is unknown, not an error: its points are kept under the name that came, and never summed.
 */
import { CATALOGUE, DENSE, type MetricKind, ZERO_IS_NOT_MEASURED } from './catalogue-data.js';

export type { MetricKind } from './catalogue-data.js';

export interface MetricInfo {
  /** The name in real bodies of current app versions. */
  readonly name: string;
  readonly kind: MetricKind;
  /** The canonical unit: what the app sends by default, and what values are compared and served in. */
  readonly unit: string;
  /** Units the phone sends with localised settings. All convert to `unit`. */
  readonly alternatives: readonly string[];
  /** Other spellings of the name. */
  readonly aliases: readonly string[];
  /** True when a worn watch produces it many times an hour. */
  readonly dense: boolean;
  /** True when buckets add up to a longer one; false when they are averaged. */
  readonly summed: boolean;
  /** True when 0 is the absence of a reading and loses to any other. */
  readonly zeroMeansNotMeasured: boolean;
  /** Numeric fields of a point in place of `qty`, as delivered. */
  readonly parts?: readonly string[];
}

const METRICS: readonly MetricInfo[] = CATALOGUE.map((row): MetricInfo => {
  const [unit, ...alternatives] = row.units;
  return Object.freeze({
    name: row.name,
    kind: row.kind,
    unit,
    alternatives,
    aliases: row.also ?? [],
    dense: DENSE.has(row.name),
    summed: row.summed ?? row.kind === 'cumulative',
    zeroMeansNotMeasured: ZERO_IS_NOT_MEASURED.has(row.name),
    ...(row.parts === undefined ? {} : { parts: row.parts }),
  });
});

const NAMES: readonly string[] = Object.freeze(METRICS.map(({ name }) => name));

const BY_SPELLING = new Map<string, MetricInfo>();
for (const info of METRICS)
  for (const spelling of [info.name, ...info.aliases]) BY_SPELLING.set(spelling, info);

/**
 * The app's names are its labels in lower case, spaces as `_`, `&` and `+` left out (hae-format.md §4.3), so a
 * label such as "Weight & Body Mass" leads to the same name.
 */
function foldName(deliveredName: string): string {
  return deliveredName
    .trim()
    .toLowerCase()
    .replace(/[\s&+]+/gu, '_');
}

/** What is known about a metric, by any of its spellings; null when it is not in the catalogue. */
export function lookupMetric(deliveredName: string): MetricInfo | null {
  return BY_SPELLING.get(deliveredName) ?? BY_SPELLING.get(foldName(deliveredName)) ?? null;
}

/** The catalogue's name for a metric, or the delivered one without the spaces around it. */
export function canonicalName(deliveredName: string): string {
  return lookupMetric(deliveredName)?.name ?? deliveredName.trim();
}

/** Every canonical name, in the order of hae-format.md §4.3. */
export function metricNames(): readonly string[] {
  return NAMES;
}
