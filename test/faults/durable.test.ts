/** Law 1: when a client reads 200, body, directory entry and journal row have been fsynced, in that order. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { Service, stopAll } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';

afterEach(stopAll);

/** Compiles the library that notes the calls (trace.c). Only Linux loads a library in front of another this way. */
function tracer(folder: string): string {
  const library = join(folder, 'trace.so');
  const source = fileURLToPath(new URL('../support/trace.c', import.meta.url));
  execFileSync('g++', ['-x', 'c', '-shared', '-fPIC', '-o', library, source, '-ldl']);
  return library;
}

describe.runIf(process.platform === 'linux')('durable before 200', () => {
  it.each([
    ['a small body', '{"data":{}}'],
    ['a body that is streamed', JSON.stringify({ data: { metrics: [], note: 'x'.repeat(300_000) } })],
  ])(
    '%s: body, then its new name, then the folder, then the journal, then the answer',
    async (_what, body) => {
      const folder = tmpDir();
      const log = join(folder, 'calls');
      const service = await Service.start({ env: { LD_PRELOAD: tracer(folder), TRACE_LOG: log } });
      const before = readFileSync(log, 'utf8').split('\n').length - 1;
      expect((await service.post(body)).status).toBe(200);
      const calls = readFileSync(log, 'utf8')
        .split('\n')
        .slice(before)
        .filter((line) => line !== '');
      const answered = calls.indexOf('answer');
      const first = (pattern: RegExp): number => calls.findIndex((line) => pattern.test(line));
      const uploadSynced = first(/^fsync \S+\/archive\/incoming\/\S+\.tmp$/);
      const renamed = first(
        /^rename \S+\/archive\/incoming\/\S+\.tmp \S+\/archive\/\d{4}\/\d{2}\/\d{2}\/\S+\.json\.gz$/,
      );
      const folderSynced = calls.findIndex(
        (line, i) => i > renamed && /^fsync \S+\/archive\/\d{4}\/\d{2}\/\d{2}$/.test(line),
      );
      const journalSynced = calls.findIndex(
        (line, i) => i > folderSynced && /^fsync \S+\/journal\.db-wal$/.test(line),
      );
      const order = [uploadSynced, renamed, folderSynced, journalSynced, answered];
      expect(
        order.every((place) => place >= 0),
        calls.join('\n'),
      ).toBe(true);
      expect(order).toEqual([...order].sort((a, b) => a - b));
      // The first delivery of a day makes three folders; each one's parent is synced before the answer as well.
      for (const parent of [/\/archive$/, /\/archive\/\d{4}$/, /\/archive\/\d{4}\/\d{2}$/]) {
        const synced = calls.findIndex((line) => line.startsWith('fsync ') && parent.test(line));
        expect(synced, `${parent}`).toBeGreaterThanOrEqual(0);
        expect(synced).toBeLessThan(answered);
      }
    },
  );
});
