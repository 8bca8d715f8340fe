// What each type of panel shows. A function takes {panel, frames, box: {width, height}, link} and returns nodes.

import { el } from '/ui/dom.js';
import { PALETTE, REDUCERS, colour, display, thresholdColour } from './values.js';

// ---- Fields: defaults, then overrides in their order ----

const MATCHERS = {
  byName: (f, wanted) => f.display === wanted || f.name === wanted,
  byRegexp: (f, wanted) => new RegExp(wanted.replace(/^\/|\/$/g, '')).test(f.display || f.name),
  byType: (f, wanted) => f.type === wanted,
  byFrameRefID: (f, wanted) => f.refId === wanted,
};

function put(config, path, value) {
  const names = path.split('.');
  const last = names.pop();
  let at = config;
  for (const name of names) at = at[name] = { ...at[name] };
  at[last] = value;
}

export function configOf(field, panel) {
  const config = { ...panel.fieldConfig?.defaults };
  for (const { matcher, properties } of panel.fieldConfig?.overrides || []) {
    if (!MATCHERS[matcher.id]) throw new Error(`unknown matcher: ${matcher.id}`);
    if (MATCHERS[matcher.id](field, matcher.options)) for (const { id, value } of properties) put(config, id, value);
  }
  return config;
}

// The series of a panel that draws values: {name, field, config, values, times, colour}.
export function seriesOf(panel, frames) {
  const all = frames.flatMap((frame) => frame.fields.filter((f) => f.type === 'number').map((field) => ({ frame, field })));
  return all.map(({ frame, field }, i) => {
    const config = configOf(field, panel);
    const times = frame.fields.find((f) => f.type === 'time')?.values || [];
    const { mode, fixedColor } = config.color || {};
    const own = mode === 'fixed' ? colour(fixedColor || 'green')
      : mode === 'thresholds' ? thresholdColour(REDUCERS.lastNotNull(field.values), config) : PALETTE[i % PALETTE.length];
    return { name: config.displayName || field.display || field.name, field, config, values: field.values, times, step: frame.step, colour: own };
  }).filter((s) => !s.config.custom?.hideFrom?.viz);
}

// One value for each series, or for each row of a table (reduceOptions.values).
function reduced(panel, frames) {
  const { calcs = ['lastNotNull'], values, fields = '', limit = 25 } = panel.options?.reduceOptions || {};
  const wanted = fields && new RegExp(fields.replace(/^\/|\/$/g, ''));
  const chosen = seriesOf(panel, frames).filter((s) => !wanted || wanted.test(s.name) || wanted.test(s.field.name));
  if (!values) return chosen.flatMap((s) => calcs.map((c) => ({ ...s, value: REDUCERS[c](s.values) })));
  return frames.flatMap((frame) => {
    const names = frame.fields.filter((f) => f.type === 'string');
    const numbers = chosen.filter((s) => frame.fields.some((f) => f.values === s.values));
    return numbers.flatMap((s) => s.values.map((value, i) => ({
      ...s, value, name: names.map((f) => f.values[i]).join(' ') || s.name })));
  }).slice(0, limit);
}

// ---- Stat ----

// The largest font in which a text fits.
const fitting = (text, width, height, most) => Math.max(11, Math.min(most, height, (width / Math.max(1, text.length)) * 1.75));

function spark(series, box) {
  const known = series.values.filter((v) => typeof v === 'number' && Number.isFinite(v));
  if (known.length < 2) return null;
  const low = Math.min(...known), high = Math.max(...known), n = series.values.length - 1;
  const place = (v, i) => `${((i / n) * box.width).toFixed(1)} ${(box.height - ((v - low) / (high - low || 1)) * box.height * 0.9).toFixed(1)}`;
  const points = series.values.map((v, i) => (typeof v === 'number' && Number.isFinite(v) ? place(v, i) : null)).filter(Boolean);
  const [first, last] = [points[0].split(' ')[0], points.at(-1).split(' ')[0]];
  return (shade) => el('svg:svg', { class: 'spark', width: box.width, height: box.height },
    el('svg:path', { d: `M${points.join('L')}L${last} ${box.height}L${first} ${box.height}Z`, fill: shade, 'fill-opacity': 0.2 }),
    el('svg:path', { d: `M${points.join('L')}`, fill: 'none', stroke: shade, 'stroke-width': 1.5 }));
}

