import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { adoptOrphans } from '../../src/journal/reconcile.js';
import { currentGeneration } from '../../src/projections/generations.js';
import { Live, type LiveOptions, type StepReport } from '../../src/projections/live.js';
import { openGeneration } from '../../src/projections/readmodel.js';
import { facts, Lab, resultOf } from '../support/lab.js';
import { body, days, metric, minutes } from '../support/points.js';

let lab: Lab;
let live: Live | null = null;
const switches: string[] = [];
const reasons: string[] = [];
const linkFailures: unknown[] = [];

beforeEach(() => {
  lab = new Lab();
  switches.length = 0;
  reasons.length = 0;
});
afterEach(() => {
  live?.close();
  live = null;
  lab.close();
});

function start(hooks: LiveOptions['hooks'] = {}): Live {
  live?.close();
  live = new Live({
    folder: lab.folder,
    clock: lab.clock,
    hooks,
    onFolded: () => undefined,
    onPass: () => undefined,
    onProgress: () => undefined,
    onSwitch: ({ name }) => switches.push(name),
    onRebuild: (reason) => reasons.push(reason),
    onLinkFailed: (error) => linkFailures.push(error),
  });
  return live;
}

/** Steps until there is nothing to do at once. */
function settle(running: Live): StepReport {
  for (let i = 0; i < 20; i++) {
    const report = running.step();
    if (!report.again) return report;
  }
  throw new Error('it never comes to rest');
}

function shown(): Record<string, unknown[]> {
  const file = currentGeneration(lab.folder);
  if (file === null) throw new Error('nothing is live');
  const db = openGeneration(file.path, 'read');
  try {
    return facts(db);
  } finally {
    db.close();
  }
}

const files = (): string[] => readdirSync(lab.folder.readmodel).sort();
const D = '2026-03-10';
const hourly = body(metric('step_count', 'count', minutes(D, 600, 720, 60)));
const sparse = body(metric('protein', 'g', days([D])));

describe('the live generation', () => {
  it('is there after the first step, behind CURRENT and live.db', () => {
    settle(start());
    expect(readFileSync(join(lab.folder.readmodel, 'CURRENT'), 'utf8')).toBe('000001.db\n');
    expect(readlinkSync(join(lab.folder.readmodel, 'live.db'))).toBe('000001.db');
  });

  it('takes what arrives without a new generation', () => {
    const running = start();
    settle(running);
    lab.add({ body: hourly });
    expect(settle(running).pass?.outcomes.deliveries).toBe(1);
    expect(switches).toEqual(['000001.db']);
    expect(shown().bucket).toHaveLength(2);
  });

  it('goes on folding when something else is in the place of its link', () => {
    mkdirSync(join(lab.folder.readmodel, 'live.db'), { recursive: true });
    lab.add({ body: hourly });
    settle(start());
    expect(shown().bucket).toHaveLength(2);
    expect(linkFailures.length).toBeGreaterThan(0);
  });

  it('goes on where it stood after a restart', () => {
    settle(start());
    lab.add({ body: hourly });
    expect(settle(start()).pass?.outcomes.deliveries).toBe(1);
    expect(switches).toEqual(['000001.db']);
  });
});

describe('a generation is replaced, in one order, and says the same', () => {
  const fill = (): void => {
    for (let i = 0; i < 3; i++) lab.add({ body: hourly });
    settle(start());
  };

  it.each([
    ['the read model was deleted', () => rmSync(lab.folder.readmodel, { recursive: true })],
    ['another version of the fold built it', () => edit('UPDATE generation SET fold_version = 0')],
    ['it was built from another journal', () => edit("UPDATE generation SET journal_epoch = 'x'")],
    ['it is stale', () => edit("UPDATE generation SET stale = 'because'")],
    [
      'its file is no database',
      () => writeFileSync(join(lab.folder.readmodel, '000001.db'), 'garbage '.repeat(1000)),
    ],
    ['a page of it is damaged', damage],
  ])('%s', (_what, harm) => {
    fill();
    const before = shown();
    live?.close();
    live = null;
    harm();
    settle(start());
    expect(shown()).toEqual(before);
    expect(reasons.length).toBeGreaterThanOrEqual(2);
  });

  it('when an adopted delivery changes an inherited layer', () => {
    lab.add({ automation: 'A', at: '2026-05-01T00:00:00Z', body: hourly, orphan: true });
    const taker = lab.add({ automation: 'A', at: '2026-05-02T00:00:00Z', body: sparse });
    const running = start();
    settle(running);
    adoptOrphans({ folder: lab.folder, journal: lab.journal });
    settle(running);
    expect(switches).toEqual(['000001.db', '000002.db']);
    const db = openGeneration(join(lab.folder.readmodel, '000002.db'), 'read');
    expect(resultOf(db, taker.id)).toMatchObject({ layer: 'hour', layer_origin: 'inherited' });
    db.close();
  });

  it('keeps the one before until the next build, and removes it whole', () => {
    fill();
    edit("UPDATE generation SET stale = 'one'");
    settle(start());
    expect(files()).toContain('000001.db');
    edit("UPDATE generation SET stale = 'two'");
    settle(start());
    expect(files().filter((name) => name.startsWith('000001'))).toEqual([]);
    expect(files()).toEqual(expect.arrayContaining(['000002.db', '000003.db']));
  });

  it('never gives a number again, leftovers of logs included', () => {
    fill();
    live?.close();
    live = null;
    writeFileSync(join(lab.folder.readmodel, '000041.db-wal'), '');
    edit("UPDATE generation SET stale = 'one'");
    settle(start());
    expect(switches.at(-1)).toBe('000042.db');
    expect(existsSync(join(lab.folder.readmodel, '000041.db-wal'))).toBe(false);
  });

  it('is frozen while the new one is built, and the stop flag ends a build without a trace', () => {
    fill();
    const before = shown();
    edit("UPDATE generation SET stale = 'one'");
    let folds = 0;
    const report = start({ stopped: () => folds++ >= 2 }).step();
    expect(report.pass?.end).toBe('stopped');
    expect(report.rebuild).toEqual({ done: 2, total: 3 });
    expect(shown()).toEqual(before);
    settle(start());
    expect(shown()).toEqual(before);
  });
});

describe('pause', () => {
  it('keeps everything pending until it is lifted', () => {
    const running = start();
    settle(running);
    lab.journal.db.exec('UPDATE meta SET paused = 1');
    lab.add({ body: hourly });
    expect(settle(running)).toMatchObject({ paused: true, pass: null });
    lab.journal.db.exec('UPDATE meta SET paused = 0');
    expect(settle(running).pass?.outcomes.deliveries).toBe(1);
  });
});

/** Changes the live generation's file behind its back. */
function edit(sql: string): void {
  live?.close();
  live = null;
  const file = currentGeneration(lab.folder);
  const db = new Database(file?.path ?? '');
  db.exec(sql);
  db.close();
}

function damage(): void {
  const path = currentGeneration(lab.folder)?.path ?? '';
  const db = new Database(path);
  const page = db
    .prepare<[], { rootpage: number }>("SELECT rootpage FROM sqlite_master WHERE name = 'delivery_result'")
    .get();
  db.close();
  const handle = openSync(path, 'r+');
  writeSync(handle, Buffer.alloc(4096, 7), 0, 4096, ((page?.rootpage ?? 1) - 1) * 4096);
  closeSync(handle);
}
