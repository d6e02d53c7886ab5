/**
 * Commands: what README.md and docs/ tell people to type is typed here.
 *
 * Every fenced `sh` block is run, in order within its page and as in one terminal: a variable set in one block is
 * there in the next. The page's service is a real one on a free port; its address stands in for the usual one.
 * Blocks that start the service or install packages are fenced without `sh` and are not run.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Service } from '../support/service.js';
import { tmpDir } from '../support/tmp.js';
import { type Fence, fences, page, pages } from './markdown.js';

const ADDRESS = 'http://localhost:8477';
const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const FIXTURES = fileURLToPath(new URL('../fixtures', import.meta.url));
const ERROR_BODY = /\{"error":\{"code":/;
/** Fences that mean "type this" in other houses; here they would escape this test. */
const NOT_USED = new Set(['bash', 'shell', 'console', 'zsh', 'shell-session']);

interface Ran {
  readonly code: number | null;
  readonly output: string;
  /** Everything curl received, whatever the block did with it. */
  readonly answers: string;
}

function executable(path: string, lines: readonly string[]): void {
  writeFileSync(path, `${['#!/bin/sh', ...lines].join('\n')}\n`);
  chmodSync(path, 0o755);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function found(tool: string): string | null {
  const { stdout, status } = spawnSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

/** A working copy as a reader has it: ./bin/healthlog, test/fixtures, ./data, with the service running. */
class WorkingCopy {
  readonly #root: string;
  readonly #service: Service;
  #environment: NodeJS.ProcessEnv;

  private constructor(root: string, service: Service, environment: NodeJS.ProcessEnv) {
    this.#root = root;
    this.#service = service;
    this.#environment = environment;
  }

  static async make(curl: string): Promise<WorkingCopy> {
    const root = tmpDir();
    const data = join(root, 'data');
    for (const folder of ['bin', 'test', 'tools']) mkdirSync(join(root, folder));
    symlinkSync(FIXTURES, join(root, 'test/fixtures'));
    executable(join(root, 'bin/healthlog'), [`exec ${quoted(process.execPath)} ${quoted(PROGRAM)} "$@"`]);
    executable(join(root, 'tools/curl'), [
      `${quoted(curl)} "$@" >"$ANSWERS.one"; code=$?`,
      'cat "$ANSWERS.one" >>"$ANSWERS"; cat "$ANSWERS.one"; exit $code',
    ]);
    const service = await Service.start({ data });
    return new WorkingCopy(root, service, {
      ...process.env,
      PATH: `${join(root, 'tools')}${delimiter}${process.env.PATH ?? ''}`,
      HEALTHLOG_DATA: data,
    });
  }

  async run(block: string): Promise<Ran> {
    const left = join(this.#root, 'environment');
    const answers = join(this.#root, 'answers');
    writeFileSync(answers, '');
    // -a exports what the block sets; the trap hands it on to the next block.
    const script = `trap 'env -0 >${quoted(left)}' EXIT\n${block.replaceAll(ADDRESS, this.#service.url)}\n`;
    const child = spawn('bash', ['-a', '-euo', 'pipefail', '-c', script], {
      cwd: this.#root,
      env: { ...this.#environment, ANSWERS: answers },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    }
    await once(child, 'close');
    this.#environment = Object.fromEntries(
      readFileSync(left, 'utf8')
        .split('\0')
        .filter((entry) => entry.includes('='))
        .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    );
    return { code: child.exitCode, output, answers: readFileSync(answers, 'utf8') };
  }

  async end(): Promise<void> {
    await this.#service.stop();
  }
}

function titleOf({ line, text }: Fence): string {
  return `line ${line}: ${text.split('\n', 1)[0] ?? ''}`;
}

const all = pages().map((path) => ({ path, blocks: fences(page(path)) }));
const curl = found('curl');
const missing = ['curl', 'bash', 'zcat'].filter((tool) => found(tool) === null);

describe('the blocks of README.md and docs/', () => {
  it('hold commands that are run here', () => {
    const typed = all.filter(({ blocks }) => blocks.some(({ language }) => language === 'sh'));
    expect(typed.map(({ path }) => path)).toEqual(expect.arrayContaining(['README.md', 'docs/api.md']));
  });

  it('use no other name for a shell, which would keep their commands from being run', () => {
    const escaped = all.flatMap(({ path, blocks }) =>
      blocks.filter(({ language }) => NOT_USED.has(language)).map((block) => `${path}, ${titleOf(block)}`),
    );
    expect(escaped).toEqual([]);
  });

  it('leave nothing else to be installed for them to run', () => {
    for (const { blocks } of all)
      for (const { language, text } of blocks)
        if (language === 'sh') expect(text).not.toMatch(/\bnpm\b|\bnpx\b|healthlog serve/);
  });
});

for (const { path, blocks } of all) {
  const commands = blocks.filter(({ language }) => language === 'sh');
  if (commands.length === 0) continue;
  describe.skipIf(missing.length > 0)(`the commands of ${path}`, () => {
    let copy: WorkingCopy;
    beforeAll(async () => {
      copy = await WorkingCopy.make(curl ?? 'curl');
    });
    afterAll(() => copy.end());

    for (const block of commands) {
      it(titleOf(block), async () => {
        const { code, output, answers } = await copy.run(block.text);
        expect(output).not.toMatch(ERROR_BODY);
        expect(answers).not.toMatch(ERROR_BODY);
        expect(code, output).toBe(0);
      });
    }
  });
}
