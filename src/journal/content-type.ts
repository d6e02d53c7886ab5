/**
 * Which of the two export formats a Content-Type header names. The app sends `application/json`, or
 * `multipart/form-data` for CSV (hae-format.md §2.1); relays, shortcuts and curl send anything. A header that
 * says nothing (missing, empty, no type at all) or nothing definite (`text/plain`, octets, the form type curl
 * puts on every `-d`) is taken for JSON: the shape check looks at the body anyway. Only a type that clearly
 * names something else is refused.
 */

export type BodyKind = 'json' | 'csv';

const JSON_TYPES = new Set([
  'json',
  '*/*',
  'application/json',
  'application/x-json',
  'text/json',
  'text/x-json',
  'text/plain',
  'text',
  'application/octet-stream',
  'binary/octet-stream',
  'application/x-www-form-urlencoded',
]);

const CSV_TYPES = new Set([
  'csv',
  'text/csv',
  'text/x-csv',
  'text/comma-separated-values',
  'application/csv',
  'application/x-csv',
  'application/vnd.ms-excel',
]);

const MEDIA_TYPE = /^[a-z0-9!#$&^_.+*-]+\/[a-z0-9!#$&^_.+*-]+$/;

/** 'unknown' is a well-formed media type of another kind, 'nothing' no media type at all. */
function judgeOne(part: string): BodyKind | 'unknown' | 'nothing' {
  const type = (part.split(';', 1)[0] ?? '').replace(/["'\s]/g, '').toLowerCase();
  if (CSV_TYPES.has(type) || type.startsWith('multipart/')) return 'csv';
  if (JSON_TYPES.has(type) || (MEDIA_TYPE.test(type) && type.endsWith('+json'))) return 'json';
  return MEDIA_TYPE.test(type) ? 'unknown' : 'nothing';
}

/**
 * The format the header names; null when it names something that is neither (answer 415). Of a header that was
 * sent twice (joined with commas) the first part that names a format counts.
 */
export function judgeContentType(raw: string | undefined): BodyKind | null {
  const judged = (raw ?? '').split(',').map(judgeOne);
  for (const kind of judged) if (kind === 'json' || kind === 'csv') return kind;
  return judged.includes('unknown') ? null : 'json';
}
