/** Importing without the program around it: real files on one side, a real journal on the other. */
import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { findFiles } from '../../src/cli/import/find.js';
import { type ImportFlags, readFlags } from '../../src/cli/import/flags.js';
import { type Taken, takeAll } from '../../src/cli/import/take.js';
import { Acceptor, type AcceptorDeps } from '../../src/journal/accept.js';
import { readArchive } from '../../src/journal/archive.js';
import type { DataFolder } from '../../src/journal/folder.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { archived, NOON, SetClock } from '../journal/support.js';
import { tmpData, tmpDir } from './tmp.js';

const clock = new SetClock(NOON);

/** A body with its newest date; every note makes another body. */
export function body(note: string, date = '2026-03-10 00:00:00 +0100'): string {
  return JSON.stringify({
    data: { metrics: [{ name: 'step_count', units: note, data: [{ date, qty: 5 }] }] },
  });
}

export type Files = Readonly<Record<string, string | Buffer>>;

export function files(list: Files, modified?: string): string {
  const root = tmpDir();
  for (const [name, content] of Object.entries(list)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    if (modified !== undefined) utimesSync(path, new Date(modified), new Date(modified));
  }
  return root;
}

interface Import {
  readonly data: DataFolder;
  readonly taken: Taken[];
}

interface Options extends Partial<ImportFlags> {
  readonly data?: DataFolder;
  readonly stdin?: Buffer;
  readonly deps?: Partial<AcceptorDeps>;
  readonly bytesMax?: number;
  readonly stopped?: (taken: readonly Taken[]) => boolean;
}

export async function imported(args: readonly string[], options: Options = {}): Promise<Import> {
  const { data = tmpData(), stdin, deps, bytesMax = 1_000_000, stopped, ...flags } = options;
  const acceptor = new Acceptor({
    folder: data,
    clock,
    bodyBytesMax: bytesMax,
    onAccepted: () => undefined,
    ...deps,
  });
  const taken: Taken[] = [];
  try {
    for await (const one of takeAll(findFiles(args, data.root), {
      acceptor: () => acceptor,
      said: readFlags({ again: false, wait: true, ...flags }, clock.now()),
      again: flags.again ?? false,
      stopped: () => stopped?.(taken) ?? false,
      stdin: Readable.from(stdin === undefined ? [] : [stdin]),
      now: () => clock.now(),
      bytesMax,
      isArchived: ({ archivePath }) => existsSync(join(data.archive, archivePath)),
    })) {
      taken.push(one);
    }
  } finally {
    await acceptor.close();
  }
  expect(archived(data).filter((path) => path.startsWith('incoming/'))).toEqual([]);
  return { data, taken };
}

export function rows(data: DataFolder): JournalRow[] {
  const journal = Journal.open(data, 'read');
  try {
    return journal.page({ limit: 1000 }).reverse();
  } finally {
    journal.close();
  }
}

/** Bodies in the order of the journal. */
export function bodies(data: DataFolder): string[] {
  return rows(data).map(({ archivePath }) => readArchive(data.archive, archivePath).body.toString());
}

export function told(taken: readonly Taken[], root: string): string[] {
  return taken.map((one) => {
    const why = one.result === 'refused' ? ` ${one.error.code}` : '';
    return `${one.result}${why} ${one.shown.replace(root, '').replace(/^\//, '')}`;
  });
}
