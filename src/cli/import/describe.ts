/**
 * Describe: what is known of a piece besides its bytes, as the journal wants it. What the person said wins, then what
 * healthlog's own archive says, then what can be read off the file.
 *
 * `clock_at`, the evidence of an import, is when the file was made: the newest date in its body, but at most the time
 * of the file, because a body may hold forecasts. A body nothing can be read from has the time of its file.
 */
import { constants } from 'node:buffer';
import { getHeapStatistics } from 'node:v8';
import type { IncomingDelivery } from '../../journal/accept.js';
import { type ArchiveHeader, automationOf } from '../../journal/archive.js';
import { judgeContentType } from '../../journal/content-type.js';
import type { Micros } from '../../journal/position.js';
import { structureMaxOf } from '../../projections/body.js';
import { newestStamp } from '../../projections/newest-stamp.js';
import { type Content, openContent } from './content.js';
import { type Said, saidHeaders } from './flags.js';
import { isCsvName } from './kind.js';
import type { Piece } from './pieces.js';

export interface Described {
  readonly incoming: IncomingDelivery;
  /** What is said of the piece: by the person, or else by the archive it comes from. */
  readonly said: Said;
  /** The content, not read from yet. The caller closes it. */
  readonly content: Content;
}

const DEFAULT_PROFILE = 'me';

/**
 * Reads the piece as far as that is needed, and opens it for the upload.
 * @param now nothing was made later, whatever an archive of another machine says
 * @throws HealthlogError file_unreadable, file_damaged, too_large
 */
export async function describePiece(piece: Piece, flags: Said, now: Micros): Promise<Described> {
  const first = await openContent(piece);
  const { header, looksLikeJson } = first;
  const guessed = isCsvName(piece.shown) && !looksLikeJson ? 'text/csv' : 'application/json';
  const contentType = header === null ? guessed : header.contentType;
  const kind = judgeContentType(contentType ?? undefined) ?? 'json';
  const said = header === null ? flags : saidWith(flags, header, now);
  const madeAt = said.asOf?.at ?? null;
  const describe = (clockAt: Micros): IncomingDelivery => ({
    profile: said.profile ?? DEFAULT_PROFILE,
    source: 'import',
    contentType,
    contentCoding: null,
    headers: { ...header?.headers, ...saidHeaders(flags) },
    declaredBytes: null,
    kind,
    complete: () => true,
    clockAt,
  });
  if (madeAt !== null) return { incoming: describe(madeAt), said, content: first };
  if (kind === 'csv') return { incoming: describe(piece.madeBefore), said, content: first };
  const newest = await newestIn(first);
  const { madeBefore } = piece;
  const clockAt = newest === null || newest > madeBefore ? madeBefore : newest;
  return { incoming: describe(clockAt), said, content: await openContent(piece) };
}

/** A file of healthlog's archive says everything of its delivery; a flag wins all the same. */
function saidWith(flags: Said, header: ArchiveHeader, now: Micros): Said {
  const { automation } = automationOf(header.headers);
  const at = header.clockAt < now ? header.clockAt : now;
  return {
    automation: flags.automation ?? automation.id ?? '',
    aggregation: flags.aggregation ?? automation.aggregation ?? '',
    period: flags.period ?? automation.period ?? '',
    asOf: flags.asOf ?? { at, from: at, to: at },
    profile: flags.profile ?? header.profile,
  };
}

/** Reads the content and closes it. Null when there is too much of it to be looked into. */
async function newestIn({ body, close }: Content): Promise<Micros | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      length += chunk.length;
      // The fold cannot read it either: it is longer than any text in memory.
      if (length > constants.MAX_STRING_LENGTH) return null;
      chunks.push(chunk);
    }
  } finally {
    await close();
  }
  return newestStamp(Buffer.concat(chunks, length), structureMaxOf(getHeapStatistics().heap_size_limit));
}
