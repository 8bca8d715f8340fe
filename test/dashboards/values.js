// How Grafana writes and colours a value: units, mappings, thresholds.

const COLOURS = {
  green: '#73bf69', yellow: '#fade2a', red: '#f2495c', orange: '#ff9830', blue: '#5794f2', purple: '#b877d9',
  text: '#ccccdc', transparent: 'transparent', white: '#ffffff', black: '#000000', gray: '#8e8e99', grey: '#8e8e99',
};
const SHADES = {
  'dark-green': '#37872d', 'semi-dark-green': '#56a64b', 'light-green': '#96d98d', 'super-light-green': '#c8f2c2',
  'dark-yellow': '#e0b400', 'semi-dark-yellow': '#f2cc0c', 'light-yellow': '#ffee52', 'super-light-yellow': '#fff899',
  'dark-red': '#c4162a', 'semi-dark-red': '#e02f44', 'light-red': '#ff7383', 'super-light-red': '#ffa6b0',
  'dark-orange': '#fa6400', 'semi-dark-orange': '#ff780a', 'light-orange': '#ffb357', 'super-light-orange': '#ffcb7d',
  'dark-blue': '#1f60c4', 'semi-dark-blue': '#3274d9', 'light-blue': '#8ab8ff', 'super-light-blue': '#c0d8ff',
  'dark-purple': '#8f3bb8', 'semi-dark-purple': '#a352cc', 'light-purple': '#ca95e5', 'super-light-purple': '#deb6f2',
};
export const PALETTE = ['green', 'semi-dark-yellow', 'light-blue', 'semi-dark-orange', 'red', 'blue', 'purple',
  'dark-green', 'dark-yellow', 'dark-blue', 'dark-orange', 'dark-purple', 'light-green', 'light-yellow', 'light-purple',
  'light-orange'].map((name) => COLOURS[name] || SHADES[name]);

