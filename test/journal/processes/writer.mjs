/** Accepts a number of deliveries, several at a time. Arguments: journal modules, data folder, how many. */
import { Readable } from 'node:stream';

const [, , journal, root, count] = process.argv;
const { Acceptor } = await import(`${journal}accept.js`);
const { systemClock } = await import(`${journal}clock.js`);
const { dataFolder } = await import(`${journal}folder.js`);

const acceptor = new Acceptor({
  folder: dataFolder(root),
  clock: systemClock,
  bodyBytesMax: 1000,
  onAccepted: () => undefined,
});
const incoming = {
  profile: 'me',
  source: 'http',
  contentType: null,
  contentCoding: null,
  headers: {},
  declaredBytes: null,
  kind: 'json',
  complete: () => true,
};
console.log('ready');
const one = () => acceptor.accept(Readable.from([Buffer.from('{"data":{}}')]), incoming);
await Promise.all(Array.from({ length: Number(count) }, one));
await acceptor.close();
