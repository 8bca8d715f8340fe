// The page: /d/UID?var-NAME=...&from=now-15m&to=now shows a dashboard much as Grafana does; / lists them.
// data-state of a panel: loading, data, empty or error. The body's data-done counts the times that all panels were drawn.

import { el } from '/ui/dom.js';
import { Variables } from './variables.js';
import { asker, framesOf, nameOf, seconds } from './query.js';
import { REDUCERS, colour, display } from './values.js';
import { bargauge, gauge, stat, table, text } from './panels.js';
import { barchart, heatmap, stateTimeline, timeseries } from './charts.js';

const PANELS = { stat, bargauge, gauge, table, text, timeseries, barchart, heatmap, 'state-timeline': stateTimeline,
  'status-history': stateTimeline };
const COLUMNS = 24, ROW = 30, GAP = 8; // of Grafana's grid, in pixels

const wanted = new URLSearchParams(location.search);
const get = async (path) => (await fetch(path)).json();

function rangeOf(dashboard) {
  const now = Date.now() / 1000;
  const time = (word, otherwise) => {
    const given = wanted.get(word) || dashboard.time?.[word] || otherwise;
    const back = /^now(?:-(\w+))?$/.exec(given);
    return back ? now - (back[1] ? seconds(back[1]) : 0) : Number(given) / 1000;
  };
  return { from: time('from', 'now-1h'), to: time('to', 'now') };
}

// ---- Rows and repeated panels ----

// Panels of collapsed rows belong to the grid, too: this page opens all rows.
function opened(panels) {
  let down = 0;
  return panels.flatMap((p) => {
    const moved = { ...p, gridPos: { ...p.gridPos, y: p.gridPos.y + down } };
    if (p.type !== 'row' || !p.collapsed || !p.panels?.length) return [moved];
    const top = p.gridPos.y + 1, first = Math.min(...p.panels.map((q) => q.gridPos.y));
    const inside = p.panels.map((q) => ({ ...q, gridPos: { ...q.gridPos, y: q.gridPos.y - first + top + down } }));
    down += Math.max(...p.panels.map((q) => q.gridPos.y - first + q.gridPos.h));
    return [moved, ...inside];
  });
}

function repeated(panels, variables) {
  return panels.flatMap((p) => {
    if (!p.repeat) return [p];
    if (p.type === 'row' || p.repeatDirection === 'v') throw new Error(`${p.title}: only panels beside each other are repeated here`);
    const values = variables.valuesOf(p.repeat), w = Math.floor(COLUMNS / Math.min(values.length, p.maxPerRow || 4));
    return values.map((value, i) => ({ ...p, id: `${p.id}-${i}`, more: { [p.repeat]: value },
      gridPos: { ...p.gridPos, w, x: (i * w) % COLUMNS, y: p.gridPos.y + Math.floor((i * w) / COLUMNS) * p.gridPos.h } }));
  });
}

// ---- Panels ----

