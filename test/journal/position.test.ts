import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  comparePosition,
  deliveryId,
  fileStamp,
  formatMicros,
  micros,
  parseFileStamp,
  parseMicros,
} from '../../src/journal/position.js';
import { at } from './support.js';

const instants = fc.integer({ min: 0, max: at('2200-01-01T00:00:00Z') }).map(micros);

describe('an instant', () => {
  it('is written with six digits and read back as it was', () => {
    fc.assert(
      fc.property(instants, (instant) => {
        expect(formatMicros(instant)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
        expect(parseMicros(formatMicros(instant))).toBe(instant);
        expect(parseFileStamp(fileStamp(instant))).toBe(instant);
      }),
    );
  });

  it('sorts as text as it sorts as a number, in both forms', () => {
    fc.assert(
      fc.property(instants, instants, (a, b) => {
        expect(formatMicros(a) < formatMicros(b)).toBe(a < b);
        expect(fileStamp(a) < fileStamp(b)).toBe(a < b);
      }),
    );
  });

  it.each([
    '',
    '2026-11-30',
    '2026-11-30T12:00:00+01:00',
    '2026-13-30T12:00:00Z',
    // Microseconds of these years are not exact.
    '0001-01-01T00:00:00.000000Z',
    '2300-01-01T00:00:00.000000Z',
  ])('is not %j', (text) => {
    expect(parseMicros(text)).toBeNull();
  });

  it('fits in a double without loss, or is refused', () => {
    expect(() => micros(Number.MAX_SAFE_INTEGER + 1)).toThrow(RangeError);
    expect(() => micros(0.5)).toThrow(RangeError);
  });
});

describe('positions', () => {
  it('are ordered by instant, then by id', () => {
    const position = (instant: number, digit: string) => ({
      receivedAt: micros(instant),
      id: deliveryId(`0000000${digit}-0000-4000-8000-000000000000`),
    });
    const ordered = [position(1, '2'), position(2, '1'), position(2, 'a'), position(3, '0')];
    expect(ordered.toReversed().sort(comparePosition)).toEqual(ordered);
    expect(comparePosition(position(1, '1'), position(1, '1'))).toBe(0);
  });

  it('have lower-case ids only, so that text order is the order', () => {
    expect(() => deliveryId('3F2504E0-4F89-41D3-9A0C-0305E82C3301')).toThrow(RangeError);
  });
});
