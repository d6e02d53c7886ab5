/** Signals as a wish: the work that is under way looks at it between two steps. */
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface StopWish {
  readonly asked: () => boolean;
  /** Signals mean again what they mean without us. */
  end(): void;
}

/**
 * The first signal is the wish; a second one, of either kind, ends the process at once.
 *
 * @param onAsked told at the first signal
 */
export function stopWish(onAsked: () => void = () => undefined): StopWish {
  let asked = false;
  const hear = (signal: NodeJS.Signals): void => {
    if (asked) {
      // Not exit(): that waits for a thread that reads from a pipe nobody writes to.
      end();
      process.kill(process.pid, signal);
      return;
    }
    asked = true;
    onAsked();
  };
  const end = (): void => {
    for (const signal of STOP_SIGNALS) process.off(signal, hear);
  };
  for (const signal of STOP_SIGNALS) process.on(signal, hear);
  return { asked: () => asked, end };
}
