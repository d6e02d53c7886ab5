import { describe, expect, it } from 'vitest';
import { judgeContentType } from '../../src/journal/content-type.js';

describe('a Content-Type header', () => {
  it.each([
    [undefined, 'json'],
    ['', 'json'],
    ['   ', 'json'],
    ['application/json', 'json'],
    ['APPLICATION/JSON; charset=utf-8', 'json'],
    ['application/json;charset="UTF-8"', 'json'],
    ['"application/json"', 'json'],
    ['application/json, application/json', 'json'],
    ['image/png, application/json', 'json'],
    ['application/problem+json', 'json'],
    ['text/json', 'json'],
    ['text/plain', 'json'],
    ['application/octet-stream', 'json'],
    ['application/x-www-form-urlencoded', 'json'],
    ['json', 'json'],
    ['; charset=utf-8', 'json'],
    ['nonsense', 'json'],
    ['a b c', 'json'],
    ['*/*', 'json'],
    ['multipart/form-data; boundary=Boundary-1', 'csv'],
    ['Multipart/Form-Data; boundary="a,b"', 'csv'],
    ['multipart/mixed', 'csv'],
    ['text/csv', 'csv'],
    ['text/csv; header=present', 'csv'],
    ['application/csv', 'csv'],
    ['application/vnd.ms-excel', 'csv'],
    ['csv', 'csv'],
    ['image/png', null],
    ['text/html', null],
    ['application/xml', null],
    ['text/xml; charset=utf-8', null],
    ['application/pdf', null],
    ['application/gzip', null],
    ['text/html, image/png', null],
  ])('%s is taken for %s', (raw, kind) => {
    expect(judgeContentType(raw)).toBe(kind);
  });
});
