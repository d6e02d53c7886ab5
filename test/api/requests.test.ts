/**
 * Every way in which a request can arrive: its bytes on a raw socket × the answer × what lies on the disk
 * afterwards × what the fold makes of it. Nothing is left behind in any refused case.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SLOWDOWN } from '../../src/api/slowdown.js';
import type { ErrorCode } from '../../src/journal/errors.js';
import { ERRORS } from '../../src/journal/errors.js';
import { type Answer, Api, answersIn, BODY, type Client } from './support.js';

const LIMIT = 200_000;
let api: Api;
const tokens = { phone: '', reading: '', admin: '' };
const ends: (() => Promise<void>)[] = [];

beforeAll(async () => {
  api = await Api.start(
    { limits: { bodyBytesMax: LIMIT }, slowdown: { ...SLOWDOWN, freeFailures: 1_000 } },
    (end) => ends.push(end),
  );
  tokens.phone = api.token('ingest');
  tokens.reading = api.token('read');
  tokens.admin = api.token('admin');
});
afterAll(async () => {
  for (const end of ends) await end();
});

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly version?: '1.0' | '1.1';
  readonly body?: string | Buffer;
  /** The line with the token; null for none. */
  readonly auth?: string | null;
  /** Null for no Content-Length. */
  readonly length?: number | string | null;
  readonly type?: string | null;
  readonly headers?: readonly string[];
  /** The client shuts its sending side after its last byte. */
  readonly end?: boolean;
}

/** A request as bytes; a `TOKEN` in its lines is the phone's. */
function bytesOf(sent: Sent): Buffer {
  const { method = 'POST', path = '/v1/ingest?wait=10', version = '1.1' } = sent;
  const { auth = 'Authorization: Bearer TOKEN', type = 'application/json', headers = [] } = sent;
  const body = Buffer.from(sent.body ?? BODY);
  const { length = body.length } = sent;
  const lines = [
    `${method} ${path} HTTP/${version}`,
    'Host: localhost',
    ...(auth === null ? [] : [auth]),
    ...(type === null ? [] : [`Content-Type: ${type}`]),
    ...(length === null ? [] : [`Content-Length: ${length}`]),
    ...headers,
  ];
  const text = lines
    .join('\r\n')
    .replaceAll('TOKEN', tokens.phone)
    .replaceAll('READING', tokens.reading)
    .replaceAll('ADMIN', tokens.admin);
  return Buffer.concat([Buffer.from(`${text}\r\n\r\n`), body]);
}

async function finalAnswer(client: Client, isHead: boolean): Promise<Answer> {
  if (isHead) {
    for (;;) {
      const [answer] = answersIn(client.received(), true);
      if (answer !== undefined) return answer;
      await client.more();
    }
  }
  for (let count = 1; ; count++) {
    const answer = await client.answer(count);
    if (answer.status >= 200) return answer;
  }
}

async function ask(sent: Sent): Promise<Answer> {
  const client = api.open().send(bytesOf(sent));
  if (sent.end === true) client.socket.end();
  const answer = await finalAnswer(client, sent.method === 'HEAD');
  client.socket.destroy();
  return answer;
}

const errorSchema = z.strictObject({
  error: z.strictObject({ code: z.string(), message: z.string().min(10), hint: z.string().min(10) }),
});
const folded = z.object({
  id: z.string(),
  received_at: z.string(),
  parse_status: z.string(),
  class: z.string(),
  reasons: z.array(z.string()),
});

interface Taken extends Sent {
  readonly what: string;
  /** What the fold makes of it. */
  readonly status: 'parsed' | 'partial' | 'failed';
  readonly class?: string;
  readonly reason?: RegExp;
}

interface Refused extends Sent {
  readonly what: string;
  readonly code: ErrorCode;
}

