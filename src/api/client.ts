/**
 * Client: whose request this is. Behind a trusted proxy (`--trusted-proxies`) the framework takes the address from
 * X-Forwarded-For: the first one, seen from here, that is no trusted proxy itself. Without one that header means
 * nothing, because anybody can send it.
 */
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** What stands in X-Forwarded-For is only taken when it is an address. */
export function clientAddress(request: FastifyRequest): string {
  // Fastify has no address for a connection that is gone already, whatever its types say.
  const forwarded: string | undefined = request.ip;
  if (forwarded !== undefined && isIP(forwarded) !== 0) return forwarded;
  return request.raw.socket.remoteAddress ?? 'unknown';
}