// A link's variables: those of the dashboard, and of the row: ${__data.fields.NAME}, ${__value.text}, ${__field.labels.NAME}.
const linker = (variables, range) => (url, frame, row, field) => {
  const filled = url
    .replace(/\$\{__data\.fields(?:\.(\w+)|\["([^"]+)"\]|\[(\d+)\])(?::\w+)?\}/g, (_, a, b, n) =>
      encodeURIComponent((n ? frame.fields[n] : frame.fields.find((f) => f.name === (a || b) || f.origin === (a || b)))?.values[row] ?? ''))
    .replace(/\$\{__value\.(?:text|raw)(?::\w+)?\}/g, () => encodeURIComponent(field.values[row]))
    .replace(/\$\{__field\.labels\.(\w+)(?::\w+)?\}/g, (_, name) => encodeURIComponent(field.labels?.[name] ?? ''))
    .replace(/\$\{?__url_time_range\}?/g, `from=${Math.round(range.from * 1000)}&to=${Math.round(range.to * 1000)}`)
    .replace(/\$\{?__all_variables\}?/g, [...variables.byName.keys()].map((n) => variables.one(n, 'queryparam')).join('&'));
  return variables.fill(filled, {}, null);
};

function frameOf(panel, variables) {
  const title = variables.words(panel.title, panel.more);
  const { x, y, w, h } = panel.gridPos;
  const node = el('section', { class: panel.transparent ? 'panel clear' : 'panel', 'data-id': panel.id, 'data-type': panel.type, 'data-title': title, 'data-state': 'loading' },
    title && el('h2', { title: variables.words(panel.description) }, title, panel.description && el('span', { class: 'info' }, 'i')),
    el('div', { class: 'content' }));
  node.style.gridArea = `${y + 1} / ${x + 1} / span ${h} / span ${w}`;
  return node;
}

async function draw(panel, node, context) {
  const { variables, range, marks } = context;
  const content = node.querySelector('.content');
  const box = { width: content.clientWidth, height: content.clientHeight };
  const words = (what) => variables.words(what, panel.more);
  const show = (state, ...what) => {
    content.replaceChildren(...what.flat(9).filter(Boolean));
    node.dataset.state = state;
  };
  try {
    if (!PANELS[panel.type]) throw new Error(`unknown type of panel: ${panel.type}`);
    const all = { ...context, variables: withMore(variables, panel.more) };
    const frames = (await framesOf(panel, all, Math.round(box.width), REDUCERS)).filter((f) => f.fields.some((x) => x.values.length));
    const said = (v) => v !== null && v !== '' && !Number.isNaN(v);
    const empty = panel.type !== 'text' && !frames.some((f) => f.fields.some((x) => x.type !== 'time' && x.values.some(said)));
    if (!empty) return show('data', [PANELS[panel.type]({ panel, frames, box, range, marks, words, link: linker(variables, range) })].flat(9));
    const { noValue } = panel.fieldConfig?.defaults || {};
    return show('empty', el('p', { class: 'none' }, noValue ? display(null, { noValue }).text : 'No data'));
  } catch (error) {
    return show('error', el('p', { class: 'error' }, error.message));
  }
}

function withMore(variables, more) {
  if (!more) return variables;
  const copy = Object.create(variables);
  copy.builtIn = { ...variables.builtIn, ...more };
  return copy;
}

// ---- Annotations ----

async function marksOf(dashboard, context) {
  const queries = (dashboard.annotations?.list || []).filter((a) => a.enable && a.expr);
  const found = await Promise.all(queries.map(async (a, i) => {
    const panel = { datasource: a.datasource, targets: [{ refId: 'A', expr: a.expr, interval: a.step, datasource: a.datasource }] };
    const frames = await framesOf(panel, context, 1000, REDUCERS);
    return frames.flatMap(({ fields: [time, value], step }) => {
      let last = -Infinity; // points one step apart are one event
      return time.values.filter((t, k) => {
        if (!value.values[k]) return false;
        const fresh = t - last > step * 1.5;
        last = t;
        return a.useValueForTime || fresh;
      }).map((t, k) => ({ time: a.useValueForTime ? value.values[k] : t, colour: colour(a.iconColor || 'blue'),
        text: `${a.name}: ${(a.titleFormat || nameOf(value.labels)).replace(/\{\{\s*(\w+)\s*\}\}/g, (_, l) => value.labels[l] ?? '')}`, i }));
    });
  }));
  return found.flat();
}

// ---- The page ----

function controls(dashboard, variables, range) {
  const shown = [...variables.byName.values()].filter((v) => v.hide !== 2 && v.type !== 'constant' && v.type !== 'adhoc');
  const form = el('form', { class: 'controls' }, shown.map((v) => {
    const options = [...(v.includeAll ? ['$__all'] : []), ...v.options];
    return el('label', {}, v.label || v.name, v.type === 'textbox'
      ? el('input', { name: `var-${v.name}`, value: v.values[0] })
      : el('select', { name: `var-${v.name}` }, options.map((o) =>
        el('option', { value: o, selected: v.values.includes(o) }, o === '$__all' ? 'All' : o))));
  }));
  form.onchange = () => {
    const query = new URLSearchParams(new FormData(form));
    for (const word of ['from', 'to']) if (wanted.has(word)) query.set(word, wanted.get(word));
    location.search = query;
  };
  const link = linker(variables, range);
  const links = (dashboard.links || []).map((l) => {
    const query = [l.includeVars && '${__all_variables}', l.keepTime && '${__url_time_range}'].filter(Boolean).join('&');
    const url = l.type === 'dashboards' ? `/?tag=${(l.tags || []).join(',')}` : l.url;
    return el('a', { href: link(url + (query ? (url.includes('?') ? '&' : '?') + query : '')) }, l.title);
  });
  return [form, el('nav', {}, links)];
}

function grid(panels, variables) {
  const node = el('main', {}, panels.map((p) => (p.type === 'row'
    ? el('h3', { class: 'row', 'data-row': true }, variables.words(p.title)) : frameOf(p, variables))));
  panels.forEach((p, i) => {
    if (p.type === 'row') node.children[i].style.gridArea = `${p.gridPos.y + 1} / 1 / span 1 / span ${COLUMNS}`;
  });
  const rows = Math.max(...panels.map((p) => p.gridPos.y + p.gridPos.h));
  node.style.gridTemplateRows = `repeat(${rows}, ${ROW}px)`;
  node.style.gap = `${GAP}px`;
  return node;
}

async function show(uid) {
  const [dashboard, sources] = await Promise.all([get(`/api/dashboards/${uid}`), get('/api/datasources')]);
  const range = rangeOf(dashboard);
  const variables = await Variables.read(dashboard.templating?.list || [], wanted, sources, asker(range),
    { __dashboard: dashboard.title, __user: 'admin' });
  const context = { sources, variables, range, marks: [] };
  context.marks = await marksOf(dashboard, context);
  const panels = repeated(opened(dashboard.panels), variables);
  document.title = dashboard.title;
  document.body.replaceChildren(el('header', {}, el('h1', {}, el('a', { href: '/' }, 'Dashboards'), ' › ', dashboard.title),
    controls(dashboard, variables, range)), grid(panels, variables));
  const drawOnce = () => Promise.all(panels.filter((p) => p.type !== 'row').map((p) =>
    draw(p, document.querySelector(`[data-id="${p.id}"]`), context)));
  await drawOnce();
  document.body.dataset.done = 1;
  const refresh = seconds(wanted.get('refresh') ?? '5s');
  for (let n = 2; refresh > 0; n++) {
    await new Promise((resolve) => { setTimeout(resolve, refresh * 1000); });
    Object.assign(range, rangeOf(dashboard));
    context.marks = await marksOf(dashboard, context);
    await drawOnce();
    document.body.dataset.done = n;
  }
}

async function list() {
  const tags = wanted.get('tag')?.split(',') || [];
  const all = (await get('/api/dashboards')).filter((d) => tags.every((t) => !t || d.tags.includes(t)));
  document.body.replaceChildren(el('header', {}, el('h1', {}, 'Dashboards')), el('ul', { class: 'list' }, all.map((d) =>
    el('li', {}, el('a', { href: `/d/${d.uid}` }, d.title), el('p', {}, d.description)))));
}

const [, uid] = /^\/d\/([^/]+)/.exec(location.pathname) || [];
(uid ? show(uid) : list()).catch((error) => {
  document.body.append(el('p', { class: 'error' }, error.message));
  document.body.dataset.failed = error.message;
});
