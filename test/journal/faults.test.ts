/** Faults of disk and database in the accept path: what is left, what the caller is told, what comes next. */
import { relative } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseArchivePath } from '../../src/journal/archive.js';
import { findOrphans } from '../../src/journal/reconcile.js';
import { Journal } from '../../src/journal/store.js';
import { tmpData } from '../support/tmp.js';
import { accepting, archived, BODY, type FileStep, NOON, platformError, watchedFiles } from './support.js';

/** Steps that change nothing. */
const LOOKS = new Set<FileStep>(['readdir', 'modifiedAtMs']);
const LONG = `[${'1,'.repeat(300_000)}1]`;

describe('before a delivery is confirmed', () => {
  it.each([BODY, LONG])(
    'body, folders and name are durable, in this order, and the row comes last',
    async (body) => {
      const folder = tmpData();
      const steps: string[] = [];
      const seen = { rowsAtLastFlush: -1, lockedAtRename: '' };
      Journal.open(folder, 'write').close();
      const other = new BetterSqlite3(folder.journal, { timeout: 0 });
      onTestFinished(() => void other.close());
      const files = watchedFiles((step, path) => {
        if (LOOKS.has(step)) return;
        const name = relative(folder.root, path).replaceAll('\\', '/');
        steps.push(`${step} ${name.replace(/^archive\/incoming\/.+/, 'UPLOAD')}`);
        if (step === 'rename') {
          try {
            other.exec('BEGIN IMMEDIATE');
          } catch (error) {
            seen.lockedAtRename = String(error);
          }
        }
        if (step === 'fsyncDirectory') {
          seen.rowsAtLastFlush = Number(other.prepare('SELECT count(*) FROM delivery').pluck().get());
        }
      });
      const { accept, journal } = accepting({ folder, files });
      steps.length = 0;
      await accept(body);
      expect(steps.filter((step) => step !== 'write UPLOAD')).toEqual([
        'create UPLOAD',
        'fsync UPLOAD',
        'close UPLOAD',
        'mkdir archive/2026',
        'fsyncDirectory archive/2026',
        'fsyncDirectory archive',
        'mkdir archive/2026/11',
        'fsyncDirectory archive/2026/11',
        'fsyncDirectory archive/2026',
        'mkdir archive/2026/11/30',
        'fsyncDirectory archive/2026/11/30',
        'fsyncDirectory archive/2026/11',
        'rename UPLOAD',
        'fsyncDirectory archive/2026/11/30',
      ]);
      expect(steps.lastIndexOf('write UPLOAD')).toBeLessThan(steps.indexOf('fsync UPLOAD'));
      expect(seen.lockedAtRename).toContain('database is locked');
      expect(seen.rowsAtLastFlush).toBe(0);
      expect(journal.count()).toBe(1);

      steps.length = 0;
      await accept(BODY);
      expect(steps).toEqual([
        'create UPLOAD',
        'write UPLOAD',
        'fsync UPLOAD',
        'close UPLOAD',
        'rename UPLOAD',
        'fsyncDirectory archive/2026/11/30',
      ]);
    },
  );

  it('new folders of the archive itself are flushed too', () => {
    const folder = tmpData();
    const steps: string[] = [];
    accepting({
      folder,
      files: watchedFiles((step, path) => steps.push(`${step} ${relative(folder.root, path)}`)),
    });
    expect(steps.slice(0, 6)).toEqual([
      'mkdir archive',
      'fsyncDirectory archive',
      'fsyncDirectory ',
      'mkdir archive/incoming',
      'fsyncDirectory archive/incoming',
      'fsyncDirectory archive',
    ]);
  });
});

/** Fails the step once, from the moment it is armed. */
function failing(step: FileStep, code: string, afterRename = false) {
  const state = { armed: false, renamed: false };
  const files = watchedFiles((taken) => {
    if (!state.armed) return;
    if (taken === step && (!afterRename || state.renamed)) {
      state.armed = false;
      throw platformError(code);
    }
    if (taken === 'rename') state.renamed = true;
  });
  const arm = (): void => {
    state.armed = true;
  };
  return { files, arm };
}