export function stat({ panel, frames, box }) {
  const { colorMode = 'value', graphMode = 'area', textMode = 'auto', orientation = 'auto' } = panel.options || {};
  const list = reduced(panel, frames);
  const across = orientation === 'vertical' || (orientation === 'auto' && box.width > box.height);
  const part = across ? { width: box.width / list.length, height: box.height } : { width: box.width, height: box.height / list.length };
  const named = textMode === 'value_and_name' || (textMode === 'auto' && list.length > 1);
  return el('div', { class: across ? 'stats across' : 'stats' }, list.map((s) => {
    const { text: value, colour: shade } = display(s.value, s.config);
    const text = textMode === 'name' ? s.name : value;
    const tint = shade || s.colour;
    const background = colorMode.startsWith('background');
    const node = el('div', { class: 'stat' },
      graphMode === 'area' && !background && spark(s, { width: part.width, height: part.height * 0.35 })?.(tint),
      named && el('span', { class: 'name' }, s.name), el('strong', {}, text));
    const strong = node.querySelector('strong');
    strong.style.fontSize = `${fitting(text, part.width - 12, part.height * 0.5, 56)}px`;
    if (background) node.style.background = tint;
    else if (colorMode === 'value') strong.style.color = tint;
    return node;
  }));
}

// ---- Gauges ----

const part = (v, { min = 0, max = 100 }) => Math.min(1, Math.max(0, (v - min) / (max - min || 1)));
// Without bounds of their own, bars reach from the least to the greatest value, as Grafana's do.
function bounds(list) {
  const known = list.map((s) => s.value).filter((v) => Number.isFinite(v));
  const [min, max] = [Math.min(...known), Math.max(...known)];
  return list.map((s) => ({ ...s, config: { min, max, ...s.config } }));
}

export function bargauge({ panel, frames, box }) {
  const { orientation = 'horizontal', displayMode = 'gradient' } = panel.options || {};
  const list = bounds(reduced(panel, frames));
  const upright = orientation === 'vertical';
  const wanted = Math.min(46, box.height / list.length);
  const node = el('div', { class: `bars ${upright ? 'upright' : ''} ${displayMode}` }, list.map((s) => {
    const { text, colour: shade } = display(s.value, s.config);
    const tint = shade || s.colour;
    const bar = el('span', { class: 'fill' }), value = el('span', { class: 'value' }, text);
    bar.style[upright ? 'height' : 'width'] = `${part(s.value, s.config) * 100}%`;
    bar.style.background = displayMode === 'basic' ? `color-mix(in srgb, ${tint} 45%, transparent)` : tint;
    value.style.color = tint;
    const row = el('div', { class: 'bar' }, el('span', { class: 'name', title: s.name }, s.name),
      el('span', { class: 'rail' }, bar), value);
    if (!upright) row.style.height = `${Math.max(18, wanted)}px`;
    return row;
  }));
  return node;
}

export function gauge({ panel, frames, box }) {
  const list = bounds(reduced(panel, frames));
  const width = box.width / list.length, r = Math.max(20, Math.min(width / 2, box.height * 0.62) - 12);
  const arc = (to, radius) => {
    const angle = Math.PI * (1 + to);
    return `M${width / 2 - radius} ${r + 10}A${radius} ${radius} 0 0 1 ${width / 2 + radius * Math.cos(angle)} ${r + 10 + radius * Math.sin(angle)}`;
  };
  return el('div', { class: 'stats across' }, list.map((s) => {
    const { text, colour: shade } = display(s.value, s.config);
    return el('div', { class: 'stat' }, el('svg:svg', { width, height: r + 40 },
      el('svg:path', { d: arc(1, r), fill: 'none', stroke: '#2c3235', 'stroke-width': 14 }),
      el('svg:path', { d: arc(part(s.value, s.config), r), fill: 'none', stroke: shade || s.colour, 'stroke-width': 14 }),
      el('svg:text', { x: width / 2, y: r + 6, 'text-anchor': 'middle', 'font-size': Math.min(28, r / 2), fill: shade || s.colour }, text)),
    list.length > 1 && el('span', { class: 'name' }, s.name));
  }));
}

