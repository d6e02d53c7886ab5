/** Takes the lock of a data folder and keeps it until it is killed. Arguments: journal modules, data folder. */
const [, , journal, root] = process.argv;
const { systemClock } = await import(`${journal}clock.js`);
const { dataFolder } = await import(`${journal}folder.js`);
const { acquireLock } = await import(`${journal}lock.js`);

// Nobody keeps what this gives back: the lock has to outlive a garbage collection all the same.
acquireLock(dataFolder(root), systemClock);
globalThis.gc();
await new Promise((resolve) => setImmediate(resolve));
console.log('held');
setInterval(() => undefined, 60_000);
