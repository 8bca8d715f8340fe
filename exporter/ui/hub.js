// The controller's pages: all, one scorer, one cluster.

import { badge, bdi, bytes, card, code, count, duration, el, fact, facts, moment, note, plural, seconds, soft, tile, tiles, unseen,
  webFact, webNote, when } from './dom.js';
import { build, endpoints } from './agent.js';
import { plot } from './plot.js';
import { choice, query, table, tools } from './table.js';

const SIGNS = { error: '✗', warning: '?', pending: '…', none: '–', ok: '✓' };
const MATRIX_CLUSTERS = 50, MATRIX_SCORERS = 30;
const SCORER_STATES = [['notReady', 'not ready'], ['unknown', 'unknown'], ['degraded', 'degraded'], ['ready', 'ready']];
const CLUSTER_STATES = [['notWritten', 'not written'], ['notApplied', 'not applied'], ['unavailable', 'not available'],
  ['failing', 'failing'], ['agentTrouble', 'agent in trouble'], ['behind', 'behind'], ['ok', 'ok']];
const HEALTH = { Active: 'healthy', Degraded: 'degraded', Inactive: 'unhealthy', Unknown: 'unknown' };

const link = (kind, name) => el('a', { href: `${kind}?name=${encodeURIComponent(name)}` }, bdi(name));
const bold = (...words) => el('b', {}, words);
const text = (what, why) => el('p', {}, what, why && [': ', bdi(why)]);

// ---- Notes ----

function hubNotes(h) {
  const troubles = Object.entries(h.troubles).filter(([kind, why]) => why && kind !== 'Lease');
  return [
    h.troubles.Lease && note(true, bold('The Lease cannot be read or written'), h.troubles.Lease),
    !h.leading && note(false, [bold('Standing by.'), ' ', h.holder ? [bdi(h.holder), ' leads.'] : 'No leader is known.',
      ' Only the leader probes scoring APIs, writes ManifestWorks and counts clusters; see its page. ',
      'This page shows the scorers as last described by the leader.']),
    troubles.length > 0 && note(true, [bold('Watches fail'), '; the objects last read stay in use.'],
      troubles.map(([kind, why]) => `${kind}: ${why}`).join('\n')),
    !h.synced && note(false, bold('Still listing objects; nothing is written until all are listed.')),
  ];
}

function configNotes({ config: c, totals, namespace, synced }) {
  return [
    synced && !c.present && note(false, [bold('There is no DynamicScoringConfig ', code(c.name)), ' in namespace ', bdi(namespace),
      ': nothing is distributed until it is created.']),
    synced && c.present && !c.wanted && note(false, [bold('The DynamicScoringConfig is being deleted'),
      `: ${plural(totals.works, 'ManifestWork')} left.`]),
  ];
}

const probeNote = (what, p) => p && !p.ok && note(true,
  [bold(`${what}: ${p.reason}`), p.failures > 1 && `, ${count(p.failures)} times in a row`], p.message);

const condition = (s, type) => s.conditions.find((c) => c.type === type);

function scorerNotes(s) {
  const list = [
    s.specError && note(true, bold('Invalid spec', s.summaryInUse && '; the last valid one stays active'), s.specError),
    probeNote('Health', s.probe), probeNote('Configuration', s.configProbe),
    s.summaryError && note(!s.summaryPending, bold(s.summaryPending ? 'Waiting for the configuration of the scoring API'
      : s.summaryInUse ? 'Invalid summary; the last valid one stays active' : 'Invalid summary; this scorer is not distributed'), s.summaryError),
    s.sameScoreAs && note(s.sameScoreIsOlder, [bold(s.sameObject ? 'Same AddOnPlacementScore' : 'Same score name'), ' as ',
      link('scorer', s.sameScoreAs), s.sameScoreIsOlder ? ', which is older: this scorer is not distributed.'
        : ', which is younger and not distributed.']),
    s.clusters.noRoom > 0 && note(true, [bold(`No room on ${plural(s.clusters.noRoom, 'cluster')}`),
      ': the summaries would exceed what a ManifestWork may hold.']),
    s.statusError && note(true, bold('The status cannot be written'), s.statusError),
  ].filter(Boolean);
  const ready = condition(s, 'Ready');
  if (list.length === 0 && ready && ready.status !== 'True')
    list.push(note(ready.status === 'False', bold(ready.reason), ready.message));
  return list;
}

