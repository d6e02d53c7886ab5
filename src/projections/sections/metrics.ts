/**
 * Section `metrics`: from parsed JSON to points (hae-format.md §4.1).
 *
 * One entry per metric: `name`, `units`, `data`. Two entries of one name are one metric. A point needs a date
 * and at least one number; a bad point costs that point. Strings, offsets and units stay as delivered. What a
 * point says beyond its date, numbers and source is kept as JSON beside it.
 * `sleep_analysis` belongs to the sleep section and is only counted here.
 */
import { lookupMetric, type MetricInfo } from '../catalogue.js';
import { parseStamp, type Stamp } from '../dates.js';
import { canonicalJson, finiteNumber, isObject, type JsonObject, own, wellFormed } from '../json.js';
import { type Report, shownName } from '../report.js';

export interface Point extends Stamp {
  /** As delivered, in `unit`; the average of a min/avg/max point; null when only `parts` or min and max came. */
  readonly value: number | null;
  readonly min: number | null;
  readonly max: number | null;
  /** '' when none came. */
  readonly unit: string;
  /** As delivered; null when the key was absent. */
  readonly source: string | null;
  /** Place in the body, over all metrics. */
  readonly ordinal: number;
  /** Numbers of a metric such as blood pressure, by their names. */
  readonly parts: Readonly<Record<string, number>> | null;
  /** Everything else the point said, canonical JSON; `parts` among it. */
  readonly extra: string | null;
}

export interface MetricPoints {
  /** Canonical name, or the delivered one when the catalogue does not know it. */
  readonly metric: string;
  readonly info: MetricInfo | null;
  readonly points: Point[];
}

export interface MetricsReading {
  readonly metrics: readonly MetricPoints[];
  /** Sleep objects that came inside the section. */
  readonly sleep: readonly unknown[];
}

const SECTION = 'metrics';
const SLEEP = 'sleep_analysis';

/** Fields of a point that are understood; `date` and the numbers are taken out, the rest is kept as it came. */
const KNOWN_FIELDS = new Set([
  'date',
  'qty',
  'source',
  'Min',
  'Avg',
  'Max',
  'min',
  'avg',
  'max',
  'start',
  'end',
  'startDate',
  'endDate',
  'metadata',
  'context',
  'value',
  'units',
  'mealTime',
  'reason',
]);
/** Taken into columns of their own, so not kept a second time. */
const COLUMN_FIELDS = new Set(['date', 'qty', 'source', 'units', 'Min', 'Avg', 'Max', 'min', 'avg', 'max']);

/** @param entries the lists `metrics` of all envelopes of the delivery */
export function readMetrics(
  entries: readonly unknown[],
  report: Report,
  checkDeadline: () => void,
): MetricsReading {
  const byName = new Map<string, MetricPoints>();
  const sleep: unknown[] = [];
  let ordinal = 0;
  for (const entry of entries) {
    if (!isObject(entry)) {
      report.skip(SECTION, 'an entry of "metrics" is not an object');
      continue;
    }
    const name = own(entry, 'name');
    if (typeof name !== 'string' || name.trim() === '') {
      report.skip(SECTION, 'an entry of "metrics" has no name');
      continue;
    }
    const data = own(entry, 'data') ?? [];
    if (!Array.isArray(data)) {
      report.skip(SECTION, `the points of "${shownName(name)}" are not a list`);
      continue;
    }
    const info = lookupMetric(name);
    if (info?.name === SLEEP) {
      for (const item of data) sleep.push(item);
      continue;
    }
    const metric = info?.name ?? wellFormed(name.trim());
    if (info === null && data.length > 0) report.unknown(`the metric "${shownName(metric)}"`, data.length);
    let group = byName.get(metric);
    if (group === undefined) {
      group = { metric, info, points: [] };
      byName.set(metric, group);
    }
    const unit = textOr(own(entry, 'units'), '');
    const before = group.points.length;
    for (const item of data) {
      if ((ordinal & 0x3ff) === 0) checkDeadline();
      const point = readPoint(item, group, unit, ordinal++, report);
      if (point !== null) group.points.push(point);
    }
    report.read(SECTION, group.points.length - before);
  }
  return { metrics: [...byName.values()].filter(({ points }) => points.length > 0), sleep };
}

function textOr<T>(value: unknown, otherwise: T): string | T {
  return typeof value === 'string' ? value : otherwise;
}

function readPoint(
  item: unknown,
  { metric, info }: MetricPoints,
  metricUnit: string,
  ordinal: number,
  report: Report,
): Point | null {
  if (!isObject(item)) {
    report.skip(SECTION, `a point of "${shownName(metric)}" is not an object`);
    return null;
  }
  const stamp = parseStamp(own(item, 'date') ?? own(item, 'start') ?? own(item, 'startDate'));
  if (stamp === null) {
    report.skip(SECTION, `a point of "${shownName(metric)}" has no date that can be read`);
    return null;
  }
  const qty = finiteNumber(own(item, 'qty'));
  const average = finiteNumber(own(item, 'Avg') ?? own(item, 'avg'));
  const min = finiteNumber(own(item, 'Min') ?? own(item, 'min'));
  const max = finiteNumber(own(item, 'Max') ?? own(item, 'max'));
  const parts = info?.parts === undefined ? null : readParts(item, info.parts);
  const value = qty ?? average;
  if (value === null && min === null && max === null && parts === null) {
    report.skip(SECTION, `a point of "${shownName(metric)}" has no number`);
    return null;
  }
  const extra = readExtra(item, info, parts, report, metric);
  if (extra === undefined) return null;
  return {
    epochMs: stamp.epochMs,
    offsetMin: stamp.offsetMin,
    localDay: stamp.localDay,
    secondOfDay: stamp.secondOfDay,
    dateOnly: stamp.dateOnly,
    value,
    min,
    max,
    unit: textOr(own(item, 'units'), metricUnit),
    source: textOr(own(item, 'source'), null),
    ordinal,
    parts,
    extra,
  };
}

/** The numbers of a metric such as blood pressure; null when none of them came. */
function readParts(item: JsonObject, names: readonly string[]): Record<string, number> | null {
  const parts: Record<string, number> = {};
  let any = false;
  for (const name of names) {
    const number = finiteNumber(own(item, name));
    if (number === null) continue;
    parts[name] = number;
    any = true;
  }
  return any ? parts : null;
}

/** Null when the point says nothing else, undefined when what it says cannot be kept. */
function readExtra(
  item: JsonObject,
  info: MetricInfo | null,
  parts: Record<string, number> | null,
  report: Report,
  metric: string,
): string | null | undefined {
  let extra: Record<string, unknown> | null = parts === null ? null : { parts };
  for (const key in item) {
    if (COLUMN_FIELDS.has(key) || !Object.hasOwn(item, key)) continue;
    if (parts !== null && Object.hasOwn(parts, key)) continue;
    if (!KNOWN_FIELDS.has(key) && info?.parts?.includes(key) !== true) {
      report.unknown(`the field "${shownName(key)}" of "${shownName(metric)}"`);
    }
    extra ??= {};
    Object.defineProperty(extra, key, { value: own(item, key), enumerable: true });
  }
  if (extra === null) return null;
  const text = canonicalJson(extra);
  if (text !== null) return text;
  report.skip(SECTION, `a point of "${shownName(metric)}" holds something nested too deep`);
  return undefined;
}
