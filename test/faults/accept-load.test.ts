/** A short slice of `npm run -s load`: many phones and two imports at the same time. */
import { expect, it } from 'vitest';
import { acceptLoad } from '../long/accept-load.js';

it('keeps every confirmed delivery, in one order, while phones send, hang up, and two processes import', async () => {
  const report = await acceptLoad({ seed: 20_261_201, seconds: 3, connections: 16, importers: 2, files: 40 });
  expect(report.faults).toEqual([]);
  expect(report.accepted).toBeGreaterThan(0);
  expect(report.imported).toBe(80);
});
