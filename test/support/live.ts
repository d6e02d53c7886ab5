/** Live: the service's own turn over a lab's data folder, and what its live generation shows. */
import { currentGeneration } from '../../src/projections/generations.js';
import { Live } from '../../src/projections/live.js';
import { openGeneration } from '../../src/projections/readmodel.js';
import { facts, type Lab } from './lab.js';

/** @param onRebuild told why a generation is built anew */
export function liveOf({ folder, clock }: Lab, onRebuild: (reason: string) => void): Live {
  return new Live({
    folder,
    clock,
    hooks: {},
    onFolded: () => undefined,
    onPass: () => undefined,
    onProgress: () => undefined,
    onSwitch: () => undefined,
    onRebuild,
    onLinkFailed: (error) => {
      throw error;
    },
  });
}

/** Until it rests. */
export function settle(live: Live): void {
  for (let i = 0; i < 20; i++) if (!live.step().again) return;
  throw new Error('it never comes to rest');
}

export function liveFacts({ folder }: Lab): Record<string, unknown[]> {
  const db = openGeneration(currentGeneration(folder)?.path ?? '', 'read');
  try {
    return facts(db);
  } finally {
    db.close();
  }
}