const workAction = (c) => (c.leaving || !c.managed ? 'deleted' : 'written');

function clusterLines(c) {
  return [
    c.failures > 0 && text(`Its ManifestWork cannot be ${workAction(c)}`, c.work.writeError),
    c.work.applyError && text('Its ManifestWork cannot be applied', c.work.applyError),
    c.unavailable && text('The cluster is not available', c.unavailable),
    c.addonUnavailable && text('The add-on is not available', c.addonUnavailable),
    c.addonNamespace && text('The add-on is not in the namespace of its ConfigMap, but in', c.addonNamespace),
    c.failingScorers.map((p) => el('p', {}, link('scorer', p.scorer), ` ${p.label}`, p.error && [': ', bdi(p.error)])),
    c.failing > c.failingScorers.length && el('p', { class: 'soft' }, 'and ',
      el('a', { href: `cluster?name=${encodeURIComponent(c.name)}` }, `${count(c.failing - c.failingScorers.length)} more`)),
    c.reported && (c.agentTrouble || !c.configurationAccepted) && text(c.configurationAccepted ? 'The agent reports'
      : 'The agent rejects its configuration', c.agentTrouble),
    c.behind && el('p', { class: 'soft' }, `behind for ${duration(c.behindSeconds)}`, c.leaving && ', being deleted',
      c.failures > 1 && `, ${count(c.failures)} writes failed in a row`),
  ];
}

// ---- Tables ----

function scorerColumns(h) {
  const counted = (key, title, of) =>
    ({ key, title, number: true, value: (s) => s.clusters[of], cell: (s) => (h.leading ? count(s.clusters[of]) : '–') });
  return [
    { key: 'state', title: 'State', as: 'state', cell: (s) => badge(s.severity, s.label) },
    { key: 'name', title: 'Scorer', as: 'name', cell: (s) => [link('scorer', s.name),
      s.scoreName && s.scoreName !== s.name && el('span', { class: 'under' }, bdi(s.scoreName))] },
    { key: 'health', title: 'Health', value: (s) => s.health,
      cell: (s) => [healthWords(s), s.probe && !s.probe.ok && el('span', { class: 'under' }, s.probe.reason)] },
    { key: 'source', title: 'Configuration', value: sourceWords,
      cell: (s) => [sourceWords(s), s.configProbe && !s.configProbe.ok && el('span', { class: 'under' }, s.configProbe.reason)] },
    counted('clusters', 'Clusters', 'selected'), counted('current', 'Up to date', 'upToDate'), counted('scoring', 'Scoring', 'scoring'),
    { ...counted('failing', 'Failing', 'failing'), cell: (s) => (!h.leading ? '–' : s.clusters.failing
      ? el('span', { class: 'bad' }, count(s.clusters.failing)) : '0') },
    counted('empty', 'Empty', 'empty'), counted('waiting', 'Waiting', 'waiting'),
    counted('silent', 'Silent', 'silent'),
    { key: 'latency', title: 'Probe', number: true, value: (s) => s.probe?.seconds, cell: (s) => (s.probe
      ? [seconds(s.probe.seconds), el('span', { class: 'under' }, when(h.now, s.probe.at))] : '–') },
  ];
}

const healthWords = (s) => (s.healthCheck === 'None' ? 'not checked' : HEALTH[s.health]);
const isProbed = (s) => s.healthCheck === 'Hub' || s.configSyncMode === 'Full';

const sourceWords = (s) => (!s.configSyncMode ? '–' : s.configSyncMode === 'None' ? 'spec'
  : s.source === 'api' ? '/config' : 'spec, no /config yet');

