// The page: /d/UID?var-NAME=...&from=now-15m&to=now shows a dashboard much as Grafana does; / lists them.
// data-state of a panel: loading, data, empty or error. data-done of the body: how often all panels were drawn.

import { el } from '/ui/dom.js';
import { Variables } from './variables.js';
import { asker, framesOf, seconds } from './query.js';
import { colour } from './values.js';
import { bargauge, stat, table } from './panels.js';
import { timeseries } from './charts.js';

const PANELS = { stat, bargauge, table, timeseries };
const ROW = 30; // of Grafana's grid, in pixels; style.css has the rest

const wanted = new URLSearchParams(location.search);
const get = async (path) => (await fetch(path)).json();

function rangeOf(dashboard) {
  const now = Date.now() / 1000;
  const time = (word) => {
    const given = wanted.get(word) || dashboard.time[word];
    const [relative, back] = /^now(?:-(\w+))?$/.exec(given) || [];
    return relative ? now - (back ? seconds(back) : 0) : Number(given) / 1000;
  };
  return { from: time('from'), to: time('to') };
}

// ---- Links ----

// valueOf(name): the value of a field in the row of the link: ${__data.fields.NAME}, ${__field.labels.NAME}.
const linker = (variables, range) => (url, valueOf = () => '') => {
  const every = [...variables.byName.keys()].map((name) => variables.valueOf(name, 'queryparam')).join('&');
  const [from, to] = [range.from, range.to].map((t) => Math.round(t * 1000));
  const filled = url.replace(/\$\{__(?:data\.fields|field\.labels)\.(\w+)(?::\w+)?\}/g,
    (_, name) => encodeURIComponent(valueOf(name) ?? ''));
  return variables.fill(filled, { __url_time_range: `from=${from}&to=${to}`, __all_variables: every });
};

function navigation(dashboard, link) {
  return el('nav', {}, dashboard.links.map((l) => {
    const parts = [l.includeVars && '${__all_variables}', l.keepTime && '${__url_time_range}'];
    const query = parts.filter(Boolean).join('&');
    const url = l.type === 'dashboards' ? '/' : l.url;
    return el('a', { href: link(query ? `${url}?${query}` : url) }, l.title);
  }));
}

// ---- Panels ----

function place(panel, variables) {
  const { x, y, w, h } = panel.gridPos;
  const title = variables.words(panel.title);
  const node = panel.type === 'row' ? el('h3', {}, title) : el('section',
    { class: 'panel', 'data-id': panel.id, 'data-title': title, 'data-state': 'loading' },
    el('h2', { title: variables.words(panel.description) }, title, el('span', { class: 'info' }, 'i')),
    el('div', { class: 'content' }));
  node.style.gridArea = `${y + 1} / ${x + 1} / span ${h} / span ${w}`;
  return node;
}

async function contentOf(panel, box, context) {
  if (!PANELS[panel.type]) throw new Error(`unknown type of panel: ${panel.type}`);
  const frames = await framesOf(panel, context, Math.round(box.width));
  if (!frames.length) return ['empty', el('p', { class: 'none' }, panel.fieldConfig.defaults.noValue || 'No data')];
  const { range, marks } = context;
  return ['data', PANELS[panel.type]({ panel, frames, box, range, marks, link: context.link })];
}

async function draw(panel, context) {
  const node = document.querySelector(`[data-id="${panel.id}"]`), content = node.querySelector('.content');
  const box = { width: content.clientWidth, height: content.clientHeight };
  const [state, nodes] = await contentOf(panel, box, context)
    .catch((error) => ['error', el('p', { class: 'error' }, error.message)]);
  content.replaceChildren(...[nodes].flat());
  node.dataset.state = state;
}

// ---- Annotations ----

async function marksOf(annotation, context) {
  const { name, iconColor, expr, datasource, step, textFormat, useValueForTime } = annotation;
  const target = { refId: 'A', expr, datasource, interval: step, legendFormat: textFormat };
  const frames = await framesOf({ targets: [target] }, context, 1000);
  return frames.flatMap(({ step: each, fields: [times, values] }) => {
    const points = times.values.filter((_, i) => values.values[i]);
    const first = points.filter((t, i) => i === 0 || t - points[i - 1] > each); // points one step apart are one event
    const found = useValueForTime ? [...new Set(values.values)].filter(Boolean) : first;
    return found.map((time) => ({ time, colour: colour(iconColor), text: `${name}: ${values.name}` }));
  });
}

const allMarks = async (dashboard, context) =>
  (await Promise.all(dashboard.annotations.list.map((a) => marksOf(a, context)))).flat();

// ---- The page ----

function controls(variables) {
  const shown = [...variables.byName.values()].filter((v) => v.hide !== 2);
  const form = el('form', { class: 'controls' }, shown.map((v) => {
    const options = [...(v.includeAll ? [['$__all', 'All']] : []), ...v.options];
    return el('label', {}, v.label, v.type === 'textbox' ? el('input', { name: `var-${v.name}`, value: v.values[0] })
      : el('select', { name: `var-${v.name}` }, options.map(([value, text]) =>
        el('option', { value, selected: v.values.includes(value) }, text))));
  }));
  form.onchange = () => {
    const query = new URLSearchParams(new FormData(form));
    for (const word of ['from', 'to', 'refresh']) if (wanted.has(word)) query.set(word, wanted.get(word));
    location.search = query;
  };
  return form;
}

async function show(uid) {
  const [dashboard, sources] = await Promise.all([get(`/api/dashboards/${uid}`), get('/api/datasources')]);
  const range = rangeOf(dashboard);
  const variables = await Variables.read(dashboard.templating.list, wanted, sources, asker(range));
  const context = { sources, variables, range, link: linker(variables, range), marks: [] };
  const panels = dashboard.panels.filter((p) => p.type !== 'row');
  const grid = el('main', {}, dashboard.panels.map((p) => place(p, variables)));
  grid.style.gridTemplateRows = `repeat(${Math.max(...panels.map((p) => p.gridPos.y + p.gridPos.h))}, ${ROW}px)`;
  document.title = dashboard.title;
  const heading = el('h1', {}, el('a', { href: '/' }, 'Dashboards'), ' › ', dashboard.title);
  const header = el('header', {}, heading, controls(variables), navigation(dashboard, context.link));
  document.body.replaceChildren(header, grid);
  const refresh = seconds(wanted.get('refresh') ?? '5s');
  for (let n = 1; n === 1 || refresh > 0; n++) {
    Object.assign(range, rangeOf(dashboard));
    context.marks = await allMarks(dashboard, context);
    await Promise.all(panels.map((p) => draw(p, context)));
    document.body.dataset.done = n;
    await new Promise((resolve) => { setTimeout(resolve, refresh * 1000); });
  }
}

async function list() {
  const all = await get('/api/dashboards');
  document.title = 'Dashboards';
  document.body.replaceChildren(el('h1', {}, 'Dashboards'), el('dl', {}, all.map((d) =>
    [el('dt', {}, el('a', { href: `/d/${d.uid}${location.search}` }, d.title)), el('dd', {}, d.description)])));
}

const [, uid] = /^\/d\/([^/]+)/.exec(location.pathname) || [];
(uid ? show(uid) : list()).catch((error) => {
  document.body.append(el('p', { class: 'error' }, error.message));
  document.body.dataset.failed = error.message;
});
