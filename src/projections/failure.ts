/**
 * Failure: from what was thrown to a class (design §6).
 *
 * The outcome speaks of the delivery, not of circumstances. A busy database, a full or failing disk, a lack of
 * handles or memory say nothing about a delivery: it stays pending and nothing counts as an attempt. A read
 * model that is damaged is nobody's outcome either: the pass ends and the generation is rebuilt.
 */
import { ArchiveDamaged, ArchiveTooLarge } from '../journal/archive.js';
import { platformCode } from '../journal/errors.js';
import type { Attempt, FailureClass } from './outcome.js';

/** The text is not JSON, or no envelope can be found in it. */
export class MalformedBody extends Error {
  override readonly name = 'MalformedBody';
}

/** The body would need more memory than the fold may take. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge';
}

/** The fold ran past its own deadline. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
}

/** The delivery has to wait for something else, named in the message. */
export class PutOff extends Error {
  override readonly name = 'PutOff';
}

/** The journal could not be asked; says nothing about the delivery or the read model. */
export class JournalFailure extends Error {
  override readonly name = 'JournalFailure';
}

/** What the journal throws is never the read model's damage nor a delivery's fault: it ends the pass as itself. */
export function askJournal<T>(question: () => T): T {
  try {
    return question();
  } catch (error) {
    throw new JournalFailure('the journal cannot be read', { cause: error });
  }
}

const CIRCUMSTANCE = new Set([
  'ENOSPC',
  'EDQUOT',
  'EIO',
  'EMFILE',
  'ENFILE',
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOMEM',
  'Z_MEM_ERROR',
  'SQLITE_FULL',
  'SQLITE_CANTOPEN',
  'SQLITE_NOMEM',
]);
const CIRCUMSTANCE_FAMILY = [
  'SQLITE_BUSY',
  'SQLITE_LOCKED',
  'SQLITE_IOERR',
  'SQLITE_READONLY',
  'SQLITE_CANTOPEN',
];
const ENDS_PASS_FAMILY = ['SQLITE_FULL', 'SQLITE_IOERR', 'SQLITE_READONLY'];
const DAMAGE_FAMILY = ['SQLITE_CORRUPT', 'SQLITE_NOTADB'];

/** Extended codes (`SQLITE_BUSY_SNAPSHOT`) belong to the family of their first part. */
function inFamily(code: string, families: readonly string[]): boolean {
  return families.some((family) => code === family || code.startsWith(`${family}_`));
}

/** The read model's file is damaged: the pass ends, the generation is rebuilt. */
export function isDamage(error: unknown): boolean {
  const code = platformCode(error);
  return code !== null && inFamily(code, DAMAGE_FAMILY);
}

/** Circumstances under which going on with the next delivery is pointless. */
function endsPass(error: unknown): boolean {
  const code = platformCode(error);
  return code !== null && inFamily(code, ENDS_PASS_FAMILY);
}

export function isCircumstance(error: unknown): boolean {
  if (error instanceof PutOff) return true;
  // V8 has no code for "the machine has no memory for this buffer now".
  if (error instanceof RangeError && error.message.includes('allocation failed')) return true;
  const code = platformCode(error);
  return code !== null && (CIRCUMSTANCE.has(code) || inFamily(code, CIRCUMSTANCE_FAMILY));
}

function failed(name: FailureClass, reason: string): Attempt {
  return { type: 'Failed', data: { class: name, reasons: [reason] } };
}

function putOff(reason: string, endsPass: boolean): Attempt {
  return { type: 'PutOff', data: { reasons: [reason], endsPass } };
}

/** The attempt an error stands for. Damage of the read model is not an attempt: ask {@link isDamage} first. */
export function attemptOf(error: unknown): Attempt {
  if (error instanceof ArchiveDamaged) return failed('unreadable', error.reason);
  if (error instanceof ArchiveTooLarge || error instanceof BodyTooLarge)
    return failed('too_large', error.message);
  if (error instanceof MalformedBody) return failed('malformed', error.message);
  if (error instanceof DeadlineExceeded) return failed('deadline', error.message);
  if (error instanceof PutOff) return putOff(error.message, false);
  if (isCircumstance(error)) {
    return putOff(`put off: ${platformCode(error) ?? 'unknown circumstance'}`, endsPass(error));
  }
  // V8 has no memory for one string or array this long; JSON.parse and Buffer.toString say so with a RangeError.
  if (
    error instanceof RangeError &&
    /string|array|buffer/i.test(error.message) &&
    /length|size/i.test(error.message)
  ) {
    return failed('too_large', 'the body is too long for one text in memory');
  }
  const code = platformCode(error);
  if (code === 'ERR_STRING_TOO_LONG' || code === 'ERR_BUFFER_TOO_LARGE') {
    return failed('too_large', 'the body is too long for one text in memory');
  }
  return failed('broken', `a fault in healthlog: ${error instanceof Error ? error.name : typeof error}`);
}
