/** The service as users run it: compiled, a process of its own, with tokens made by its own command. */
import { execFile, execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ROOT, type StartedServer, startServer } from './harness.js';

const FOLD_MS_MAX = 180_000;
const POLL_MS = 15;

/** The service runs compiled, as users run it; what is measured must be what stands in src. */
export function compile(): void {
  const args = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
  execFileSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 2, 2] });
}

export function startService(data: string, ...settings: string[]): Promise<StartedServer> {
  const address = ['--host', '127.0.0.1', '--port', '0'];
  return startServer(['bin/healthlog', 'serve', ...address, '--data', data, ...settings]);
}

/** What the app sends with every request. */
export function phoneHeaders(token: string): Readonly<Record<string, string>> {
  return {
    authorization: `Bearer ${token}`,
    'automation-id': '3F2504E0-4F89-41D3-9A0C-0305E82C3301',
    'automation-name': 'Health Metrics',
    'automation-aggregation': 'Minutes',
    'automation-period': 'Since Last Sync',
  };
}

export async function makeToken(data: string, name: string, scope: string): Promise<string> {
  const args = [
    'bin/healthlog',
    'token',
    'add',
    name,
    '--scope',
    scope,
    '--profile',
    'me',
    '--json',
    '--data',
    data,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: 30_000 });
  const made: unknown = JSON.parse(stdout);
  if (typeof made === 'object' && made !== null && 'token' in made && typeof made.token === 'string')
    return made.token;
  throw new Error('token add printed no token');
}

/** Waits until the service has nothing left to fold. */
export async function untilIdle(base: URL, token: string): Promise<void> {
  const deadlineMs = performance.now() + FOLD_MS_MAX;
  for (;;) {
    const answer = await fetch(new URL('/v1/status', base), {
      headers: { authorization: `Bearer ${token}` },
    });
    const status: unknown = await answer.json();
    if (!answer.ok) throw new Error(`/v1/status answered ${answer.status}: ${JSON.stringify(status)}`);
    if (typeof status !== 'object' || status === null || !('pending' in status) || !('state' in status)) {
      throw new Error('/v1/status does not say how much is pending');
    }
    if (status.pending === 0 && status.state !== 'folding') return;
    if (performance.now() > deadlineMs)
      throw new Error(`${String(status.pending)} deliveries are still pending`);
    await delay(POLL_MS);
  }
}
