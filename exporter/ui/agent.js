// The agent's page.

import { badge, bdi, bytes, card, code, count, duration, el, fact, facts, moment, note, plural, score, seconds, soft, tile, tiles,
  url, utc, when, wideFact, webFact, webNote } from './dom.js';
import { plot } from './plot.js';
import { query, table, tools } from './table.js';

const SEVERITY = { stale: 'error', failing: 'error', suspended: 'warning', empty: 'warning', waiting: 'pending', ok: 'ok' };
const STATES = Object.keys(SEVERITY);
const OPEN_MOST = 8, ALL_SHOWN_MOST = 10;

const asked = (s) => s.lastRound && (!s.error || s.error.stage === 'scoring'); // the last round got as far as the scoring API
const fetched = (s) => s.lastRound && s.source.type !== 'None';
const age = (now, time) => (time ? (Date.parse(now) - Date.parse(time)) / 1000 : null);

function columns(now) {
  return [
    { key: 'state', title: 'State', as: 'state', cell: (s) => badge(SEVERITY[s.state], s.state) },
    { key: 'name', title: 'Score', as: 'name', cell: (s) => el('a', { href: `#${anchor(s)}` }, bdi(s.scoreName)) },
    { key: 'series', title: 'Series', number: true, value: (s) => s.series, cell: (s) => count(s.series) },
    { key: 'age', title: 'Age of scores', number: true, value: (s) => age(now, s.scoresAt),
      cell: (s) => (s.scoresAt ? duration(age(now, s.scoresAt)) : '–') },
    { key: 'last', title: 'Last round', number: true, value: (s) => age(now, s.lastRound?.endedAt),
      cell: (s) => when(now, s.lastRound?.endedAt) },
    { key: 'fetch', title: 'Source took', number: true, value: (s) => (fetched(s) ? s.lastRound.fetchSeconds : null),
      cell: (s) => (fetched(s) ? seconds(s.lastRound.fetchSeconds) : '–') },
    { key: 'perform', title: 'Scoring took', number: true, value: (s) => (asked(s) ? s.lastRound.performSeconds : null),
      cell: (s) => (asked(s) ? seconds(s.lastRound.performSeconds) : '–') },
    { key: 'next', title: 'Next round', number: true, value: (s) => s.nextRoundAt, cell: (s) => next(now, s, '–') },
  ];
}

const anchor = (s) => `scorer-${encodeURIComponent(s.scoreName)}`;

const next = (now, s, none) => (s.running ? 'running' : !s.nextRoundAt ? none
  : Date.parse(s.nextRoundAt) > Date.parse(now) ? when(now, s.nextRoundAt) : 'now');

function notes(s) {
  const r = s.lastRound ?? {};
  return [
    s.error && note(true, [el('b', {}, `${s.error.stage === 'source' ? 'Source' : 'Scoring'} failed: ${s.error.class}`),
      s.failures > 1 && `, ${count(s.failures)} rounds in a row`], s.error.text,
      s.error.url && el('p', {}, 'URL: ', bdi(s.error.url), `, trace: ${r.traceId}`), el('p', {}, `Check ${s.error.hint}.`)),
    s.staleReason && note(true, el('b', {}, 'No scores'), s.staleReason),
    s.warnings && note(false, [el('b', {}, 'Source warning'), s.warnings.count > 1 && `, the first of ${count(s.warnings.count)}`],
      s.warnings.first),
    r.invalidResults > 0 && note(false, [el('b', {}, plural(r.invalidResults, 'invalid result')), ' ignored',
      r.invalidResults > 1 && '; the first:'], r.firstInvalid),
    r.duplicates > 0 && note(false, [el('b', {}, plural(r.duplicates, 'duplicate result')),
      ': the last result of each label set is used']),
    r.cutLabels > 0 && note(false, [el('b', {}, plural(r.cutLabels, 'label value')), ' cut to ',
      el('code', {}, 'limits.labelValueBytes')]),
  ];
}

