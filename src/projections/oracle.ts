/**
 * Oracle: a generation built anew from the archive against the live one (design §8).
 *
 * Both are held against each other table by table, both ways, as statements of fact (compared.ts). The caller
 * reads the live one in one snapshot and builds the new one exactly to the snapshot's enrolled mark, so that a
 * difference is a difference of numbers and not of time.
 */
import type Database from 'better-sqlite3';
import { COMPARED_TABLES, type ComparedTable } from './compared.js';

export interface RowDifference {
  readonly side: 'live' | 'rebuilt';
  /** Column → value, in the order of the table's columns. */
  readonly row: Readonly<Record<string, unknown>>;
}

export interface TableDifference {
  readonly table: string;
  /** Rows that only the live generation has, or has with another content. */
  readonly onlyLive: number;
  readonly onlyRebuilt: number;
  readonly first: readonly RowDifference[];
}

const EXAMPLES = 3;

/** @param db a connection on which both schemas are readable */
export function compareGenerations(db: Database.Database, live: string, rebuilt: string): TableDifference[] {
  const found: TableDifference[] = [];
  for (const table of COMPARED_TABLES) {
    const a = only(db, table, live, rebuilt);
    const b = only(db, table, rebuilt, live);
    if (a.count === 0 && b.count === 0) continue;
    found.push({
      table: table.name,
      onlyLive: a.count,
      onlyRebuilt: b.count,
      first: [
        ...a.first.map((row): RowDifference => ({ side: 'live', row })),
        ...b.first.map((row): RowDifference => ({ side: 'rebuilt', row })),
      ],
    });
  }
  return found;
}

function only(
  db: Database.Database,
  { sql, keys }: ComparedTable,
  here: string,
  there: string,
): { count: number; first: Record<string, unknown>[] } {
  const difference = `SELECT * FROM (${sql(here)}) EXCEPT SELECT * FROM (${sql(there)})`;
  const count = db.prepare<[], { n: number }>(`SELECT count(*) AS n FROM (${difference})`).get()?.n ?? 0;
  if (count === 0) return { count, first: [] };
  const order = Array.from({ length: keys }, (_, index) => index + 1).join(', ');
  const first = db
    .prepare<[], Record<string, unknown>>(`SELECT * FROM (${difference}) ORDER BY ${order} LIMIT ${EXAMPLES}`)
    .all();
  return { count, first };
}
