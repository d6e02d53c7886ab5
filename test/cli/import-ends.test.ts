/** How `healthlog import` ends: what it says, its exit codes, signals, and folding that stands still. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { dataFolder } from '../../src/journal/folder.js';
import {
  children,
  endAll,
  lines,
  newData,
  Running,
  summary,
  WEEK_FLAGS,
  week,
} from '../support/import-run.js';
import { files, rows } from '../support/importing.js';
import { healthlog, Service } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';

afterEach(endAll);

describe('what is said at the end', () => {
  it('names what was refused and why, takes the rest, and ends with 1', () => {
    const data = newData();
    const root = files({
      'a.json': week(1, '2026-03-10'),
      'b.json': '',
      'c.json': '{"data":',
      'd.csv': 'Date\n',
    });
    const args = ['import', root, 'nowhere', '--data', data, ...WEEK_FLAGS];
    const { code, stdout } = healthlog(args);
    expect(code).toBe(1);
    expect(stdout).toContain('b.json was refused: The body is empty.');
    expect(stdout).toContain('c.json was refused: The body stops in the middle');
    expect(stdout).toContain('nowhere was refused: The file cannot be read: there is no such file.');
    expect(stdout.match(/what to do: /g)?.length).toBe(4);
    expect(stdout).toContain('d.csv is in, as delivery');
    expect(stdout).toMatch(/^refused {8}3$/m);
    const asJson = lines(healthlog([...args, '--json']).stdout);
    expect(asJson).toContainEqual(
      expect.objectContaining({ result: 'refused', error: expect.objectContaining({ code: 'empty_body' }) }),
    );
    expect(asJson.at(-1)).toMatchObject({
      summary: { imported: 0, known: 2, refused: 3, failed: 1, exit_code: 1 },
    });
  });

  it.each([
    [[], 'No file was named'],
    [['-', '-'], 'can be read once'],
    [['x', '--aggregation', 'none'], 'Seconds, Minutes, Hours, Days'],
    [['x', '--period', 'lately'], 'Since Last Sync'],
    [['x', '--as-of', '2199-01-01'], 'in the future'],
  ])('a mistake of typing is told with what is known: %j', (args, text) => {
    const data = newData();
    const { code, stderr } = healthlog(['import', '--data', data, ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(text);
    expect(existsSync(data)).toBe(false);
  });

  it('standard input is a file like any other', async () => {
    const data = newData();
    const stdin = Buffer.from(week(1, '2026-03-10'));
    const { code, stdout } = await new Running(['-', '--data', data, '--json', ...WEEK_FLAGS], stdin).ended();
    expect([code, lines(stdout)[0]]).toMatchObject([
      0,
      { file: '-', result: 'imported', parse_status: 'parsed' },
    ]);
  });
});

describe('folding that stands still', () => {
  function pause(data: string): void {
    const journal = new BetterSqlite3(dataFolder(data).journal);
    journal.prepare('UPDATE meta SET paused = 1').run();
    journal.close();
  }

  it('is not waited for: what is pending is said, with the reason, and the exit code is 4', async () => {
    const root = files({ 'a.json': week(1, '2026-03-10'), 'b.json': week(2, '2026-03-10') });
    const alone = newData();
    healthlog(['import', join(root, 'a.json'), '--data', alone, ...WEEK_FLAGS]);
    pause(alone);
    const service = await Service.start();
    pause(service.data);
    for (const data of [alone, service.data]) {
      const { code, stdout } = await new Running([
        join(root, 'b.json'),
        '--data',
        data,
        ...WEEK_FLAGS,
      ]).ended();
      expect(code).toBe(4);
      expect(stdout).toContain('1 delivery is in and not folded yet (folding was paused by a person)');
    }
    expect(existsSync(join(alone, 'lock.json'))).toBe(false);
  });
});

describe('a signal', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s ends the import after the file at hand, and what is not in is named: exit code 4',
    async (signal) => {
      const data = newData();
      const root = files({ 'a.json': week(1, '2026-03-10'), 'c.json': week(3, '2026-03-10') });
      const fifo = join(tmpDir(), 'pipe');
      execFileSync('mkfifo', [fifo]);
      mkdirSync(join(root, 'd'));
      writeFileSync(join(root, 'd/e.json'), week(4, '2026-03-10'));
      const args = [
        join(root, 'a.json'),
        fifo,
        join(root, 'c.json'),
        join(root, 'd'),
        '--data',
        data,
        ...WEEK_FLAGS,
      ];
      const running = new Running(args);
      // Opening the pipe for writing waits until the import reads from it; then a.json is in.
      const pipe = spawn('sh', ['-c', 'exec 3>"$0"; echo open; cat >&3', fifo], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      children.add(pipe);
      await once(pipe.stdout, 'data');
      running.child.kill(signal);
      pipe.stdin.end(week(2, '2026-03-10'));
      const { code, stdout } = await running.ended();
      expect(code).toBe(4);
      expect(stdout).toContain('The run was ended. Not imported:');
      expect(stdout).toMatch(/c\.json$/m);
      expect(stdout).toMatch(/e\.json$/m);
      expect(rows(dataFolder(data)).length).toBe(2);
      expect(readdirSync(join(data, 'archive/incoming'))).toEqual([]);
      const rest = healthlog(['import', root, '--data', data, '--json', ...WEEK_FLAGS]);
      expect([rest.code, summary(rest.stdout)]).toMatchObject([0, { imported: 2, known: 1, pending: 0 }]);
      expect(rows(dataFolder(data)).length).toBe(4);
      expect(healthlog(['verify', '--data', data]).code).toBe(0);
    },
  );

  it('that is the second one ends it at once, even while it reads', async () => {
    const data = newData();
    const root = files({ 'a.json': week(1, '2026-03-10') });
    const fifo = join(tmpDir(), 'pipe');
    execFileSync('mkfifo', [fifo]);
    const running = new Running([join(root, 'a.json'), fifo, '--data', data, ...WEEK_FLAGS]);
    const pipe = spawn('sh', ['-c', 'exec 3>"$0"; echo open; cat >&3', fifo], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    children.add(pipe);
    await once(pipe.stdout, 'data');
    running.child.kill('SIGINT');
    if (running.child.stderr === null) throw new Error('stderr is not piped');
    await once(running.child.stderr, 'data');
    running.child.kill('SIGTERM');
    await running.ended();
    expect(running.child.signalCode).toBe('SIGTERM');
    expect(rows(dataFolder(data)).length).toBe(1);
  });
});