function chunked(...chunks: readonly (string | Buffer)[]): Buffer {
  const framed = chunks.flatMap((chunk) => [
    Buffer.from(`${Buffer.byteLength(chunk).toString(16)}\r\n`),
    Buffer.from(chunk),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...framed, Buffer.from('0\r\n\r\n')]);
}
const CHUNKED = { length: null, headers: ['Transfer-Encoding: chunked'] } as const;
const STEPS = {
  name: 'step_count',
  units: 'count',
  data: [{ date: '2026-03-10 08:07:30 +0100', qty: 5, source: 'Watch' }],
};
const DAY = JSON.stringify({ data: { metrics: [STEPS] } });
const CSV = 'Date,Step Count (count)\r\n2026-01-01,5\r\n';
const HTML = '<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>';

function multipart(name: string, type: string, content: string): string {
  return `--B\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n${content}\r\n--B--\r\n`;
}
const MULTIPART = 'multipart/form-data; boundary=B';
const NO_CSV = /CSV/;

const TYPES: readonly Taken[] = [
  { what: 'JSON', status: 'parsed' },
  { what: 'no content type', type: null, status: 'parsed' },
  { what: 'an empty content type', type: '', status: 'parsed' },
  { what: 'a blank content type', type: '   ', status: 'parsed' },
  { what: 'a content type in capitals', type: 'APPLICATION/JSON', status: 'parsed' },
  { what: 'a charset', type: 'application/json;charset="UTF-8"; q=1', status: 'parsed' },
  { what: 'a parameter that is none', type: 'application/json; ;;=', status: 'parsed' },
  { what: 'a content type in quotes', type: '"application/json"', status: 'parsed' },
  { what: 'two content types in one header', type: 'application/json, application/json', status: 'parsed' },
  {
    what: 'two headers with a content type, the odd one first',
    type: 'image/png',
    headers: ['Content-Type: application/json'],
    status: 'parsed',
  },
  { what: 'a content type that is a word', type: 'json', status: 'parsed' },
  { what: 'a content type that is nonsense', type: ';;;,,/', status: 'parsed' },
  { what: 'octets', type: 'application/octet-stream', status: 'parsed' },
  { what: 'plain text', type: 'text/plain', status: 'parsed' },
  { what: 'the form of curl -d', type: 'application/x-www-form-urlencoded', status: 'parsed' },
  { what: 'a JSON dialect', type: 'application/vnd.api+json', status: 'parsed' },
  { what: 'CSV', type: 'text/csv', body: CSV, status: 'failed', class: 'malformed', reason: NO_CSV },
  {
    what: 'CSV from a spreadsheet',
    type: 'application/vnd.ms-excel',
    body: CSV,
    status: 'failed',
    class: 'malformed',
    reason: NO_CSV,
  },
  {
    what: 'multipart with a CSV file, as the app sends it',
    type: MULTIPART,
    body: multipart('HealthAutoExport.csv', 'text/csv', CSV),
    status: 'failed',
    class: 'malformed',
    reason: NO_CSV,
  },
  {
    what: 'multipart with a JSON file, as shortcuts send it',
    type: MULTIPART,
    body: multipart('export.json', 'application/json', DAY),
    status: 'failed',
    class: 'malformed',
  },
];

