/**
 * Apply: one delivery into the read model. The only way rows come to be (law 4): live runner, rebuild, verify,
 * explain and import all call `applyDelivery`.
 *
 *  1. The archive file is read and checked; the fold knows nothing of a delivery that is not in it.
 *  2. The body is parsed, its envelope opened, its sections read: pure functions, outside any transaction.
 *  3. One immediate transaction: the layer is settled against the journal prefix, candidates meet the winners
 *     that are there, and the outcome is written with the rows (law 5).
 *  4. What is thrown becomes an outcome of its own transaction, or, when it speaks of circumstances, no outcome
 *     at all: the delivery stays pending (law 6). Damage of the read model is nobody's outcome and passes on.
 *
 * Nothing here looks at cancellation: whether an abort means "we were stopped" is for the loop that calls.
 */
import { type ArchivedDelivery, readArchive } from '../journal/archive.js';
import type { Clock } from '../journal/clock.js';
import { judgeContentType } from '../journal/content-type.js';
import type { RecordedDelivery, SyncProjection } from '../journal/event.js';
import type { DeliveryId, Micros, Position } from '../journal/position.js';
import { parseBody } from './body.js';
import { seriesCandidates } from './candidates.js';
import { openEnvelope } from './envelope.js';
import { attemptOf, DeadlineExceeded, isCircumstance, isDamage, MalformedBody, PutOff } from './failure.js';
import type { FoldStore } from './fold-store.js';
import type { Inheritance } from './inheritance.js';
import {
  closeLayer,
  declaredLayer,
  grainOf,
  isDateGrain,
  type Layer,
  readLayer,
  readStamps,
} from './layer.js';
import type { Identity, LayerMarks } from './ledger.js';
import { type Attempt, type LayerResult, NO_LAYER, type Outcome, outcomeOf } from './outcome.js';
import { alignedPeriod } from './period.js';
import { FOLD_VERSION } from './readmodel.js';
import { Report } from './report.js';
import { type MetricPoints, readMetrics } from './sections/metrics.js';
import { leaveOutSections, OBJECT_SECTIONS } from './sections/unread.js';
import { readWindow } from './window.js';

export interface FoldContext {
  readonly store: FoldStore;
  readonly inheritance: Inheritance;
  readonly archiveRoot: string;
  readonly clock: Clock;
  /** Monotonic milliseconds: the fold's own deadline is measured with it. */
  readonly monotonicMs: () => number;
  readonly deadlineMs: number;
  /** Bodies longer than this are not folded, bytes. */
  readonly bodyBytesMax: number;
  /** Bodies with more values than this are not parsed (body.ts). */
  readonly structureMax: number;
  /** An attempt that stands without folding: set aside by a person, or it killed its worker. Null: fold it. */
  readonly verdict: (id: DeliveryId) => Attempt | null;
  /** Told of faults of our own, with the stack. */
  readonly onFault: (id: DeliveryId, error: unknown) => void;
}

/** What one delivery says, before the journal prefix and the read model are asked. */
interface Reading {
  readonly identity: Identity;
  readonly position: Position;
  readonly clockAt: Micros;
  readonly period: string | null;
  readonly declared: Layer | null;
  readonly metrics: readonly MetricPoints[];
  readonly report: Report;
}

/** @returns the outcome; `deferred` means that nothing was written and the delivery is still pending
 *  @throws damage of the read model (SQLITE_CORRUPT, SQLITE_NOTADB) */
function applyDelivery(delivery: RecordedDelivery, context: FoldContext): Outcome {
  const startedMs = context.monotonicMs();
  const checkDeadline = (): void => {
    if (context.monotonicMs() - startedMs > context.deadlineMs) {
      throw new DeadlineExceeded(`folding took longer than ${context.deadlineMs / 1000} seconds`);
    }
  };
  const timing = () => ({ foldMs: context.monotonicMs() - startedMs, foldedAt: context.clock.now() });
  const { data, metadata } = delivery;
  const seq = Number(metadata.streamPosition);
  let identity: Identity = {
    evidence: data.source === 'import' ? data.clockAt : data.receivedAt,
    profile: data.profile,
    automationId: data.automation.id,
    sessionId: data.sessionId,
  };
  let marks: LayerMarks = { declared: null, bound: null };
  const verdict = context.verdict(data.id);
  if (verdict !== null) return recorded(outcomeOf(verdict), seq, identity, marks, context, timing());
  try {
    const archived = readArchive(context.archiveRoot, data.archivePath, {
      bodyBytesHint: data.bodyBytes,
      bodyBytesMax: context.bodyBytesMax,
    });
    identity = identityOf(archived);
    marks = { declared: declaredLayer(archived.automation.aggregation), bound: null };
    const reading = readDelivery(archived, identity, context.structureMax, checkDeadline);
    return context.store.transaction(() => {
      const outcome = foldReading(reading, seq, context, checkDeadline, (settled) => {
        marks = settled;
      });
      if (outcome.class === 'deferred') return outcome;
      context.store.ledger.record(seq, identity, marks, outcome, timing());
      return outcome;
    });
  } catch (error) {
    if (isDamage(error)) throw error;
    const outcome = outcomeOf(attemptOf(error));
    if (outcome.class === 'broken') context.onFault(data.id, error);
    // A body that cannot be parsed still names its grouping; whether a fold was too large or too slow says
    // nothing about the delivery's place in its automation.
    const kept: LayerMarks = {
      declared: error instanceof MalformedBody ? marks.declared : null,
      bound: null,
    };
    return recorded(outcome, seq, identity, kept, context, timing());
  }
}