// ---- Table ----

const RIGHT = 'number';

function cell(value, field, config, frame, row, link) {
  const { text, colour: shade } = field.type === 'time' && !config.unit
    ? display(value, { ...config, unit: 'dateTimeAsIso' }) : display(value, config);
  const target = (config.links || [])[0];
  const node = el('td', { class: field.type === RIGHT && !config.mappings?.length ? 'right' : null, title: text },
    target ? el('a', { href: link(target.url, frame, row, field), title: target.title }, text) : text);
  const kind = config.custom?.cellOptions?.type || config.custom?.displayMode;
  if (kind === 'color-text' && shade) (node.firstElementChild || node).style.color = shade;
  if ((kind === 'color-background' || kind === 'color-background-solid') && shade) node.style.background = shade;
  if (kind === 'gauge' && typeof value === 'number') {
    const fill = el('span', { class: 'fill' });
    fill.style.width = `${part(value, config) * 100}%`;
    fill.style.background = shade;
    node.replaceChildren(el('span', { class: 'rail' }, fill), el('span', { class: 'value' }, text));
    node.classList.add('gauge');
  }
  if (config.custom?.align) node.style.textAlign = config.custom.align;
  return node;
}

export function table({ panel, frames, link }) {
  return frames.slice(0, 1).map((frame) => {
    const columns = frame.fields.map((field) => [field, configOf(field, panel)]).filter(([, c]) => !c.custom?.hidden);
    const rows = [...(frame.fields[0]?.values ?? []).keys()];
    const by = panel.options?.sortBy?.[0];
    const sorter = by && frame.fields.find((f) => f.name === by.displayName);
    if (sorter) rows.sort((a, b) => {
      const [x, y] = [sorter.values[a], sorter.values[b]];
      return (by.desc ? -1 : 1) * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)));
    });
    const fixed = columns.map(([, c]) => c.custom?.width);
    return el('table', {}, el('colgroup', {}, fixed.map((w) => el('col', { width: w }))),
      el('thead', {}, el('tr', {}, columns.map(([f, c]) => el('th', { class: f.type === RIGHT && !c.mappings?.length ? 'right' : null }, c.displayName || f.name)))),
      el('tbody', {}, rows.map((row) => el('tr', {}, columns.map(([f, c]) => cell(f.values[row], f, c, frame, row, link))))));
  });
}

// ---- Text: the Markdown that our dashboards use ----

function inline(text) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/);
  return parts.map((p) => {
    if (p.startsWith('`')) return el('code', {}, p.slice(1, -1));
    if (p.startsWith('**')) return el('strong', {}, p.slice(2, -2));
    const [, words, url] = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(p) || [];
    return words ? el('a', { href: url }, words) : p;
  });
}

export function text({ panel, words }) {
  const blocks = words(panel.options?.content || '').trim().split(/\n\s*\n/);
  return el('div', { class: 'markdown' }, blocks.map((block) => {
    const lines = block.split('\n');
    const heading = /^(#+)\s+(.*)/.exec(lines[0]);
    if (heading) return el(`h${heading[1].length + 2}`, {}, inline(heading[2]));
    if (lines.every((l) => /^[-*] /.test(l))) return el('ul', {}, lines.map((l) => el('li', {}, inline(l.slice(2)))));
    return el('p', {}, inline(lines.join(' ')));
  }));
}
