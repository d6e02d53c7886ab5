/** The two parts of a Markdown page that a test can hold against the program: tables and fenced blocks. */
import { readdirSync, readFileSync } from 'node:fs';

const ROOT = new URL('../../', import.meta.url);

/** The text of a page, by its path in the project. */
export function page(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** README.md and every page of docs/, by their paths in the project. */
export function pages(): string[] {
  const docs = readdirSync(new URL('docs/', ROOT)).filter((name) => name.endsWith('.md'));
  return ['README.md', ...docs.sort().map((name) => `docs/${name}`)];
}

function cells(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

/** The rows of the first table with exactly these headings, each as cells. Throws when there is none. */
export function tableRows(text: string, headings: readonly string[]): string[][] {
  const lines = text.split('\n');
  const head = lines.findIndex(
    (line) => line.startsWith('|') && JSON.stringify(cells(line)) === JSON.stringify(headings),
  );
  if (head < 0) throw new Error(`there is no table with the headings ${headings.join(' | ')}`);
  const below = lines.slice(head + 2);
  const end = below.findIndex((line) => !line.startsWith('|'));
  return below.slice(0, end < 0 ? undefined : end).map(cells);
}

/** A cell that is one piece of code: `` `text` `` → `text`. */
export function code(cell: string | undefined): string {
  const match = /^`([^`]*)`$/.exec(cell ?? '');
  if (match?.[1] === undefined) throw new Error(`not one piece of code: ${cell}`);
  return match[1];
}

export interface Fence {
  /** What stands behind the opening fence: `sh`, `json`, … or ''. */
  readonly language: string;
  readonly text: string;
  /** Line of the opening fence, from 1. */
  readonly line: number;
}

/** All fenced blocks, in order. Throws when one is not closed. */
export function fences(text: string): Fence[] {
  const found: Fence[] = [];
  let open: { language: string; line: number; lines: string[] } | null = null;
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^```(\S*)\s*$/.exec(line);
    if (open !== null && fence?.[1] === '') {
      found.push({ language: open.language, text: open.lines.join('\n'), line: open.line });
      open = null;
    } else if (open !== null) open.lines.push(line);
    else if (fence !== null) open = { language: fence[1] ?? '', line: index + 1, lines: [] };
  }
  if (open !== null) throw new Error(`the block in line ${open.line} is not closed`);
  return found;
}
