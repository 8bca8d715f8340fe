// Panels over time: time series, state timelines, heatmaps; and bar charts.

import { el } from '/ui/dom.js';
import { REDUCERS, REDUCER_NAMES, colour, display, thresholdColour } from './values.js';
import { seriesOf } from './panels.js';

const FONT = 12, LINE = 18;
const widthOf = (text) => String(text).length * 6.6;

// ---- Scales and axes ----

function ticks(low, high, n) {
  const raw = (high - low) / Math.max(1, n), magnitude = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * magnitude).find((s) => s >= raw);
  const list = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) list.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return list;
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
function timeTicks({ from, to }, width) {
  const step = TIME_STEPS.find((s) => (to - from) / s <= width / 80) || 86400;
  const list = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) list.push(t);
  const two = (n) => String(n).padStart(2, '0');
  return list.map((t) => {
    const d = new Date(t * 1000);
    return [t * 1000, step >= 86400 ? `${two(d.getMonth() + 1)}/${two(d.getDate())}`
      : `${two(d.getHours())}:${two(d.getMinutes())}${step < 60 ? `:${two(d.getSeconds())}` : ''}`];
  });
}

const write = (x, y, text, more = {}) => el('svg:text', { x, y, 'font-size': FONT, class: 'axis', ...more }, text);
const rule = (x1, y1, x2, y2, cls = 'grid') => el('svg:line', { x1, y1, x2, y2, class: cls });

// ---- Time series ----

function extent(list, stacked) {
  const values = list.flatMap((s) => (stacked ? s.tops : s.values)).filter((v) => typeof v === 'number' && Number.isFinite(v));
  const { min, max, axisSoftMin, axisSoftMax } = { ...list[0].config, ...list[0].config.custom };
  let low = Math.min(...values, axisSoftMin ?? Infinity), high = Math.max(...values, axisSoftMax ?? -Infinity);
  if (stacked || list.some((s) => s.config.custom?.drawStyle === 'bars')) low = Math.min(0, low);
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(low, 0), Math.max(high, 0)];
  else {
    const room = (high - low) * 0.05;
    [low, high] = [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
  }
  return [min ?? low, max ?? high];
}

function stack(list) {
  const sums = new Map();
  for (const s of list) {
    s.bases = s.times.map((t) => sums.get(t) || 0);
    s.tops = s.values.map((v, i) => (v === null ? null : s.bases[i] + v));
    s.tops.forEach((v, i) => v !== null && sums.set(s.times[i], v));
  }
}

// Pieces of a line: it ends where a value is missing, unless spanNulls.
function pieces(times, values, spanNulls) {
  const all = [[]];
  times.forEach((t, i) => {
    const v = values[i];
    if (typeof v === 'number' && Number.isFinite(v)) all.at(-1).push([t, v, i]);
    else if (spanNulls !== true && !(typeof spanNulls === 'number') && all.at(-1).length) all.push([]);
  });
  return all.filter((p) => p.length);
}