/** Writes an outcome that has no rows; circumstances that forbid even that leave the delivery pending. */
function recorded(
  outcome: Outcome,
  seq: number,
  identity: Identity,
  marks: LayerMarks,
  { store }: FoldContext,
  timing: { foldMs: number; foldedAt: Micros },
): Outcome {
  if (outcome.class === 'deferred') return outcome;
  try {
    store.transaction(() => store.ledger.record(seq, identity, marks, outcome, timing));
    return outcome;
  } catch (error) {
    if (isCircumstance(error)) return outcomeOf(attemptOf(error));
    throw error;
  }
}

function identityOf({ header, position, automation, sessionId }: ArchivedDelivery): Identity {
  return {
    evidence: header.source === 'import' ? header.clockAt : position.receivedAt,
    profile: header.profile,
    automationId: automation.id,
    sessionId,
  };
}

function readDelivery(
  archived: ArchivedDelivery,
  identity: Identity,
  structureMax: number,
  checkDeadline: () => void,
): Reading {
  const { header, position, automation, body } = archived;
  const report = new Report();
  const sections = openEnvelope(parsed(body, header.contentType, structureMax), report);
  checkDeadline();
  const { metrics, sleep } = readMetrics(sections.get('metrics') ?? [], report, checkDeadline);
  leaveOutSections(sections, sleep, report);
  return {
    identity,
    position,
    clockAt: header.clockAt,
    period: automation.period,
    declared: declaredLayer(automation.aggregation),
    metrics,
    report,
  };
}

/** Whatever the content type says, JSON is read; only what is not JSON may be what it is called. */
function parsed(body: Buffer, contentType: string | null, structureMax: number): unknown {
  try {
    return parseBody(body, structureMax);
  } catch (error) {
    const isCsv = judgeContentType(contentType ?? undefined) === 'csv';
    throw isCsv && error instanceof MalformedBody ? new MalformedBody(NOT_JSON_BUT_CSV) : error;
  }
}

/** Inside the transaction: settles the layer and merges the candidates. */
function foldReading(
  reading: Reading,
  seq: number,
  context: FoldContext,
  checkDeadline: () => void,
  onMarks: (marks: LayerMarks) => void,
): Outcome {
  const { metrics, report, identity } = reading;
  const stamps = metrics.map(({ metric, info, points }) => ({ metric, dense: info?.dense ?? false, points }));
  const { layer, bound } = settleLayer(reading, stamps, context);
  onMarks({ declared: reading.declared, bound });
  let changed = 0;
  let incomparable = 0;
  if (layer.layer !== null) {
    const period = alignedPeriod(reading.period);
    const dateAxis = isDateGrain(grainOf(layer.layer, ''));
    const window = readWindow(stamps, period, Math.floor(reading.clockAt / 1000), dateAxis);
    if (window === null) throw new Error('a layer was found for a delivery without points');
    for (const group of metrics) {
      checkDeadline();
      const candidates = seriesCandidates(group, layer.layer, window);
      const written = context.store.write(candidates, { seq, ...identity }, checkDeadline);
      changed += written.changed;
      incomparable += written.incomparable;
    }
  }
  const layerUnknown = layer.origin === 'unknown';
  if (layerUnknown) {
    const left = metrics.reduce((sum, { points }) => sum + points.length, 0);
    report.leaveOut('metrics', UNKNOWN_LAYER, left);
  }
  const counters = report.counters(changed, incomparable, OBJECT_SECTIONS);
  return outcomeOf({
    type: 'Applied',
    data: {
      counters,
      layer,
      reasons: report.reasons(),
      incomplete: report.incomplete,
      layerUnknown,
      folded: counters.points + counters.objects,
    },
  });
}

const NOT_JSON_BUT_CSV =
  'the body is CSV, which this version does not read yet; it is kept, but set the export format of the automation to JSON';

const UNKNOWN_LAYER =
  'the time grouping of the metrics cannot be told: no header names it, the stamps do not show it, and no earlier delivery of the same automation does; set "Time Grouping" in the automation and let the app send its headers';

/** Rules 1 to 6 of design §5.2. Throws PutOff when an earlier delivery of the automation still waits. */
function settleLayer(
  { declared, identity, position }: Reading,
  stamps: Parameters<typeof readStamps>[0],
  { inheritance }: FoldContext,
): { layer: LayerResult; bound: Layer | null } {
  const facts = readStamps(stamps, declared);
  const read = readLayer(facts, declared);
  if (read.kind === 'not_needed') return { layer: { ...NO_LAYER, declared }, bound: null };
  if (read.kind === 'derived') {
    return { layer: { declared, layer: read.layer, origin: read.origin, from: null }, bound: facts.bound };
  }
  const { profile, automationId } = identity;
  let inherited = null;
  if (automationId !== null) {
    const waiting = inheritance.pendingBefore(profile, automationId, position);
    if (waiting !== null) {
      throw new PutOff(
        `waits for the earlier delivery ${waiting} of the same automation, which is still pending`,
      );
    }
    inherited = inheritance.lastDerivedLayer(profile, automationId, position);
  }
  return { layer: { declared, ...closeLayer(read, inherited) }, bound: facts.bound };
}

/** The fold as a projection of journal events: the one way in. */
export const deliveryProjection: SyncProjection<FoldContext, Outcome> = {
  name: 'read model',
  version: FOLD_VERSION,
  canHandle: ['DeliveryAccepted'],
  handle: applyDelivery,
};
