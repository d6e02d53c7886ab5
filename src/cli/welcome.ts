/** What the first start prints: the tokens, the addresses, and what to type into the phone. */
import { networkInterfaces } from 'node:os';

export interface FreshTokens {
  readonly ingest: string;
  readonly read: string;
}

const EVERY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** Addresses under which a phone in the same network can reach this machine. */
function reachable(host: string): string[] {
  if (!EVERY_ADDRESS.has(host)) return [host];
  const found: string[] = [];
  for (const list of Object.values(networkInterfaces())) {
    for (const { address, family, internal } of list ?? [])
      if (!internal && family === 'IPv4') found.push(address);
  }
  return found.length > 0 ? found : ['127.0.0.1'];
}

/** @param basePath the prefix under which a proxy shows the service; null for none */
export function firstSteps(
  { ingest, read }: FreshTokens,
  { host, port }: { host: string; port: number },
  basePath: string | null,
): string[] {
  return [
    'This is the first start: here are two tokens. Keep them now, only their hashes are stored.',
    `token for the phone (may only send): ${ingest}`,
    `token for reading: ${read}`,
    'In the app Health Auto Export, make an automation of the type REST API and type in:',
    ...reachable(host).map((address) => `  URL: http://${address}:${port}/v1/ingest`),
    ...(basePath === null ? [] : [`  or: the address of your proxy, followed by ${basePath}/v1/ingest`]),
    `  Header: Authorization = Bearer ${ingest}`,
    '  Export format: JSON. Period: Default. Time grouping: Default, Minutes or Hours.',
    'More tokens: healthlog token add NAME --scope ingest|read|admin --profile NAME',
  ];
}
