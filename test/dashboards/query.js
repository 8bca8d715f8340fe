// Queries of panels and what Grafana makes of the answers: frames, which are tables of fields.
// A field: {name, type: 'time' | 'number' | 'string', labels, values, refId}.

export const nameOf = (labels) => {
  const { __name__: name = '', ...rest } = labels;
  const inside = Object.entries(rest).map(([k, v]) => `${k}="${v}"`).join(', ');
  return inside ? `${name}{${inside}}` : name;
};

async function call(source, path, parameters) {
  const response = await fetch(`${source.url}/api/v1/${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
  const answer = await response.json();
  if (answer.status !== 'success') throw new Error(`${answer.error} (${parameters.query ?? path})`);
  return answer.data;
}

const number = (text) => ({ '+Inf': Infinity, '-Inf': -Infinity }[text] ?? Number(text));

// The functions of a query variable; range: {from, to} in seconds.
export const asker = (range) => ({
  async values(query, source) {
    const label = /^label_values\((?:(.*),)?\s*(\w+)\s*\)$/s.exec(query.trim());
    const times = { start: range.from, end: range.to };
    if (label) {
      const match = label[1] ? { 'match[]': label[1].trim() } : {};
      const url = `${source.url}/api/v1/label/${label[2]}/values?` + new URLSearchParams({ ...match, ...times });
      const answer = await (await fetch(url)).json();
      if (answer.status !== 'success') throw new Error(`${answer.error} (${query})`);
      return answer.data;
    }
    const result = /^query_result\((.*)\)$/s.exec(query.trim());
    if (!result) throw new Error(`unknown function of a variable: ${query}`);
    const data = await call(source, 'query', { query: result[1], time: range.to });
    return data.result.map((s) => `${nameOf(s.metric)} ${s.value[1]} ${s.value[0] * 1000}`);
  },
});

// ---- Targets ----

const DURATION = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86400 };
export const seconds = (text) => {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  return found ? Number(found[1]) * DURATION[found[2]] : NaN;
};
const words = (s) => (s % 3600 === 0 ? `${s / 3600}h` : s % 60 === 0 ? `${s / 60}m` : s >= 1 ? `${Math.floor(s)}s` : `${s * 1000}ms`);
const NICE = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// The variables of time of one target.
function intervals(target, panel, source, range, width, fill) {
  const given = target.interval || panel.interval;
  const least = given ? seconds(fill(given).replace(/^>/, '')) : seconds(source.interval || '15s');
  const points = panel.maxDataPoints || width;
  const exact = (range.to - range.from) / points;
  const step = Math.max(least, NICE.find((n) => n >= exact) ?? 86400);
  const scrape = seconds(source.interval || '15s');
  const span = Math.round(range.to - range.from);
  return { step, names: {
    __interval: words(step), __interval_ms: step * 1000, __rate_interval: words(Math.max(step + scrape, 4 * scrape)),
    __range: `${span}s`, __range_s: span, __range_ms: span * 1000, __from: range.from * 1000, __to: range.to * 1000,
  } };
}

function legend(target, labels, fill) {
  const format = fill(target.legendFormat || '');
  if (!format || format === '__auto') return nameOf(labels) || 'Value';
  return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => labels[label] ?? '');
}

function seriesFrame(target, labels, times, values, fill) {
  const display = legend(target, labels, fill);
  return { refId: target.refId, name: display, fields: [
    { name: 'Time', type: 'time', values: times },
    { name: 'Value', type: 'number', labels, display, values, refId: target.refId },
  ] };
}

function tableFrame(target, result, several) {
  const labels = [...new Set(result.flatMap((s) => Object.keys(s.metric)))].sort();
  const last = (s) => s.value || s.values.at(-1);
  return { refId: target.refId, name: target.refId, fields: [
    { name: 'Time', type: 'time', values: result.map((s) => last(s)[0] * 1000) },
    ...labels.map((name) => ({ name, type: 'string', values: result.map((s) => s.metric[name] ?? '') })),
    { name: several ? `Value #${target.refId}` : 'Value', type: 'number', refId: target.refId, values: result.map((s) => number(last(s)[1])) },
  ] };
}