function corners(points, x, y, interpolation) {
  if (interpolation !== 'stepAfter') return points.map(([t, v]) => `${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join('L');
  return points.map(([t, v], i) => `${i ? `${x(t).toFixed(1)} ${y(points[i - 1][1]).toFixed(1)}L` : ''}${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join('L');
}

function drawSeries(s, x, y, floor, width, stacked) {
  const { drawStyle = 'line', lineWidth = 1, fillOpacity = 0, spanNulls = false, lineInterpolation, lineStyle, showPoints } = s.config.custom || {};
  const values = stacked ? s.tops : s.values;
  if (drawStyle === 'bars') {
    const w = Math.max(1, width / Math.max(1, s.times.length) * 0.8);
    return pieces(s.times, values, true).flat().map(([t, v, i]) => {
      const base = y(stacked ? s.bases[i] : Math.max(0, floor));
      return el('svg:rect', { x: x(t) - w / 2, y: Math.min(base, y(v)), width: w, height: Math.abs(base - y(v)), fill: s.colour, 'fill-opacity': Math.max(0.3, fillOpacity / 100) });
    });
  }
  return pieces(s.times, values, spanNulls).map((points) => {
    const line = corners(points, x, y, lineInterpolation);
    const dots = drawStyle === 'points' || points.length === 1 || showPoints === 'always';
    const under = stacked ? points.map(([t, , i]) => `${x(t).toFixed(1)} ${y(s.bases[i]).toFixed(1)}`).reverse().join('L')
      : `${x(points.at(-1)[0]).toFixed(1)} ${y(Math.max(floor, Math.min(0, Infinity))).toFixed(1)}L${x(points[0][0]).toFixed(1)} ${y(Math.max(floor, 0)).toFixed(1)}`;
    return [fillOpacity > 0 && el('svg:path', { d: `M${line}L${under}Z`, fill: s.colour, 'fill-opacity': fillOpacity / 100 }),
      drawStyle === 'line' && lineWidth > 0 && el('svg:path', { d: `M${line}`, fill: 'none', stroke: s.colour, 'stroke-width': lineWidth, 'stroke-linejoin': 'round',
        'stroke-dasharray': lineStyle?.fill === 'dash' ? (lineStyle.dash || [8, 6]).join(' ') : lineStyle?.fill === 'dot' ? '1 4' : null }),
      dots && points.map(([t, v]) => el('svg:circle', { cx: x(t), cy: y(v), r: 2.5, fill: s.colour }))];
  });
}

function thresholdLines(config, y, left, right, top, bottom) {
  const mode = config.custom?.thresholdsStyle?.mode || 'off';
  if (mode === 'off') return null;
  const steps = (config.thresholds?.steps || []).filter((s) => s.value !== null);
  return steps.map((step, i) => {
    const at = y(step.value), next = steps[i + 1] ? y(steps[i + 1].value) : top;
    if (at > bottom + 1) return null;
    const from = Math.max(top, next), to = Math.min(bottom, at);
    return [mode.includes('area') && to > from && el('svg:rect', { x: left, y: from, width: right - left, height: to - from, fill: colour(step.color), 'fill-opacity': 0.1 }),
      mode.includes('line') && at >= top && at <= bottom && el('svg:line', { x1: left, x2: right, y1: at, y2: at, stroke: colour(step.color), 'stroke-dasharray': mode.includes('dash') ? '8 6' : null })];
  });
}

function legendOf(list, panel, marker = (s) => s.colour) {
  const { showLegend = true, displayMode = 'list', placement = 'bottom', calcs = [] } = panel.options?.legend || {};
  if (!showLegend || displayMode === 'hidden') return null;
  const shown = list.filter((s) => !s.config.custom?.hideFrom?.legend);
  const key = (s) => {
    const node = el('span', { class: 'key' });
    node.style.background = marker(s);
    return node;
  };
  const values = (s) => calcs.map((c) => display(REDUCERS[c](s.values), s.config).text);
  if (displayMode === 'table')
    return el('div', { class: `legend ${placement}` }, el('table', {},
      el('thead', {}, el('tr', {}, el('th', {}, 'Name'), calcs.map((c) => el('th', { class: 'right' }, REDUCER_NAMES[c] || c)))),
      el('tbody', {}, shown.map((s) => el('tr', {}, el('td', {}, key(s), s.name), values(s).map((v) => el('td', { class: 'right' }, v)))))));
  return el('div', { class: `legend ${placement}` }, shown.map((s) =>
    el('span', { class: 'entry' }, key(s), s.name, calcs.map((c, i) => el('span', { class: 'calc' }, `${REDUCER_NAMES[c] || c}: ${values(s)[i]}`)))));
}

// Room for the legend beside or below the drawing.
function shared(box, list, panel) {
  const { showLegend = true, displayMode = 'list', placement = 'bottom', calcs = [], width } = panel.options?.legend || {};
  if (!showLegend || displayMode === 'hidden') return box;
  const longest = Math.max(...list.map((s) => widthOf(s.name))) + 40 + (displayMode === 'table' ? calcs.length * 70 : 0);
  if (placement === 'right') return { ...box, width: box.width - (width || Math.min(box.width * 0.45, longest)) };
  const rows = displayMode === 'table' ? list.length + 1
    : Math.ceil(list.reduce((sum, s) => sum + widthOf(s.name) + 34 + calcs.length * 80, 0) / box.width);
  return { ...box, height: box.height - Math.min(box.height * 0.4, rows * (displayMode === 'table' ? 22 : LINE) + 6) };
}

export function timeseries({ panel, frames, box, range, marks }) {
  const list = seriesOf(panel, frames);
  const stacked = list.some((s) => s.config.custom?.stacking?.mode === 'normal');
  if (stacked) stack(list);
  const { width, height } = shared(box, list, panel);
  const onRight = (s) => s.config.custom?.axisPlacement === 'right';
  const sides = [list.filter((s) => !onRight(s)), list.filter(onRight)].map((part) => part.length ? axis(part, stacked, height) : null);
  const left = sides[0]?.room ?? 8, right = width - (sides[1]?.room ?? 12), top = 8, bottom = height - 22;
  const x = (t) => left + ((t / 1000 - range.from) / (range.to - range.from)) * (right - left);
  const scale = ({ low, high }) => (v) => bottom - ((v - low) / (high - low)) * (bottom - top);
  const main = sides[0] || sides[1];
  const clip = `clip-${panel.id}`;
  const svg = el('svg:svg', { width, height },
    el('svg:clipPath', { id: clip }, el('svg:rect', { x: left, y: top - 2, width: right - left, height: bottom - top + 4 })),
    timeTicks(range, right - left).map(([t, text]) => [rule(x(t), top, x(t), bottom), write(x(t), height - 6, text, { 'text-anchor': 'middle' })]),
    main.list.map(([v, text]) => [rule(left, scale(main)(v), right, scale(main)(v)),
      write(sides[0] ? left - 6 : right + 6, scale(main)(v) + 4, text, { 'text-anchor': sides[0] ? 'end' : 'start' })]),
    sides[0] && sides[1] && sides[1].list.map(([v, text]) => write(right + 6, scale(sides[1])(v) + 4, text)),
    sides.map((side, i) => side?.label && el('svg:text', { 'font-size': FONT, class: 'axis', 'text-anchor': 'middle',
      transform: `translate(${i ? width - 4 : 12} ${(top + bottom) / 2}) rotate(-90)` }, side.label)),
    el('svg:g', { 'clip-path': `url(#${clip})` },
      thresholdLines(list[0].config, scale(main), left, right, top, bottom),
      list.map((s) => {
        const side = onRight(s) ? sides[1] : sides[0];
        return drawSeries(s, x, scale(side), side.low, right - left, stacked);
      }),
      marks.map(({ time, colour: shade, text }) => el('svg:g', {}, el('svg:title', {}, text),
        el('svg:line', { x1: x(time), x2: x(time), y1: top, y2: bottom, stroke: shade, 'stroke-opacity': 0.6, 'stroke-dasharray': '3 4' }),
        el('svg:path', { d: `M${x(time) - 4} ${bottom + 5}L${x(time)} ${bottom}L${x(time) + 4} ${bottom + 5}Z`, fill: shade })))));
  return [svg, legendOf(list, panel)];
}

function axis(part, stacked, height) {
  const [low, high] = extent(part, stacked);
  const { config } = part[0];
  const whole = part.every((s) => s.values.every((v) => v === null || Number.isInteger(v))) && config.unit !== 'percentunit';
  const list = ticks(low, high, Math.max(2, Math.floor(height / 45))).filter((v) => !whole || Number.isInteger(v) || high - low < 1)
    .map((v) => [v, display(v, { ...config, mappings: null, color: { mode: 'fixed' } }).text]);
  const label = config.custom?.axisLabel;
  return { low, high, list, label, room: Math.max(20, ...list.map(([, text]) => widthOf(text))) + 14 + (label ? 16 : 0) };
}

// ---- State timeline ----

export function stateTimeline({ panel, frames, box, range }) {
  const list = seriesOf(panel, frames);
  const states = new Map();
  const shown = list.map((s) => {
    const spans = [];
    s.times.forEach((t, i) => {
      const v = s.values[i];
      if (v === null) return;
      const { text, colour: shade } = display(v, s.config);
      const tint = shade || thresholdColour(v, s.config);
      states.set(text, tint);
      const end = Math.min(range.to * 1000, t + (s.step || 1000));
      if (spans.at(-1)?.text === text && t - spans.at(-1).end < 1) spans.at(-1).end = end;
      else spans.push({ text, tint, start: t, end });
    });
    return { ...s, spans };
  });
  const left = Math.min(box.width * 0.35, Math.max(...shown.map((s) => widthOf(s.name))) + 14), right = box.width - 8;
  const legend = panel.options?.legend?.showLegend === false ? 0 : LINE + 6;
  const bottom = box.height - 22 - legend, each = bottom / shown.length;
  const tall = each * (panel.options?.rowHeight ?? 0.9);
  const x = (t) => left + ((t / 1000 - range.from) / (range.to - range.from)) * (right - left);
  const values = panel.options?.showValue !== 'never';
  return [el('svg:svg', { width: box.width, height: box.height - legend },
    timeTicks(range, right - left).map(([t, text]) => write(x(t), bottom + 16, text, { 'text-anchor': 'middle' })),
    shown.map((s, i) => [write(left - 8, i * each + each / 2 + 4, s.name, { 'text-anchor': 'end' }),
      s.spans.map(({ text, tint, start, end }) => {
        const from = Math.max(left, x(start)), to = Math.max(from, x(end)), wide = to - from > widthOf(text) + 8;
        return [el('svg:rect', { x: from, y: i * each + (each - tall) / 2, width: to - from, height: tall, fill: tint, 'fill-opacity': (s.config.custom?.fillOpacity ?? 70) / 100 }),
          values && wide && each > 14 && write((from + to) / 2, i * each + each / 2 + 4, text, { 'text-anchor': 'middle', class: 'inside' })];
      })])),
  legend ? el('div', { class: 'legend bottom' }, [...states].map(([text, tint]) => {
    const key = el('span', { class: 'key' });
    key.style.background = tint;
    return el('span', { class: 'entry' }, key, text);
  })) : null];
}

// ---- Heatmap of a histogram: one series a bucket, named by its upper bound ----

export function heatmap({ panel, frames, box, range }) {
  const bound = (s) => (s.field.labels?.le === '+Inf' ? Infinity : Number(s.field.labels?.le));
  const cumulative = seriesOf(panel, frames).filter((s) => !Number.isNaN(bound(s))).sort((a, b) => bound(a) - bound(b));
  const rows = cumulative.map((s, i) => ({ ...s,
    values: s.values.map((v, k) => Math.max(0, (v ?? 0) - (i ? cumulative[i - 1].values[k] ?? 0 : 0))) }));
  if (!rows.length) throw new Error('a heatmap needs series with the label le');
  const unit = panel.options?.yAxis?.unit;
  const names = rows.map((s) => (bound(s) === Infinity ? '+Inf' : display(bound(s), { unit, color: { mode: 'fixed' } }).text));
  const left = Math.max(...names.map(widthOf)) + 14, right = box.width - 8, bottom = box.height - 22;
  const each = bottom / rows.length, most = Math.max(1e-12, ...rows.flatMap((s) => s.values));
  const x = (t) => left + ((t / 1000 - range.from) / (range.to - range.from)) * (right - left);
  const every = Math.ceil(16 / each);
  return el('svg:svg', { width: box.width, height: box.height },
    timeTicks(range, right - left).map(([t, text]) => write(x(t), box.height - 6, text, { 'text-anchor': 'middle' })),
    rows.map((s, i) => [i % every === 0 && write(left - 6, bottom - i * each - each / 2 + 4, names[i], { 'text-anchor': 'end' }),
      s.values.map((v, k) => v > 0 && el('svg:rect', { x: x(s.times[k]), y: bottom - (i + 1) * each, height: Math.max(1, each - 1),
        width: Math.max(1, x(s.times[k] + s.step) - x(s.times[k])), fill: `hsl(${30 - 25 * Math.sqrt(v / most)} 90% ${20 + 45 * Math.sqrt(v / most)}%)` }))]));
}

// ---- Bar chart: a bar for each row and number of a table ----

export function barchart({ panel, frames, box }) {
  const frame = frames[0];
  const names = frame.fields.find((f) => f.name === panel.options?.xField) || frame.fields.find((f) => f.type === 'string');
  const list = seriesOf(panel, [frame]);
  const rows = names.values.length, values = list.flatMap((s) => s.values).filter((v) => v !== null);
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const { width, height } = shared(box, list, panel);
  const across = panel.options?.orientation === 'horizontal';
  const left = across ? Math.min(width * 0.4, Math.max(...names.values.map(widthOf)) + 12) : 56;
  const long = across ? width - left - 70 : height - 30, each = (across ? height : width - left) / rows;
  const bar = (each * 0.8) / list.length;
  return [el('svg:svg', { width, height }, names.values.map((name, i) => {
    const middle = i * each + each / 2;
    return [across ? write(left - 6, middle + 4, name, { 'text-anchor': 'end' }) : write(left + middle, height - 6, name, { 'text-anchor': 'middle' }),
      list.map((s, k) => {
        const v = s.values[i], size = ((v - low) / (high - low)) * long, at = i * each + each * 0.1 + k * bar;
        const { text, colour: shade } = display(v, s.config);
        const fill = shade || s.colour;
        return across ? [el('svg:rect', { x: left, y: at, width: size, height: bar, fill }), write(left + size + 4, at + bar / 2 + 4, text)]
          : [el('svg:rect', { x: left + at, y: height - 24 - size, width: bar, height: size, fill }), write(left + at + bar / 2, height - 28 - size, text, { 'text-anchor': 'middle' })];
      })];
  })), legendOf(list, panel)];
}
