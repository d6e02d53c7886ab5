/** ZIP files: whole, odd, damaged and hostile ones. */
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../../src/cli/import/crc32.js';
import { bodies, body, files, imported, told } from '../support/importing.js';
import { type ZipPart, zipOf } from '../support/zip.js';

describe('a ZIP file', () => {
  const parts: readonly ZipPart[] = [
    { name: 'Export/', data: '', stored: true },
    { name: 'Export/metrics.json', data: body('deflated') },
    { name: 'Export/workouts.json', data: body('stored'), stored: true },
    { name: 'Export/late.json', data: body('descriptor'), descriptor: true },
    { name: 'Export/steps.csv', data: 'Date,Steps\n', descriptor: true },
    { name: 'Export/packed.json.gz', data: gzipSync(body('gzip')), stored: true },
    { name: 'Export/route.gpx', data: '<gpx/>' },
    { name: 'Export/more.zip', data: zipOf([{ name: 'deep.json', data: body('deep') }]) },
    { name: '__MACOSX/Export/._metrics.json', data: 'x' },
    { name: '../../evil.json', data: body('evil') },
    { name: './here.json', data: body('here') },
    { name: 'back\\slash.json', data: body('backslash') },
    { name: Buffer.from([0xff, 0x80, 0x2e, 0x6a, 0x73, 0x6f, 0x6e]), data: body('odd name') },
    { name: 'schön.json', data: body('umlaut') },
  ];
  const results = [
    'imported Export/metrics.json',
    'imported Export/workouts.json',
    'imported Export/late.json',
    'imported Export/steps.csv',
    'imported Export/packed.json.gz',
    'left_out Export/route.gpx',
    'left_out Export/more.zip',
    'left_out __MACOSX/Export/._metrics.json',
    'left_out ../../evil.json',
    'imported ./here.json',
    'imported back/slash.json',
    'imported \u00a0Ç.json',
    'imported schön.json',
  ];

  it('gives a delivery for each entry that is JSON or CSV, and names the others', async () => {
    const root = files({ 'export.bin': zipOf(parts) });
    const zip = join(root, 'export.bin');
    const { data, taken } = await imported([zip]);
    expect(told(taken, `${zip}`)).toEqual(results);
    expect(bodies(data)).toEqual(
      ['deflated', 'stored', 'descriptor', 'csv', 'gzip', 'here', 'backslash', 'odd name', 'umlaut'].map(
        (note) => (note === 'csv' ? 'Date,Steps\n' : body(note)),
      ),
    );
  });

  it('may come from standard input', async () => {
    const { taken } = await imported(['-'], { stdin: zipOf(parts) });
    expect(told(taken, '-')).toEqual(results);
  });

  it('may be empty', async () => {
    const root = files({ 'a.zip': zipOf([]) });
    expect((await imported([join(root, 'a.zip')])).taken).toEqual([]);
  });

  it('refuses an entry that is not what the table of contents says, and takes the others', async () => {
    const bomb = Buffer.from(`[${' '.repeat(2_000_000)}]`);
    const root = files({
      'a.zip': zipOf([
        { name: 'crc.json', data: body('1'), claims: { crc: 1 } },
        { name: 'crc-big.json', data: body('x'.repeat(100_000)), claims: { crc: 1 } },
        { name: 'longer.json', data: body('2'), claims: { size: 20 } },
        { name: 'shorter.json', data: body('3'), claims: { size: 2000 } },
        { name: 'method.json', data: body('4'), claims: { method: 12 } },
        { name: 'secret.json', data: body('5'), claims: { flags: 1 } },
        { name: 'announced.json', data: bomb },
        { name: 'hidden.json', data: bomb, claims: { size: 1000 } },
        { name: 'twice.json.gz', data: gzipSync(bomb), stored: true },
        { name: 'noise.json', data: body('6'), claims: { method: 8 }, stored: true },
        { name: 'good.json', data: body('good') },
      ]),
    });
    const zip = join(root, 'a.zip');
    const { data, taken } = await imported([zip]);
    expect(told(taken, zip)).toEqual([
      'refused file_damaged crc.json',
      'refused file_damaged crc-big.json',
      'refused file_damaged longer.json',
      'refused file_damaged shorter.json',
      'refused file_unreadable method.json',
      'refused file_unreadable secret.json',
      'refused too_large announced.json',
      'refused file_damaged hidden.json',
      'refused too_large twice.json.gz',
      'refused file_damaged noise.json',
      'imported good.json',
    ]);
    expect(bodies(data)).toEqual([body('good')]);
  });

  it.each([0.3, 0.6, 0.99])('that was cut at %d of its length is refused as a whole', async (part) => {
    const whole = zipOf(parts);
    const root = files({ 'a.zip': whole.subarray(0, Math.floor(whole.length * part)), 'b.json': body('b') });
    const { taken } = await imported([root]);
    expect(told(taken, root)).toEqual(['refused file_damaged a.zip', 'imported b.json']);
  });
});

describe('the checksum of ZIP files', () => {
  it('is CRC-32, in one piece or several', () => {
    expect(crc32(Buffer.from('123456789'))).toBe(0xcbf43926);
    expect(crc32(Buffer.from('6789'), crc32(Buffer.from('12345')))).toBe(0xcbf43926);
    expect(crc32(Buffer.alloc(0))).toBe(0);
  });
});
