/** One delivery in words: what came, with which headers, what became of it, and why. */
import type { Micros } from '../journal/position.js';
import type { DeliveryItem } from '../projections/answers/deliveries.js';
import { duration, facts } from './output.js';

/** What the archive file tells; `damage` says in plain words why it tells nothing. */
export interface Archived {
  readonly headers: Readonly<Record<string, string>>;
  readonly damage: string | null;
}

/**
 * @param now the clock, for how long a pending delivery has waited
 */
export function deliveryText(item: DeliveryItem, { headers: kept, damage }: Archived, now: Micros): string {
  const headers = Object.entries(kept).map(([name, value]): [string, string] => [`  ${name}`, value]);
  const { automation, counters } = item;
  const lines: [string, string][] = [
    ['delivery', item.id],
    ['received', `${item.received_at} (clock ${item.clock_at})`],
    ['profile', item.profile],
    ['source', `${item.source}${item.adopted ? ', adopted from the archive' : ''}`],
    [
      'automation',
      [automation.name, automation.id].filter((text) => text !== null).join(' · ') || 'not named',
    ],
    [
      'body',
      `${item.body_bytes} bytes, ${item.content_type ?? 'no content type'}, sha256 ${item.body_sha256}`,
    ],
    ['archive', damage === null ? item.archive_path : `${item.archive_path}: damaged, ${damage}`],
    ['headers', headers.length > 0 ? '' : 'none were kept'],
    ...headers,
    ['status', item.class === null ? item.parse_status : `${item.parse_status} (${item.class})`],
  ];
  if (item.layer_origin !== null) lines.push(['layer', layerText(item)]);
  if (counters !== null) {
    lines.push([
      'points',
      `${counters.points} read, ${counters.skipped} unreadable, ${counters.partial} left out`,
    ]);
    lines.push([
      'changed',
      `${counters.changed} values; ${counters.incomparable} on which exports disagree about devices`,
    ]);
    for (const [name, section] of Object.entries(counters.sections)) {
      lines.push([`  ${name}`, `${section.points} read, ${section.skipped} unreadable`]);
    }
  }
  lines.push(timeLine(item, now));
  return [facts(lines), ...item.reasons.map((reason) => `  - ${reason}`)].join('\n');
}

/** How long it waited for its turn; after a rebuild that is the time until the rebuild. */
function timeLine({ clock_at, folded_at, fold_ms }: DeliveryItem, now: Micros): [string, string] {
  const arrived = Date.parse(clock_at) / 1000;
  if (folded_at === null) return ['waiting', `for ${duration(Math.max(0, now / 1e6 - arrived))}`];
  const waitedS = Math.max(0, Date.parse(folded_at) / 1000 - (fold_ms ?? 0) / 1000 - arrived);
  const took = fold_ms === null ? '' : `, in ${fold_ms.toFixed(1)} ms`;
  return ['folded', `${folded_at}${took}, ${duration(waitedS)} after it arrived`];
}

function layerText({ layer, layer_origin, layer_from }: DeliveryItem): string {
  switch (layer_origin) {
    case 'declared':
      return `${layer}, as its header says`;
    case 'bound':
      return `${layer}, because its stamps are finer than its header says`;
    case 'content':
      return `${layer}, by its stamps`;
    case 'inherited':
      return `${layer}, inherited from ${layer_from}`;
    case 'midnight':
      return `${layer}, because its dense metrics all have one and the same midnight`;
    default:
      return 'unknown';
  }
}
