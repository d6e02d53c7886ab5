import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { acquireLock, lockHolder } from '../../src/journal/lock.js';
import { tmpData } from '../support/tmp.js';
import { program } from './processes/run.js';
import { SetClock } from './support.js';

const clock = new SetClock();

describe('the lock of a data folder', () => {
  it('is taken, given up, and taken again', () => {
    const folder = tmpData();
    expect(lockHolder(folder)).toBeNull();
    const lock = acquireLock(folder, clock);
    expect(existsSync(folder.lockInfo)).toBe(true);
    lock.release();
    lock.release();
    expect(existsSync(folder.lockInfo)).toBe(false);
    expect(lockHolder(folder)).toBeNull();
    acquireLock(folder, clock).release();
  });

  it('is not taken twice in one process, nor asked for by its holder', () => {
    const folder = tmpData();
    const lock = acquireLock(folder, clock);
    expect(() => acquireLock(folder, clock)).toThrow(
      `process ${process.pid}, started 2026-11-30T12:00:00.000000Z`,
    );
    expect(() => lockHolder(folder)).toThrow('may not ask');
    lock.release();
  });

  it('names the other process that holds it, and is free as soon as that was killed', async () => {
    const folder = tmpData();
    const holder = program('lock-holder', folder.root);
    expect(await holder.line()).toBe('held');
    const { pid } = holder.process;
    expect(lockHolder(folder)).toMatchObject({ pid });
    expect(() => acquireLock(folder, clock)).toThrow(
      expect.objectContaining({
        code: 'locked',
        exitCode: 5,
        message: expect.stringContaining(`process ${pid}`),
      }),
    );
    holder.process.kill('SIGKILL');
    await expect(holder.ended()).rejects.toThrow();
    expect(existsSync(folder.lockInfo)).toBe(true);
    expect(lockHolder(folder)).toBeNull();
    acquireLock(folder, clock).release();
  });

  it('holds when nobody can say who holds it', async () => {
    const folder = tmpData();
    const holder = program('lock-holder', folder.root);
    await holder.line();
    writeFileSync(folder.lockInfo, 'scribble');
    expect(lockHolder(folder)).toEqual({ pid: 0, startedAt: 'unknown' });
    expect(() => acquireLock(folder, clock)).toThrow('process unknown');
  });
});
