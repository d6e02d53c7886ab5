/**
 * The 116 metrics the app is known to send, in the order of hae-format.md §4.3, which is the source of every
 * name, unit and spelling here. The first unit is the app's default and the metric's canonical one, the others
 * come with "Use Localized Units". `also` are spellings of other app versions, enums and receivers.
 */

/**
 * - `cumulative`: amounts, buckets add up;
 * - `discrete`: readings, buckets are averages;
 * - `minmax`: readings with least, average and greatest;
 * - `special`: several numbers at one stamp, or a shape of its own.
 */
export type MetricKind = 'cumulative' | 'discrete' | 'minmax' | 'special';

export interface CatalogueRow {
  readonly name: string;
  readonly kind: MetricKind;
  readonly units: readonly [string, ...string[]];
  readonly also?: readonly string[];
  /** Numeric fields of a point that stand in place of `qty`. */
  readonly parts?: readonly string[];
  /** Says what `kind` does not: whether the numbers of a special metric add up. */
  readonly summed?: boolean;
}

function rows(
  kind: MetricKind,
  units: readonly [string, ...string[]],
  names: readonly string[],
): CatalogueRow[] {
  return names.map((name) => ({ name, kind, units }));
}

const PER_MINUTE = 'count/min';
const TEMPERATURE = ['degF', 'degC'] as const;
const ENERGY = ['kcal', 'kJ'] as const;
const DISTANCE = ['mi', 'km'] as const;
const SPEED = ['mi/hr', 'km/hr', 'm/s'] as const;