const clusterColumns = [
  { key: 'state', title: 'State', as: 'state', cell: (c) => badge(c.severity, c.label) },
  { key: 'name', title: 'Cluster', as: 'name', cell: (c) => link('cluster', c.name) },
  { key: 'scorers', title: 'Scorers', number: true, value: (c) => c.scorers, cell: (c) => count(c.scorers) },
  { key: 'failing', title: 'Failing', number: true, value: (c) => c.failing,
    cell: (c) => (c.failing ? el('span', { class: 'bad' }, count(c.failing)) : c.reported ? '0' : '–') },
  { key: 'behind', title: 'Behind', number: true, value: (c) => c.behindSeconds,
    cell: (c) => (c.behind ? duration(c.behindSeconds) : '–') },
  { title: 'Problems', wide: true, cell: clusterLines },
];

const pairColumns = (kind) => [
  { key: 'state', title: 'State', as: 'state', cell: (p) => badge(p.severity, p.label) },
  { key: 'name', title: kind === 'cluster' ? 'Cluster' : 'Scorer', as: 'name', cell: (p) => link(kind, p[kind]) },
  { title: 'Error', wide: true, cell: (p) => p.error && el('p', {}, bdi(p.error)) },
];

// A small cell for each of the first scorers on each of the first clusters.
function matrix(p) {
  const matching = p.scorers.map((name, i) => ({ name, i })).filter((c) => matches(c.name));
  const columns = matching.slice(0, MATRIX_SCORERS), left = p.metadata.remainingItemCount;
  if (p.clusters.length === 0 || columns.length === 0) return null;
  const seen = new Set(p.clusters.flatMap((c) => columns.map(({ i }) => c.states[i])));
  const cell = (look, title) => el('b', { class: `cell ${look.severity}`, title }, SIGNS[look.severity]);
  const part = (shown, all, what) => `${count(shown)}${shown < all ? ` of ${count(all)}` : ''} ${what}`;
  return el('section', { class: 'card matrix', 'aria-labelledby': 'matrix', 'data-key': 'matrix' },
    el('p', { id: 'matrix', class: 'part soft' }, 'Clusters × scorers: ', part(p.clusters.length, p.clusters.length + left, 'clusters'),
      ', ', part(columns.length, matching.length, 'scorers')),
    el('div', { class: 'scroll', tabindex: 0 }, el('table', {},
      el('caption', { class: 'unseen' }, 'The state of each scorer on each cluster'),
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, unseen('Cluster')),
        columns.map(({ name }) => el('th', { scope: 'col', title: name, 'data-key': name }, link('scorer', name))))),
      el('tbody', {}, p.clusters.map((c) => el('tr', { 'data-key': c.name },
        el('th', { scope: 'row', title: c.name }, link('cluster', c.name)),
        columns.map(({ name, i }) => {
          const look = p.legend[c.states[i]];
          const why = c.errors[name] ? `: ${c.errors[name]}` : '';
          return el('td', {}, cell(look, `${name}: ${look.label}${why}`), unseen(look.label));
        })))))),
    el('p', { class: 'legend' }, Object.keys(SIGNS).map((severity) => {
      const labels = p.legend.filter((look, i) => seen.has(i) && look.severity === severity).map((look) => look.label);
      return labels.length > 0 && el('span', {}, cell({ severity }), ' ', labels.join(', '));
    })));
}

const matches = (name) => name.toLowerCase().includes(choice('scorers', 'filter').toLowerCase());

// ---- Pages ----

function frame(h, over, heading, state, links, main) {
  return [
    el('header', {}, el('p', { class: 'over-title' }, over), el('div', { class: 'name' }, el('h1', {}, bdi(heading)), state),
      el('nav', { 'aria-label': 'Links' }, links.map((path) => el('a', { href: path }, `/${path}`)))),
    el('main', {}, hubNotes(h), main, build(h.now, h.version, h.revision, h.startedAt)),
  ];
}