const SHAPES: readonly Taken[] = [
  { what: 'a day', body: DAY, status: 'parsed' },
  { what: 'the app’s own empty run', body: '{\n  "data" : {\n\n  }\n}', status: 'parsed' },
  { what: '{}', body: '{}', status: 'parsed' },
  { what: '[]', body: '[]', status: 'parsed' },
  { what: '[[]]', body: '[[]]', status: 'parsed' },
  { what: '{"data":null}', body: '{"data":null}', status: 'parsed' },
  { what: '{"data":{}}', body: '{"data":{}}', status: 'parsed' },
  { what: '{"data":[]}', body: '{"data":[]}', status: 'parsed' },
  { what: 'sections that are null', body: '{"data":{"metrics":null,"workouts":null}}', status: 'parsed' },
  { what: 'no wrapper', body: JSON.stringify({ metrics: [STEPS], workouts: [] }), status: 'parsed' },
  { what: 'a list of exports', body: `[${DAY},${DAY}]`, status: 'parsed' },
  {
    what: 'a list with something else in it',
    body: `[${DAY},7]`,
    status: 'partial',
    reason: /no export of the app/,
  },
  { what: 'the document as a JSON text', body: JSON.stringify(DAY), status: 'parsed' },
  { what: 'an empty JSON text', body: '""', status: 'failed', class: 'malformed' },
  { what: 'a byte order mark', body: `\ufeff${DAY}`, status: 'parsed' },
  { what: 'blanks around it', body: `\r\n\t ${DAY} \n\n`, status: 'parsed' },
  {
    what: 'a section that does not exist',
    body: '{"data":{"dreams":[1]}}',
    status: 'partial',
    reason: /dreams/,
  },
  { what: 'something else in braces', body: '{"hello":"world"}', status: 'failed', class: 'malformed' },
  {
    what: 'what only looks like JSON',
    body: '{nonsense}',
    status: 'failed',
    class: 'malformed',
    reason: /not JSON/,
  },
  {
    what: 'a body cut where it happens to end with a brace',
    body: '{"data":{"metrics":[{"name":"a","data":[{"qty":1}',
    status: 'failed',
    class: 'malformed',
    reason: /not JSON/,
  },
  {
    what: 'characters that are no UTF-8',
    body: Buffer.from('{"data":{"\xe4":1}}', 'latin1'),
    status: 'partial',
  },
];

const CODINGS: readonly Taken[] = [
  { what: 'gzip', body: gzipSync(DAY), headers: ['Content-Encoding: gzip'], status: 'parsed' },
  { what: 'x-gzip', body: gzipSync(DAY), headers: ['Content-Encoding: x-gzip'], status: 'parsed' },
  { what: 'GZIP in capitals', body: gzipSync(DAY), headers: ['Content-Encoding:  GZIP '], status: 'parsed' },
  { what: 'identity', body: DAY, headers: ['Content-Encoding: identity'], status: 'parsed' },
  { what: 'an empty coding', body: DAY, headers: ['Content-Encoding:'], status: 'parsed' },
  {
    what: 'gzip and identity',
    body: gzipSync(DAY),
    headers: ['Content-Encoding: gzip, identity'],
    status: 'parsed',
  },
  {
    what: 'gzip in two members',
    body: Buffer.concat([gzipSync(DAY.slice(0, 20)), gzipSync(DAY.slice(20))]),
    headers: ['Content-Encoding: gzip'],
    status: 'parsed',
  },
  {
    what: 'gzip padded with zeros',
    body: Buffer.concat([gzipSync(DAY), Buffer.alloc(512)]),
    headers: ['Content-Encoding: gzip'],
    status: 'parsed',
  },
  {
    what: 'gzip in chunks',
    body: chunked(gzipSync(DAY).subarray(0, 30), gzipSync(DAY).subarray(30)),
    length: null,
    headers: ['Transfer-Encoding: chunked', 'Content-Encoding: gzip'],
    status: 'parsed',
  },
];

const FRAMES: readonly Taken[] = [
  {
    what: 'chunks without a length',
    body: chunked(DAY.slice(0, 9), DAY.slice(9)),
    ...CHUNKED,
    status: 'parsed',
  },
  {
    what: 'chunks with trailers',
    body: `${DAY.length.toString(16)}\r\n${DAY}\r\n0\r\nX-Checksum: 1\r\n\r\n`,
    ...CHUNKED,
    status: 'parsed',
  },
  {
    what: 'chunks with extensions',
    body: `${DAY.length.toString(16)};name=value\r\n${DAY}\r\n0\r\n\r\n`,
    ...CHUNKED,
    status: 'parsed',
  },
  { what: 'HTTP/1.0', version: '1.0', status: 'parsed' },
  { what: 'a client that shuts its side after its last byte and reads on', end: true, status: 'parsed' },
  { what: 'a client that asks first', headers: ['Expect: 100-continue'], status: 'parsed' },
  { what: 'a client that expects something else', headers: ['Expect: the-best'], status: 'parsed' },
  {
    what: 'Upgrade: h2c',
    headers: ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c'],
    status: 'parsed',
  },
];
const ADDRESSES: readonly Taken[] = [
  { what: 'a slash at the end', path: '/v1/ingest/?wait=10', status: 'parsed' },
  { what: 'two slashes at the beginning', path: '//v1/ingest?wait=10', status: 'parsed' },
  { what: 'a coded character', path: '/v1/%69ngest?wait=10', status: 'parsed' },
  {
    what: 'the whole URL, as for a proxy',
    path: 'http://health.home:8477/v1/ingest?wait=10',
    status: 'parsed',
  },
  {
    what: 'the vendor’s address and header',
    path: '/api/data?wait=10',
    auth: 'api-key: TOKEN',
    status: 'parsed',
  },
  {
    what: 'the vendor’s address with a slash',
    path: '/api/data/?wait=10',
    auth: 'api-key: TOKEN',
    status: 'parsed',
  },
  {
    what: 'anything in the query string',
    path: '/v1/ingest?token=a&&=&%zz&a[b]=1;c?d&wait=10',
    status: 'parsed',
  },
  { what: 'a wait with a fraction', path: '/v1/ingest?wait=9.5', status: 'parsed' },
];

