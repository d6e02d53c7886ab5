/** Small bodies for tests: the app's own shapes with values that can be told apart. */

export interface PointSpec {
  readonly date: string;
  readonly qty?: number;
  readonly source?: string;
  readonly [field: string]: unknown;
}

export function metric(name: string, units: string, data: readonly PointSpec[]): Record<string, unknown> {
  return { name, units, data };
}

export function body(...metrics: Record<string, unknown>[]): Record<string, unknown> {
  return { data: { metrics } };
}

/** `2026-03-10 07:30:00 +0100` */
export function at(day: string, time = '00:00:00', offset = '+0100'): string {
  return `${day} ${time} ${offset}`;
}

function two(n: number): string {
  return String(n).padStart(2, '0');
}

/** Minutes of one metric on one day, `every` minutes from `from` to `to` (minutes of the day, end excluded). */
export function minutes(
  day: string,
  from: number,
  to: number,
  every: number,
  qty: (minute: number) => number = () => 1,
  source = 'Watch',
): PointSpec[] {
  const points: PointSpec[] = [];
  for (let m = from; m < to; m += every) {
    points.push({ date: at(day, `${two(Math.floor(m / 60))}:${two(m % 60)}:00`), qty: qty(m), source });
  }
  return points;
}

/** One point per day. */
export function days(
  list: readonly string[],
  qty: (index: number) => number = (i) => 1000 + i,
  source = 'Watch',
): PointSpec[] {
  return list.map((day, index) => ({ date: at(day), qty: qty(index), source }));
}