const over = (kind) => [el('a', { href: './' }, 'dynamic-scoring controller'), ` · ${kind}`];

function hubTiles({ totals: t, leading }) {
  const unknown = t.scorers - t.healthy - t.degraded - t.unhealthy;
  return tiles(tile('scorers', 'all', t.scorers), tile('healthy', 'ok', t.healthy), tile('unhealthy', 'error', t.unhealthy),
    t.degraded > 0 && tile('degraded', 'warning', t.degraded), unknown > 0 && tile('unknown', 'pending', unknown),
    leading && [tile('clusters', 'all', t.clusters), tile('up to date', 'ok', t.upToDate), tile('behind', 'warning', t.behind),
      tile('not written', 'error', t.failing), tile('failing', 'error', t.withFailures),
      tile('lag', t.behind ? 'all' : 'none', t.behind ? duration(t.lagSeconds) : 'none')]);
}

function configuration({ now, config: c, webConfig: web, totals: t, agentNamespace }) {
  return el('section', { class: 'card', 'aria-labelledby': 'config' },
    c.error && note(true, bold('Invalid masks or adjustments; the last valid ones stay active'), c.error),
    c.statusError && note(true, bold('The status cannot be written'), c.statusError),
    c.ignored.map((name) => note(false, [bold(bdi(name), ' is ignored'), ': only the DynamicScoringConfig named ', code(c.name), ' is used.'])),
    facts(fact('DynamicScoringConfig', c.present ? [code(c.name), soft(c.wanted ? 'active' : 'being deleted')] : 'none'),
      fact('Masks', count(c.masks)), c.adjustments.length > 0 && fact('Adjustments', count(c.adjustments.length)),
      fact('Largest summaries', bytes(t.largestSummariesBytes), soft(`of ${bytes(t.maxSummariesBytes)}`)),
      fact('Left out for lack of room', t.leftOut ? badge('error', plural(t.leftOut, 'scorer')) : 'none'),
      fact('ManifestWorks', count(t.works)), t.leaving > 0 && fact('ManifestWorks to delete', count(t.leaving)),
      fact('Clusters that report', count(t.reporting)), fact('Namespace of agents', code(agentNamespace)), webFact(now, web)),
    c.firstMasks.length > 0 && el('table', { class: 'limits' },
      el('caption', {}, 'Masks: these clusters do not compute these scores'),
      el('thead', {}, el('tr', {}, ['Cluster', 'Score', 'Matches'].map((title) => el('th', { scope: 'col' }, title)))),
      el('tbody', {}, c.firstMasks.map((m) => el('tr', {}, el('td', {}, code(m.clusterName)), el('td', {}, code(m.scoreName)),
        el('td', {}, m.warning ? [badge('warning', 'nothing'), ' ', soft(m.warning)] : m.clusters === undefined ? '–'
          : `${plural(m.clusters, 'cluster')}, ${plural(m.scores, 'score')}`))))),
    c.masks > c.firstMasks.length && el('p', { class: 'soft' }, `and ${count(c.masks - c.firstMasks.length)} more`),
    adjustments(now, c.adjustments));
}

const ADJUSTMENT_TITLES = ['Name', 'Cluster', 'Score', 'Change', 'In force', 'Since', 'Until', 'Why'];

const adjustmentChange = (a) => (a.set === undefined ? `${a.add < 0 ? '−' : '+'}${Math.abs(a.add)}`
  : `set to ${a.set < 0 ? '−' : ''}${Math.abs(a.set)}`);

function adjustmentEffect(a) {
  if (a.warning) return [badge('warning', 'nothing'), ' ', soft(a.warning)];
  if (a.clusters === undefined) return '–';
  return [`${plural(a.clusters, 'cluster')}, ${plural(a.scores, 'score')}`,
    a.withoutItems > 0 && [' ', soft(`${count(a.withoutItems)} without items`)]];
}

