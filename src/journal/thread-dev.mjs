/** First step of a worker that runs from the sources: teaches it TypeScript, then runs the module it was given. */
import { register } from 'tsx/esm/api';

register();
await import(process.argv[2]);
