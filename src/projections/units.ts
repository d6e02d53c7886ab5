/**
 * Units as text, and the factor between two that measure the same (hae-format.md §4.3).
 *
 * The unit stored with a value is the one that came. It follows the phone's settings and can change in the
 * middle of a history, so values are compared and served in the metric's canonical unit, converted here.
 * Two spellings of one unit convert by exactly 1 and 0, so that nothing is rounded that need not be. Units that
 * are not known convert to nothing but themselves.
 */

/** `value in the target unit = value in the source unit × factor + offset`. */
export interface Conversion {
  readonly factor: number;
  readonly offset: number;
}

const IDENTITY: Conversion = Object.freeze({ factor: 1, offset: 0 });

type Temperature = 'degC' | 'degF' | 'K';

/** A unit: what it measures, and its size in that quantity's base unit; temperatures also have another zero. */
type Unit =
  | { readonly quantity: string; readonly size: number }
  | { readonly quantity: 'temperature'; readonly temperature: Temperature };

/** International Table avoirdupois pound, grams. */
const LB_G = 453.592_37;
/** HealthKit's own molar mass of glucose is 180.15588 g/mol: 1 mmol/L = 18.015588 mg/dL. */
const GLUCOSE_MG_DL = 18.015_588;
/** US customary fluid ounce, millilitres. */
const FL_OZ_US_ML = 29.573_529_562_5;
/** Imperial fluid ounce, millilitres. */
const FL_OZ_IMP_ML = 28.413_062_5;
/** Conventional millimetre of mercury, pascals. */
const MMHG_PA = 133.322_387_415;

/** Per quantity: size in the base unit, then every spelling, lower case and folded as `foldUnit` does. */
const SIZES: Readonly<Record<string, readonly (readonly [number, ...string[]])[]>> = {
  energy: [
    [4184, 'kcal', 'kilocalorie', 'kilocalories'],
    [1000, 'kj', 'kilojoule', 'kilojoules'],
    [1, 'j', 'joule', 'joules'],
  ],
  length: [
    [1_609_344, 'mi', 'mile', 'miles'],
    [1_000_000, 'km'],
    [1000, 'm', 'meter', 'meters', 'metre', 'metres'],
    [914.4, 'yd', 'yard', 'yards'],
    [304.8, 'ft', 'foot', 'feet'],
    [25.4, 'in', 'inch', 'inches'],
    [10, 'cm'],
    [1, 'mm'],
  ],
  mass: [
    [1000, 'kg'],
    [1, 'g'],
    [0.001, 'mg'],
    [0.000_001, 'mcg', 'ug'],
    [LB_G, 'lb', 'lbs'],
    [LB_G * 14, 'st', 'stone'],
    [LB_G / 16, 'oz'],
  ],
  'blood glucose': [
    [1, 'mg/dl'],
    [GLUCOSE_MG_DL, 'mmol/l'],
  ],
  speed: [
    [1_609_344 / 3600, 'mi/hr', 'mi/h', 'mph'],
    [1_000_000 / 3600, 'km/hr', 'km/h', 'kmph', 'kph', 'kmh'],
    [1000, 'm/s'],
    [304.8, 'ft/s'],
  ],
  volume: [
    [1000, 'l', 'liter', 'liters', 'litre', 'litres'],
    [1, 'ml'],
    [FL_OZ_US_ML, 'fl_oz_us', 'fl_oz', 'floz'],
    [FL_OZ_IMP_ML, 'fl_oz_imp'],
    [FL_OZ_US_ML * 8, 'cup', 'cups', 'cup_us'],
    [FL_OZ_US_ML * 16, 'pt_us'],
    [FL_OZ_IMP_ML * 10, 'cup_imp'],
    [FL_OZ_IMP_ML * 20, 'pt_imp'],
  ],
  time: [
    [3_600_000, 'hr', 'h', 'hrs', 'hour', 'hours'],
    [60_000, 'min', 'mins', 'minute', 'minutes'],
    [1000, 's', 'sec', 'second', 'seconds'],
    [1, 'ms'],
  ],
  pressure: [
    [MMHG_PA, 'mmhg'],
    [1000, 'kpa'],
    [100, 'hpa'],
    [1, 'pa'],
  ],
  flow: [
    [60, 'l/s'],
    [1, 'l/min'],
    [0.001, 'ml/min'],
  ],
  power: [
    [1000, 'kw'],
    [1, 'w', 'watt', 'watts'],
  ],
  rate: [
    [60, 'count/s', 'hz'],
    [1, 'count/min', 'bpm', 'spm', 'rpm'],
  ],
  // One MET is by definition one kilocalorie per hour and kilogram.
  effort: [[1, 'kcal/hr·kg', 'kcal/(hr·kg)', 'kcal/kg·hr', 'kcal/(kg·hr)', 'kcal/kg/hr', 'met', 'mets']],
  'oxygen uptake': [[1, 'ml/(kg·min)', 'ml/kg·min', 'ml/min·kg', 'ml/(min·kg)', 'ml/kg/min']],
  'sound pressure level': [[1, 'dbaspl']],
  // Capital S is siemens; nothing the app sends is in microseconds.
  conductance: [[1, 'mcs', 'us']],
  insulin: [[1, 'iu']],
  percentage: [[1, '%']],
  count: [[1, 'count', 'counts']],
};

