/**
 * One kept connection and the least a client must do on it: the machine's cores belong to what is measured. Requests
 * go one after another; an answer is whole when its Content-Length has arrived.
 */
import { connect, type Socket } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly ms: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');
const NO_BYTES = Buffer.alloc(0);

/** The bytes of a POST with everything in its place. */
export function postBytes(path: string, headers: Readonly<Record<string, string>>, body: Buffer): Buffer {
  const all = { host: 'localhost', 'content-type': 'application/json', ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  const head = [`POST ${path} HTTP/1.1`, ...lines, `content-length: ${body.length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), body]);
}

interface Open {
  readonly startedMs: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

export class Connection {
  readonly #socket: Socket;
  #received: Buffer = NO_BYTES;
  #open: Open | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
      this.#take();
    });
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the connection was closed before the answer')));
  }

  static open(url: URL): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new Connection(socket));
      });
    });
  }

  /** Sends one whole request; the next one may be sent when this resolves. */
  ask(request: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#open = { startedMs: performance.now(), resolve, reject };
      this.#socket.write(request);
    });
  }

  /** Sends these bytes and hangs up without looking at any answer. */
  hangUpAfter(bytes: Buffer): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.once('close', () => resolve());
      this.#socket.write(bytes, () => this.#socket.destroy());
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(): void {
    const headEnd = this.#received.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#received.toString('latin1', 0, headEnd);
    const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
    const bodyStart = headEnd + HEAD_END.length;
    if (Number.isNaN(length)) {
      this.#fail(new Error(`an answer without a length: ${head}`));
      return;
    }
    if (this.#received.length < bodyStart + length) return;
    const body = this.#received.toString('utf8', bodyStart, bodyStart + length);
    this.#received = this.#received.subarray(bodyStart + length);
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    open.resolve({ status: Number(head.slice(9, 12)), body, ms: performance.now() - open.startedMs });
  }

  #fail(error: Error): void {
    this.#open?.reject(error);
    this.#open = null;
  }
}