export const CATALOGUE: readonly CatalogueRow[] = [
  { name: 'step_count', kind: 'cumulative', units: ['count'] },
  {
    name: 'walking_running_distance',
    kind: 'cumulative',
    units: DISTANCE,
    also: ['distance_walking_running', 'walk_run_distance'],
  },
  { name: 'cycling_distance', kind: 'cumulative', units: DISTANCE },
  { name: 'swimming_distance', kind: 'cumulative', units: ['yd', 'm'] },
  {
    name: 'distance_downhill_snow_sports',
    kind: 'cumulative',
    units: DISTANCE,
    also: ['downhill_snow_sports'],
  },
  { name: 'wheelchair_distance', kind: 'cumulative', units: DISTANCE },
  { name: 'push_count', kind: 'cumulative', units: ['count'], also: ['wheelchair_push_count'] },
  { name: 'swimming_stroke_count', kind: 'cumulative', units: ['count'], also: ['swim_stroke_count'] },
  { name: 'flights_climbed', kind: 'cumulative', units: ['count'] },
  { name: 'active_energy', kind: 'cumulative', units: ENERGY },
  {
    name: 'basal_energy_burned',
    kind: 'cumulative',
    units: ENERGY,
    also: ['basal_energy', 'resting_energy'],
  },
  { name: 'apple_exercise_time', kind: 'cumulative', units: ['min'] },
  { name: 'apple_move_time', kind: 'cumulative', units: ['min'] },
  { name: 'apple_stand_time', kind: 'cumulative', units: ['min'], also: ['apple_standtime'] },
  { name: 'apple_stand_hour', kind: 'cumulative', units: ['count'] },
  { name: 'time_in_daylight', kind: 'cumulative', units: ['min'] },
  { name: 'physical_effort', kind: 'discrete', units: ['kcal/hr·kg', 'MET'] },
  { name: 'vo2_max', kind: 'discrete', units: ['ml/(kg·min)'], also: ['vo2max'] },
  ...rows('discrete', SPEED, ['running_speed', 'cycling_speed']),
  ...rows('discrete', ['W'], ['running_power', 'cycling_power']),
  { name: 'running_stride_length', kind: 'discrete', units: ['m', 'ft', 'in'] },
  { name: 'running_vertical_oscillation', kind: 'discrete', units: ['cm'] },
  { name: 'running_ground_contact_time', kind: 'discrete', units: ['ms'] },
  { name: 'cycling_cadence', kind: 'discrete', units: [PER_MINUTE] },
  { name: 'cycling_functional_threshold_power', kind: 'discrete', units: ['W'] },
  { name: 'heart_rate', kind: 'minmax', units: [PER_MINUTE, 'bpm'] },
  { name: 'resting_heart_rate', kind: 'discrete', units: [PER_MINUTE] },
  { name: 'walking_heart_rate_average', kind: 'discrete', units: [PER_MINUTE], also: ['walking_heart_rate'] },
  { name: 'heart_rate_variability', kind: 'discrete', units: ['ms'] },
  {
    name: 'cardio_recovery',
    kind: 'discrete',
    units: [PER_MINUTE],
    also: ['heart_rate_recovery_one_minute'],
  },
  { name: 'atrial_fibrillation_burden', kind: 'discrete', units: ['%'] },
  { name: 'blood_pressure', kind: 'special', units: ['mmHg'], parts: ['systolic', 'diastolic'] },
  { name: 'respiratory_rate', kind: 'discrete', units: [PER_MINUTE] },
  { name: 'blood_oxygen_saturation', kind: 'discrete', units: ['%'], also: ['oxygen_saturation'] },
  { name: 'apple_sleeping_wrist_temperature', kind: 'discrete', units: TEMPERATURE },
  {
    name: 'breathing_disturbances',
    kind: 'discrete',
    units: ['count'],
    also: ['sleeping_breathing_disturbances'],
  },
  ...rows('discrete', TEMPERATURE, ['body_temperature', 'basal_body_temperature']),
  { name: 'peripheral_perfusion_index', kind: 'discrete', units: ['%'] },
  { name: 'forced_vital_capacity', kind: 'discrete', units: ['L'] },
  { name: 'forced_expiratory_volume_1', kind: 'discrete', units: ['L'], also: ['forced_expiratory_volume'] },
  { name: 'peak_expiratory_flow_rate', kind: 'discrete', units: ['L/min'] },
  { name: 'inhaler_usage', kind: 'cumulative', units: ['count'] },
  { name: 'blood_glucose', kind: 'discrete', units: ['mg/dL', 'mmol/L'] },
  { name: 'insulin_delivery', kind: 'cumulative', units: ['IU'] },
  { name: 'blood_alcohol_content', kind: 'discrete', units: ['%'] },
  {
    name: 'alcohol_consumption',
    kind: 'cumulative',
    units: ['count'],
    also: ['number_of_alcoholic_beverages'],
  },
  { name: 'electrodermal_activity', kind: 'discrete', units: ['mcS'] },
  { name: 'weight_body_mass', kind: 'discrete', units: ['lb', 'kg'], also: ['body_mass', 'weight'] },
  { name: 'body_mass_index', kind: 'discrete', units: ['count'] },
  { name: 'body_fat_percentage', kind: 'discrete', units: ['%'] },
  { name: 'lean_body_mass', kind: 'discrete', units: ['lb', 'kg'] },
  { name: 'height', kind: 'discrete', units: ['cm', 'ft', 'in', 'm'] },
  { name: 'waist_circumference', kind: 'discrete', units: ['in', 'cm'] },
  { name: 'walking_speed', kind: 'discrete', units: SPEED },
  { name: 'walking_step_length', kind: 'discrete', units: ['in', 'cm'] },
  { name: 'walking_asymmetry_percentage', kind: 'discrete', units: ['%'] },
  { name: 'walking_double_support_percentage', kind: 'discrete', units: ['%'] },
  {
    name: 'six_minute_walking_test_distance',
    kind: 'discrete',
    units: ['m'],
    also: ['six-minute_walking_test_distance'],
  },
  { name: 'stair_speed_up', kind: 'discrete', units: ['ft/s', 'm/s'], also: ['stair_speed:_up'] },
  { name: 'stair_speed_down', kind: 'discrete', units: ['ft/s', 'm/s'], also: ['stair_speed:_down'] },
  { name: 'number_of_times_fallen', kind: 'cumulative', units: ['count'], also: ['number_of_time_fallen'] },
  {
    name: 'environmental_audio_exposure',
    kind: 'discrete',
    units: ['dBASPL'],
    also: ['environmental_audio'],
  },
  { name: 'headphone_audio_exposure', kind: 'discrete', units: ['dBASPL'], also: ['headphone_audio'] },
  { name: 'uv_exposure', kind: 'discrete', units: ['count'] },
  { name: 'underwater_depth', kind: 'discrete', units: ['ft', 'm'], also: ['under_water_depth'] },
  { name: 'underwater_temperature', kind: 'discrete', units: TEMPERATURE, also: ['under_water_temperature'] },
  { name: 'mindful_minutes', kind: 'cumulative', units: ['min'] },
  ...rows('cumulative', ['s'], ['handwashing', 'toothbrushing']),
  {
    name: 'sexual_activity',
    kind: 'special',
    units: ['count'],
    parts: ['Unspecified', 'Protection Used', 'Protection Not Used'],
    summed: true,
  },
  // Its points belong to the sleep section. Every source sends its own night, so hours are not summed blindly.
  { name: 'sleep_analysis', kind: 'special', units: ['hr'] },
  ...rows(
    'minmax',
    ['count'],
    ['high_heart_rate_notifications', 'low_heart_rate_notifications', 'irregular_heart_rate_notifications'],
  ),
  { name: 'dietary_energy', kind: 'cumulative', units: ENERGY },
  { name: 'dietary_water', kind: 'cumulative', units: ['fl_oz_us', 'mL', 'L'], also: ['water'] },
  { name: 'dietary_sugar', kind: 'cumulative', units: ['g'], also: ['sugar'] },
  ...rows(
    'cumulative',
    ['g'],
    ['carbohydrates', 'protein', 'fiber', 'total_fat', 'saturated_fat', 'polyunsaturated_fat'],
  ),
  { name: 'monounsaturated_fat', kind: 'cumulative', units: ['g'], also: ['monosaturated_fat'] },
  { name: 'dietary_cholesterol', kind: 'cumulative', units: ['mg'], also: ['cholesterol'] },
  { name: 'dietary_caffeine', kind: 'cumulative', units: ['mg'], also: ['caffeine'] },
  { name: 'dietary_biotin', kind: 'cumulative', units: ['mcg'], also: ['biotin'] },
  ...rows(
    'cumulative',
    ['mg'],
    [
      'sodium',
      'potassium',
      'calcium',
      'chloride',
      'copper',
      'iron',
      'magnesium',
      'manganese',
      'niacin',
      'pantothenic_acid',
      'phosphorus',
      'riboflavin',
      'thiamin',
      'vitamin_b6',
      'vitamin_c',
      'vitamin_e',
      'zinc',
    ],
  ),
  ...rows(
    'cumulative',
    ['mcg'],
    [
      'chromium',
      'folate',
      'iodine',
      'molybdenum',
      'selenium',
      'vitamin_a',
      'vitamin_b12',
      'vitamin_d',
      'vitamin_k',
    ],
  ),
];

