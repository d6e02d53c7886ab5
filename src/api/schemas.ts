/** What the routes take, as zod schemas: unknown parameters are refused by name. */
import { z } from 'zod';
import { HealthlogError } from '../journal/errors.js';
import { BUCKETS } from '../projections/answers/metric.js';
import { LIMIT_MAX } from '../projections/answers/page.js';
import { PARSE_STATUSES, RECORDED_CLASSES } from '../projections/outcome.js';

const limit = z.coerce.number().int().min(1).max(LIMIT_MAX).optional();
const cursor = z.string().min(1).optional();
const profile = z.string().min(1).optional();

export const statusQuery = z.strictObject({});

export const deliveriesQuery = z.strictObject({
  limit,
  cursor,
  profile,
  parse_status: z.enum(PARSE_STATUSES).optional(),
  class: z.enum(RECORDED_CLASSES).optional(),
  automation: z.string().min(1).optional(),
  section: z.string().min(1).optional(),
  since: z.string().min(1).optional(),
  until: z.string().min(1).optional(),
  order: z.enum(['newest', 'oldest']).optional(),
});

export const deliveryQuery = z.strictObject({ profile });

export const metricsQuery = z.strictObject({ limit, cursor, profile });

export const metricQuery = z.strictObject({
  limit,
  cursor,
  profile,
  from: z.string().min(1).optional(),
  to: z.string().min(1).optional(),
  bucket: z.enum(BUCKETS).optional(),
  unit: z.string().min(1).optional(),
});

/** `wait`: seconds the answer may wait for the fold. Every other parameter of the ingest route is the user's. */
export const ingestQuery = z.object({ wait: z.coerce.number().min(0).max(30).default(0) });

/** @throws HealthlogError bad_request that names the first parameter at fault */
export function parseQuery<T>(schema: z.ZodType<T>, query: unknown): T {
  const parsed = schema.safeParse(query);
  if (parsed.success) return parsed.data;
  throw new HealthlogError('bad_request', { reason: issueText(parsed.error) });
}

function issueText({ issues }: z.ZodError): string {
  const issue = issues[0];
  if (issue === undefined) return 'the parameters are not valid';
  if (issue.code === 'unrecognized_keys') return `there is no parameter "${issue.keys.join('", "')}"`;
  return `the parameter "${issue.path.join('.')}" ${requirement(issue)}`;
}

function requirement(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be a ${issue.expected === 'int' ? 'whole number' : issue.expected}`;
    case 'too_small':
      return issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`;
    default:
      return `is not valid: ${issue.message}`;
  }
}