// What is added to scores, or what they become, for a time and for a reason.
function adjustments(now, list) {
  return list.length > 0 && el('div', { class: 'scroll', tabindex: 0 }, el('table', { class: 'limits' },
    el('caption', {}, 'Adjustments: Placement sees these scores adjusted; series stay as the scoring API returned them'),
    el('thead', {}, el('tr', {}, ADJUSTMENT_TITLES.map((title) => el('th', { scope: 'col' }, title)))),
    el('tbody', {}, list.map((a) => el('tr', {}, el('th', { scope: 'row' }, bdi(a.name)),
      el('td', {}, a.clusterName ? code(a.clusterName) : soft('by labels or claims')), el('td', {}, code(a.scoreName)),
      el('td', {}, adjustmentChange(a)), el('td', {}, adjustmentEffect(a)), el('td', {}, a.since ? moment(now, a.since) : '–'),
      el('td', {}, a.until ? moment(now, a.until) : '–'), el('td', { class: 'wide' }, a.reason && bdi(a.reason)))))));
}

// The first clusters where the scorer does not score.
function failing(s) {
  const more = s.clusters.selected - s.clusters.scoring - s.failingClusters.length;
  return s.failingClusters.length > 0 && el('div', { class: 'rows more' }, el('table', {},
    el('caption', {}, 'Clusters where it does not score', more > 0 && [', the first ', count(s.failingClusters.length), '; ',
      el('a', { href: `scorer?name=${encodeURIComponent(s.name)}` }, 'all of them')]),
    el('tbody', {}, s.failingClusters.map((c) => el('tr', { 'data-key': c.name }, el('td', { class: 'is' }, badge(c.severity, c.label)),
      el('th', { scope: 'row' }, link('cluster', c.name)), el('td', { class: 'wide' }, c.error && el('p', {}, bdi(c.error))))))));
}

const troubled = (s) => s.state !== 'ready' && el('article', { class: 'card', 'data-key': s.name },
  el('div', { class: 'name' }, el('h3', {}, link('scorer', s.name)), badge(s.severity, s.label)), scorerNotes(s), failing(s));

export async function hubPage(api) {
  const clusterQuery = query('clusters'), pairQuery = query('clusters', { limit: MATRIX_CLUSTERS });
  const [h, s, c, p] = await Promise.all([api('status', 'limit=1'), api('scorers', query('scorers')),
    api('clusters', clusterQuery), api('pairs', pairQuery)]);
  const columns = scorerColumns(h), t = h.totals;
  const bad = s.scorers.filter((one) => one.state === 'notReady').length + (h.leading ? t.failing : 0);
  const details = s.scorers.map(troubled).filter(Boolean);
  return {
    title: `${bad ? `${bad} failing · ` : ''}controller · dynamic-scoring`,
    bad: bad > 0 || h.webConfig?.ok === false || (h.leading && t.withFailures > 0) || Object.values(h.troubles).some(Boolean),
    content: frame(h, 'dynamic-scoring controller', h.namespace,
      badge(h.leading ? 'ok' : 'pending', h.leading ? 'leading' : 'standing by'), ['metrics', 'api/v1/status'], [
        webNote(h.webConfig), configNotes(h), hubTiles(h),
        el('h2', { id: 'scorers' }, 'Scorers'),
        t.scorers === 0 ? card(el('p', {}, 'No scorers yet: create a DynamicScorer in namespace ', bdi(h.namespace), '.'))
          : [tools('scorers', 'scorers', SCORER_STATES, columns),
            table('scorers', 'Scorers', columns, s.scorers, s.metadata, (one) => one.name, 'No scorer matches.')],
        h.leading && [
          el('h2', { id: 'clusters' }, 'Clusters'),
          t.clusters === 0 && c.clusters.length === 0 && !choice('clusters', 'filter') && !choice('clusters', 'state')
            ? card(el('p', {}, 'This hub has not accepted any ManagedCluster yet.'))
            : [tools('clusters', 'clusters', CLUSTER_STATES, clusterColumns), matrix(p),
              table('clusters', 'Clusters', clusterColumns, c.clusters, c.metadata, (one) => one.name, 'No cluster matches.')]],
        details.length > 0 && [el('h2', {}, 'Scorers with problems', s.metadata.remainingItemCount > 0
          && soft(` among the ${count(s.scorers.length)} shown`)), details],
        el('h2', { id: 'config' }, 'Configuration'), configuration(h)]),
  };
}

