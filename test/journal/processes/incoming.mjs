/** An empty run, as a child process hands it to the acceptor. */
import { Readable } from 'node:stream';

export const body = () => Readable.from([Buffer.from('{"data":{}}')]);

export const incoming = {
  profile: 'me',
  source: 'http',
  contentType: null,
  contentCoding: null,
  headers: {},
  declaredBytes: null,
  kind: 'json',
  complete: () => true,
};
