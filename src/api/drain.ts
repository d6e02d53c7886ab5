/**
 * Drain: what is left of a request that was refused before its body was read.
 *
 * Closing at once would reset the connection, and the person with the phone would see "connection lost" instead
 * of the reason. Reading on for ever would let anybody keep a connection busy. So the rest is read and thrown
 * away, within bounds.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

const DRAIN_BYTES_MAX = 64 * 1024 * 1024;
const DRAIN_MS_MAX = 5_000;

/** Call it before the answer's head is written. */
export function drain(message: IncomingMessage, response: ServerResponse): void {
  if (message.complete || message.destroyed) return;
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
