import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Suspect } from '../../src/projections/suspect.js';
import { idOf } from '../support/lab.js';
import { tmpDir } from '../support/tmp.js';

let path: string;
const A = idOf(1);
const B = idOf(2);
beforeEach(() => {
  path = join(tmpDir(), 'suspect');
});

/** A worker that dies while it folds `id`. */
function diesOn(id: typeof A, pid: number, lastDeath: 'memory' | 'other' | 'watchdog' | null): void {
  const suspect = new Suspect(path, pid, lastDeath);
  suspect.before(id);
  suspect.close();
}

describe('a delivery that kills its worker', () => {
  it('is tried a second time, and condemned after two deaths in a row', () => {
    diesOn(A, 1, null);
    const second = new Suspect(path, 1, 'other');
    expect(second.verdict(A)).toBeNull();
    second.before(A);
    second.close();
    const third = new Suspect(path, 1, 'other');
    expect(third.verdict(A)).toMatchObject({ type: 'Failed', data: { class: 'broken' } });
    expect(third.verdict(B)).toBeNull();
    third.close();
  });

  it('is too_large when the worker ran out of memory', () => {
    diesOn(A, 1, null);
    diesOn(A, 1, 'memory');
    const third = new Suspect(path, 1, 'memory');
    expect(third.verdict(A)).toMatchObject({ data: { class: 'too_large' } });
    third.close();
  });

  it('is acquitted by a fold that ends', () => {
    diesOn(A, 1, null);
    const second = new Suspect(path, 1, 'other');
    second.before(A);
    second.after(A);
    second.before(B);
    second.after(B);
    second.close();
    diesOn(A, 1, null);
    const fourth = new Suspect(path, 1, 'other');
    expect(fourth.verdict(A)).toBeNull();
    fourth.close();
  });

  it('takes five deaths of the whole process: somebody may have killed it', () => {
    for (let pid = 1; pid <= 5; pid++) {
      const suspect = new Suspect(path, pid, null);
      expect(suspect.verdict(A)).toBeNull();
      suspect.before(A);
      suspect.close();
    }
    const sixth = new Suspect(path, 6, null);
    expect(sixth.verdict(A)).toMatchObject({ data: { class: 'broken' } });
    sixth.close();
  });

  it('leaves no note when nothing is being folded, and a torn note names nobody', () => {
    const suspect = new Suspect(path, 1, null);
    suspect.before(A);
    suspect.after(A);
    suspect.close();
    expect(readFileSync(path, 'utf8')).toBe('');
    writeFileSync(path, '{"id":"0000');
    const next = new Suspect(path, 2, null);
    expect(next.verdict(A)).toBeNull();
    next.close();
  });
});