// ---- One scorer ----

function scorerFacts(h, s) {
  const probed = (what, p) => p && soft(`${what} ${when(h.now, p.at)}, took ${seconds(p.seconds)}`);
  const m = s.summary;
  return facts(
    fact('Health', healthWords(s), s.healthCheck === 'Agents' ? soft('as agents report') : probed('probed', s.probe)),
    fact('Configuration from', sourceWords(s), probed('/config read', s.configProbe)),
    h.leading && isProbed(s) && fact('Next probe', s.nextProbeAt ? when(h.now, s.nextProbeAt) : 'running'),
    s.intervalSeconds > 0 && fact('Interval', `every ${seconds(s.intervalSeconds)}`),
    h.leading && fact('Clusters', count(s.clusters.selected),
      soft(`${count(s.clusters.upToDate)} up to date, ${count(s.clusters.applied)} applied`)),
    h.leading && s.clusters.selected > 0 && fact('Scoring on', count(s.clusters.scoring),
      soft(['failing', 'empty', 'suspended', 'waiting', 'silent'].map((state) => `${count(s.clusters[state])} ${state}`).join(', '))),
    m && fact('Written to', m.scoreDestination === 'None' ? '/metrics only' : ['AddOnPlacement', el('wbr'), 'Score'],
      m.scoreDestination !== 'None' && m.scoreDimensionFormat && soft('items ',
        ...(m.scoreItems || [{ format: m.scoreDimensionFormat }]).flatMap((item, i) => [i ? ', ' : '', code(item.format)]))));
}

const secretOf = (name, key) => (name ? { name, key } : null);

const sourceOf = (m) => ({ type: m.sourceType, query: m.sourceQuery, endpoint: m.sourceEndpoint, rangeSeconds: m.sourceRange,
  stepSeconds: m.sourceStep, secret: secretOf(m.sourceEndpointAuthName, m.sourceEndpointAuthKey) });

// The first of several sources is in the summary's own members, too.
function summaryDetails(m) {
  return m && endpoints((m.sources ?? [m]).map(sourceOf), m.scoringEndpoint,
    secretOf(m.scoringEndpointAuthName, m.scoringEndpointAuthKey), true);
}

function probePlots(s) {
  const one = (name, p) => p?.history && plot(name, p.history.unixSeconds, [{ name: 'latency', values: p.history.seconds }], seconds);
  return el('div', { class: 'plots' }, one('Health probe', s.probe), one('/config', s.configProbe));
}

function conditions(s) {
  const severity = { True: 'ok', False: 'error' };
  const others = s.conditions.filter((c) => c.type !== 'Ready'); // the heading and the notes say what Ready says
  return [el('h2', {}, 'Conditions'), el('div', { class: 'card rows' }, el('table', {},
    el('caption', { class: 'unseen' }, 'Conditions of the status'),
    el('thead', {}, el('tr', {}, ['State', 'Condition', 'Message'].map((title) => el('th', { scope: 'col' }, title)))),
    el('tbody', {}, others.map((c) => el('tr', { 'data-key': c.type }, el('td', { class: 'is' },
      badge(severity[c.status] ?? 'pending', c.reason)), el('th', { scope: 'row' }, bdi(c.type)),
    el('td', { class: 'wide' }, bdi(c.message)))))))];
}

const pairStates = (states) => states.map((one) => [one.label, one.label]);
const total = (states) => states.reduce((n, one) => n + one.count, 0);

