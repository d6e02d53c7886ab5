/**
 * Take: files into the journal, one after another in the order given, through the accept code of the service. Their
 * order is the order of their positions.
 *
 * - A file that cannot be taken is refused by name, and the next one has its turn. What says nothing of the file (a
 *   full or failing disk, a journal that stays locked) ends the run: the next one would fare no better.
 * - When the run ends early, everything that is not in is named.
 */
import { Readable } from 'node:stream';
import { type Accepted, type Acceptor, UploadAborted } from '../../journal/accept.js';
import { HealthlogError } from '../../journal/errors.js';
import type { JournalRow } from '../../journal/store.js';
import { describePiece } from './describe.js';
import type { Found } from './find.js';
import type { Said } from './flags.js';
import { knownBy } from './known.js';
import { type Piece, type PieceDeps, piecesIn } from './pieces.js';

export type Taken =
  | { readonly result: 'imported' | 'known'; readonly shown: string; readonly row: JournalRow }
  | { readonly result: 'refused'; readonly shown: string; readonly error: HealthlogError }
  | { readonly result: 'left_out'; readonly shown: string; readonly reason: string }
  /** `error` is what ended the run, at the file it happened to. */
  | { readonly result: 'not_imported'; readonly shown: string; readonly error: HealthlogError | null };

export interface TakeDeps extends PieceDeps {
  /** Asked for when there is something to take in. What it throws ends the run. */
  readonly acceptor: () => Acceptor;
  readonly said: Said;
  /** Whether the archive has the body of this row. One that was lost is not known: importing it brings it back. */
  readonly isArchived: (row: JournalRow) => boolean;
  /** Record a body although it is in the journal. */
  readonly again: boolean;
  /** The person wants the run to end. Asked between files. */
  readonly stopped: () => boolean;
}

const ENDS_RUN: ReadonlySet<string> = new Set(['disk_full', 'storage_failed', 'journal_busy', 'stopping']);

/** What became of everything that was found, as it becomes known. */
export async function* takeAll(found: readonly Found[], deps: TakeDeps): AsyncGenerator<Taken> {
  let ended = false;
  for (const one of found) {
    if ((ended || deps.stopped()) && (one.kind === 'file' || one.kind === 'stream')) {
      yield { result: 'not_imported', shown: one.shown, error: null };
      continue;
    }
    let isFirst = true;
    for await (const met of piecesIn(one, deps)) {
      // What was being read when the wish came is the file at hand.
      const ends = ended || (!isFirst && deps.stopped());
      isFirst = false;
      if (met.kind === 'left_out') yield { result: 'left_out', shown: met.shown, reason: met.reason };
      else if (met.kind === 'refused') yield { result: 'refused', shown: met.shown, error: met.error };
      else if (ends) yield { result: 'not_imported', shown: met.shown, error: null };
      else {
        const taken = await take(met, deps.acceptor(), deps);
        ended = taken.result === 'not_imported';
        yield taken;
      }
    }
  }
}

async function take(piece: Piece, acceptor: Acceptor, deps: TakeDeps): Promise<Taken> {
  const { shown } = piece;
  try {
    const { kind, row } = await accept(piece, acceptor, deps);
    return { result: kind === 'known' ? 'known' : 'imported', shown, row };
  } catch (error) {
    const known = error instanceof UploadAborted ? error.cause : error;
    if (!(known instanceof HealthlogError)) throw known;
    return { result: ENDS_RUN.has(known.code) ? 'not_imported' : 'refused', shown, error: known };
  }
}

async function accept(piece: Piece, acceptor: Acceptor, deps: TakeDeps): Promise<Accepted> {
  const { incoming, said, content } = await describePiece(piece, deps.said, deps.now());
  const body = Readable.from(content.body);
  // What it has to say is said where it is read; after that it is only closed.
  body.on('error', () => undefined);
  try {
    if (deps.again) return { kind: 'recorded', row: await acceptor.accept(body, incoming) };
    return await acceptor.acceptUnlessKnown(body, incoming, (sameBody) =>
      knownBy(said, sameBody.filter(deps.isArchived)),
    );
  } finally {
    body.destroy();
    await content.close();
  }
}