function flow(s) {
  return [
    asked(s) && fetched(s) && `${count(s.lastRound.sourceSeries)} from the source → `,
    asked(s) && !s.error ? `${plural(s.lastRound.results, 'result')} → ` : s.lastRound && 'failed → ',
    `${count(s.series)} exposed`,
  ];
}

function transfer(s) {
  const { receivedBytes: got, sentBytes: sent } = s.lastRound ?? {};
  return s.lastRound && [
    fetched(s) && `${bytes(got.source)} from the source`, fetched(s) && asked(s) && ', ',
    asked(s) && `${bytes(sent.scoring)} to the scoring API, ${bytes(got.scoring)} back`];
}

function details(now, s) {
  const r = s.lastRound;
  return facts(
    fact('Last round', moment(now, r?.endedAt)),
    fact('Next round', s.running ? `running for ${duration(age(now, s.runningSince))}` : next(now, s, 'none scheduled'),
      soft(`every ${seconds(s.intervalSeconds)}`)),
    fact('Scores from', s.scoresAt ? moment(now, s.scoresAt) : 'none exposed'),
    fact('Series', flow(s)),
    r && fact('Latency', fetched(s) && `source ${seconds(r.fetchSeconds)}`, fetched(s) && asked(s) && ', ',
      asked(s) && `scoring ${seconds(r.performSeconds)}`),
    r && fact('Transferred', transfer(s)),
    fact('Rounds', count(s.rounds), s.rounds > 0 && (s.failures > 1 ? `, the last ${count(s.failures)} failed`
      : s.failures ? ', the last one failed' : ', the last one succeeded')),
    fact('Last success', moment(now, s.lastSuccessAt)));
}

function plots({ history: h }) {
  return h && el('div', { class: 'plots' },
    plot('Latency', h.unixSeconds, [{ name: 'source', values: h.fetchSeconds }, { name: 'scoring', values: h.performSeconds }], seconds),
    plot('Scores', h.unixSeconds, [{ name: 'mean', values: h.mean, low: h.lowest, high: h.highest }], score));
}

// A table of label sets and their scores.
export function ranked(caption, list) {
  return el('table', { 'data-key': caption }, el('caption', {}, caption),
    el('thead', { class: 'unseen' }, el('tr', {}, el('th', { scope: 'col' }, 'Labels'), el('th', { scope: 'col' }, 'Score'))),
    el('tbody', {}, list.map((one) => el('tr', {},
      el('td', { class: 'labels' }, Object.entries(one.labels).map(([name, value]) =>
        [el('span', {}, el('i', {}, name), bdi(value)), ' ']), Object.keys(one.labels).length === 0 && '(no labels)'),
      el('td', { class: 'n' }, score(one.score))))));
}

function scores(s) {
  const numbers = s.series - s.nanScores;
  const rest = numbers > s.highest.length ? s.lowest.slice(0, numbers - s.highest.length).reverse() : [];
  return [
    numbers > 0 && el('div', { class: 'pair' }, numbers > ALL_SHOWN_MOST
      ? [ranked('Highest scores', s.highest), ranked('Lowest scores', s.lowest)]
      : ranked(s.nanScores ? 'Scores' : 'All scores', [...s.highest, ...rest])),
    s.nanScores > 0 && el('p', { class: 'soft' }, `${plural(s.nanScores, 'score')} ${s.nanScores === 1 ? 'is' : 'are'} NaN`),
  ];
}

const credentials = (secret) => secret && (secret.key
  ? soft('token from Secret ', code(secret.name), ', key ', code(secret.key))
  : soft('credentials from Secret ', code(secret.name)));

// Query and URLs of a scorer, on the hub's pages too.
export function endpoints(sources, scoring, secret, open) {
  return el('details', { open }, el('summary', {}, 'Query and endpoints'), el('dl', { class: 'facts' },
    sources.map((from) => (from.type === 'None' ? wideFact('Source', 'None: the scoring API is called without series') : [
      wideFact('Query', (from.queries ?? [from.query]).map((q) => el('pre', {}, bdi(q))),
        soft(`over ${seconds(from.rangeSeconds)}, a point every ${seconds(from.stepSeconds)}`)),
      wideFact('Source', url(from.endpoint), credentials(from.secret))])),
    wideFact('Scoring', url(scoring), credentials(secret))));
}