// Times at equal steps; null where a series has no sample.
function grid(samples, start, end, step) {
  const byTime = new Map(samples.map(([t, v]) => [Math.round(t * 1000), number(v)]));
  const times = [];
  for (let t = start; t <= end + 0.001; t += step) times.push(Math.round(t * 1000));
  return { times, values: times.map((t) => byTime.get(t) ?? null) };
}

async function ask(target, panel, context, width, several) {
  const { sources, variables, range } = context;
  const source = variables.sourceOf(target.datasource?.uid ? target : panel, sources);
  const fill = (text) => variables.fill(text);
  const { step, names } = intervals(target, panel, source, range, width, fill);
  const query = variables.fill(target.expr, names);
  if (/\$\w|\$\{/.test(query.replace(/"(?:[^"\\]|\\.)*"/g, ''))) throw new Error(`unknown variable in ${query}`);
  if (target.instant) {
    const data = await call(source, 'query', { query, time: range.to });
    const result = data.resultType === 'scalar' ? [{ metric: {}, value: data.result }] : data.result;
    if (target.format === 'table') return [tableFrame(target, result, several)];
    return result.map((s) => seriesFrame(target, s.metric, [s.value[0] * 1000], [number(s.value[1])], fill));
  }
  const start = Math.floor(range.from / step) * step, end = Math.floor(range.to / step) * step;
  const { result } = await call(source, 'query_range', { query, start, end, step });
  if (target.format === 'table') return [tableFrame(target, result, several)];
  return result.map((s) => {
    const { times, values } = grid(s.values, start, end, step);
    return { ...seriesFrame(target, s.metric, times, values, fill), step: step * 1000 };
  });
}

// ---- Transformations ----

const column = (frame, name) => frame.fields.find((f) => f.name === name || f.display === name);
const rowsOf = (frame) => frame.fields[0]?.values.length ?? 0;

const TRANSFORMATIONS = {
  // Rows of all frames in one; rows that agree on every shared field become one.
  merge(all) {
    const frames = all.filter((f) => rowsOf(f) > 0);
    if (!frames.length) return [];
    const names = [...new Set(frames.flatMap((f) => f.fields.map((x) => x.name)))];
    const shared = names.filter((n) => n !== 'Time' && frames.every((f) => column(f, n)));
    const rows = new Map();
    for (const frame of frames)
      for (let i = 0; i < rowsOf(frame); i++) {
        const key = JSON.stringify(shared.map((n) => column(frame, n).values[i]));
        const row = rows.get(key) || rows.set(key, {}).get(key);
        for (const f of frame.fields) row[f.name] = f.values[i];
      }
    const kind = (name) => frames.map((f) => column(f, name)).find(Boolean);
    return [{ fields: names.map((name) => ({ ...kind(name), values: [...rows.values()].map((r) => r[name] ?? null) })) }];
  },

  joinByField(frames, { byField, mode = 'outer' }) {
    const usable = frames.filter((f) => column(f, byField));
    if (!usable.length) return [];
    const keys = [...new Set(usable.flatMap((f) => column(f, byField).values))]
      .filter((key) => mode === 'outer' || usable.every((f) => column(f, byField).values.includes(key)));
    const joined = usable.flatMap((f) => f.fields.filter((x) => x !== column(f, byField)).map((x) => ({
      ...x, values: keys.map((key) => x.values[column(f, byField).values.indexOf(key)] ?? null) })));
    const seen = new Map();
    for (const field of joined) {
      const n = (seen.get(field.name) || 0) + 1;
      seen.set(field.name, n);
      if (n > 1) field.name = `${field.name} ${n}`;
      else if (joined.filter((x) => x.name === field.name || x.name === `${field.name} 2`).length > 1) field.name = `${field.name} 1`;
    }
    return [{ fields: [{ ...column(usable[0], byField), values: keys }, ...joined] }];
  },

  organize(frames, { excludeByName = {}, includeByName = {}, indexByName = {}, renameByName = {} }) {
    const chosen = Object.values(includeByName).some(Boolean);
    return frames.map((frame) => ({ ...frame, fields: frame.fields
      .filter((f) => !excludeByName[f.name] && (!chosen || includeByName[f.name]))
      .map((f, i) => [indexByName[f.name] ?? 1000 + i, f]).sort((a, b) => a[0] - b[0])
      .map(([, f]) => ({ ...f, origin: f.origin ?? f.name, name: renameByName[f.name] || f.name })) }));
  },

  sortBy(frames, { sort }) {
    return frames.map((frame) => {
      const [{ field, desc }] = sort;
      const by = column(frame, field);
      if (!by) return frame;
      const order = by.values.map((_, i) => i).sort((a, b) => {
        const [x, y] = [by.values[a], by.values[b]];
        const less = x === null ? -1 : y === null ? 1 : typeof x === 'number' ? x - y : String(x).localeCompare(String(y));
        return desc ? -less : less;
      });
      return { ...frame, fields: frame.fields.map((f) => ({ ...f, values: order.map((i) => f.values[i]) })) };
    });
  },

  filterFieldsByName(frames, { include = {} }) {
    const wanted = (f) => include.names?.includes(f.name) || (include.pattern && new RegExp(include.pattern.replace(/^\/|\/$/g, '')).test(f.name));
    return frames.map((frame) => ({ ...frame, fields: frame.fields.filter(wanted) }));
  },

  renameByRegex(frames, { regex, renamePattern }) {
    const pattern = new RegExp(regex.replace(/^\/|\/$/g, ''));
    const renamed = (text) => text.replace(pattern, renamePattern);
    return frames.map((frame) => ({ ...frame, fields: frame.fields.map((f) =>
      (f.type === 'time' ? f : { ...f, name: renamed(f.name), display: f.display && renamed(f.display) })) }));
  },

  // One row a series.
  reduce(frames, { reducers = ['lastNotNull'] }, REDUCERS) {
    const fields = frames.flatMap((f) => f.fields.filter((x) => x.type === 'number'));
    return [{ fields: [{ name: 'Field', type: 'string', values: fields.map((f) => f.display || f.name) },
      ...reducers.map((r) => ({ name: r, type: 'number', values: fields.map((f) => REDUCERS[r](f.values)) }))] }];
  },

  labelsToFields(frames) {
    return TRANSFORMATIONS.merge(frames.map((frame) => {
      const labels = frame.fields.find((f) => f.labels)?.labels || {};
      const more = Object.entries(labels).filter(([k]) => k !== '__name__')
        .map(([name, v]) => ({ name, type: 'string', values: Array(rowsOf(frame)).fill(v) }));
      return { ...frame, fields: [frame.fields[0], ...more, ...frame.fields.slice(1)] };
    }));
  },

  limit(frames, { limitField = 10 }) {
    return frames.map((frame) => ({ ...frame, fields: frame.fields.map((f) => ({ ...f, values: f.values.slice(0, limitField) })) }));
  },
};
TRANSFORMATIONS.seriesToColumns = TRANSFORMATIONS.joinByField;

// The frames that a panel shows.
export async function framesOf(panel, context, width, reducers) {
  const targets = (panel.targets || []).filter((t) => !t.hide);
  const several = targets.filter((t) => t.format === 'table').length > 1;
  const answers = await Promise.all(targets.map((t) => ask(t, panel, context, width, several)));
  let frames = answers.flat();
  for (const { id, options, disabled } of panel.transformations || []) {
    if (disabled) continue;
    if (!TRANSFORMATIONS[id]) throw new Error(`unknown transformation: ${id}`);
    frames = TRANSFORMATIONS[id](frames, options || {}, reducers);
  }
  return frames;
}