const TOKENS: readonly Taken[] = [
  { what: 'a lower-case scheme', auth: 'authorization: bearer TOKEN', status: 'parsed' },
  { what: 'Bearer twice', auth: 'Authorization: Bearer Bearer TOKEN', status: 'parsed' },
  { what: 'Bearer with a colon', auth: 'Authorization: Bearer: TOKEN', status: 'parsed' },
  { what: 'the token in quotes', auth: 'Authorization: Bearer "TOKEN"', status: 'parsed' },
  { what: 'no scheme', auth: 'Authorization: TOKEN', status: 'parsed' },
  { what: 'X-API-Key', auth: 'X-API-Key: TOKEN', status: 'parsed' },
  { what: 'api-key', auth: 'api-key: TOKEN', status: 'parsed' },
  { what: 'Bearer in X-API-Key', auth: 'X-API-Key: Bearer TOKEN', status: 'parsed' },
  {
    what: 'a wrong one beside it',
    auth: 'Authorization: Bearer hl_x',
    headers: ['api-key: TOKEN'],
    status: 'parsed',
  },
  {
    what: 'a proxy’s own login beside it',
    auth: 'Authorization: Basic dXNlcjpwYXNz',
    headers: ['X-API-Key: TOKEN'],
    status: 'parsed',
  },
  {
    what: 'two Authorization headers',
    auth: 'Authorization: Basic dXNlcjpwYXNz',
    headers: ['Authorization: Bearer TOKEN'],
    status: 'parsed',
  },
  {
    what: 'one that may only read beside it',
    auth: 'Authorization: Bearer READING',
    headers: ['X-API-Key: TOKEN'],
    status: 'parsed',
  },
  { what: 'one that may do everything', auth: 'Authorization: Bearer ADMIN', status: 'parsed' },
];

