/**
 * The one catalogue of errors: code, HTTP status, exit code, text, and a hint that says what to do.
 *
 * The app shows the answer's text to the person with the phone, so the hints of the ingest errors say what to
 * change there. Texts hold no health values, tokens or bodies. `{name}` is filled in when the error is made.
 * docs/errors.md lists the same table; a test compares the two.
 */
import { withoutTokens } from './secrets.js';

interface ErrorEntry {
  readonly status: number;
  readonly exitCode: number;
  readonly message: string;
  readonly hint: string;
}

export const ERRORS = {
  unauthorized: {
    status: 401,
    exitCode: 1,
    message: 'This request carries no valid token.',
    hint: 'On the phone, open the automation and add the header Authorization with the value "Bearer " followed by the token that "healthlog token add" printed.',
  },
  forbidden: {
    status: 403,
    exitCode: 1,
    message: 'This token may not do that: it has the scope "{scope}", and "{needed}" is needed.',
    hint: 'Use a token made with "healthlog token add NAME --scope {needed}".',
  },
  too_many_attempts: {
    status: 429,
    exitCode: 1,
    message:
      'Too many requests without a valid token come from this address or from others. Nothing was stored.',
    hint: 'Look at the log of the service for who sends them. A request with a valid token is always answered at once: on the phone, check the header Authorization of the automation.',
  },
  not_found: {
    status: 404,
    exitCode: 1,
    message: 'There is no {what}.',
    hint: 'Check the spelling. The app sends to an address that ends with /v1/ingest; deliveries are listed by "healthlog journal ls", metrics by GET /v1/metrics.',
  },
  method_not_allowed: {
    status: 405,
    exitCode: 1,
    message: 'The address {path} does not take {method}; it takes {allowed}.',
    hint: 'The app sends POST to an address that ends with /v1/ingest: on the phone, make an automation of the type REST API. The other addresses are described in docs/api.md.',
  },
  bad_request: {
    status: 400,
    exitCode: 2,
    message: 'The request cannot be understood: {reason}.',
    hint: 'The routes and their parameters are described in docs/api.md.',
  },
  bad_http: {
    status: 400,
    exitCode: 1,
    message: 'The request is not whole or not proper HTTP ({reason}). Nothing was stored.',
    hint: 'The connection was probably cut. The app sends the same period again on its next run; if it happens every time, look at the relay or proxy in between.',
  },
  cut_off: {
    status: 400,
    exitCode: 1,
    message: 'The connection was closed before the request had arrived whole. Nothing was stored.',
    hint: 'The app sends the same period again on its next run; if it happens often, choose a shorter period in the automation.',
  },
  headers_too_large: {
    status: 431,
    exitCode: 1,
    message: 'The headers of the request are larger than {limit} bytes. Nothing was stored.',
    hint: 'Remove headers that the automation or a proxy adds.',
  },
  timed_out: {
    status: 408,
    exitCode: 1,
    message: 'The request did not arrive within the time there is for it. Nothing was stored.',
    hint: 'On the phone, choose a shorter period or turn on "Batch Requests"; or start the service with a higher --upload-timeout.',
  },
  stalled: {
    status: 408,
    exitCode: 1,
    message: 'The upload stood still: nothing came for {limit_s} seconds. Nothing was stored.',
    hint: 'The phone has probably left the network, or the app was stopped by iOS. The app sends the same period again on its next run; a longer pause can be allowed with --stall-timeout.',
  },
  took_too_long: {
    status: 503,
    exitCode: 1,
    message: 'The answer was not ready within {limit_s} seconds.',
    hint: 'Ask for a shorter range or fewer items, or start the service with a higher --request-timeout.',
  },
  truncated: {
    status: 400,
    exitCode: 1,
    message: 'The body stops in the middle: {reason}. Nothing was stored.',
    hint: 'The connection was probably cut. The app sends the same period again on its next run; if it happens often, choose a shorter period in the automation.',
  },
  too_large: {
    status: 413,
    exitCode: 1,
    message: 'The body is larger than the limit of {limit} bytes. Nothing was stored.',
    hint: 'On the phone, choose a shorter period or turn on "Batch Requests"; or start the service with a higher --body-limit.',
  },
  unsupported_type: {
    status: 415,
    exitCode: 1,
    message: 'The content type "{type}" is neither JSON nor CSV. Nothing was stored.',
    hint: 'On the phone, set the export format of the automation to JSON.',
  },
  unsupported_coding: {
    status: 415,
    exitCode: 1,
    message: 'The content coding "{coding}" is not known. Nothing was stored.',
    hint: 'Send the body plain or with Content-Encoding: gzip.',
  },
  bad_gzip: {
    status: 400,
    exitCode: 1,
    message: 'The body says it is compressed with gzip, but it cannot be decompressed. Nothing was stored.',
    hint: 'Send the body plain, or repair the relay that compresses it.',
  },
  empty_body: {
    status: 422,
    exitCode: 1,
    message: 'The body is empty. Nothing was stored.',
    hint: 'On the phone, check that the automation exports JSON. An export without data still sends {"data":{}}.',
  },
  not_utf8: {
    status: 422,
    exitCode: 1,
    message:
      'The body is not text in UTF-8: it looks like UTF-16, or like no text at all. Nothing was stored.',
    hint: 'The app itself sends UTF-8. Set the relay or the tool in between to send UTF-8.',
  },
  shapeless_body: {
    status: 422,
    exitCode: 1,
    message: 'The body is neither a JSON object or list nor CSV. Nothing was stored.',
    hint: 'On the phone, set the export format of the automation to JSON.',
  },
  too_many_uploads: {
    status: 429,
    exitCode: 1,
    message: 'Too many uploads are running at the same time (the limit is {limit}). Nothing was stored.',
    hint: 'Nothing is wrong with the phone: the next run sends the data. A higher limit can be set with --uploads-max.',
  },
  journal_busy: {
    status: 503,
    exitCode: 1,
    message: 'Another program kept the journal locked for {waited_s} seconds. Nothing was stored.',
    hint: 'Close other programs that have journal.db open for writing. The phone sends the data again on its next run.',
  },
  stopping: {
    status: 503,
    exitCode: 1,
    message: 'The service is stopping. Nothing was stored.',
    hint: 'The phone sends the data again on its next run.',
  },
  reading_unavailable: {
    status: 503,
    exitCode: 1,
    message: 'The numbers cannot be read right now: {reason}.',
    hint: 'Uploads go on. Ask again in a moment; "healthlog status" tells how far the work is.',
  },
  disk_full: {
    status: 507,
    exitCode: 1,
    message: 'The disk of the service is full. Nothing was stored.',
    hint: 'Free some space on the machine where healthlog runs. The phone sends the data again on its next run.',
  },
  storage_failed: {
    status: 503,
    exitCode: 1,
    message: 'The delivery could not be written to disk ({reason}). Nothing was confirmed.',
    hint: 'Look at the log and the disk of the machine where healthlog runs. The phone sends the data again on its next run.',
  },
  files_unusable: {
    status: 503,
    exitCode: 1,
    message: 'The data folder cannot be used: {reason}.',
    hint: 'Check --data, that the folder belongs to the user who runs this, and that its disk has room. "healthlog verify" tells whether anything is damaged.',
  },
  internal: {
    status: 500,
    exitCode: 1,
    message: 'Something went wrong inside healthlog.',
    hint: 'Nothing that was accepted is lost. The log has the details; please report it.',
  },
  locked: {
    status: 503,
    exitCode: 5,
    message: 'The data folder {folder} is in use by another healthlog: process {pid}, started {started}.',
    hint: 'Stop that process first, or give another folder with --data.',
  },
  build_locked: {
    status: 503,
    exitCode: 5,
    message: 'Another rebuild or verify is already running (process {pid}).',
    hint: 'Wait until it has finished, or stop it.',
  },
  no_room: {
    status: 507,
    exitCode: 1,
    message: 'A second read model does not fit on the disk: it needs about {needed} bytes, {free} are free.',
    hint: 'Free some space and try again. Nothing was changed.',
  },
  cannot_listen: {
    status: 503,
    exitCode: 1,
    message: 'The address {host}:{port} cannot be listened on ({reason}).',
    hint: 'Another program may use it. Choose another one with --port or --host.',
  },
  body_damaged: {
    status: 500,
    exitCode: 1,
    message: 'The body of delivery {id} cannot be given back: {reason}.',
    hint: 'Put the archive file back from a backup. "healthlog verify" lists every body that is missing or damaged.',
  },
  file_unreadable: {
    status: 400,
    exitCode: 1,
    message: 'The file cannot be read: {reason}. Nothing of it was stored.',
    hint: 'Check the path and who may read the file. What is encrypted or packed in an unusual way has to be unpacked first.',
  },
  file_damaged: {
    status: 400,
    exitCode: 1,
    message: 'The file is damaged: {reason}. Nothing of it was stored.',
    hint: 'Copy or export it once more. When it is a ZIP file: unpack what can be unpacked, and import those files.',
  },
  bad_journal: {
    status: 503,
    exitCode: 1,
    message: 'The journal cannot be opened: {reason}.',
    hint: 'The archive still holds every delivery and every token. "healthlog journal recover" makes the journal anew from it, and sets the old one aside.',
  },
  usage: {
    status: 400,
    exitCode: 2,
    message: '{reason}',
    hint: 'Run the command with --help to see what it takes.',
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export type ErrorParams = Readonly<Record<string, string | number>>;

function fill(template: string, params: ErrorParams): string {
  return template.replace(/\{([a-z_]+)\}/g, (whole, name: string) => {
    const value = params[name];
    return value === undefined ? whole : String(value);
  });
}

/** An error of the catalogue. `message` is the filled-in text; `cause` keeps what the platform said. */
export class HealthlogError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly exitCode: number;
  readonly hint: string;

  constructor(code: ErrorCode, params: ErrorParams = {}, options?: { cause?: unknown }) {
    const entry: ErrorEntry = ERRORS[code];
    super(fill(entry.message, params), options);
    this.name = 'HealthlogError';
    this.code = code;
    this.status = entry.status;
    this.exitCode = entry.exitCode;
    this.hint = fill(entry.hint, params);
  }

  /** An error that was made in another thread: same code, same texts. */
  static restored(code: ErrorCode, message: string, hint: string): HealthlogError {
    const error = new HealthlogError(code);
    error.message = message;
    Object.defineProperty(error, 'hint', { value: hint, enumerable: true });
    return error;
  }

  /** The one shape of an error answer. A text may repeat what was asked for, but no token. */
  toBody(): { error: { code: string; message: string; hint: string } } {
    return { error: { code: this.code, message: withoutTokens(this.message), hint: this.hint } };
  }
}

/** The `code` of an error of Node or SQLite (`ENOSPC`, `SQLITE_BUSY_SNAPSHOT` …), null when it has none. */
export function platformCode(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}
