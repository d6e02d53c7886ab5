/**
 * Labels: what thousands of points have in common, stored once: unit, source and offset as delivered, and the
 * set of devices behind the source. Ids are private to one generation.
 *
 * The cache mirrors the tables of one open transaction after another; whoever rolls one back must forget it.
 */
import type Database from 'better-sqlite3';
import { wellFormed } from './json.js';
import { sourceSetName } from './sources.js';

export interface Label {
  readonly id: number;
  readonly unit: string;
  readonly sourceSetId: number;
  /** The set in one spelling, names joined with `|`. */
  readonly sourceSet: string;
}

interface LabelRow {
  id: number;
  unit: string;
  source_set: number;
  names: string;
}

/** More labels than this are not worth keeping in memory: a household has a few hundred. */
const CACHE_MAX = 20_000;

export class Labels {
  readonly #find: Database.Statement<[string, string | null, number | null], LabelRow>;
  readonly #byId: Database.Statement<[number], LabelRow>;
  readonly #insert: Database.Statement<[string, string | null, number, number | null]>;
  readonly #findSet: Database.Statement<[string], { id: number }>;
  readonly #insertSet: Database.Statement<[string]>;
  readonly #cache = new Map<string, Label>();
  readonly #cacheById = new Map<number, Label>();
  readonly #sets = new Map<string, number>();

  /** Points of one metric mostly repeat the label of the point before. */
  #last: { unit: string; source: string | null; offsetMin: number | null; label: Label } | null = null;

  constructor(db: Database.Database) {
    const columns =
      'SELECT l.id, l.unit, l.source_set, s.names FROM label l JOIN source_set s ON s.id = l.source_set';
    this.#find = db.prepare(`${columns} WHERE l.unit = ? AND l.source IS ? AND l.offset_min IS ?`);
    this.#byId = db.prepare(`${columns} WHERE l.id = ?`);
    this.#insert = db.prepare('INSERT INTO label (unit, source, source_set, offset_min) VALUES (?, ?, ?, ?)');
    this.#findSet = db.prepare('SELECT id FROM source_set WHERE names = ?');
    this.#insertSet = db.prepare('INSERT INTO source_set (names) VALUES (?)');
  }

  /** The label of a point; made when it is new. Needs an open transaction. */
  of(unit: string, source: string | null, offsetMin: number | null): Label {
    const last = this.#last;
    if (last !== null && last.source === source && last.unit === unit && last.offsetMin === offsetMin)
      return last.label;
    const label = this.#lookUp(unit, source, offsetMin);
    this.#last = { unit, source, offsetMin, label };
    return label;
  }

  #lookUp(rawUnit: string, rawSource: string | null, offsetMin: number | null): Label {
    const unit = wellFormed(rawUnit);
    const source = rawSource === null ? null : wellFormed(rawSource);
    const key = `${unit}\u0000${offsetMin ?? ''}\u0000${source === null ? '' : `=${source}`}`;
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const label =
      this.#fromRow(this.#find.get(unit, source, offsetMin)) ?? this.#make(unit, source, offsetMin);
    if (this.#cache.size >= CACHE_MAX) this.#cache.clear();
    this.#cache.set(key, label);
    return label;
  }

  /** The label with this id. Throws when there is none: ids come from rows of the same file. */
  byId(id: number): Label {
    const cached = this.#cacheById.get(id);
    if (cached !== undefined) return cached;
    const label = this.#fromRow(this.#byId.get(id));
    if (label === null) throw new Error(`the read model has no label ${id}`);
    if (this.#cacheById.size >= CACHE_MAX) this.#cacheById.clear();
    this.#cacheById.set(id, label);
    return label;
  }

  /** The id of a source set; made when it is new. Needs an open transaction. */
  setId(names: string): number {
    const cached = this.#sets.get(names);
    if (cached !== undefined) return cached;
    const id = this.#findSet.get(names)?.id ?? Number(this.#insertSet.run(names).lastInsertRowid);
    if (this.#sets.size >= CACHE_MAX) this.#sets.clear();
    this.#sets.set(names, id);
    return id;
  }

  /** After a rollback: ids made in it no longer exist. */
  forget(): void {
    this.#last = null;
    this.#cache.clear();
    this.#cacheById.clear();
    this.#sets.clear();
  }

  #make(unit: string, source: string | null, offsetMin: number | null): Label {
    const sourceSet = sourceSetName(source ?? '');
    const sourceSetId = this.setId(sourceSet);
    const id = Number(this.#insert.run(unit, source, sourceSetId, offsetMin).lastInsertRowid);
    return { id, unit, sourceSetId, sourceSet };
  }

  #fromRow(row: LabelRow | undefined): Label | null {
    return row === undefined
      ? null
      : { id: row.id, unit: row.unit, sourceSetId: row.source_set, sourceSet: row.names };
  }
}