describe('a step of the disk that fails before the rename', () => {
  const steps: FileStep[] = ['create', 'write', 'fsync', 'close', 'mkdir', 'fsyncDirectory', 'rename'];
  const cases = steps.flatMap((step) => [BODY, LONG].map((body) => ({ step, body, bytes: body.length })));

  it.each(cases)('leaves nothing: $step ($bytes bytes)', async ({ step, body }) => {
    const { files, arm } = failing(step, 'EIO');
    const { accept, folder, journal, accepted } = accepting({ files });
    arm();
    await expect(accept(body)).rejects.toMatchObject({
      code: 'storage_failed',
      message: expect.stringContaining('EIO'),
      cause: { code: 'EIO' },
    });
    expect(archived(folder)).toEqual([]);
    expect([journal.count(), accepted.length]).toEqual([0, 0]);
    await expect(accept(body)).resolves.toMatchObject({ seq: 1 });
  });

  it.each([
    ['write', 'ENOSPC'],
    ['fsync', 'EDQUOT'],
    ['mkdir', 'ENOSPC'],
    ['rename', 'ENOSPC'],
  ] as const)('because the disk is full says so: %s', async (step, code) => {
    const { files, arm } = failing(step, code);
    const { accept, folder } = accepting({ files });
    arm();
    await expect(accept(LONG)).rejects.toMatchObject({ code: 'disk_full', status: 507 });
    expect(archived(folder)).toEqual([]);
  });
});

describe('a step that fails after the rename', () => {
  async function expectOrphan(opened: ReturnType<typeof accepting>, code: string): Promise<void> {
    const { accept, folder, journal, accepted } = opened;
    await expect(accept(BODY)).rejects.toMatchObject({ code });
    expect([journal.count(), accepted.length]).toEqual([0, 0]);
    const orphans = findOrphans(folder, journal);
    expect(archived(folder)).toEqual(orphans);
    expect(orphans.length).toBe(1);
    expect(parseArchivePath(orphans[0] ?? '')?.position.receivedAt).toBe(NOON);
  }

  it('leaves the file as an orphan and never gives its position out again: fsync of the folder', async () => {
    const { files, arm } = failing('fsyncDirectory', 'EIO', true);
    const opened = accepting({ files });
    arm();
    await expectOrphan(opened, 'storage_failed');
    expect((await opened.accept(BODY)).receivedAt).toBe(NOON + 1);
  });

  it('leaves the file as an orphan and never gives its position out again: INSERT', async () => {
    const opened = accepting();
    const other = new BetterSqlite3(opened.folder.journal);
    onTestFinished(() => void other.close());
    other.exec("CREATE TRIGGER no BEFORE INSERT ON delivery BEGIN SELECT RAISE(ABORT, 'no'); END");
    await expectOrphan(opened, 'storage_failed');
    other.exec('DROP TRIGGER no');
    expect((await opened.accept(BODY)).receivedAt).toBe(NOON + 1);
  });

  it('leaves the file as an orphan and never gives its position out again: COMMIT', async () => {
    const opened = accepting();
    const other = new BetterSqlite3(opened.folder.journal);
    onTestFinished(() => void other.close());
    // A deferred foreign key is looked at by COMMIT and by nothing before it.
    other.exec(`CREATE TABLE parent (x INTEGER PRIMARY KEY);
      CREATE TABLE child (x REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
      CREATE TRIGGER no AFTER INSERT ON delivery BEGIN INSERT INTO child VALUES (1); END`);
    await expectOrphan(opened, 'storage_failed');
    other.exec('DROP TRIGGER no');
    expect((await opened.accept(BODY)).receivedAt).toBe(NOON + 1);
  });
});
