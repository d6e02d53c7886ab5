import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contains, incomparable, sourceSet, sourceSetName } from '../../src/projections/sources.js';

const names = fc.uniqueArray(
  fc.constantFrom('N’s Apple Watch', 'N’s iPhone', '💖✨💫', 'Oura', 'a', 'B', 'é'),
);

describe('the devices behind a point', () => {
  it.each<[string | null, readonly string[]]>([
    [null, []],
    ['', []],
    [' ', []],
    ['|', []],
    [' | ', []],
    ['N’s iPhone', ['N’s iPhone']],
    ['Watch|iPhone', ['Watch', 'iPhone']],
    ['iPhone|Watch', ['Watch', 'iPhone']],
    ['iPhone | Watch', ['Watch', 'iPhone']],
    ['W|W|W', ['W']],
    ['W||V|', ['V', 'W']],
    ['N’s Apple\u00a0Watch|💖✨💫', ['N’s Apple Watch', '💖✨💫']],
    ['N’s Apple Watch', ['N’s Apple Watch']],
    ['\u00a0Watch\u00a0|\u00a0iPhone', ['Watch', 'iPhone']],
    ['watch|Watch', ['Watch', 'watch']],
  ])('of %j are %j', (source, set) => {
    expect(sourceSet(source)).toEqual(set);
    expect(sourceSetName(source)).toBe(set.join('|'));
  });

  it('are the same in every order, with repeats and with spaces around the bar', () => {
    fc.assert(
      fc.property(names, fc.constantFrom('|', ' | ', '|\u00a0'), fc.integer(), (list, bar, turn) => {
        const at = list.length === 0 ? 0 : Math.abs(turn) % list.length;
        const turned = [...list.slice(at), ...list.slice(0, at), ...list.slice(at)];
        expect(sourceSetName(turned.join(bar))).toBe(sourceSetName(list.join('|')));
        expect(sourceSet(turned.join(bar))).toHaveLength(list.length);
      }),
    );
  });

  it('have one spelling that names the same set', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'b', '|', ' ', '\u00a0', '💫') }), (source) => {
        const name = sourceSetName(source);
        expect(sourceSetName(name)).toBe(name);
        expect(sourceSet(name)).toEqual(sourceSet(source));
      }),
    );
  });

  it('are read the same whatever was read before', () => {
    for (let i = 0; i < 5000; i++) sourceSet(`device ${i}`);
    expect(sourceSet('iPhone|Watch')).toEqual(['Watch', 'iPhone']);
    const long = Array.from({ length: 2000 }, (_, i) => `device ${i % 100}`).join('|');
    expect(sourceSet(long)).toHaveLength(100);
  });
});

describe('two sets of devices', () => {
  it.each([
    [['a', 'b'], ['a'], true, false],
    [['a', 'b'], [], true, false],
    [[], [], true, false],
    [['a'], ['a', 'b'], false, false],
    [['a', 'c'], ['b'], false, true],
    [['a', 'b'], ['b', 'c'], false, true],
  ])('%j contains %j: %s, incomparable: %s', (a, b, containing, disagreeing) => {
    expect(contains(a, b)).toBe(containing);
    expect(incomparable(a, b)).toBe(disagreeing);
    expect(incomparable(b, a)).toBe(disagreeing);
  });

  it('are compared as sets', () => {
    fc.assert(
      fc.property(names, names, (left, right) => {
        const a = sourceSet(left.join('|'));
        const b = sourceSet(right.join('|'));
        const holds = (outer: readonly string[], inner: readonly string[]) =>
          inner.every((name) => outer.includes(name));
        expect(contains(a, b)).toBe(holds(a, b));
        expect(incomparable(a, b)).toBe(!holds(a, b) && !holds(b, a));
      }),
    );
  });
});
