/** The newest date in a body: the best guess at when an old file was made. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatStamp } from '../../src/projections/dates.js';
import { newestStamp } from '../../src/projections/newest-stamp.js';

function newest(body: unknown): string | null {
  const at = newestStamp(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
  return at === null ? null : new Date(at / 1000).toISOString();
}

const LATE = '2026-03-10 22:05:00 +0100';
const LATE_UTC = '2026-03-10T21:05:00.000Z';

describe('the newest stamp of a body', () => {
  it.each([
    [{ data: { metrics: [{ data: [{ date: '2026-03-09 00:00:00 +0100' }, { date: LATE }] }] } }, LATE_UTC],
    [[{ data: {} }, { data: { workouts: [{ start: LATE, end: '2026-03-10 22:04:59 +0100' }] } }], LATE_UTC],
    [{ anything: { nobody: [[{ knows: LATE }]] } }, LATE_UTC],
    [{ date: '2026-03-10 21:05:00' }, LATE_UTC],
    [{ date: '2026-03-10' }, '2026-03-10T00:00:00.000Z'],
    [{ date: '2026-03-10 10:05:00\u202fPM +0100' }, LATE_UTC],
    [{ [LATE]: 1, number: 1_800_000_000 }, null],
    [{ date: '2026-02-30 00:00:00 +0000' }, null],
    [{ until: '9999-12-31 23:59:59 +0000', date: LATE, since: '0001-01-01 00:00:00 +0000' }, LATE_UTC],
    [{ data: { metrics: [] } }, null],
    ['[]', null],
  ])('is read from whatever holds it: %j → %s', (body, expected) => {
    expect(newest(body)).toBe(expected);
  });

  it('is the latest instant, not the latest text', () => {
    expect(newest(['2026-03-10 23:00:00 +0900', LATE])).toBe(LATE_UTC);
  });

  it('is found in a document that was packed into a text, as often as the envelope unpacks it', () => {
    const document = JSON.stringify({ data: { metrics: [{ name: 'step_count', data: [{ date: LATE }] }] } });
    expect(newest(JSON.stringify(document))).toBe(LATE_UTC);
    expect(newest({ data: document })).toBe(LATE_UTC);
    let packed = document;
    for (let times = 0; times < 6; times++) packed = JSON.stringify({ data: packed });
    expect(newest(packed)).toBe(null);
  });

  it.each(['', 'no JSON', '{"date":"2026-03-10', 'Date,Steps\n2026-03-10,5\n'])(
    'is unknown when the body cannot be parsed: %j',
    (body) => {
      expect(newest(body)).toBe(null);
    },
  );

  it('is unknown when the body is beyond what the fold takes, packed or not', () => {
    const many = `[${Array.from({ length: 1000 }, () => `"${LATE}"`).join(',')}]`;
    expect(newestStamp(Buffer.from(many), 100)).toBe(null);
    expect(newestStamp(Buffer.from(JSON.stringify(many)), 100)).toBe(null);
    expect(newestStamp(Buffer.from(many), 2000)).not.toBe(null);
  });

  it('does not depend on how deep it lies', () => {
    const depth = 100_000;
    expect(newest(`${'['.repeat(depth)}"${LATE}"${']'.repeat(depth)}`)).toBe(LATE_UTC);
  });

  it('is the greatest of all stamps, in whatever order they come', () => {
    const stamp = fc.record({
      ms: fc.integer({ min: Date.UTC(2014, 0), max: Date.UTC(2030, 0) }),
      offset: fc.integer({ min: -720, max: 840 }),
    });
    fc.assert(
      fc.property(fc.array(stamp, { minLength: 1 }), (stamps) => {
        const at = newestStamp(
          Buffer.from(JSON.stringify(stamps.map(({ ms, offset }) => ({ date: formatStamp(ms, offset) })))),
        );
        expect(at).toBe(Math.max(...stamps.map(({ ms }) => ms)) * 1000);
      }),
    );
  });
});