export function colour(name) {
  const found = COLOURS[name] || SHADES[name] || (/^(#|rgb)/.test(name) && name);
  if (!found) throw new Error(`unknown colour: ${name}`);
  return found;
}

// ---- Numbers ----

// As toFixed(), without zeros at the end when the number of decimals is ours to choose.
function fixed(v, decimals) {
  if (decimals !== undefined && decimals !== null) return v.toFixed(decimals);
  const size = Math.abs(v);
  const places = size === 0 ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : Math.min(8, 1 - Math.floor(Math.log10(size)) + 1);
  return String(Number(v.toFixed(places)));
}

function scaled(steps, words) {
  return (v, decimals) => {
    let i = 0;
    for (; i + 1 < words.length && Math.abs(v) >= steps; i++) v /= steps;
    return fixed(v, decimals) + words[i];
  };
}

function timeSpan(v, decimals) {
  const size = Math.abs(v);
  for (const [from, word] of [[31536000, ' years'], [604800, ' weeks'], [86400, ' days'], [3600, ' hours'], [60, ' mins']])
    if (size >= from) {
      const text = fixed(v / from, decimals ?? (Math.abs(v / from) < 10 ? 1 : 0)).replace(/\.0$/, '');
      return text + (text === '1' ? word.replace(/s$/, '') : word);
    }
  if (size >= 1 || size === 0) return `${fixed(v, decimals)} s`;
  return size >= 0.001 ? `${fixed(v * 1000, decimals)} ms` : `${fixed(v * 1e6, decimals)} µs`;
}

function ago(v) {
  const s = Date.now() / 1000 - v / 1000;
  const size = Math.abs(s);
  const steps = [[86400 * 365, 'year'], [86400 * 30, 'month'], [86400, 'day'], [3600, 'hour'], [60, 'minute'], [0, 'second']];
  const [from, word] = steps.find(([least]) => size >= least);
  const n = Math.max(0, Math.round(size / (from || 1)));
  const words = from === 0 && n < 45 ? 'a few seconds' : `${n === 1 ? 'a' : n} ${word}${n === 1 ? '' : 's'}`;
  return s >= 0 ? `${words} ago` : `in ${words}`;
}

const pad = (n) => String(n).padStart(2, '0');
const iso = (v) => {
  const t = new Date(v);
  return `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
};

const IEC = [' B', ' KiB', ' MiB', ' GiB', ' TiB'], SI = [' B', ' kB', ' MB', ' GB', ' TB'];
const suffix = (word) => (v, decimals) => scaled(1000, ['', ' K', ' Mil', ' Bil'])(v, decimals) + word;
const UNITS = {
  none: fixed, string: (v) => String(v), short: scaled(1000, ['', ' K', ' Mil', ' Bil', ' Tri']),
  percent: (v, d) => fixed(v, d) + '%', percentunit: (v, d) => fixed(v * 100, d ?? (Math.abs(v) < 0.1 ? undefined : 1)).replace(/\.0$/, '') + '%',
  s: timeSpan, ms: (v, d) => timeSpan(v / 1000, d), dtdurations: timeSpan, clocks: timeSpan,
  bytes: scaled(1024, IEC), decbytes: scaled(1000, SI),
  Bps: (v, d) => scaled(1000, SI)(v, d) + '/s', binBps: (v, d) => scaled(1024, IEC)(v, d) + '/s',
  reqps: suffix(' req/s'), ops: suffix(' ops/s'), cps: suffix(' c/s'), wps: suffix(' wr/s'), rps: suffix(' rd/s'), iops: suffix(' io/s'),
  cpm: suffix(' c/m'), opm: suffix(' ops/m'), eps: suffix(' evt/s'), mps: suffix(' msg/s'),
  dateTimeAsIso: iso, dateTimeAsIsoNoDateIfToday: iso, dateTimeFromNow: ago, time: iso,
  bool: (v) => (v ? 'True' : 'False'), bool_yes_no: (v) => (v ? 'Yes' : 'No'), bool_on_off: (v) => (v ? 'On' : 'Off'),
};

function byUnit(unit, v, decimals) {
  if (UNITS[unit]) return UNITS[unit](v, decimals);
  const [, kind, word] = /^(suffix|prefix):(.*)$/.exec(unit) || [];
  if (kind === 'suffix') return `${fixed(v, decimals)} ${word}`;
  if (kind === 'prefix') return word + fixed(v, decimals);
  throw new Error(`unknown unit: ${unit}`);
}

// ---- Values ----

function mapped(v, mappings) {
  for (const { type, options } of mappings || []) {
    if (type === 'value' && options[String(v)]) return options[String(v)];
    const within = type === 'range' && typeof v === 'number' && v >= (options.from ?? -Infinity) && v <= (options.to ?? Infinity);
    if (within) return options.result;
    const special = { true: v === true, false: v === false, null: v === null, nan: Number.isNaN(v),
      'null+nan': v === null || Number.isNaN(v), empty: v === '' };
    if (type === 'special' && special[options.match]) return options.result;
    if (type === 'regex') {
      const [, body, flags] = /^\/(.*)\/(\w*)$/.exec(options.pattern) || [null, options.pattern, ''];
      const pattern = new RegExp(body, flags);
      if (pattern.test(String(v)))
        return { ...options.result, text: String(v).replace(pattern, options.result.text ?? '$&') };
    }
  }
  return null;
}

export function thresholdColour(v, config) {
  const { mode, steps } = config.thresholds || { steps: [{ color: 'green', value: null }] };
  const low = config.min ?? 0, high = config.max ?? 100;
  const at = mode === 'percentage' ? ((v - low) / (high - low)) * 100 : v;
  let found = steps[0];
  for (const step of steps) if (step.value === null || at >= step.value) found = step;
  return colour(found.color);
}

// What is shown for a value: {text, colour}; colour is null where the field's own applies. config: as in fieldConfig.
export function display(v, config = {}) {
  const found = mapped(v, config.mappings);
  const number = typeof v === 'number';
  let text = found?.text;
  if (text === undefined || text === '')
    text = v === null || v === undefined || Number.isNaN(v) ? (config.noValue ?? '-') : number && config.unit !== 'string'
      ? Number.isFinite(v) ? byUnit(config.unit || 'none', v, config.decimals) : v > 0 ? '+Inf' : '-Inf' : String(v);
  let shade = found?.color ? colour(found.color) : null;
  const { mode, fixedColor } = config.color || {};
  if (!shade && mode === 'fixed') shade = colour(fixedColor || 'green');
  if (!shade && number && (!mode || mode === 'thresholds')) shade = thresholdColour(v, config);
  else if (!shade && number && mode.startsWith('continuous')) shade = gradient(mode, v, config);
  return { text, colour: shade };
}

const GRADIENTS = { 'continuous-GrYlRd': [120, 0], 'continuous-RdYlGr': [0, 120], 'continuous-BlYlRd': [220, 0], 'continuous-BlPu': [215, 285],
  'continuous-blues': [210, 210], 'continuous-greens': [120, 120] };
function gradient(mode, v, { min = 0, max = 100 }) {
  const [from, to] = GRADIENTS[mode] || [120, 0];
  const part = Math.min(1, Math.max(0, (v - min) / (max - min || 1)));
  return `hsl(${from + (to - from) * part} 60% ${from === to ? 25 + 40 * part : 50}%)`;
}

// What a stat, a gauge or a legend says of a series.
export const REDUCERS = {
  lastNotNull: (values) => values.findLast((v) => v !== null && v !== undefined && !Number.isNaN(v)) ?? null,
  last: (values) => values.at(-1) ?? null,
  firstNotNull: (values) => values.find((v) => v !== null) ?? null,
  max: (values) => known(values, (list) => Math.max(...list)),
  min: (values) => known(values, (list) => Math.min(...list)),
  mean: (values) => known(values, (list) => list.reduce((a, b) => a + b) / list.length),
  sum: (values) => known(values, (list) => list.reduce((a, b) => a + b)),
  count: (values) => values.length,
  delta: (values) => known(values, (list) => list.at(-1) - list[0]),
  range: (values) => known(values, (list) => Math.max(...list) - Math.min(...list)),
};
REDUCERS.current = REDUCERS.lastNotNull;
REDUCERS.avg = REDUCERS.mean;
function known(values, function_) {
  const list = values.filter((v) => typeof v === 'number' && Number.isFinite(v));
  return list.length ? function_(list) : null;
}
export const REDUCER_NAMES = { lastNotNull: 'Last *', last: 'Last', max: 'Max', min: 'Min', mean: 'Mean', sum: 'Total', count: 'Count' };
