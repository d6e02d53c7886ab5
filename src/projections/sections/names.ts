/** The eight sections of a delivery (hae-format.md §3.2), and sleep, which travels inside `metrics`. */

export const SECTION_NAMES = [
  'metrics',
  'workouts',
  'symptoms',
  'stateOfMind',
  'medications',
  'cycleTracking',
  'ecg',
  'heartRateNotifications',
] as const;

/** Other spellings of a section's key. */
export const SECTION_ALIASES: ReadonlyMap<string, string> = new Map([['healthMetrics', 'metrics']]);

export function isKnownSection(key: string): boolean {
  return (SECTION_NAMES as readonly string[]).includes(SECTION_ALIASES.get(key) ?? key);
}
