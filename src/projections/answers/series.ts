/** Which metric a question means, what is known of it, and the unit it is kept in. */
import type { Database } from 'better-sqlite3';
import { HealthlogError } from '../../journal/errors.js';
import { canonicalName, lookupMetric, type MetricInfo } from '../catalogue.js';
import { GRAINS, type Grain } from '../layer.js';
import type { MetricSeries, Rows } from './rows.js';

interface SeriesRow {
  readonly id: number;
  readonly metric: string;
  readonly grain: Grain;
}

export interface KnownMetric {
  /** The name of the catalogue, or the name as delivered when the catalogue does not know it. */
  readonly metric: string;
  /** Null for a metric that the catalogue does not know. */
  readonly info: MetricInfo | null;
  readonly series: MetricSeries;
}

function knownMetric(metric: string, rows: readonly SeriesRow[]): KnownMetric {
  const info = lookupMetric(metric);
  return {
    metric,
    info,
    series: {
      metric,
      byGrain: new Map(rows.map(({ grain, id }) => [grain, id])),
      zeroMeansNotMeasured: info?.zeroMeansNotMeasured ?? false,
      plainSum: info?.summed === true && info.parts === undefined,
    },
  };
}

/**
 * The metric called `name`, by its own name or any the app has used for it.
 * @throws HealthlogError not_found when neither the catalogue nor the data of this profile know it.
 */
export function findMetric(generation: Database, profile: string, name: string): KnownMetric {
  const select = generation.prepare<[string, string], SeriesRow>(
    'SELECT id, metric, grain FROM series WHERE profile = ? AND metric = ?',
  );
  const canonical = canonicalName(name);
  for (const metric of new Set([canonical, name])) {
    const rows = select.all(profile, metric);
    if (rows.length > 0) return knownMetric(metric, rows);
  }
  if (lookupMetric(name) === null) throw new HealthlogError('not_found', { what: `metric "${name}"` });
  return knownMetric(canonical, []);
}

/** The metrics of a profile behind the name `after` ('' for all), by name. */
export function metricsOf(
  generation: Database,
  profile: string,
  after: string,
  limit: number,
): KnownMetric[] {
  const names = generation
    .prepare<[string, string, number], string>(
      'SELECT DISTINCT metric FROM series WHERE profile = ? AND metric > ? ORDER BY metric LIMIT ?',
    )
    .pluck()
    .all(profile, after, limit);
  const select = generation.prepare<[string, string], SeriesRow>(
    'SELECT id, metric, grain FROM series WHERE profile = ? AND metric = ?',
  );
  return names.map((metric) => knownMetric(metric, select.all(profile, metric)));
}

/** The grains that hold anything, from the finest to the coarsest. */
export function grainsOf({ series }: KnownMetric): Grain[] {
  return GRAINS.filter((grain) => series.byGrain.has(grain));
}

/** The unit a metric is kept in: the catalogue's; for one it does not know, that of its newest bucket, else ''. */
export function ownUnit(rows: Rows, known: KnownMetric): string {
  if (known.info !== null) return known.info.unit;
  for (const [grain, id] of [...known.series.byGrain].sort(
    ([a], [b]) => GRAINS.indexOf(a) - GRAINS.indexOf(b),
  )) {
    const newest = rows.newest(known.series, grain, id);
    if (newest !== null) return newest.unit;
  }
  return '';
}
