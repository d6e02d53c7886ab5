/**
 * Settings: flag, then environment, then default. Checked once at start; what is unknown is refused, because a
 * misspelt setting that is silently ignored is found too late.
 */
import { isIP } from 'node:net';
import { z } from 'zod';
import { HealthlogError } from '../journal/errors.js';

const MIB = 1024 * 1024;

interface Setting<T> {
  readonly flag: string;
  readonly env: string;
  readonly value: z.ZodType<T>;
  readonly fallback: T;
  readonly help: string;
}

function setting<T>(flag: string, value: z.ZodType<T>, fallback: T, help: string): Setting<T> {
  return { flag, env: `HEALTHLOG_${flag.toUpperCase().replaceAll('-', '_')}`, value, fallback, help };
}

/** Digits only: `Number` would take an empty text for 0. */
const count = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, 'it is not a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `the least is ${min}`).max(max, `the most is ${max}`));

/** Networks that go by a name, as everywhere among web servers. */
const NAMED_NETWORKS = new Set(['loopback', 'linklocal', 'uniquelocal']);

function isProxy(text: string): boolean {
  if (NAMED_NETWORKS.has(text)) return true;
  const [address = '', bits, more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more !== undefined) return false;
  // A network of no bits is everybody, and everybody could then claim any address.
  return bits === undefined || (/^[1-9]\d*$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

const proxies = z
  .string()
  .transform((text) => text.split(',').map((part) => part.trim().toLowerCase()))
  .superRefine((parts, context) => {
    const wrong = parts.find((part) => !isProxy(part));
    if (wrong === undefined) return;
    context.addIssue({
      code: 'custom',
      message: `"${wrong}" is neither an address (192.168.1.2), nor a network (10.0.0.0/8), nor ${[...NAMED_NETWORKS].join(', ')}`,
    });
  })
  .readonly();

/** Every route answers with the prefix and without it, so the two must not be taken for each other. */
const OWN_ADDRESSES = new Set(['v1', 'api', 'healthz', 'readyz', 'metrics', 'docs', 'openapi.json']);

const basePath = z
  .string()
  .regex(
    /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/,
    'it begins with "/", does not end with one, and holds letters, digits, "-", ".", "_" and "~" only',
  )
  .refine(
    (path) => !OWN_ADDRESSES.has(path.split('/')[1] ?? ''),
    'the service has addresses of its own there',
  );

/** Where the data lies: every command takes it. */
export const DATA = setting('data', z.string().min(1), './data', 'the data folder');

/** Settings of the service. docs/operations.md lists them; a test compares the two. */
export const SERVE = {
  host: setting('host', z.string().min(1), '0.0.0.0', 'address to listen on'),
  port: setting('port', count(0, 65_535), 8477, 'port to listen on; 0 picks a free one'),
  bodyLimit: setting('body-limit', count(1, 2 ** 31 - 1), 200 * MIB, 'largest body in bytes'),
  uploadsMax: setting('uploads-max', count(1, 10_000), 64, 'uploads that may run at the same time'),
  commitGroup: setting('commit-group', count(1, 1000), 64, 'deliveries that may share one commit'),
  uploadTimeout: setting('upload-timeout', count(1, 86_400), 300, 'seconds for receiving one upload'),
  stallTimeout: setting('stall-timeout', count(1, 86_400), 60, 'seconds an upload may stand still'),
  requestTimeout: setting('request-timeout', count(1, 3600), 30, 'seconds for every other request'),
  trustedProxies: setting(
    'trusted-proxies',
    proxies,
    null,
    'addresses and networks of proxies whose X-Forwarded-For is believed, separated by commas',
  ),
  basePath: setting('base-path', basePath, null, 'path under which a proxy shows the service'),
  stopBudget: setting('stop-budget', count(0, 3600), 8, 'seconds for finishing at a stop'),
  foldMemory: setting(
    'fold-memory',
    count(128, 1_048_576),
    null,
    'MiB of memory for folding; half of the machine, at most 4096, when not set',
  ),
  logLevel: setting('log-level', z.enum(['error', 'warn', 'info', 'debug']), 'info', 'what is logged'),
} as const satisfies Record<string, Setting<unknown>>;

type Values<S extends Record<string, Setting<unknown>>> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};
export type ServeSettings = Values<typeof SERVE>;

/** What `serve` was given. Throws HealthlogError usage, as resolveSetting does. */
export function serveSettings(
  flags: Readonly<Record<string, unknown>>,
  environment: NodeJS.ProcessEnv,
): ServeSettings {
  return resolveAll(SERVE, flags, environment);
}

/** The one place that knows that each value came from the setting of its name. */
function resolveAll<S extends Record<string, Setting<unknown>>>(
  settings: S,
  flags: Readonly<Record<string, unknown>>,
  environment: NodeJS.ProcessEnv,
): Values<S> {
  const entries = Object.entries(settings).map(([name, one]) => [
    name,
    resolveSetting(one, flags[name], environment),
  ]);
  return Object.fromEntries(entries);
}

const KNOWN_ENV = new Set<string>([DATA.env, ...Object.values(SERVE).map(({ env }) => env)]);

/** @throws HealthlogError usage, naming a HEALTHLOG_ variable that means nothing */
export function refuseUnknownEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(env)) {
    if (!name.startsWith('HEALTHLOG_') || KNOWN_ENV.has(name)) continue;
    throw new HealthlogError('usage', {
      reason: `The environment variable ${name} is not a setting. Known are ${[...KNOWN_ENV].join(', ')}.`,
    });
  }
}

/** @throws HealthlogError usage when the value does not fit */
export function resolveSetting<T>(
  { flag, env, value, fallback }: Setting<T>,
  given: unknown,
  environment: NodeJS.ProcessEnv,
): T {
  const fromEnv = environment[env];
  const raw = given ?? fromEnv;
  if (raw === undefined) return fallback;
  const parsed = value.safeParse(raw);
  if (parsed.success) return parsed.data;
  const where = given === undefined ? env : `--${flag}`;
  throw new HealthlogError('usage', {
    reason: `${where} cannot be "${String(raw)}": ${parsed.error.issues[0]?.message ?? 'not valid'}.`,
  });
}
