/** Temporary data folders, removed when the test file has run. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type DataFolder, dataFolder } from '../../src/journal/folder.js';

const made: string[] = [];

afterAll(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true });
});

/** A fresh, empty folder. */
export function tmpDir(): string {
  const path = mkdtempSync(join(tmpdir(), 'healthlog-'));
  made.push(path);
  return path;
}

/** A fresh data folder; nothing is in it yet. */
export function tmpData(): DataFolder {
  return dataFolder(join(tmpDir(), 'data'));
}
