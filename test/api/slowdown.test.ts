/** Guessing tokens: slower and slower for those who guess, and never for those who know. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { networkOf, SLOWDOWN, Slowdown } from '../../src/api/slowdown.js';
import { Api, type Client, head, post } from './support.js';

describe('the delay of a failure', () => {
  it('is none for the first ones, then doubles up to its limit', () => {
    const slowdown = new Slowdown(() => 0);
    const delays = Array.from({ length: 14 }, () => slowdown.fail('192.0.2.1').delayMs);
    expect(delays).toEqual([0, 0, 0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  });

  it('is counted for each address alone', () => {
    const slowdown = new Slowdown(() => 0);
    for (let i = 0; i < 20; i++) slowdown.fail('192.0.2.1');
    expect(slowdown.fail('192.0.2.2').delayMs).toBe(0);
  });

  it('begins anew after a quiet time, and not before', () => {
    let nowMs = 0;
    const slowdown = new Slowdown(() => nowMs);
    for (let i = 0; i < 20; i++) slowdown.fail('192.0.2.1');
    nowMs += SLOWDOWN.forgetAfterMs - 1;
    expect(slowdown.fail('192.0.2.1').delayMs).toBe(5000);
    nowMs += SLOWDOWN.forgetAfterMs;
    expect(slowdown.fail('192.0.2.1').delayMs).toBe(0);
  });

  it('never leaves its bounds, and the memory neither, whatever comes', () => {
    const limits = { ...SLOWDOWN, addressesMax: 3 };
    const attempts = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.nat(2_000_000)));
    fc.assert(
      fc.property(attempts, (list) => {
        let nowMs = 0;
        const slowdown = new Slowdown(() => nowMs, limits);
        for (const [address, passedMs] of list) {
          nowMs += passedMs;
          const { delayMs } = slowdown.fail(address);
          expect(delayMs === 0 || (delayMs >= 100 && delayMs <= 5000)).toBe(true);
          expect(slowdown.size).toBeLessThanOrEqual(3);
        }
      }),
    );
  });

  it('is forgotten first for the address that was quiet for longest, when the memory is full', () => {
    const slowdown = new Slowdown(() => 0, { ...SLOWDOWN, addressesMax: 2 });
    for (let i = 0; i < 9; i++) for (const address of ['a', 'b']) slowdown.fail(address);
    slowdown.fail('c');
    expect(slowdown.fail('b').delayMs).toBe(1600);
    expect(slowdown.fail('a').delayMs).toBe(0);
  });
});

describe('the report of an address', () => {
  it('comes at its first failure, then once a minute with the count', () => {
    let nowMs = 0;
    const slowdown = new Slowdown(() => nowMs);
    const reports = [0, 1, 30_000, 59_999, 60_000, 60_001, 200_000].map((at) => {
      nowMs = at;
      return slowdown.fail('192.0.2.1').report;
    });
    expect(reports).toEqual([1, null, null, null, 4, null, 2]);
  });
});

describe('what counts as one address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:192.0.2.1', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1::', '1:0:0:0::/64'],
    ['unknown', 'unknown'],
  ])('%s is in %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe('over HTTP', () => {
  /** Held for so long that an answer within a test is never a delay that ran out. */
  const HELD = { ...SLOWDOWN, freeFailures: 0, delayMsMin: 1e9, delayMsMax: 1e9 };
  const guess = (client: Client): Client => client.send(post('hl_wrong'));

  /** Of so many guesses at once one finds no place, which shows that the others are held; gives those. */
  async function refusedOne(api: Api, count: number): Promise<readonly Client[]> {
    const clients = Array.from({ length: count }, () => guess(api.open()));
    const refused = await Promise.race(
      clients.map(async (client) => ({ client, answer: await client.answer() })),
    );
    expect(refused.answer.status).toBe(429);
    expect(JSON.parse(refused.answer.body).error.code).toBe('too_many_attempts');
    return clients.filter((client) => client !== refused.client);
  }

  it('a right token is answered at once from an address that is guessing, and when all places are held', async () => {
    const api = await Api.start({ slowdown: HELD, limits: { heldAnswersMax: 2 } });
    const token = api.token();
    const held = await refusedOne(api, 3);
    expect((await api.open().send(post(token)).answer()).status).toBe(200);
    expect(held.map((client) => client.answers().length)).toEqual([0, 0]);
    // A client that gives up gives its place up.
    held[0]?.socket.resetAndDestroy();
    await api.line((line) => line.text === 'answer not delivered');
    guess(api.open());
    expect((await api.open().send(post(token)).answer()).status).toBe(200);
    expect(api.onDisk()).toEqual({ rows: 2, files: 2, incoming: 0 });
  });

  it('held answers are given when the service stops', async () => {
    const api = await Api.start({ slowdown: HELD, limits: { heldAnswersMax: 1 } });
    const [held] = await refusedOne(api, 2);
    const stopped = api.stop(60_000);
    expect((await held?.answer())?.status).toBe(401);
    expect(await stopped).toBe(true);
  });

  it('a delay ends with the answer', async () => {
    const api = await Api.start({ slowdown: { ...HELD, delayMsMin: 5, delayMsMax: 5 } });
    expect((await guess(api.open()).answer()).status).toBe(401);
  });

  it('what needs no token is no attempt', async () => {
    const api = await Api.start({ slowdown: HELD, limits: { heldAnswersMax: 0 } });
    for (const path of ['/healthz', '/v1/ingest', '/nowhere'])
      for (let i = 0; i < 3; i++) {
        const { status } = await api
          .open()
          .send(head(`GET ${path}`))
          .answer();
        expect(status).toBe(path === '/nowhere' ? 404 : 200);
      }
    expect((await api.open().send(head('GET /v1/status')).answer()).status).toBe(429);
  });

  it('one line a minute says how many, however many there are', async () => {
    const api = await Api.start({ slowdown: { ...SLOWDOWN, freeFailures: 100 } });
    for (let i = 0; i < 5; i++) await guess(api.open()).answer();
    const lines = api.lines.filter(({ text }) => text === 'requests without a valid token');
    expect(lines).toMatchObject([{ level: 'warn', remote: '127.0.0.1', attempts: 1 }]);
  });
});
