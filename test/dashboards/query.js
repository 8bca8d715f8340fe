// Queries of panels and what Grafana makes of the answers: frames, which are tables of fields.
// A field: {name, type: 'time' | 'number' | 'string', values, labels, refId}.

import { isNumber } from './values.js';

export const nameOf = ({ __name__: name = '', ...labels }) => {
  const inside = Object.entries(labels).map(([k, v]) => `${k}="${v}"`).join(', ');
  return inside ? `${name}{${inside}}` : name;
};

async function call(url, options) {
  const answer = await (await fetch(url, options)).json();
  if (answer.status !== 'success') throw new Error(`${answer.error} (${options?.body?.get('query') ?? url})`);
  return answer.data;
}

const number = (text) => ({ '+Inf': Infinity, '-Inf': -Infinity }[text] ?? Number(text));

// The values of "label_values(selector, label)" between two times in seconds.
export const asker = ({ from, to }) => (query, source) => {
  const [, selector, label] = /^label_values\((.*),\s*(\w+)\s*\)$/s.exec(query) || [];
  if (!label) throw new Error(`unknown query of a variable: ${query}`);
  const parameters = new URLSearchParams({ 'match[]': selector, start: from, end: to });
  return call(`${source.url}/api/v1/label/${label}/values?${parameters}`);
};

// ---- Targets ----

const DURATION = { s: 1, m: 60, h: 3600, d: 86400 };
export const seconds = (text) => {
  const [, n, unit] = /^(\d+)([smhd])$/.exec(text) || [];
  return n * DURATION[unit];
};
const NICE = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// The step of a query that fills `width` pixels, and the variables that follow from it.
function intervals(target, source, { from, to }, width) {
  const scrape = seconds(source.interval);
  const least = target.interval ? seconds(target.interval) : scrape;
  const step = Math.max(least, NICE.find((n) => n >= (to - from) / width) ?? 86400);
  const names = { __interval: step, __rate_interval: Math.max(step + scrape, 4 * scrape), __range: Math.round(to - from) };
  return { step, names: Object.fromEntries(Object.entries(names).map(([name, s]) => [name, `${s}s`])) };
}

function legend(format, labels) {
  if (!format || format === '__auto') return nameOf(labels) || 'Value';
  return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? '').trim();
}

function tableFrame(refId, result, several) {
  const labels = [...new Set(result.flatMap((s) => Object.keys(s.metric)))].sort();
  const name = several ? `Value #${refId}` : 'Value';
  return { fields: [
    { name: 'Time', type: 'time', values: result.map((s) => s.value[0] * 1000) },
    ...labels.map((label) => ({ name: label, type: 'string', values: result.map((s) => s.metric[label] ?? '') })),
    { name, type: 'number', refId, values: result.map((s) => number(s.value[1])) },
  ] };
}

// Samples at equal steps; null where a series has none.
function seriesFrame(target, format, { metric, values }, start, end, step) {
  const byTime = new Map(values.map(([t, v]) => [Math.round(t), number(v)]));
  const times = Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, i) => start + i * step);
  const given = times.map((t) => byTime.get(t) ?? null);
  return { step: step * 1000, fields: [
    { name: 'Time', type: 'time', values: times.map((t) => t * 1000) },
    { name: legend(format, metric), type: 'number', labels: metric, refId: target.refId, values: given },
  ] };
}

async function ask(target, { sources, variables, range }, width, several) {
  const source = variables.sourceOf(target, sources);
  const { step, names } = intervals(target, source, range, width);
  const query = variables.fill(target.expr, names), format = variables.fill(target.legendFormat || '');
  const post = (path, times) =>
    call(`${source.url}/api/v1/${path}`, { method: 'POST', body: new URLSearchParams({ query, ...times }) });
  const unknown = /\$\w+|\$\{.*?\}/.exec(query.replace(/"(?:[^"\\]|\\.)*"/g, ''));
  if (unknown) throw new Error(`unknown variable ${unknown[0]} in ${query}`);
  if (target.instant) {
    const { result } = await post('query', { time: range.to });
    if (target.format === 'table') return [tableFrame(target.refId, result, several)];
    const one = (s) => seriesFrame(target, format, { ...s, values: [[0, s.value[1]]] }, 0, 0, 1);
    return result.map(one);
  }
  const [start, end] = [range.from, range.to].map((t) => Math.floor(t / step) * step);
  const { result } = await post('query_range', { start, end, step });
  return result.map((s) => seriesFrame(target, format, s, start, end, step));
}

// ---- Transformations ----

export const rowsOf = (frame) => frame.fields[0]?.values.length ?? 0;
const column = (frame, name) => frame.fields.find((f) => f.name === name);

const TRANSFORMATIONS = {
  // Rows of all frames in one; rows that agree on every shared field but the time become one.
  merge(frames) {
    const names = [...new Set(frames.flatMap((f) => f.fields.map((x) => x.name)))];
    const shared = names.filter((n) => n !== 'Time' && frames.every((f) => column(f, n)));
    const rows = new Map();
    for (const frame of frames)
      for (let i = 0; i < rowsOf(frame); i++) {
        const key = JSON.stringify(shared.map((n) => column(frame, n).values[i]));
        if (!rows.has(key)) rows.set(key, {});
        for (const f of frame.fields) rows.get(key)[f.name] = f.values[i];
      }
    const kind = (name) => frames.map((f) => column(f, name)).find(Boolean);
    const valuesOf = (name) => [...rows.values()].map((r) => r[name] ?? null);
    return [{ fields: names.map((name) => ({ ...kind(name), values: valuesOf(name) })) }];
  },

  organize(frames, { excludeByName, indexByName, renameByName }) {
    return frames.map((frame) => ({ ...frame, fields: frame.fields.filter((f) => !excludeByName[f.name])
      .map((f, i) => [indexByName[f.name] ?? 1000 + i, f]).sort((a, b) => a[0] - b[0])
      .map(([, f]) => ({ ...f, name: renameByName[f.name] || f.name })) }));
  },
};

const shows = (f) => f.type !== 'time' && f.values.some((v) => (f.type === 'number' ? isNumber(v) : v));

// The frames that a panel shows; none if there is nothing to see in them.
export async function framesOf(panel, context, width) {
  const several = panel.targets.filter((t) => t.format === 'table').length > 1;
  const answers = await Promise.all(panel.targets.map((t) => ask(t, context, width, several)));
  let frames = answers.flat().filter((f) => rowsOf(f) > 0);
  for (const { id, options } of panel.transformations || []) {
    if (!TRANSFORMATIONS[id]) throw new Error(`unknown transformation: ${id}`);
    if (frames.length) frames = TRANSFORMATIONS[id](frames, options);
  }
  return frames.some((f) => f.fields.some(shows)) ? frames : [];
}
