/** A disk or a journal that fails under an upload: what the phone is told, and what is left. */
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ErrorCode } from '../../src/journal/errors.js';
import { ERRORS } from '../../src/journal/errors.js';
import { type FileStep, platformError, watchedFiles } from '../journal/support.js';
import { Api, BODY, post } from './support.js';

const LARGE = `["${Array.from({ length: 40_000 }, (_, i) => i).join(' ')}"]`;
const NOTHING = { rows: 0, files: 0, incoming: 0 };

describe('an upload that the disk does not take', () => {
  it.each<[FileStep, string, string, ErrorCode]>([
    ['create', 'ENOSPC', BODY, 'disk_full'],
    ['create', 'EMFILE', BODY, 'storage_failed'],
    ['write', 'ENOSPC', BODY, 'disk_full'],
    ['write', 'ENOSPC', LARGE, 'disk_full'],
    ['write', 'EDQUOT', LARGE, 'disk_full'],
    ['write', 'EIO', LARGE, 'storage_failed'],
    ['fsync', 'EIO', BODY, 'storage_failed'],
    ['fsync', 'ENOSPC', LARGE, 'disk_full'],
    ['rename', 'EIO', BODY, 'storage_failed'],
    ['rename', 'ENOSPC', BODY, 'disk_full'],
  ])(
    '%s fails with %s: the phone is told, nothing is left, and the next one is taken',
    async (step, code, body, told) => {
      let isBroken = true;
      const files = watchedFiles((taken) => {
        if (isBroken && taken === step) throw platformError(code);
      });
      const api = await Api.start({ files });
      const token = api.token();
      const client = api.open();
      const answer = await client.send(post(token, body)).answer();
      expect(answer.status).toBe(ERRORS[told].status);
      expect(JSON.parse(answer.body).error.code).toBe(told);
      expect(api.onDisk()).toEqual(NOTHING);
      expect(await api.line(({ level }) => level === 'error')).toMatchObject({
        code: told,
        path: '/v1/ingest',
      });
      isBroken = false;
      // On the same connection.
      expect((await client.send(post(token)).answer(2)).status).toBe(200);
      expect(api.onDisk()).toEqual({ rows: 1, files: 1, incoming: 0 });
    },
  );

  it('because another program keeps the journal locked is told so', async () => {
    const api = await Api.start({ busyWaitMs: 20 });
    const token = api.token();
    const other = new BetterSqlite3(api.folder.journal);
    onTestFinished(() => void other.close());
    other.exec('BEGIN IMMEDIATE');
    const answer = await api.open().send(post(token)).answer();
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([503, 'journal_busy']);
    expect(api.onDisk()).toEqual(NOTHING);
    other.exec('ROLLBACK');
    expect((await api.open().send(post(token)).answer()).status).toBe(200);
  });
});