const TEMPERATURES: readonly (readonly [Temperature, ...string[]])[] = [
  ['degC', 'degc', 'celsius'],
  ['degF', 'degf', 'fahrenheit'],
  ['K', 'k', 'kelvin'],
];

/** Written out, because a chain of two conversions would round twice. */
const TEMPERATURE_STEPS: Readonly<Record<Temperature, Readonly<Record<Temperature, Conversion>>>> = {
  degC: { degC: IDENTITY, degF: { factor: 1.8, offset: 32 }, K: { factor: 1, offset: 273.15 } },
  degF: {
    degC: { factor: 5 / 9, offset: -160 / 9 },
    degF: IDENTITY,
    K: { factor: 5 / 9, offset: 273.15 - 160 / 9 },
  },
  K: { degC: { factor: 1, offset: -273.15 }, degF: { factor: 1.8, offset: -459.67 }, K: IDENTITY },
};

/** The one pair that only its case tells apart: HealthKit's `Cal` is the large calorie, `cal` the small one. */
const CASED = new Map<string, Unit>([
  ['Cal', { quantity: 'energy', size: 4184 }],
  ['cal', { quantity: 'energy', size: 4.184 }],
]);

const UNITS = new Map<string, Unit>();
for (const [quantity, sizes] of Object.entries(SIZES)) {
  for (const [size, ...spellings] of sizes)
    for (const spelling of spellings) UNITS.set(spelling, { quantity, size });
}
for (const [temperature, ...spellings] of TEMPERATURES) {
  for (const spelling of spellings) UNITS.set(spelling, { quantity: 'temperature', temperature });
}

/** HealthKit writes the molar mass into the unit: `mmol<180.1558800000541>/L`. Only glucose is known. */
const GLUCOSE_MMOL_START = 'mmol<180.15';

/** Case, spaces, an escaped slash and the several signs for degree, micro and the product are no difference. */
function foldUnit(text: string): string {
  const folded = text
    .toLowerCase()
    .replace(/\s/gu, '')
    .replaceAll('\\/', '/')
    .replace(/[µμ]/gu, 'mc')
    .replace(/[⋅∙•*]/gu, '·')
    .replace(/[º°˚]/gu, 'deg')
    .replace('℃', 'degc')
    .replace('℉', 'degf');
  if (folded.startsWith(GLUCOSE_MMOL_START) && folded.endsWith('>/l')) return 'mmol/l';
  return folded;
}

interface Reading {
  readonly folded: string;
  readonly unit: Unit | null;
}

/** A delivery repeats a few texts thousands of times; a hostile one must not make this grow. */
const REMEMBERED_MAX = 512;
const REMEMBERED_LENGTH_MAX = 64;
const remembered = new Map<string, Reading>();

function read(text: string): Reading {
  const known = remembered.get(text);
  if (known !== undefined) return known;
  const cased = CASED.get(text.trim());
  const folded = cased === undefined ? foldUnit(text) : text.trim();
  const reading = { folded, unit: cased ?? UNITS.get(folded) ?? null };
  if (text.length > REMEMBERED_LENGTH_MAX) return reading;
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  remembered.set(text, reading);
  return reading;
}

/** Can this unit be converted to another? */
export function isKnownUnit(text: string): boolean {
  return read(text).unit !== null;
}

/** True for two spellings of one unit, known or not. */
export function sameUnit(a: string, b: string): boolean {
  const conversion = unitFactor(a, b);
  return conversion !== null && conversion.factor === 1 && conversion.offset === 0;
}

/**
 * How to get from one unit to another; factor 1 and offset 0 exactly when they are the same.
 * `mg/dL` and `mmol/L` convert as glucose, the only metric that has them.
 * @returns null when one of them is not known (and they differ), or when they measure different things
 */
export function unitFactor(from: string, to: string): Conversion | null {
  if (from === to) return IDENTITY;
  const source = read(from);
  const target = read(to);
  if (source.folded === target.folded) return IDENTITY;
  const a = source.unit;
  const b = target.unit;
  if (a === null || b === null || a.quantity !== b.quantity) return null;
  if ('temperature' in a) return 'temperature' in b ? TEMPERATURE_STEPS[a.temperature][b.temperature] : null;
  if ('temperature' in b) return null;
  return a.size === b.size ? IDENTITY : { factor: a.size / b.size, offset: 0 };
}

/** How values in one unit become values in another; the very same number when the units are the same. */
export type Convert = (value: number) => number;

const unchanged: Convert = (value) => value;

/** The step of {@link unitFactor} as a function. @returns null when nobody knows it */
export function converter(from: string, to: string): Convert | null {
  const found = unitFactor(from, to);
  if (found === null) return null;
  const { factor, offset } = found;
  return factor === 1 && offset === 0 ? unchanged : (value) => value * factor + offset;
}

/** Into the unit in which keys compare; a number whose unit nobody knows stays as it is. */
export function keyConverter(from: string, canonical: string | null): Convert {
  return (canonical === null ? null : converter(from, canonical)) ?? unchanged;
}
