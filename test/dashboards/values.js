// How Grafana writes and colours a value: units, mappings, thresholds.

const COLOURS = {
  green: '#73bf69', yellow: '#fade2a', red: '#f2495c', orange: '#ff9830', blue: '#5794f2', purple: '#b877d9',
  text: '#ccccdc', 'dark-green': '#37872d', 'dark-yellow': '#e0b400', 'dark-blue': '#1f60c4',
  'dark-orange': '#fa6400', 'dark-purple': '#8f3bb8', 'semi-dark-yellow': '#f2cc0c', 'semi-dark-orange': '#ff780a',
  'light-green': '#96d98d', 'light-blue': '#8ab8ff', 'light-purple': '#ca95e5',
};

export function colour(name) {
  if (!COLOURS[name]) throw new Error(`unknown colour: ${name}`);
  return COLOURS[name];
}

// Of series in their order.
export const PALETTE = ['green', 'semi-dark-yellow', 'light-blue', 'semi-dark-orange', 'red', 'blue', 'purple',
  'dark-green', 'dark-yellow', 'dark-blue', 'dark-orange', 'dark-purple', 'light-green', 'light-purple'].map(colour);

// ---- Numbers ----

// Without given decimals, about three digits.
function fixed(v, decimals) {
  if (decimals !== undefined) return v.toFixed(decimals);
  const size = Math.abs(v);
  const places = size === 0 ? 0 : Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(size))));
  return String(Number(v.toFixed(places)));
}

const scaled = (step, words, after = '') => (v, decimals) => {
  let i = 0;
  for (; i + 1 < words.length && Math.abs(v) >= step; i++) v /= step;
  return fixed(v, decimals) + words[i] + after;
};

const SPANS = [[31536000, 'year'], [604800, 'week'], [86400, 'day'], [3600, 'hour'], [60, 'min']];
function span(v, decimals) {
  const size = Math.abs(v);
  const [from, word] = SPANS.find(([least]) => size >= least) || [];
  if (from) {
    const text = fixed(v / from, decimals ?? (size / from < 10 ? 1 : 0)).replace(/\.0$/, '');
    return `${text} ${word}${text === '1' ? '' : 's'}`;
  }
  if (size >= 1 || size === 0) return `${fixed(v, decimals)} s`;
  return size >= 0.001 ? `${fixed(v * 1000, decimals)} ms` : `${fixed(v * 1e6, decimals)} µs`;
}

const SHORT = ['', ' K', ' Mil', ' Bil', ' Tri'];
const UNITS = {
  none: fixed,
  short: scaled(1000, SHORT),
  ops: scaled(1000, SHORT, ' ops/s'),
  reqps: scaled(1000, SHORT, ' req/s'),
  bytes: scaled(1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB']),
  Bps: scaled(1000, [' B', ' kB', ' MB', ' GB', ' TB'], '/s'),
  percentunit: (v, decimals) => `${fixed(v * 100, decimals)}%`,
  s: span,
};

function number(v, { unit = 'none', decimals }) {
  if (!UNITS[unit]) throw new Error(`unknown unit: ${unit}`);
  return Number.isFinite(v) ? UNITS[unit](v, decimals) : v > 0 ? '+Inf' : '-Inf';
}

// ---- Values ----

function mapped(v, mappings = []) {
  for (const { type, options } of mappings) {
    if (type !== 'value') throw new Error(`unknown type of mapping: ${type}`);
    if (options[v]) return options[v];
  }
  return {};
}

export function thresholdColour(v, { thresholds }) {
  const steps = thresholds?.steps || [{ color: 'green', value: null }];
  return colour(steps.findLast((s) => s.value === null || v >= s.value).color);
}

export const isNumber = (v) => typeof v === 'number' && !Number.isNaN(v);

// What is shown for a value: {text, colour}; config: as in fieldConfig. Without a colour, the series' own applies.
export function display(v, config) {
  const { text, color } = mapped(v, config.mappings);
  const { mode, fixedColor } = config.color || { mode: 'thresholds' };
  const shade = color ? colour(color) : mode === 'fixed' ? colour(fixedColor)
    : mode === 'thresholds' && isNumber(v) ? thresholdColour(v, config) : null;
  const plain = () => (typeof v === 'string' ? v : isNumber(v) ? number(v, config) : config.noValue ?? '');
  return { text: text ?? plain(), colour: shade };
}

export const lastOf = (values) => values.findLast(isNumber) ?? null;
