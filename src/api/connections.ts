/**
 * Connections: which are open, and what is under way on each.
 *
 * `close()` of a server can hang on sockets that were busy when it began, so they are kept track of here. An
 * exchange is one request and its answer; it is over when the answer is out *and* the request has arrived whole
 * (the rest of a refused body is still being drained) or its connection is gone.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Node tells only the answer whose turn it was that its connection is gone; those behind it would wait for ever to
 * hear of it, and so would the timers and log lines that hang on them.
 */
function closeUnsent(exchanges: readonly Exchange[]): void {
  for (const { response } of exchanges) {
    if (response.socket === null && !response.writableFinished) response.emit('close');
  }
}

export class Connections {
  readonly #server: Server;
  /** Exchanges under way, in the order of their requests: a client may send the next before it has its answer. */
  readonly #open = new Map<Socket, Exchange[]>();
  #isEnding = false;
  #whenNone: (() => void) | null = null;

  /** @param max connections at the same time. For one more the one that has been idle longest is closed. */
  constructor(server: Server, max: number, onCrowded: () => void) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, []);
      if (this.#open.size > max) {
        onCrowded();
        this.#makeRoom();
      }
      socket.once('close', () => {
        const left = this.exchanges(socket);
        this.#open.delete(socket);
        process.nextTick(closeUnsent, left);
        if (this.#open.size === 0) this.#whenNone?.();
      });
    });
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#begin({ request, response });
    });
  }

  /**
   * Closes one connection: the first on which nothing is under way, which is the new one when all others are busy.
   * So nobody can keep a phone out by opening connections and leaving them idle.
   */
  #makeRoom(): void {
    for (const [socket, exchanges] of this.#open) {
      if (exchanges.length > 0) continue;
      socket.destroy();
      return;
    }
  }

  /** What is under way on a connection, oldest first. */
  exchanges(socket: Socket): readonly Exchange[] {
    return this.#open.get(socket) ?? [];
  }

  /**
   * Takes no new connections, closes those that are idle and each other one when it becomes idle.
   * @returns false when some are still busy after `budgetMs`
   */
  async end(budgetMs: number): Promise<boolean> {
    this.#isEnding = true;
    if (this.#server.listening) this.#server.close();
    for (const [socket, exchanges] of this.#open) if (exchanges.length === 0) socket.destroySoon();
    if (this.#open.size === 0) return true;
    const inTime = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), budgetMs);
      this.#whenNone = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    this.#whenNone = null;
    return inTime;
  }

  /** Closes every connection now. */
  cut(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #begin(exchange: Exchange): void {
    const { request, response } = exchange;
    const { socket } = request;
    this.#open.get(socket)?.push(exchange);
    response.once('close', () => {
      if (request.complete || request.destroyed) this.#finish(socket, exchange);
      else request.once('close', () => this.#finish(socket, exchange));
    });
  }

  #finish(socket: Socket, exchange: Exchange): void {
    const exchanges = this.#open.get(socket);
    if (exchanges === undefined) return;
    exchanges.splice(exchanges.indexOf(exchange), 1);
    if (exchanges.length === 0) {
      // Behind all others that are idle: those have been so for longer.
      this.#open.delete(socket);
      this.#open.set(socket, exchanges);
    }
    if (this.#isEnding && exchanges.length === 0) socket.destroySoon();
  }
}