const REFUSED: readonly Refused[] = [
  // content types
  { what: 'an image', type: 'image/png', code: 'unsupported_type' },
  { what: 'a page', type: 'text/html; charset=utf-8', code: 'unsupported_type' },
  { what: 'XML', type: 'application/xml', code: 'unsupported_type' },
  { what: 'a ZIP file', type: 'application/zip', code: 'unsupported_type' },
  // shapes
  { what: 'nothing', body: '', code: 'empty_body' },
  { what: 'nothing, and no length', body: '', length: null, code: 'empty_body' },
  { what: 'nothing in chunks', body: '0\r\n\r\n', ...CHUNKED, code: 'empty_body' },
  { what: 'blanks', body: ' \r\n\t', code: 'empty_body' },
  { what: 'a byte order mark alone', body: '\ufeff', code: 'empty_body' },
  { what: 'CSV without anything', type: 'text/csv', body: '\n', code: 'empty_body' },
  { what: 'null', body: 'null', code: 'shapeless_body' },
  { what: 'a number', body: '42', code: 'shapeless_body' },
  { what: 'a word', body: 'hello', code: 'shapeless_body' },
  { what: 'an error page of a proxy', body: HTML, code: 'shapeless_body' },
  {
    what: 'form fields',
    body: 'data=%7B%7D',
    type: 'application/x-www-form-urlencoded',
    code: 'shapeless_body',
  },
  { what: 'UTF-16 with a mark', body: Buffer.from(`\ufeff${DAY}`, 'utf16le'), code: 'not_utf8' },
  { what: 'UTF-16 without one', body: Buffer.from(DAY, 'utf16le'), code: 'not_utf8' },
  { what: 'gzip that does not say so', body: gzipSync(DAY), code: 'shapeless_body' },
  ...[1, 9, 10, 20, 40, 60, DAY.length - 2].map((at) => ({
    what: `a body that stops after ${at} bytes: ${DAY.slice(0, at).slice(-12)}`,
    body: DAY.slice(0, at),
    code: 'truncated' as const,
  })),
  { what: 'a JSON text without its end', body: JSON.stringify(DAY).slice(0, -1), code: 'truncated' },
  { what: 'one quote', body: '"', code: 'truncated' },
  // sizes
  { what: 'a length over the limit', body: '', length: LIMIT + 1, code: 'too_large' },
  { what: 'a length of many digits', body: '', length: '9'.repeat(15), code: 'too_large' },
  { what: 'chunks over the limit', body: chunked(`["${'x'.repeat(LIMIT)}"]`), ...CHUNKED, code: 'too_large' },
  // codings
  {
    what: 'a gzip bomb',
    body: gzipSync(`["${'x'.repeat(LIMIT * 20)}"]`),
    headers: ['Content-Encoding: gzip'],
    code: 'too_large',
  },
  { what: 'plain text called gzip', headers: ['Content-Encoding: gzip'], code: 'bad_gzip' },
  {
    what: 'gzip that is cut',
    body: gzipSync(DAY).subarray(0, -9),
    headers: ['Content-Encoding: gzip'],
    code: 'bad_gzip',
  },
  {
    what: 'gzip that is damaged',
    body: gzipSync(DAY).fill(0xff, 20, 24),
    headers: ['Content-Encoding: gzip'],
    code: 'bad_gzip',
  },
  {
    what: 'gzip with something behind it',
    body: Buffer.concat([gzipSync(DAY), Buffer.from('more')]),
    headers: ['Content-Encoding: gzip'],
    code: 'bad_gzip',
  },
  {
    what: 'gzip with half a member behind it',
    body: Buffer.concat([gzipSync(DAY), gzipSync(DAY).subarray(0, 12)]),
    headers: ['Content-Encoding: gzip'],
    code: 'bad_gzip',
  },
  { what: 'gzip of nothing', body: gzipSync(''), headers: ['Content-Encoding: gzip'], code: 'empty_body' },
  {
    what: 'gzip of half a body',
    body: gzipSync('{"data":'),
    headers: ['Content-Encoding: gzip'],
    code: 'truncated',
  },
  {
    what: 'brotli',
    body: brotliCompressSync(DAY),
    headers: ['Content-Encoding: br'],
    code: 'unsupported_coding',
  },
  {
    what: 'deflate',
    body: deflateSync(DAY),
    headers: ['Content-Encoding: deflate'],
    code: 'unsupported_coding',
  },
  {
    what: 'gzip twice',
    body: gzipSync(gzipSync(DAY)),
    headers: ['Content-Encoding: gzip, gzip'],
    code: 'unsupported_coding',
  },
  // frames
  { what: 'a body shorter than announced', length: BODY.length + 5, end: true, code: 'cut_off' },
  { what: 'chunks without their end', body: '17\r\n{"data"', ...CHUNKED, end: true, code: 'cut_off' },
  { what: 'headers without their end', body: '', length: '5\r\nX', end: true, code: 'bad_http' },
  { what: 'a chunk size that is none', body: `zz\r\n${BODY}`, ...CHUNKED, code: 'bad_http' },
  { what: 'a chunk longer than announced', body: `2\r\n${BODY}\r\n0\r\n\r\n`, ...CHUNKED, code: 'bad_http' },
  { what: 'two lengths that differ', headers: ['Content-Length: 6'], code: 'bad_http' },
  { what: 'the same length twice', headers: [`Content-Length: ${BODY.length}`], code: 'bad_http' },
  { what: 'a length that is no number', length: 'many', code: 'bad_http' },
  { what: 'a length below zero', length: -1, code: 'bad_http' },
  { what: 'a length and chunks', headers: ['Transfer-Encoding: chunked'], code: 'bad_http' },
  {
    what: 'a transfer coding that does not exist',
    length: null,
    headers: ['Transfer-Encoding: x'],
    code: 'bad_http',
  },
  { what: 'headers too large', headers: [`X-Pad: ${'x'.repeat(20_000)}`], code: 'headers_too_large' },
  { what: 'a header that is none', headers: ['no header'], code: 'bad_http' },
  { what: 'a method that does not exist', method: 'SEND', code: 'bad_http' },
  { what: 'HTTP of the future', version: '9.9' as '1.1', code: 'bad_http' },
  // tokens
  { what: 'no token', auth: null, code: 'unauthorized' },
  { what: 'a blank token', auth: 'Authorization:   ', code: 'unauthorized' },
  { what: 'a scheme alone', auth: 'Authorization: Bearer', code: 'unauthorized' },
  { what: 'a wrong token', auth: 'Authorization: Bearer hl_wrong', code: 'unauthorized' },
  { what: 'a token with something behind it', auth: 'Authorization: Bearer TOKENx', code: 'unauthorized' },
  { what: 'two words', auth: 'Authorization: Bearer TOKEN TOKEN', code: 'unauthorized' },
  { what: 'a login', auth: 'Authorization: Basic dXNlcjpwYXNz', code: 'unauthorized' },
  { what: 'the token in another header', auth: 'X-Token: TOKEN', code: 'unauthorized' },
  { what: 'the token in the query string', auth: null, path: '/v1/ingest?token=TOKEN', code: 'unauthorized' },
  { what: 'an endless token', auth: `Authorization: Bearer ${'x'.repeat(9_000)}`, code: 'unauthorized' },
  {
    what: 'a wrong token of one who asks first',
    auth: 'Authorization: Bearer hl_wrong',
    headers: ['Expect: 100-continue'],
    body: '',
    length: 20,
    code: 'unauthorized',
  },
  { what: 'a token that may only read', auth: 'Authorization: Bearer READING', code: 'forbidden' },
  // addresses
  { what: 'PUT', method: 'PUT', code: 'method_not_allowed' },
  { what: 'DELETE', method: 'DELETE', code: 'method_not_allowed' },
  { what: 'PATCH with an odd type', method: 'PATCH', type: 'a b c', code: 'method_not_allowed' },
  { what: 'QUERY', method: 'QUERY', type: null, code: 'method_not_allowed' },
  { what: 'TRACE', method: 'TRACE', body: '', length: null, code: 'method_not_allowed' },
  { what: 'POST to what is only read', path: '/v1/status', code: 'method_not_allowed' },
  {
    what: 'CONNECT',
    method: 'CONNECT',
    path: 'example:443',
    body: '',
    length: null,
    code: 'method_not_allowed',
  },
  { what: 'another address', path: '/ingest', code: 'not_found' },
  { what: 'more behind the address', path: '/v1/ingest/now', code: 'not_found' },
  { what: 'PROPFIND', method: 'PROPFIND', code: 'not_found' },
  { what: 'an address that cannot be decoded', path: '/v1/%zz', code: 'bad_request' },
  {
    what: 'a parameter that is too long',
    method: 'GET',
    path: `/v1/metrics/${'x'.repeat(200)}`,
    code: 'bad_request',
  },
  { what: 'no host', headers: [], path: '/v1/ingest', code: 'bad_request' },
  { what: 'a wait that is no number', path: '/v1/ingest?wait=soon', code: 'bad_request' },
  { what: 'a wait below zero', path: '/v1/ingest?wait=-1', code: 'bad_request' },
  { what: 'a wait that is too long', path: '/v1/ingest?wait=31', code: 'bad_request' },
  { what: 'a wait for ever', path: '/v1/ingest?wait=Infinity', code: 'bad_request' },
  { what: 'two waits', path: '/v1/ingest?wait=1&wait=2', code: 'bad_request' },
];