function scorerCard(now, s, open) {
  return el('article', { class: 'card', id: anchor(s), 'data-key': s.scoreName },
    el('div', { class: 'name' }, el('h3', {}, bdi(s.scoreName)), badge(SEVERITY[s.state], s.state),
      s.name !== s.scoreName && soft('scorer ', bdi(s.name))),
    notes(s), details(now, s), plots(s), scores(s),
    endpoints(s.sources ?? [s.source], s.scoringEndpoint, s.scoringSecret, open));
}

const segments = ({ files, bytes: n }, words) => files > 0 && soft(`, ${words}: ${count(files)}, `, bytes(n));

function remoteWrite(now, e) {
  return el('section', { class: 'card', 'data-key': e.name },
    el('div', { class: 'name' }, el('h3', {}, bdi(e.name)),
      badge({ failing: 'error', starting: 'pending', ending: 'pending' }[e.state] ?? 'ok', e.state)),
    e.error && note(true, [el('b', {}, 'Last error'), e.errorAt && ` ${when(now, e.errorAt)}`], e.error),
    e.spoolError && note(true, el('b', {}, 'Spool'), e.spoolError),
    facts(fact('URL', url(e.url)), fact('Protocol', e.protocol), fact('Behind by', duration(e.behindSeconds)),
      fact('Samples sent', count(e.samplesSent)), fact('Samples pending', count(e.samplesPending),
        e.spool && e.samplesUnsaved > 0 && soft(count(e.samplesUnsaved), ' in memory only')),
      fact('Samples dropped', count(e.samplesDropped)),
      fact('Spool', e.spool ? bytes(e.spoolBytes) : 'none: pending samples are lost at a restart',
        segments(e.spoolUnread, 'unread'), segments(e.spoolSetAside, 'set aside')),
      fact('Last sent', moment(now, e.sentAt)), e.retryAt && fact('Next try', moment(now, e.retryAt))));
}

function otlp(now, o) {
  const rejected = Object.entries(o.rejected);
  return el('section', { class: 'card', 'aria-labelledby': 'otlp' },
    facts(fact('Listens on', code(o.address)), fact('Last received', moment(now, o.receivedAt)),
      fact('Points stored', count(o.points)),
      fact('Points rejected', rejected.length ? rejected.map(([reason, n], i) => [i > 0 && ', ', `${reason} `, count(n)]) : 'none'),
      fact('Series', count(o.series)), fact('Samples', count(o.samples), soft('kept for ', duration(o.keptSeconds))),
      fact('Memory', bytes(o.bytes), soft('of ', bytes(o.maxBytes)))));
}

const LIMITS = [
  ['responseBytes', bytes, 'size of a response'],
  ['seriesPerScorer', count, 'series exposed for one scorer'],
  ['series', count, 'series exposed in total'],
  ['labelValueBytes', bytes, 'length of a label value; longer values are cut'],
  ['roundTime', (l) => seconds(l), 'duration of a round'],
  ['staleAfterIntervals', count, 'intervals for which a failing scorer keeps its last scores'],
];

