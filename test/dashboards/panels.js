// Panels that show the latest values: stat, bar gauge, table. A function takes {panel, frames,
// box: {width, height}, link} and returns a node.

import { el } from '/ui/dom.js';
import { rowsOf } from './query.js';
import { PALETTE, colour, display, isNumber, lastOf, thresholdColour } from './values.js';

// ---- Fields: defaults, then overrides in their order ----

const MATCHERS = {
  byName: (f, wanted) => f.name === wanted,
  byRegexp: (f, wanted) => new RegExp(wanted.replace(/^\/|\/$/g, '')).test(f.name),
  byFrameRefID: (f, wanted) => f.refId === wanted,
};

function configOf(field, { fieldConfig: { defaults, overrides } }) {
  const config = { ...defaults, custom: { ...defaults.custom } };
  for (const { matcher, properties } of overrides) {
    if (!MATCHERS[matcher.id]) throw new Error(`unknown matcher: ${matcher.id}`);
    if (!MATCHERS[matcher.id](field, matcher.options)) continue;
    for (const { id, value } of properties) {
      if (id.startsWith('custom.')) config.custom[id.slice(7)] = value;
      else config[id] = value;
    }
  }
  return config;
}

// The series of a panel: {name, config, times, values, step, colour}.
export function seriesOf(panel, frames) {
  return frames.map(({ step, fields: [time, field] }, i) => {
    const config = configOf(field, panel);
    const { mode, fixedColor } = config.color;
    const own = mode === 'fixed' ? colour(fixedColor)
      : mode === 'thresholds' ? thresholdColour(lastOf(field.values), config) : PALETTE[i % PALETTE.length];
    return { name: field.name, config, times: time.values, values: field.values, step, colour: own };
  });
}

// ---- Stat ----

// The largest font in which a text fits.
const fitting = (text, width, height) =>
  Math.max(11, Math.min(56, height * 0.5, ((width - 12) / Math.max(1, text.length)) * 1.4));

export function stat({ panel, frames, box }) {
  const list = seriesOf(panel, frames);
  return el('div', { class: 'stats' }, list.map((s) => {
    const value = display(lastOf(s.values), s.config);
    const text = panel.options.textMode === 'name' ? s.name : value.text;
    const strong = el('strong', {}, text);
    strong.style.fontSize = `${fitting(text, box.width / list.length, box.height)}px`;
    strong.style.color = value.colour || s.colour;
    return el('div', { class: 'stat' }, list.length > 1 && el('span', { class: 'name' }, s.name), strong);
  }));
}

// ---- Bar gauge ----

export function bargauge({ panel, frames, box }) {
  const list = seriesOf(panel, frames).map((s) => ({ ...s, value: lastOf(s.values) }));
  const known = list.map((s) => s.value);
  return el('div', { class: 'bars' }, list.map((s) => {
    const { min = Math.min(...known), max = Math.max(...known) } = s.config;
    const { text, colour: shade } = display(s.value, s.config);
    const fill = el('span', { class: 'fill' }), value = el('span', { class: 'value' }, text);
    fill.style.width = `${Math.min(1, Math.max(0, (s.value - min) / (max - min || 1))) * 100}%`;
    fill.style.background = `color-mix(in srgb, ${shade || s.colour} 45%, transparent)`;
    value.style.color = shade || s.colour;
    const name = el('span', { class: 'name', title: s.name }, s.name);
    const row = el('div', { class: 'bar' }, name, el('span', { class: 'rail' }, fill), value);
    row.style.height = `${Math.max(18, Math.min(46, box.height / list.length))}px`;
    return row;
  }));
}

// ---- Table ----

function cell(value, config, right, address) {
  const { text, colour: shade } = display(value, config);
  const [target] = config.links || [];
  const inside = target ? el('a', { href: address(target.url), title: target.title }, text) : el('span', {}, text);
  if (config.custom.cellOptions?.type === 'color-text' && shade) inside.style.color = shade;
  return el('td', { class: right && 'right', title: text }, inside);
}

function sorted(frame, [by] = []) {
  const values = frame.fields.find((f) => f.name === by?.displayName)?.values;
  const rows = [...Array(rowsOf(frame)).keys()];
  const less = (x, y) => (isNumber(x) && isNumber(y) ? x - y : String(x).localeCompare(String(y)));
  return values ? rows.sort((a, b) => (by.desc ? -1 : 1) * less(values[a], values[b])) : rows;
}

export function table({ panel, frames: [frame], link }) {
  const columns = frame.fields.map((field) => {
    const config = configOf(field, panel);
    return { field, config, right: field.type === 'number' && !config.mappings };
  }).filter(({ config }) => !config.custom.hidden);
  const rowOf = (row) => {
    const address = (url) => link(url, (name) => frame.fields.find((f) => f.name === name)?.values[row]);
    return el('tr', {}, columns.map(({ field, config, right }) => cell(field.values[row], config, right, address)));
  };
  return el('table', {},
    el('thead', {}, el('tr', {}, columns.map(({ field, right }) => el('th', { class: right && 'right' }, field.name)))),
    el('tbody', {}, sorted(frame, panel.options.sortBy).map(rowOf)));
}
