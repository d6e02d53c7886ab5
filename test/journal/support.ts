/** What the tests of the journal share: deliveries, a clock that is set, a disk that is watched and can fail. */
import { existsSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { onTestFinished } from 'vitest';
import { Acceptor, type AcceptorDeps, type IncomingDelivery } from '../../src/journal/accept.js';
import type { Clock } from '../../src/journal/clock.js';
import { type FileLayer, nodeFiles } from '../../src/journal/files.js';
import type { DataFolder } from '../../src/journal/folder.js';
import { type Micros, micros, parseMicros } from '../../src/journal/position.js';
import { Journal, type JournalRow } from '../../src/journal/store.js';
import { tmpData } from '../support/tmp.js';

export const BODY = '{"data":{"metrics":[]}}';

export function at(iso: string): Micros {
  const instant = parseMicros(iso);
  if (instant === null) throw new RangeError(`not a time: ${iso}`);
  return instant;
}

export const NOON = at('2026-11-30T12:00:00.000000Z');

export class SetClock implements Clock {
  #now: number;

  constructor(now: number = NOON) {
    this.#now = now;
  }

  now(): Micros {
    return micros(this.#now);
  }

  set(now: number): void {
    this.#now = now;
  }
}

export function incoming(changes: Partial<IncomingDelivery> = {}): IncomingDelivery {
  return {
    profile: 'me',
    source: 'http',
    contentType: 'application/json',
    contentCoding: null,
    headers: {},
    declaredBytes: null,
    kind: 'json',
    complete: () => true,
    ...changes,
  };
}

export function stream(...parts: (string | Buffer)[]): Readable {
  return Readable.from(parts.map((part) => Buffer.from(part)));
}

export interface Accepting {
  readonly folder: DataFolder;
  readonly clock: SetClock;
  readonly acceptor: Acceptor;
  readonly accepted: JournalRow[];
  /** A second connection, reading. */
  readonly journal: Journal;
  accept(body: string | Buffer, changes?: Partial<IncomingDelivery>): Promise<JournalRow>;
}

/** An acceptor on a fresh data folder, closed when the test has finished. */
export function accepting(deps: Partial<AcceptorDeps> = {}): Accepting {
  const folder = deps.folder ?? tmpData();
  const clock = new SetClock();
  const accepted: JournalRow[] = [];
  const acceptor = new Acceptor({
    folder,
    clock,
    bodyBytesMax: 1_000_000,
    onAccepted: (row) => accepted.push(row),
    ...deps,
  });
  const journal = Journal.open(folder, 'read');
  onTestFinished(async () => {
    journal.close();
    await acceptor.close();
  });
  return {
    folder,
    clock,
    acceptor,
    accepted,
    journal,
    accept: (body, changes) => acceptor.accept(stream(body), incoming(changes)),
  };
}

/** Every file below the archive, relative to it, sorted. */
export function archived(folder: DataFolder): string[] {
  if (!existsSync(folder.archive)) return [];
  return readdirSync(folder.archive, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder.archive, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort((a, b) => (a < b ? -1 : 1));
}

export function platformError(code: string): Error {
  return Object.assign(new Error(`${code}: made by a test`), { code });
}

export type FileStep = 'create' | 'write' | 'fsync' | 'close' | keyof Omit<FileLayer, 'createUpload'>;

/**
 * The real disk with somebody watching: every step is told before it is taken, and the watcher may throw.
 * `create`, `write`, `fsync` and `close` are those of an upload's file.
 */
export function watchedFiles(watch: (step: FileStep, path: string) => void): FileLayer {
  const told = <A extends [string, ...string[]], R>(step: FileStep, take: (...args: A) => R) => {
    return (...args: A): R => {
      watch(step, args[0]);
      return take(...args);
    };
  };
  return {
    mkdir: told('mkdir', nodeFiles.mkdir),
    rename: told('rename', nodeFiles.rename),
    fsyncDirectory: told('fsyncDirectory', nodeFiles.fsyncDirectory),
    fsyncFile: told('fsyncFile', nodeFiles.fsyncFile),
    unlink: told('unlink', nodeFiles.unlink),
    readdir: told('readdir', nodeFiles.readdir),
    modifiedAtMs: told('modifiedAtMs', nodeFiles.modifiedAtMs),
    appendLine: told('appendLine', nodeFiles.appendLine),
    createUpload: async (path, small) => {
      watch('create', path);
      const file = await nodeFiles.createUpload(path, small);
      return {
        write: async (bytes) => {
          watch('write', path);
          await file.write(bytes);
        },
        fsync: async () => {
          watch('fsync', path);
          await file.fsync();
        },
        close: async () => {
          await file.close();
          watch('close', path);
        },
      };
    },
  };
}