export async function scorerPage(api, name) {
  const q = query('pairs', { name });
  const s = await api('scorer', q);
  const columns = pairColumns('cluster');
  return {
    title: `${s.name} · dynamic-scoring`,
    bad: s.state !== 'ready',
    content: frame(s, over('scorer'), s.name, [badge(s.severity, s.label), s.scoreName && s.scoreName !== s.name
      && soft('score ', bdi(s.scoreName))], [`api/v1/scorer?name=${encodeURIComponent(s.name)}`], [
      el('section', { class: 'card', 'aria-label': 'State' }, scorerNotes(s), scorerFacts(s, s), probePlots(s), summaryDetails(s.summary)),
      conditions(s),
      s.leading && [
        el('h2', { id: 'clusters' }, 'Clusters'),
        total(s.states) === 0 ? card(el('p', {}, 'There are no clusters.'))
          : [tiles(tile('clusters', 'all', total(s.states)), s.states.map((one) => tile(one.label, one.severity, one.count))),
            tools('pairs', 'clusters', pairStates(s.states), columns),
            table('pairs', 'Clusters', columns, s.pairs, s.metadata, (p) => p.cluster, 'No cluster matches.')]]]),
  };
}

// ---- One cluster ----

function clusterNotes(c) {
  return [
    c.work.writeError && note(true, bold(`Its ManifestWork cannot be ${workAction(c)}`), c.work.writeError),
    c.work.applyError && note(true, bold('The work agent cannot apply its ManifestWork'), c.work.applyError),
    c.unavailable && note(true, bold('The cluster is not available'), c.unavailable),
    c.addonUnavailable && note(true, bold('The add-on is not available'), c.addonUnavailable),
    c.addonNamespace && note(true, bold('The add-on is not in the namespace of its ConfigMap, but in'), c.addonNamespace),
    c.reported && (c.agentTrouble || !c.configurationAccepted) && note(!c.configurationAccepted,
      bold(c.configurationAccepted ? 'The agent reports' : 'The agent rejects its configuration'), c.agentTrouble),
  ];
}

function clusterFacts(c) {
  const w = c.work;
  return facts(
    fact('ManifestWork', !w.exists ? 'none' : w.deleting ? 'being deleted' : 'exists', w.exists && !w.ours && ', but not owned by this hub',
      soft(c.behind ? `behind for ${duration(c.behindSeconds)}` : 'up to date', c.failures > 0 && `, ${plural(c.failures, 'failed write')}`,
        w.exists && (w.applied ? ', applied' : w.applyError ? ', not applied' : ', not applied yet'))),
    fact('Summaries', count(c.scorers), soft(`${bytes(c.summariesBytes)}`, c.leftOut > 0 && `, no room for ${count(c.leftOut)}`)),
    fact('Report of the agent', c.reported ? [plural(c.reportedScorers, 'scorer'), soft(`${count(c.failing)} failing`)] : 'none yet'));
}

export async function clusterPage(api, name) {
  const c = await api('cluster', query('pairs', { name }));
  const columns = pairColumns('scorer');
  const labels = [...new Set(c.pairs.map((p) => p.label))].map((label) => ({ label }));
  return {
    title: `${c.name} · dynamic-scoring`,
    bad: c.state !== 'ok',
    content: frame(c, over('cluster'), c.name, c.leading && badge(c.severity, c.label),
      [`api/v1/cluster?name=${encodeURIComponent(c.name)}`], c.leading && [
        el('section', { class: 'card', 'aria-label': 'State' }, clusterNotes(c), clusterFacts(c)),
        el('h2', { id: 'scorers' }, 'Scorers'),
        !c.managed ? card(el('p', {}, 'This cluster gets no scorers: the hub has not accepted it, or it is being deleted.'))
          : [tools('pairs', 'scorers', pairStates(labels), columns),
            table('pairs', 'Scorers', columns, c.pairs, c.metadata, (p) => p.scorer, 'No scorer matches.')]]),
  };
}
