/**
 * Budget: every answer is out within a time, or its connection is ended.
 *
 * While nothing of the answer is written, the client is told that it took too long. After that (a client that
 * does not read what it asked for) only closing is left.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HealthlogError } from '../journal/errors.js';

/** For the answer that says that there is none. */
const LAST_WORD_MS = 2_000;

/** @param ms from now until the answer has been taken over by the system's network buffers */
export function limitAnswer(request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const cut = (): void => void request.raw.socket.destroy();
  let timer = setTimeout(() => {
    if (reply.sent || reply.raw.headersSent) {
      cut();
      return;
    }
    timer = setTimeout(cut, LAST_WORD_MS);
    timer.unref();
    void reply.send(new HealthlogError('took_too_long', { limit_s: Math.round(ms / 100) / 10 }));
  }, ms);
  timer.unref();
  reply.raw.once('close', () => clearTimeout(timer));
}
