// Time series.

import { el } from '/ui/dom.js';
import { seriesOf } from './panels.js';
import { colour, display, isNumber } from './values.js';

const LINE = 18; // the height of a line of the legend
const widthOf = (text) => String(text).length * 6.6;
const text = (x, y, words, anchor) => el('svg:text', { x, y, class: 'axis', 'text-anchor': anchor }, words);
const line = (x1, y1, x2, y2, more = { class: 'grid' }) => el('svg:line', { x1, y1, x2, y2, ...more });

// ---- Scales and axes ----

function extent(list, stacked) {
  const values = list.flatMap((s) => (stacked ? s.tops : s.values)).filter(Number.isFinite);
  const { min, max } = list[0].config;
  let low = Math.min(...values), high = Math.max(...values);
  if (stacked) low = Math.min(0, low);
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(low, 0), Math.max(high, 0)];
  const room = (high - low) * 0.05;
  return [min ?? (low >= 0 && low < room ? 0 : low - room), max ?? high + room];
}

function ticks(low, high, n, whole) {
  const raw = (high - low) / n, magnitude = 10 ** Math.floor(Math.log10(raw));
  const nice = [1, 2, 2.5, 5, 10].map((m) => m * magnitude).find((s) => s >= raw);
  const step = whole ? Math.max(1, nice) : nice;
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  const all = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  return whole ? all.filter(Number.isInteger) : all;
}

function axis(list, stacked, height) {
  if (!list.length) return null;
  const [low, high] = extent(list, stacked);
  const { config } = list[0];
  const whole = config.unit !== 'percentunit'
    && list.every((s) => s.values.every((v) => !isNumber(v) || Number.isInteger(v)));
  const marks = ticks(low, high, Math.max(2, Math.floor(height / 45)), whole)
    .map((v) => [v, display(v, { unit: config.unit, decimals: config.decimals }).text]);
  const label = config.custom.axisLabel;
  const room = Math.max(20, ...marks.map(([, words]) => widthOf(words))) + (label ? 30 : 14);
  return { low, high, marks, label, room };
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
function timeTicks({ from, to }, width) {
  const step = TIME_STEPS.find((s) => (to - from) / s <= width / 80) || 86400;
  const count = Math.floor(to / step) - Math.ceil(from / step) + 1;
  return Array.from({ length: count }, (_, i) => {
    const t = (Math.ceil(from / step) + i) * step * 1000;
    return [t, new Date(t).toTimeString().slice(0, step < 60 ? 8 : 5)];
  });
}

// ---- Series ----

function stack(list) {
  const sums = new Map();
  for (const s of list) {
    s.bases = s.times.map((t) => sums.get(t) || 0);
    s.tops = s.values.map((v, i) => (isNumber(v) ? s.bases[i] + v : null));
    s.tops.forEach((v, i) => v !== null && sums.set(s.times[i], v));
  }
}

// Pieces of a line, as lists of places in its values: it ends where a value is missing.
function pieces(values) {
  const all = [[]];
  values.forEach((v, i) => {
    if (Number.isFinite(v)) all.at(-1).push(i);
    else if (all.at(-1).length) all.push([]);
  });
  return all.filter((p) => p.length);
}

function drawSeries(s, x, y, floor) {
  const { lineWidth = 1, fillOpacity = 0, lineStyle } = s.config.custom;
  const values = s.tops || s.values;
  const at = (i, v) => `${x(s.times[i]).toFixed(1)} ${y(v).toFixed(1)}`;
  return pieces(values).map((piece) => {
    const path = `M${piece.map((i) => at(i, values[i])).join('L')}`;
    const under = piece.toReversed().map((i) => at(i, s.bases ? s.bases[i] : Math.max(floor, 0))).join('L');
    const area = { d: `${path}L${under}Z`, fill: s.colour, 'fill-opacity': fillOpacity / 100 };
    const stroke = { stroke: s.colour, 'stroke-width': lineWidth, 'stroke-dasharray': lineStyle?.fill === 'dash' && '8 6' };
    const [only] = piece;
    return [el('svg:path', area), el('svg:path', { d: path, fill: 'none', ...stroke }),
      piece.length === 1 && el('svg:circle', { cx: x(s.times[only]), cy: y(values[only]), r: 2.5, fill: s.colour })];
  });
}

function thresholdLines({ custom, thresholds }, y, left, right) {
  if (custom.thresholdsStyle?.mode !== 'dashed') return null;
  return thresholds.steps.filter((step) => step.value !== null).map(({ value, color }) =>
    line(left, y(value), right, y(value), { stroke: colour(color), 'stroke-dasharray': '8 6' }));
}

// ---- The panel ----

const legend = (list) => el('div', { class: 'legend' }, list.map((s) => {
  const key = el('span', { class: 'key' });
  key.style.background = s.colour;
  return el('span', { class: 'entry' }, key, s.name);
}));

function legendHeight(list, width) {
  const rows = Math.ceil(list.reduce((sum, s) => sum + widthOf(s.name) + 36, 0) / width);
  return Math.min(rows, 4) * LINE + 6;
}

// marks: annotations, [{time, colour, text}]
export function timeseries({ panel, frames, box, range, marks }) {
  const list = seriesOf(panel, frames);
  const stacked = list.some((s) => s.config.custom.stacking?.mode === 'normal');
  if (stacked) stack(list);
  const width = box.width, height = box.height - legendHeight(list, width);
  const onRight = (s) => s.config.custom.axisPlacement === 'right';
  const first = axis(list.filter((s) => !onRight(s)), stacked, height);
  const second = axis(list.filter(onRight), stacked, height);
  const left = first?.room ?? 8, right = width - (second?.room ?? 12), top = 8, bottom = height - 22;
  const x = (t) => left + ((t / 1000 - range.from) / (range.to - range.from)) * (right - left);
  const scale = (side) => (v) => bottom - ((v - side.low) / (side.high - side.low)) * (bottom - top);
  const label = (side, at) => side?.label && el('svg:text', { class: 'axis', 'text-anchor': 'middle',
    transform: `translate(${at} ${(top + bottom) / 2}) rotate(-90)` }, side.label);
  const clip = `clip-${panel.id}`;
  return [el('svg:svg', { width, height },
    el('svg:clipPath', { id: clip },
      el('svg:rect', { x: left, y: top - 2, width: right - left, height: bottom - top + 4 })),
    timeTicks(range, right - left).map(([t, words]) =>
      [line(x(t), top, x(t), bottom), text(x(t), height - 6, words, 'middle')]),
    first?.marks.map(([v, words]) => {
      const y = scale(first)(v);
      return [line(left, y, right, y), text(left - 6, y + 4, words, 'end')];
    }),
    second?.marks.map(([v, words]) => text(right + 6, scale(second)(v) + 4, words, 'start')),
    label(first, 12), label(second, width - 4),
    el('svg:g', { 'clip-path': `url(#${clip})` },
      thresholdLines(list[0].config, scale(first || second), left, right),
      list.map((s) => {
        const side = onRight(s) ? second : first;
        return drawSeries(s, x, scale(side), side.low);
      }),
      marks.map((m) => {
        const look = { stroke: m.colour, 'stroke-opacity': 0.6, 'stroke-dasharray': '3 4' };
        return el('svg:g', {}, el('svg:title', {}, m.text), line(x(m.time), top, x(m.time), bottom, look));
      }))),
  legend(list)];
}
