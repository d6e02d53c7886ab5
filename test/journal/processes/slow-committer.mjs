/**
 * Accepts one delivery and stays in its commit section for a while, between rename and COMMIT.
 * Arguments: journal modules, data folder.
 */
import { writeSync } from 'node:fs';
import { body, incoming } from './incoming.mjs';

const [, , journal, root] = process.argv;
const { Acceptor } = await import(`${journal}accept.js`);
const { systemClock } = await import(`${journal}clock.js`);
const { nodeFiles } = await import(`${journal}files.js`);
const { dataFolder } = await import(`${journal}folder.js`);

const STAY_MS = 400;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

const acceptor = new Acceptor({
  folder: dataFolder(root),
  clock: systemClock,
  files: {
    ...nodeFiles,
    rename: (from, to) => {
      nodeFiles.rename(from, to);
      writeSync(1, 'renamed\n');
      Atomics.wait(sleeper, 0, 0, STAY_MS);
    },
  },
  bodyBytesMax: 1000,
  onAccepted: () => undefined,
});
await acceptor.accept(body(), incoming);
await acceptor.close();