/** What a worn watch produces many times an hour (design §2): where these begin and end, the window does. */
export const DENSE: ReadonlySet<string> = new Set([
  'step_count',
  'walking_running_distance',
  'active_energy',
  'basal_energy_burned',
  'heart_rate',
  'physical_effort',
  'apple_stand_time',
  'apple_exercise_time',
  'time_in_daylight',
]);

/**
 * Metrics whose 0 means "not measured" (hae-format.md §4.1): a reading that a living body, or a walk that was
 * taken, cannot give. A cumulative 0 is a real zero, so none of those is here. Not here either, because their 0
 * is a good reading: blood alcohol, breathing disturbances, atrial fibrillation burden, walking asymmetry (a
 * symmetric walk; most points of a real export), UV exposure, electrodermal activity (dry skin), depth (at the
 * surface) and temperature of water (0 degC), power and cadence of cycling (coasting), and the old
 * notification metrics, whose numbers may be counts.
 */
export const ZERO_IS_NOT_MEASURED: ReadonlySet<string> = new Set([
  'physical_effort', // a body at rest spends about 1 kcal/hr·kg
  'vo2_max',
  'running_speed',
  'cycling_speed',
  'running_power',
  'running_stride_length',
  'running_vertical_oscillation',
  'running_ground_contact_time',
  'cycling_functional_threshold_power',
  'heart_rate',
  'resting_heart_rate',
  'walking_heart_rate_average',
  'heart_rate_variability',
  'cardio_recovery',
  'blood_pressure',
  'respiratory_rate',
  'blood_oxygen_saturation',
  'apple_sleeping_wrist_temperature', // of skin: neither 0 degC nor 0 degF
  'body_temperature',
  'basal_body_temperature',
  'peripheral_perfusion_index',
  'forced_vital_capacity',
  'forced_expiratory_volume_1',
  'peak_expiratory_flow_rate',
  'blood_glucose',
  'weight_body_mass',
  'body_mass_index',
  'body_fat_percentage',
  'lean_body_mass',
  'height',
  'waist_circumference',
  'walking_speed',
  'walking_step_length',
  'walking_double_support_percentage', // walking without it would be running
  'six_minute_walking_test_distance',
  'stair_speed_up',
  'stair_speed_down',
  'environmental_audio_exposure', // 0 dB is the threshold of hearing, far below what a microphone notes
  'headphone_audio_exposure',
]);
