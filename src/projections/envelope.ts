/**
 * Envelope: the sections of a delivery, whatever is wrapped around them (hae-format.md §3.2).
 *
 * Accepted are `{"data":{…}}`, the older form without `data`, a list of either (one delivery, one layer), the
 * nested form of the app's other server (`data.healthMetrics.metrics`), and any of these once more inside a
 * JSON text. An empty object or list, and a section that is null, are an empty run.
 */
import { MalformedBody } from './failure.js';
import { isObject, type JsonObject, own } from './json.js';
import { type Report, shownName } from './report.js';
import { isKnownSection, SECTION_ALIASES } from './sections/names.js';

/** Lists of a section by its name, all envelopes of the delivery together. */
export type Sections = ReadonlyMap<string, readonly unknown[]>;

const NESTING_MAX = 4;

/** @throws MalformedBody when no envelope can be found */
export function openEnvelope(body: unknown, report: Report): Sections {
  const sections = new Map<string, unknown[]>();
  if (!open(body, sections, report, 0)) {
    throw new MalformedBody('the body holds nothing that looks like an export of the app');
  }
  return sections;
}

/** False when `value` is no envelope. */
function open(value: unknown, into: Map<string, unknown[]>, report: Report, depth: number): boolean {
  if (depth > NESTING_MAX) return false;
  if (typeof value === 'string') return openText(value, into, report, depth);
  if (Array.isArray(value)) {
    let opened = 0;
    for (const item of value) {
      if (open(item, into, report, depth + 1)) opened += 1;
      else report.skip('envelope', 'a part of the list is no export of the app');
    }
    return opened > 0 || value.length === 0;
  }
  if (!isObject(value)) return false;
  if (Object.hasOwn(value, 'data')) return openData(value, into, report, depth);
  const keys = Object.keys(value);
  if (keys.length > 0 && !keys.some((key) => isKnownSection(key))) return false;
  takeSections(value, into, report);
  return true;
}

function openText(text: string, into: Map<string, unknown[]>, report: Report, depth: number): boolean {
  let inner: unknown;
  try {
    inner = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
  return typeof inner !== 'string' && open(inner, into, report, depth + 1);
}

function openData(wrapper: JsonObject, into: Map<string, unknown[]>, report: Report, depth: number): boolean {
  const data = own(wrapper, 'data');
  for (const key of Object.keys(wrapper)) {
    if (key !== 'data') report.unknown(`the field "${shownName(key)}" beside "data"`);
  }
  if (data === null) return true;
  if (Array.isArray(data) || typeof data === 'string') return open(data, into, report, depth + 1);
  if (!isObject(data)) return false;
  takeSections(data, into, report);
  return true;
}

function takeSections(holder: JsonObject, into: Map<string, unknown[]>, report: Report): void {
  for (const key of Object.keys(holder)) {
    const name = SECTION_ALIASES.get(key) ?? key;
    const items = listOf(own(holder, key), name);
    if (items === null) {
      report.skip(name, `the section "${shownName(name)}" is not a list`);
      continue;
    }
    const known = into.get(name);
    if (known === undefined) into.set(name, [...items]);
    else for (const item of items) known.push(item);
  }
}

/** The list of a section; null when there is none to be found. */
function listOf(value: unknown, name: string): readonly unknown[] | null {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value;
  if (!isObject(value)) return null;
  const inner = own(value, name);
  if (Array.isArray(inner)) return inner;
  // A relay that sends one entry without a list around it.
  return Object.hasOwn(value, 'name') || Object.hasOwn(value, 'start') ? [value] : null;
}