function configuration({ now, config: c, webConfig: web, limits, cluster }) {
  return el('section', { class: 'card', 'aria-labelledby': 'config' },
    c.problems.length > 0 && note(!c.ok, el('b', {}, c.ok ? 'Warnings'
      : cluster === null ? 'Rejected' : 'Rejected; the last valid configuration stays active'), c.problems.join('\n')),
    facts(fact('File', c.file ? code(c.file) : 'none'), c.loadedAt && fact('Active since', moment(now, c.loadedAt)),
      fact('Last read', c.lastTriedAt ? [c.ok ? (c.problems.length ? 'applied, with warnings' : 'applied') : badge('error', 'rejected'),
        soft(when(now, c.lastTriedAt), ', ', utc(c.lastTriedAt))] : 'never'),
      limits && [fact('Listens on', c.listen.map((a, i) => [i > 0 && ', ', code(a)])),
        fact('Secrets folder', c.secretsFolder ? code(c.secretsFolder) : 'none'),
        fact('Storage folder', c.storageFolder ? code(c.storageFolder) : 'none')],
      webFact(now, web)),
    limits && el('table', { class: 'limits' }, el('caption', {}, 'Limits'),
      el('thead', { class: 'unseen' }, el('tr', {}, ['Key', 'Value', 'Meaning'].map((t) => el('th', { scope: 'col' }, t)))),
      el('tbody', {}, LIMITS.map(([key, words, meaning]) => el('tr', {}, el('th', { scope: 'row' }, el('code', {}, key)),
        el('td', { class: 'n' }, words(limits[key] ?? limits[`${key}Seconds`])), el('td', { class: 'soft' }, meaning))))));
}

export const build = (now, version, revision, startedAt) => [
  el('h2', { id: 'build' }, 'Build'),
  card(facts(fact('Version', version), fact('Revision', el('code', {}, revision)), fact('Started', moment(now, startedAt)),
    fact('Up for', duration(age(now, startedAt)))))];

export async function agentPage(api) {
  const a = await api('status', query('scorers', { history: 'true' }));
  const bad = a.totals.states.failing + a.totals.states.stale;
  const name = a.cluster || 'no cluster';
  const own = columns(a.now);
  return {
    title: `${bad ? `${bad} failing · ` : ''}${name} · dynamic-scoring`,
    bad: bad > 0 || !a.config.ok || a.webConfig?.ok === false,
    content: [
      el('header', {}, el('p', { class: 'over-title' }, 'dynamic-scoring agent'), el('h1', {}, bdi(name)),
        el('nav', { 'aria-label': 'Links' }, ['metrics', 'api/v1/status', '-/healthy', '-/ready'].map((path) =>
          el('a', { href: path }, `/${path}`)))),
      el('main', {},
        !a.config.ok && note(true, [el('b', {}, a.limits ? 'The configuration was rejected; the last valid one stays active.'
          : 'No configuration is active.'), ' ', el('a', { href: '#config' }, 'What is wrong')]),
        webNote(a.webConfig),
        a.election?.error && note(true, el('b', {}, 'The Lease cannot be read or written'), a.election.error),
        !a.leading && note(false, [el('b', {}, 'Standing by.'), ' ',
          a.election.holder ? [bdi(a.election.holder), ' leads.'] : 'No leader is known.',
          ' Only the leader scores; see its page.']),
        tiles(tile('scorers', 'all', a.totals.scorers), [...STATES].reverse().map((s) => tile(s, SEVERITY[s], a.totals.states[s])),
          tile('series exposed', 'all', a.totals.series), tile('/metrics page', 'all', bytes(a.totals.metricsPageBytes))),
        el('h2', { id: 'scorers' }, 'Scorers'),
        !a.leading ? card(el('p', {}, 'None here: they run on the leader.')) : a.totals.scorers === 0 ? card(el('p', {}, 'No scorers configured: add some under ', el('code', {}, 'summaries'),
          ' in the configuration file, then send the agent SIGHUP.'))
          : [tools('scorers', 'scorers', STATES.map((s) => [s, s]), own),
            table('scorers', 'Scorers', own, a.scorers, a.metadata, (s) => s.scoreName, 'No scorer matches.'),
            a.scorers.length > 0 && el('h2', {}, 'In detail'),
            a.scorers.map((s) => scorerCard(a.now, s, a.scorers.length <= OPEN_MOST))],
        a.remoteWrite.length > 0 && el('h2', { id: 'remote-write' }, 'Remote write'),
        a.remoteWrite.map((e) => remoteWrite(a.now, e)),
        a.otlp && [el('h2', { id: 'otlp' }, 'OpenTelemetry'), otlp(a.now, a.otlp)],
        el('h2', { id: 'config' }, 'Configuration'), configuration(a),
        build(a.now, a.build.version, a.build.revision, a.startedAt)),
    ],
  };
}