describe.each([
  ['content types', TYPES],
  ['shapes', SHAPES],
  ['codings', CODINGS],
  ['frames', FRAMES],
  ['addresses', ADDRESSES],
  ['tokens', TOKENS],
])('what is taken: %s', (_group, cases) => {
  it.each(cases)('$what: $status', async ({ status, reason, ...sent }) => {
    const before = api.onDisk();
    const answer = await ask(sent);
    expect(answer).toMatchObject({ status: 200 });
    const outcome = folded.parse(JSON.parse(answer.body));
    expect(outcome).toMatchObject({ parse_status: status, class: sent.class ?? 'folded' });
    if (status !== 'parsed') expect(outcome.reasons.length).toBeGreaterThan(0);
    if (reason !== undefined) expect(outcome.reasons.join('\n')).toMatch(reason);
    expect(api.onDisk()).toEqual({ rows: before.rows + 1, files: before.files + 1, incoming: 0 });
  });
});

describe('what is refused', () => {
  it.each(REFUSED)('$what: $code, and nothing is left behind', async ({ code, ...sent }) => {
    const before = api.onDisk();
    const raw = bytesOf(sent);
    const client = api
      .open()
      .send(sent.path === '/v1/ingest' && sent.headers?.length === 0 ? without(raw, 'Host') : raw);
    if (sent.end === true) client.socket.end();
    const answer = await finalAnswer(client, false);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    const { error } = errorSchema.parse(JSON.parse(answer.body));
    expect(error.code).toBe(code);
    expect(answer.status).toBe(ERRORS[code].status);
    // Texts are filled in, and repeat no secret.
    expect(`${error.message}${error.hint}`).not.toMatch(/\{[a-z_]+\}/);
    expect(answer.body).not.toContain(tokens.phone);
    expect(api.onDisk()).toEqual({ ...before, incoming: 0 });
    client.socket.destroy();
  });

  it('tells a client that only shuts its side, and tells one at a time what follows', async () => {
    const before = api.onDisk();
    const answers = await api.exchange(
      bytesOf({ method: 'GET', path: '/healthz', body: '', length: null }),
      bytesOf({ path: '/v1/ingest' }),
      'BLAH\r\n\r\n',
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 400]);
    expect(api.onDisk().rows).toBe(before.rows + 1);
  });
});

