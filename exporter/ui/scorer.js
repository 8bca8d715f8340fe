// The page of a scoring API: its last call, as its author wants to see it.

import { bdi, bytes, card, code, count, el, fact, facts, moment, note, plural, score, seconds, soft, tile, tiles, webFact, webNote,
  wideFact } from './dom.js';
import { build, ranked } from './agent.js';
import { plot } from './plot.js';

const REASONS = {
  short: 'too few values', gappy: 'long gaps', ended: 'ended before the others', disordered: 'timestamps do not increase',
  not_finite: 'no finite value', no_answer: 'no answer of the service', no_number: 'no number in the answer',
};

const labels = (metric) => Object.entries(metric).map(([name, value]) =>
  [el('span', {}, el('i', {}, name), bdi(typeof value === 'string' ? value : JSON.stringify(value))), ' ']);

// A result may have more labels than its series, and a label of the model's in place of one.
const belongs = (result, series) => Object.entries(series.metric).every(([name, value]) =>
  name === 'meta' || result.metric[name] === value);

// Errors and forecasts are estimates: more digits say nothing.
const estimate = (v) => String(Number(v.toPrecision(4)));
const others = (result) => Object.entries(result).filter(([name]) => name !== 'metric' && name !== 'score')
  .map(([name, value]) => soft(`${name} `, bdi(typeof value === 'number' ? estimate(value) : JSON.stringify(value)), ' '));

function seriesBox(series, result, i) {
  const values = series.values.map((v) => (typeof v === 'number' ? v : null));
  return el('div', { class: 'series', 'data-key': i },
    el('p', { class: 'labels' }, labels(series.metric), Object.keys(series.metric).length === 0 && '(no labels)'),
    plot('Values', series.unixSeconds, [{ name: 'value', values }], score)
      || el('p', { class: 'soft' }, plural(series.values.length, 'value')),
    el('p', {}, result ? ['Score ', el('b', {}, score(result.score)), ' ', others(result)] : soft('no score among those shown')));
}

function lastCall(now, c) {
  if (!c) return el('p', { class: 'soft' }, 'No call yet.');
  const shown = c.shownSeries ?? [], results = c.shownResults ?? [];
  const rest = new Set(results);
  const boxes = shown.map((s, i) => {
    const result = results.find((r) => belongs(r, s));
    rest.delete(result);
    return seriesBox(s, result, i);
  });
  const left = Object.entries(c.leftOut);
  return [
    facts(fact('Last call', moment(now, c.at)), fact('Took', seconds(c.seconds)), fact('Body', bytes(c.bodyBytes)),
      fact('Series', `${count(c.series)} → ${plural(c.results, 'result')}`),
      left.length > 0 && fact('Left out', left.map(([why, n], i) => [i > 0 && ', ', `${count(n)}: ${REASONS[why] ?? why}`])),
      c.backtestError !== undefined && fact('Backtest error', estimate(c.backtestError))),
    boxes.length > 0 && [el('h3', {}, 'Series'),
      c.series > boxes.length && el('p', { class: 'soft' }, `The first ${count(boxes.length)} of ${count(c.series)}.`),
      el('div', { class: 'plots' }, boxes)],
    boxes.length === 0 && results.length > 0 && ranked('Results', results.map((r) => ({ labels: r.metric, score: r.score }))),
  ];
}

function endpoint(now, e) {
  const { source, scoring } = e.config, failed = e.lastFailure;
  return [el('h2', {}, code(e.path)), el('section', { class: 'card', 'data-key': e.path },
    failed && (!e.lastCall || failed.at > e.lastCall.at) && note(true, [el('b', {}, `The last call failed: HTTP ${failed.status}`)], failed.error),
    facts(fact('Score', code(scoring.params.name), soft(`every ${seconds(scoring.params.interval)}`)),
      fact('Calls', count(e.calls), e.failures > 0 && `, ${plural(e.failures, 'failure')}`),
      failed && fact('Last failure', moment(now, failed.at), soft(`HTTP ${failed.status}: `, bdi(failed.error)))),
    lastCall(now, e.lastCall),
    el('details', {}, el('summary', {}, 'What /config says'), el('dl', { class: 'facts' },
      wideFact('Source', source.type === 'None' ? 'None: it is called without series' : [code(`${source.host}${source.path}`)]),
      source.params && wideFact('Query', el('pre', {}, bdi(source.params.query)),
        soft(`over ${seconds(source.params.range)}, a point every ${seconds(source.params.step)}`)))))];
}

export async function modelPage(api) {
  const a = await api('status');
  const bad = a.endpoints.some((e) => e.lastFailure && (!e.lastCall || e.lastFailure.at > e.lastCall.at));
  const configs = a.endpoints.map((e) => e.path.replace(/^\//, '').replace(/scoring$/, 'config'));
  const sum = (f) => a.endpoints.reduce((n, e) => n + f(e), 0);
  return {
    title: `${bad ? 'failing · ' : ''}${a.model} · dynamic-scoring`,
    bad: bad || a.webConfig?.ok === false,
    content: [
      el('header', {}, el('p', { class: 'over-title' }, 'dynamic-scoring scorer'), el('h1', {}, a.model),
        el('nav', { 'aria-label': 'Links' }, [...configs, 'metrics', 'api/v1/status', 'healthz'].map((path) =>
          el('a', { href: path }, `/${path}`)))),
      el('main', {}, el('p', {}, a.description), webNote(a.webConfig),
        tiles(tile('calls', 'all', sum((e) => e.calls)), tile('failed', 'error', sum((e) => e.failures)),
          tile('series in the last call', 'all', sum((e) => e.lastCall?.series ?? 0)),
          tile('results', 'ok', sum((e) => e.lastCall?.results ?? 0))),
        a.endpoints.map((e) => endpoint(a.now, e)),
        a.webConfig && card(facts(webFact(a.now, a.webConfig))),
        build(a.now, a.build.version, a.build.revision, a.startedAt)),
    ],
  };
}
