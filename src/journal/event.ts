/**
 * The events of the journal, in the types of emmett, and the shapes the fold borrows from it.
 *
 * This is the only file that imports emmett, and it imports types alone: version 0.42 publishes no licence,
 * and its runtime pieces are asynchronous, which a transaction of better-sqlite3 must never be.
 */
import type {
  Command,
  Decider,
  Event,
  ProjectionDefinition,
  ReadEvent,
  ReadEventMetadata,
} from '@event-driven-io/emmett';
import type { DeliveryId, Micros, Position } from './position.js';

export type { Command, Decider, Event };

export type DeliverySource = 'http' | 'import';

/** What the headers of the app say about the export job; every part can be missing (hae-format.md §2.2). */
export interface Automation {
  readonly id: string | null;
  readonly name: string | null;
  readonly aggregation: string | null;
  readonly period: string | null;
}

/** The journal event: one accepted delivery. Its body lies in the archive. */
export type DeliveryAccepted = Event<
  'DeliveryAccepted',
  {
    readonly id: DeliveryId;
    readonly receivedAt: Micros;
    /** The clock as read when the delivery arrived; `receivedAt` only orders. */
    readonly clockAt: Micros;
    readonly profile: string;
    readonly automation: Automation;
    readonly sessionId: string | null;
    readonly contentType: string | null;
    readonly source: DeliverySource;
    /** True when the delivery was found in the archive without a journal row and taken in afterwards. */
    readonly adopted: boolean;
    /** Length of the body in bytes, content-decoded. */
    readonly bodyBytes: number;
    /** Hex sha256 of the body, content-decoded. */
    readonly bodySha256: string;
    /** Path of the archive file relative to the archive folder, with `/`. */
    readonly archivePath: string;
  }
>;

/** A journal event as read back: the global position is the position of the journal. */
export type RecordedDelivery = ReadEvent<DeliveryAccepted, ReadEventMetadata<Position, bigint>>;

/**
 * emmett's projection, narrowed to one event at a time and to a synchronous handler: a fold runs inside a
 * better-sqlite3 transaction, where a promise would commit what it has not done yet.
 */
export interface SyncProjection<Context, Result>
  extends Pick<ProjectionDefinition<DeliveryAccepted>, 'name' | 'version' | 'canHandle'> {
  readonly handle: (delivery: RecordedDelivery, context: Context) => Result;
}
