/** Which files become deliveries and which do not, and what is on the disk afterwards. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { findFiles } from '../../src/cli/import/find.js';
import { dataFolder } from '../../src/journal/folder.js';
import { archived } from '../journal/support.js';
import { bodies, body, type Files, files, imported, rows, told } from '../support/importing.js';
import { zipOf } from '../support/zip.js';

describe('what is taken in', () => {
  it('is every file that was named, whatever it is called, byte for byte and in the order given', async () => {
    const list = {
      'b.txt': ` ${body('b')}\n`,
      'a.json': body('a'),
      '.hidden': `[${body('c')}]`,
      noname: '{}',
    };
    const root = files(list);
    const names = Object.keys(list);
    const { data, taken } = await imported(names.map((name) => join(root, name)));
    expect(told(taken, root)).toEqual(names.map((name) => `imported ${name}`));
    expect(bodies(data)).toEqual(Object.values(list));
    expect(rows(data).map(({ source, profile, contentType }) => [source, profile, contentType])).toEqual(
      names.map(() => ['import', 'me', 'application/json']),
    );
  });

  it('is of a folder what is called like an export, walked in sorted order; the rest is named', async () => {
    const root = files({
      'b/2.json': body('3'),
      'b/10.JSON': body('2'),
      'a.json': body('1'),
      'c.csv': 'Date,Steps\n2026-03-10,5\n',
      'd.json.gz': gzipSync(body('5')),
      'e.gz': gzipSync(body('6')),
      'f.zip': zipOf([{ name: 'in.json', data: body('7') }]),
      'notes.txt': 'hello',
      'logs.tar.gz': gzipSync('x'),
      '.DS_Store': 'x',
      '.git/x.json': body('no'),
    });
    const { data, taken } = await imported([root]);
    expect(told(taken, root)).toEqual([
      'left_out .DS_Store',
      'left_out .git',
      'imported a.json',
      'imported b/10.JSON',
      'imported b/2.json',
      'imported c.csv',
      'imported d.json.gz',
      'imported e.gz',
      'imported f.zip/in.json',
      'left_out logs.tar.gz',
      'left_out notes.txt',
    ]);
    expect(bodies(data).map((text) => JSON.stringify(text))).toEqual(
      ['1', '2', '3', 'csv', '5', '6', '7'].map((note) =>
        JSON.stringify(note === 'csv' ? 'Date,Steps\n2026-03-10,5\n' : body(note)),
      ),
    );
  });

  it('is not the data folder itself, met on the way, and nothing behind a link to a folder', async () => {
    const root = files({ 'data/lost.json': body('x'), 'a.json': body('a'), 'other/b.json': body('b') });
    symlinkSync(root, join(root, 'loop'));
    symlinkSync(join(root, 'loop'), join(root, 'loop.json'));
    symlinkSync(join(root, 'nowhere'), join(root, 'gone.json'));
    symlinkSync(join(root, 'other/b.json'), join(root, 'zlink.json'));
    const { taken } = await imported([root], {
      data: dataFolder(join(root, 'data')),
    });
    expect(told(taken, root)).toEqual([
      'imported a.json',
      'left_out data',
      'refused file_unreadable gone.json',
      'left_out loop',
      'left_out loop.json',
      'imported other/b.json',
      'known zlink.json',
    ]);
  });

  it('is not the data folder itself, named', async () => {
    const root = files({ 'data/lost.json': body('x') });
    const { taken } = await imported([join(root, 'data')], { data: dataFolder(join(root, 'data')) });
    expect(told(taken, root)).toEqual(['left_out data']);
  });

  it('may have a name that is no text', async () => {
    const root = files({ 'a.json': body('a') });
    const name = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe]), Buffer.from('.json')]);
    writeFileSync(name, body('odd'));
    const { data, taken } = await imported([root]);
    expect(taken.map(({ result }) => result)).toEqual(['imported', 'imported']);
    expect(bodies(data)).toEqual([body('a'), body('odd')]);
  });

  it('may be compressed, in one gzip member or several, and is kept decompressed', async () => {
    const text = body('long '.repeat(30_000));
    const halves = [gzipSync(text.slice(0, 70_000)), gzipSync(text.slice(70_000))];
    const root = files({ 'a.json': gzipSync(body('a')), 'b.gz': Buffer.concat(halves) });
    const { data, taken } = await imported([join(root, 'a.json'), join(root, 'b.gz')]);
    expect(told(taken, root)).toEqual(['imported a.json', 'imported b.gz']);
    expect(bodies(data)).toEqual([body('a'), text]);
  });

  it.each([
    ['plain', Buffer.from(body('in'))],
    ['gzip', gzipSync(body('in'))],
  ])('may come from standard input, %s', async (_kind, stdin) => {
    const { data, taken } = await imported(['-'], { stdin });
    expect(told(taken, '')).toEqual(['imported -']);
    expect(bodies(data)).toEqual([body('in')]);
  });

  it('may be CSV: by its name, unless it is JSON after all', async () => {
    const root = files({
      'a.csv': '"Date","Steps"\n',
      'b.CSV.gz': gzipSync('Date\n'),
      'c.csv': ` ${body('c')}`,
    });
    const { data } = await imported([root]);
    expect(rows(data).map(({ contentType }) => contentType)).toEqual([
      'text/csv',
      'text/csv',
      'application/json',
    ]);
  });
});

describe('what is refused is named, leaves nothing, and the rest goes on', () => {
  const wide = body('w'.repeat(1_100_000));
  const packed = gzipSync(body('noise'.repeat(50_000)));
  it.each<[string, Files, string]>([
    ['empty', { 'x.json': '' }, 'empty_body'],
    ['blank', { 'x.json': ' \n' }, 'empty_body'],
    ['no JSON', { 'x.json': 'hello' }, 'shapeless_body'],
    ['half', { 'x.json': '{"data":' }, 'truncated'],
    ['too large', { 'x.json': wide }, 'too_large'],
    ['too large when decompressed', { 'x.json.gz': gzipSync(wide) }, 'too_large'],
    ['a cut gzip', { 'x.json.gz': packed.subarray(0, packed.length - 20) }, 'file_damaged'],
    [
      'a broken gzip',
      { 'x.json.gz': Buffer.concat([packed.subarray(0, 40), Buffer.alloc(400)]) },
      'file_damaged',
    ],
    ['a gzip of nothing', { 'x.json.gz': gzipSync('') }, 'empty_body'],
  ])('%s', async (_name, list, code) => {
    const root = files({ ...list, 'z.json': body('z') });
    const { data, taken } = await imported([root]);
    const [name = ''] = Object.keys(list);
    expect(told(taken, root)).toEqual([`refused ${code} ${name}`, 'imported z.json']);
    expect(archived(data).length).toBe(1);
  });

  it('a name that does not exist', async () => {
    const root = files({ 'a.json': body('a') });
    const { taken } = await imported([join(root, 'nope.json'), join(root, 'a.json/b'), root]);
    expect(told(taken, root)).toEqual([
      'refused file_unreadable nope.json',
      'refused file_unreadable a.json/b',
      'imported a.json',
    ]);
  });

  it('a device is read as a stream, to its end or to the limit', async () => {
    const { taken } = await imported(['/dev/null', '/dev/zero']);
    expect(told(taken, '/dev')).toEqual(['refused empty_body null', 'refused too_large zero']);
  });

  it('standard input named twice is a mistake of the one who typed', () => {
    expect(() => findFiles(['-', '-'], '/nowhere')).toThrow(expect.objectContaining({ code: 'usage' }));
    expect(() => findFiles([], '/nowhere')).toThrow(expect.objectContaining({ code: 'usage' }));
  });
});