describe('what is asked without sending anything', () => {
  const asked = (method: string, path: string): Sent => ({
    method,
    path,
    auth: null,
    body: '',
    length: null,
    type: null,
  });

  it.each(['/v1/ingest', '/v1/ingest/', '/api/data', '/v1/ingest?token=x'])(
    'GET %s is readable',
    async (path) => {
      const answer = await ask(asked('GET', path));
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toContain('text/plain');
      expect(answer.body).toContain('Health Auto Export');
    },
  );

  it('HEAD is answered like GET, without the text', async () => {
    const answer = await ask(asked('HEAD', '/v1/ingest'));
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('');
  });

  it('OPTIONS says which methods there are, and 405 too', async () => {
    const options = await ask(asked('OPTIONS', '/v1/ingest'));
    expect(options).toMatchObject({ status: 204, headers: { allow: 'GET, HEAD, OPTIONS, POST' } });
    const refused = await ask(asked('DELETE', '/v1/status'));
    expect(refused).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } });
  });

  it('a 401 names the scheme', async () => {
    expect((await ask({ auth: null })).headers['www-authenticate']).toMatch(/^Bearer /);
  });
});

/** The same request without one of its lines. */
function without(raw: Buffer, name: string): Buffer {
  const text = raw.toString('latin1').replace(new RegExp(`^${name}: .*\r\n`, 'm'), '');
  return Buffer.from(text, 'latin1');
}
