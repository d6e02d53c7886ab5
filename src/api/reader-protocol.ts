/** What the main thread asks the reader thread, and how it is answered. */
import type { ErrorCode } from '../journal/errors.js';
import type { DeliveriesQuestion } from '../projections/answers/deliveries.js';
import type { MetricQuestion } from '../projections/answers/metric.js';

/** Null: of every profile. Only a token of scope admin asks that way. */
export type ProfileScope = string | null;

export type ReaderQuestion =
  | { readonly kind: 'status'; readonly profile: ProfileScope }
  | { readonly kind: 'deliveries'; readonly query: DeliveriesQuestion }
  | { readonly kind: 'delivery'; readonly id: string; readonly profile: ProfileScope }
  | { readonly kind: 'metrics'; readonly profile: string; readonly limit?: number; readonly cursor?: string }
  | { readonly kind: 'metric'; readonly query: MetricQuestion };

export interface ReaderRequest {
  readonly ticket: number;
  readonly question: ReaderQuestion;
}

/** An error of the catalogue travels as its code and its filled-in texts. */
export interface ReaderFailure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
}

export type ReaderReply =
  | { readonly ticket: number; readonly json: string }
  | { readonly ticket: number; readonly failure: ReaderFailure; readonly detail: string | null };

export interface ReaderWorkerData {
  readonly root: string;
  readonly generationCounter: SharedArrayBuffer;
}
