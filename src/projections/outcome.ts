/**
 * Outcome: what became of one delivery. A value, never a side effect.
 *
 * The class is a name; the table below says for each class which parse status it has, which exit code a
 * rebuild ends with when it occurs, what it means and how the delivery comes back. docs/architecture.md and
 * the CHECK of the read model are compared with this table by a test.
 * Counters are taken only from what was folded; the sum over deliveries is `addOutcome`.
 */
import type { Command, Decider, Event } from '../journal/event.js';
import type { Layer, LayerOrigin } from './layer.js';

export const PARSE_STATUSES = ['pending', 'parsed', 'partial', 'failed', 'excluded'] as const;
export type ParseStatus = (typeof PARSE_STATUSES)[number];

interface ClassEntry {
  readonly statuses: readonly ParseStatus[];
  /** What a rebuild that meets this class exits with. */
  readonly exitCode: 0 | 1 | 4;
  readonly means: string;
  readonly comesBackBy: string;
}

export const CLASSES = {
  folded: {
    statuses: ['parsed', 'partial'],
    exitCode: 0,
    means: 'applied to the read model',
    comesBackBy: 'a new fold version',
  },
  layer_unknown: {
    statuses: ['failed', 'partial'],
    exitCode: 0,
    means: 'nothing tells the time grouping of its metrics, so they were not folded',
    comesBackBy: 'an earlier delivery of the same automation turning up, or a new fold version',
  },
  malformed: {
    statuses: ['failed'],
    exitCode: 0,
    means: 'the body is not JSON, or holds nothing that looks like an export',
    comesBackBy: 'a new fold version',
  },
  excluded: {
    statuses: ['excluded'],
    exitCode: 0,
    means: 'set aside by a person',
    comesBackBy: 'journal include',
  },
  unreadable: {
    statuses: ['failed'],
    exitCode: 1,
    means: 'its archive file is missing or damaged',
    comesBackBy: 'a rebuild, after the file is restored',
  },
  too_large: {
    statuses: ['failed'],
    exitCode: 1,
    means: 'beyond what the fold can hold in memory',
    comesBackBy: 'a rebuild with more memory',
  },
  deadline: {
    statuses: ['failed'],
    exitCode: 1,
    means: 'folding it took longer than its deadline',
    comesBackBy: 'a rebuild',
  },
  broken: {
    statuses: ['failed'],
    exitCode: 1,
    means: 'a fault in healthlog itself; the log has the details',
    comesBackBy: 'a rebuild, with a repaired healthlog',
  },
  deferred: {
    statuses: ['pending'],
    exitCode: 4,
    means: 'put off by circumstances, not by the delivery',
    comesBackBy: 'the next pass',
  },
} as const satisfies Record<string, ClassEntry>;

export type OutcomeClass = keyof typeof CLASSES;
/** Classes a delivery can be recorded with; a deferred one is recorded nowhere, it is still pending. */
export const RECORDED_CLASSES = (Object.keys(CLASSES) as OutcomeClass[]).filter(
  (name) => name !== 'deferred',
);

export type FailureClass = 'malformed' | 'excluded' | 'unreadable' | 'too_large' | 'deadline' | 'broken';

export interface SectionCounters {
  /** Points or objects read from this section. */
  readonly points: number;
  /** Points or objects of this section that could not be read. */
  readonly skipped: number;
}

export interface Counters {
  /** Points of metrics that were read. */
  readonly points: number;
  /** Objects of the other sections that were read. */
  readonly objects: number;
  /** Coordinates this delivery wrote. Depends on the order of folding. */
  readonly changed: number;
  /** Points and objects that could not be read. */
  readonly skipped: number;
  /** Points and objects that were left out as a whole: their section or their layer is not known. */
  readonly partial: number;
  /** Coordinates on which two complete exports disagree about devices. Depends on the order of folding. */
  readonly incomparable: number;
  readonly sections: Readonly<Record<string, SectionCounters>>;
}

export const NO_COUNTERS: Counters = {
  points: 0,
  objects: 0,
  changed: 0,
  skipped: 0,
  partial: 0,
  incomparable: 0,
  sections: {},
};

export interface LayerResult {
  readonly declared: Layer | null;
  readonly layer: Layer | null;
  readonly origin: LayerOrigin | null;
  /** Delivery id the layer was inherited from. */
  readonly from: string | null;
}

export const NO_LAYER: LayerResult = { declared: null, layer: null, origin: null, from: null };

type Read = {
  readonly counters: Counters;
  readonly layer: LayerResult;
  readonly reasons: readonly string[];
};

export type Outcome =
  | ({ readonly class: 'folded'; readonly parseStatus: 'parsed' | 'partial' } & Read)
  | ({ readonly class: 'layer_unknown'; readonly parseStatus: 'failed' | 'partial' } & Read)
  | {
      readonly class: FailureClass;
      readonly parseStatus: 'failed' | 'excluded';
      readonly reasons: readonly string[];
    }
  | {
      readonly class: 'deferred';
      readonly parseStatus: 'pending';
      readonly reasons: readonly string[];
      /** True when going on with the next delivery is pointless (full or failing disk). */
      readonly endsPass: boolean;
    };

export function countersOf(outcome: Outcome): Counters {
  return outcome.class === 'folded' || outcome.class === 'layer_unknown' ? outcome.counters : NO_COUNTERS;
}

