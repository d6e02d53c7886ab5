/** `healthlog journal ls|show|cat`: what arrived, and what became of it. */

import { ArchiveDamaged, readArchive } from '../../journal/archive.js';
import { HealthlogError } from '../../journal/errors.js';
import {
  type DeliveriesQuestion,
  type DeliveryItem,
  getDelivery,
  listDeliveries,
} from '../../projections/answers/deliveries.js';
import type { Context } from '../context.js';
import { type Archived, deliveryText } from '../delivery-text.js';
import { bytes, print, printJson, say, table } from '../output.js';
import { withSources } from '../reading.js';

export interface ListFlags {
  readonly status?: string;
  readonly class?: string;
  readonly automation?: string;
  readonly profile?: string;
  readonly section?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly all?: boolean;
}

const SHOWN = 50;
const PAGE = 1000;

export function journalList(context: Context, flags: ListFlags): number {
  const wanted = flags.all === true ? Number.POSITIVE_INFINITY : limitOf(flags.limit);
  withSources(context, ({ journal, generation }) => {
    const question: DeliveriesQuestion = {
      parse_status: flags.status,
      class: flags.class,
      automation: flags.automation,
      profile: flags.profile,
      section: flags.section,
      since: flags.since,
      until: flags.until,
    };
    let cursor: string | null = null;
    let left = wanted;
    const items: DeliveryItem[] = [];
    do {
      const page = listDeliveries(journal, generation, { ...question, limit: Math.min(PAGE, left), cursor });
      left -= page.items.length;
      cursor = page.next;
      if (context.json) for (const item of page.items) printJson(item);
      else items.push(...page.items);
    } while (cursor !== null && left > 0);
    if (context.json) return;
    if (items.length === 0) say('No delivery matches. "healthlog journal ls --all" lists every one.');
    else
      print(
        table(
          ['received', 'id', 'automation', 'layer', 'size', 'status', 'class', 'points'],
          items.map(rowOf),
        ),
      );
    if (cursor !== null) say(`There are more: --limit N or --all shows them.`);
  });
  return 0;
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return SHOWN;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit > 0) return limit;
  throw new HealthlogError('usage', { reason: `--limit cannot be "${text}": it is a whole number above 0.` });
}

function rowOf(item: DeliveryItem): string[] {
  return [
    item.received_at.slice(0, 19).replace('T', ' '),
    item.id.slice(0, 8),
    item.automation.name ?? item.automation.id ?? '',
    item.layer ?? '',
    bytes(item.body_bytes),
    item.parse_status,
    item.class ?? '',
    item.counters === null ? '' : String(item.counters.points),
  ];
}

/** Headers as the archive keeps them; what is wrong with the file when it cannot be read. */
function archived({ folder }: Context, { archive_path, body_bytes }: DeliveryItem): Archived {
  try {
    const { header } = readArchive(folder.archive, archive_path, { bodyBytesHint: body_bytes });
    return { headers: header.headers, damage: null };
  } catch (error) {
    if (!(error instanceof ArchiveDamaged)) throw error;
    return { headers: {}, damage: error.reason };
  }
}

export function journalShow(context: Context, id: string): number {
  withSources(context, ({ journal, generation }) => {
    const item = getDelivery(journal, generation, id, null);
    if (context.json) printJson(item);
    else print(deliveryText(item, archived(context, item), context.clock.now()));
  });
  return 0;
}

/** The body, byte for byte as the phone sent it. */
export async function journalCat(context: Context, id: string): Promise<number> {
  const item = withSources(context, ({ journal, generation }) => getDelivery(journal, generation, id, null));
  const body = bodyOf(context, item);
  await new Promise<void>((resolve) => process.stdout.write(body, () => resolve()));
  return 0;
}

function bodyOf({ folder }: Context, { id, archive_path, body_bytes }: DeliveryItem): Buffer {
  try {
    return readArchive(folder.archive, archive_path, { bodyBytesHint: body_bytes }).body;
  } catch (error) {
    if (!(error instanceof ArchiveDamaged)) throw error;
    throw new HealthlogError('body_damaged', { id, reason: error.reason }, { cause: error });
  }
}
