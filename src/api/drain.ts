/**
 * Drain: what is left of a request that was refused before its body was read.
 *
 * Closing at once would reset the connection, and the person with the phone would see "connection lost" instead
 * of the reason. Reading on for ever would let anybody keep a connection busy. So the rest is read and thrown
 * away, within bounds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { awaitsContinue, invite } from './request-body.js';

export const DRAIN_BYTES_MAX = 256 * 1024 * 1024;
export const DRAIN_MS_MAX = 10_000;

const draining = new WeakSet<IncomingMessage>();

/** Call it before the answer's head is written. */
export function drain(message: IncomingMessage, response: ServerResponse): void {
  if (message.complete || message.destroyed || draining.has(message)) return;
  if (awaitsContinue(message)) {
    // It waits with its body and none has come: node says no by closing after the answer.
    if (message.readableLength === 0) return;
    invite(message, response);
  }
  draining.add(message);
  // Asked to close, node would do so right after the answer, in the middle of the client's upload.
  const closing = !response.shouldKeepAlive;
  response.shouldKeepAlive = true;
  let bytes = 0;
  const giveUp = (): void => void message.socket.destroy();
  const timer = setTimeout(giveUp, DRAIN_MS_MAX);
  timer.unref();
  message.unpipe();
  message.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > DRAIN_BYTES_MAX) giveUp();
  });
  message.once('end', () => {
    if (!closing) return;
    if (response.writableFinished) message.socket.end();
    else response.once('finish', () => message.socket.end());
  });
  message.once('close', () => clearTimeout(timer));
  message.resume();
}