export function layerOf(outcome: Outcome): LayerResult {
  return outcome.class === 'folded' || outcome.class === 'layer_unknown' ? outcome.layer : NO_LAYER;
}

/** Outcomes of many deliveries, summed. */
export interface OutcomeSum {
  readonly deliveries: number;
  readonly byClass: Readonly<Partial<Record<OutcomeClass, number>>>;
  readonly byStatus: Readonly<Partial<Record<ParseStatus, number>>>;
  readonly counters: Counters;
}

export const NO_OUTCOMES: OutcomeSum = { deliveries: 0, byClass: {}, byStatus: {}, counters: NO_COUNTERS };

function addSections(a: Counters['sections'], b: Counters['sections']): Counters['sections'] {
  const sum = new Map(Object.entries(a));
  for (const [name, { points, skipped }] of Object.entries(b)) {
    const before = sum.get(name);
    sum.set(name, { points: (before?.points ?? 0) + points, skipped: (before?.skipped ?? 0) + skipped });
  }
  return Object.fromEntries(sum);
}

export function addCounters(a: Counters, b: Counters): Counters {
  return {
    points: a.points + b.points,
    objects: a.objects + b.objects,
    changed: a.changed + b.changed,
    skipped: a.skipped + b.skipped,
    partial: a.partial + b.partial,
    incomparable: a.incomparable + b.incomparable,
    sections: addSections(a.sections, b.sections),
  };
}

export function addOutcome(sum: OutcomeSum, outcome: Outcome): OutcomeSum {
  return {
    deliveries: sum.deliveries + 1,
    byClass: { ...sum.byClass, [outcome.class]: (sum.byClass[outcome.class] ?? 0) + 1 },
    byStatus: { ...sum.byStatus, [outcome.parseStatus]: (sum.byStatus[outcome.parseStatus] ?? 0) + 1 },
    counters: addCounters(sum.counters, countersOf(outcome)),
  };
}

function addCounts<K extends string>(
  a: Readonly<Partial<Record<K, number>>>,
  b: Readonly<Partial<Record<K, number>>>,
): Partial<Record<K, number>> {
  const sum: Partial<Record<K, number>> = { ...a };
  for (const key in b) sum[key] = (sum[key] ?? 0) + (b[key] ?? 0);
  return sum;
}

/** Outcomes of two passes, summed. */
export function addOutcomes(a: OutcomeSum, b: OutcomeSum): OutcomeSum {
  return {
    deliveries: a.deliveries + b.deliveries,
    byClass: addCounts(a.byClass, b.byClass),
    byStatus: addCounts(a.byStatus, b.byStatus),
    counters: addCounters(a.counters, b.counters),
  };
}

/** The exit code of a rebuild that met these outcomes; 1 beats 4, because it needs a person. */
export function exitCodeOf(sum: OutcomeSum): 0 | 1 | 4 {
  const codes = (Object.keys(sum.byClass) as OutcomeClass[]).map((name): number => CLASSES[name].exitCode);
  if (codes.includes(1)) return 1;
  return codes.includes(4) ? 4 : 0;
}

/** What happened when a delivery was tried: the command of the classifier. */
export type Attempt =
  | Command<
      'Applied',
      Read & {
        /** True when something was left out as a whole or could not be read. */
        readonly incomplete: boolean;
        /** True when the metrics were refused because no rule tells their layer. */
        readonly layerUnknown: boolean;
        /** Points and objects that did get folded. */
        readonly folded: number;
      }
    >
  | Command<'Failed', { readonly class: FailureClass; readonly reasons: readonly string[] }>
  | Command<'PutOff', { readonly reasons: readonly string[]; readonly endsPass: boolean }>;

export type DeliveryClassified = Event<'DeliveryClassified', { readonly outcome: Outcome }>;

function classify(attempt: Attempt): Outcome {
  switch (attempt.type) {
    case 'Failed': {
      const parseStatus = attempt.data.class === 'excluded' ? 'excluded' : 'failed';
      return { class: attempt.data.class, parseStatus, reasons: attempt.data.reasons };
    }
    case 'PutOff':
      return { class: 'deferred', parseStatus: 'pending', ...attempt.data };
    case 'Applied': {
      const { counters, layer, reasons, incomplete, layerUnknown, folded } = attempt.data;
      if (layerUnknown) {
        return {
          class: 'layer_unknown',
          parseStatus: folded > 0 ? 'partial' : 'failed',
          counters,
          layer,
          reasons,
        };
      }
      return { class: 'folded', parseStatus: incomplete ? 'partial' : 'parsed', counters, layer, reasons };
    }
  }
}

/** The classifier, in the shape of emmett's decider: attempts in, classified deliveries out, their sum as state. */
export const classifier: Decider<OutcomeSum, Attempt, DeliveryClassified> = {
  decide: (attempt) => ({ type: 'DeliveryClassified', data: { outcome: classify(attempt) } }),
  evolve: (sum, { data }) => addOutcome(sum, data.outcome),
  initialState: () => NO_OUTCOMES,
};

/** The outcome of one attempt. The one place where a delivery gets its class. */
export function outcomeOf(attempt: Attempt): Outcome {
  return classify(attempt);
}
