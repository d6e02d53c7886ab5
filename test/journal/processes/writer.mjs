/** Accepts a number of deliveries, several at a time. Arguments: journal modules, data folder, how many. */
import { body, incoming } from './incoming.mjs';

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
console.log('ready');
const one = () => acceptor.accept(body(), incoming);
await Promise.all(Array.from({ length: Number(count) }, one));
await acceptor.close();
