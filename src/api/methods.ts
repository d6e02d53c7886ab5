/** Methods: an address that exists and is asked in another way says what it takes, instead of "there is none". */
import type { FastifyInstance } from 'fastify';
import { HealthlogError } from '../journal/errors.js';
import { pathOf } from './url.js';

/** Call it before the routes are made; what it returns, after. */
export function answerOtherMethods(app: FastifyInstance): () => void {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set();
    methodsOf.set(url, methods);
    for (const one of [method].flat()) methods.add(one);
  });
  return () => {
    for (const [url, methods] of [...methodsOf]) {
      const allowed = [...methods, 'OPTIONS'].sort().join(', ');
      const others = app.supportedMethods.filter((method) => !methods.has(method) && method !== 'OPTIONS');
      app.options(url, async (_request, reply) => reply.code(204).header('allow', allowed).send());
      app.route({
        method: others,
        url,
        handler: (request, reply) => {
          void reply.header('allow', allowed);
          throw new HealthlogError('method_not_allowed', {
            method: request.method,
            path: pathOf(request),
            allowed,
          });
        },
      });
    }
  };
}
