/**
 * Threads: starts a worker from the module beside the caller, compiled or not.
 *
 * Installed and in the container every module is compiled and the worker simply runs it. From the sources
 * (development, tests) a worker does not know TypeScript by itself: it starts in thread-dev.mjs, which registers
 * the loader first.
 */
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** @param module the compiled name of the worker's module: `new URL('./x-thread.js', import.meta.url)` */
export function startThread(module: URL, options: WorkerOptions = {}): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(module, options);
  const source = new URL(module.href.replace(/\.js$/, '.ts'));
  return new Worker(new URL('./thread-dev.mjs', import.meta.url), { ...options, argv: [source.href] });
}
