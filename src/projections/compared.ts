/**
 * Compared: the rows of a generation as statements of fact, ids resolved, so that two generations can be held
 * against each other. Ids of series, labels and sets, times of folding, and the two counters that depend on the
 * order of folding are private to a generation and left out.
 */

export interface ComparedTable {
  readonly name: string;
  /** How many of the first columns say which row it is; the rest say what is in it. */
  readonly keys: number;
  readonly columns: readonly string[];
  /** The rows of the database attached under `schema`. */
  readonly sql: (schema: string) => string;
}

const series = (s: string): string => `JOIN ${s}.series s ON s.id = t.series`;
const label = (s: string): string =>
  `JOIN ${s}.label l ON l.id = t.label JOIN ${s}.source_set ls ON ls.id = l.source_set`;
const delivery = (s: string): string => `JOIN ${s}.delivery_result d ON d.seq = t.delivery`;

export const COMPARED_TABLES: readonly ComparedTable[] = [
  {
    name: 'delivery_result',
    keys: 2,
    columns: [
      'received_at',
      'delivery_id',
      'evidence',
      'profile',
      'automation_id',
      'session_id',
      'parse_status',
      'class',
      'declared',
      'layer',
      'layer_origin',
      'layer_from',
      'layer_bound',
      'speaks',
      'counters',
      'reasons',
    ],
    sql: (s) => `
      SELECT received_at, delivery_id, evidence, profile, automation_id, session_id, parse_status, class, declared,
        layer, layer_origin, layer_from, layer_bound, speaks, json_remove(counters, '$.changed', '$.incomparable') AS counters, reasons
      FROM ${s}.delivery_result WHERE parse_status <> 'pending'`,
  },
  {
    name: 'bucket',
    keys: 4,
    columns: [
      'profile',
      'metric',
      'grain',
      'start',
      'value',
      'min',
      'max',
      'unit',
      'source',
      'offset_min',
      'source_set',
      'delivery_id',
      'named_by',
      'flags',
      'extra',
    ],
    sql: (s) => `
      SELECT s.profile, s.metric, s.grain, t.start, t.value, t.min, t.max, l.unit, l.source, l.offset_min,
        ls.names AS source_set, d.delivery_id, n.delivery_id AS named_by, t.flags, t.extra
      FROM ${s}.bucket t ${series(s)} ${label(s)} ${delivery(s)} JOIN ${s}.delivery_result n ON n.seq = t.named`,
  },
  {
    name: 'sample',
    keys: 6,
    columns: [
      'profile',
      'metric',
      'grain',
      'instant',
      'source_set',
      'n',
      'value',
      'min',
      'max',
      'unit',
      'source',
      'offset_min',
      'delivery_id',
      'extra',
    ],
    sql: (s) => `
      SELECT s.profile, s.metric, s.grain, t.instant, ss.names AS source_set, t.n, t.value, t.min, t.max, l.unit,
        l.source, l.offset_min, d.delivery_id, t.extra
      FROM ${s}.sample t ${series(s)} ${label(s)} ${delivery(s)} JOIN ${s}.source_set ss ON ss.id = t.source_set`,
  },
  {
    name: 'delivery_series',
    keys: 4,
    columns: ['delivery_id', 'profile', 'metric', 'grain', 'points', 'first_date', 'last_date'],
    sql: (s) => `
      SELECT d.delivery_id, s.profile, s.metric, s.grain, t.points, t.first_date, t.last_date
      FROM ${s}.delivery_series t ${series(s)} ${delivery(s)}`,
  },
  {
    name: 'coverage',
    keys: 6,
    columns: ['profile', 'metric', 'grain', 'unit', 'start', 'automation_id', 'delivery_id'],
    sql: (s) => `
      SELECT s.profile, s.metric, s.grain, t.unit, t.start, a.automation_id, d.delivery_id
      FROM ${s}.coverage t ${series(s)} ${delivery(s)} JOIN ${s}.automation a ON a.id = t.automation`,
  },
  {
    name: 'automation',
    keys: 2,
    columns: ['profile', 'automation_id', 'batches'],
    sql: (s) => `SELECT profile, automation_id, batches FROM ${s}.automation`,
  },
];
