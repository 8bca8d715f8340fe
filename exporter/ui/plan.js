// The page of the optimizer: the last plan, from what was asked for to where each workload goes.

import { badge, bdi, card, code, count, el, fact, facts, moment, note, plural, score, seconds, soft, tile, tiles, webFact,
  webNote, wideFact } from './dom.js';
import { build } from './agent.js';
import { choice, local, table, tools } from './table.js';

const SEVERITY = { Optimal: 'ok', Feasible: 'ok', Infeasible: 'error' };
const NAMED = 12; // workloads of a cluster that its line names
const MAX_REQUEST = 20000; // characters of a request that the page shows

let last = null; // the plan that was fetched: {key, plan}

// A plan of 10,000 workloads is a megabyte: it is fetched when another has been made, or this one applied.
async function lastPlan(api, p) {
  const key = JSON.stringify(p);
  if (last?.key !== key) last = { key, plan: await api('plan') };
  return last.plan;
}

const bold = (...words) => el('b', {}, words);
const percent = (part) => `${Number((100 * part).toPrecision(2))}\u00a0%`;
const amount = (n) => (typeof n === 'number' ? String(Number(n.toPrecision(6))) : n);
const here = (path) => new URL(path, location.href).href;

// ---- Before the first plan ----

const EXAMPLE = `{"namespace": "default",
 "clusters": [{"name": "CLUSTER", "availablePolicies": [{"name": "POLICY"}]}],
 "targetWorkloads": [{"name": "WORKLOAD"}],
 "preference": {"addonPlacementScore": "SCORE", "scoreDimensionFormat": "\${app};\${device}"}}`;

const curl = (path, body) => el('pre', { class: 'command' }, bdi(`curl ${here(path)} \\\n -H 'Content-Type: application/json' -d '${body}'`));

const noPlan = () => card(el('p', {}, bold('No plan yet.'), ' Ask for one; it makes nothing until it is applied:'),
  curl('plan', EXAMPLE),
  el('p', { class: 'soft' }, 'What there is to name: ',
    ['policies', 'workloads', 'scorers', 'addonplacementscores'].map((path) => [el('a', { href: path }, `/${path}`), ' ']),
    'All members of a request: ', el('a', { href: 'openapi.json' }, '/openapi.json')));

// ---- What the optimizer says ----

function statusNotes(s) {
  const troubles = Object.entries(s.troubles).filter(([, why]) => why);
  return [
    troubles.length > 0 && note(true, [bold('Lists fail'), '; requests that need these objects fail, too.'],
      troubles.map(([kind, why]) => `${kind}: ${why}`).join('\n')),
    !s.synced && note(false, bold('Not all kinds of objects have been listed yet.')),
    webNote(s.webConfig),
  ];
}

function settings(s) {
  return [el('h2', { id: 'settings' }, 'Settings'), card(facts(
    fact('Makes objects in', s.writeNamespaces.length > 0 ? s.writeNamespaces.map((n) => [code(n), ' ']) : 'no namespace',
      s.writeNamespaces.length === 0 && soft(code('--write-namespace'), ' names some')),
    fact('Deadline', seconds(s.deadlineSeconds)), webFact(s.now, s.webConfig)))];
}

// ---- A plan ----

function quality(a) {
  if (a.objective_value === null || a.bound === null) return null;
  return soft(a.gap === 0 ? 'proven: no plan is better' : `no plan exceeds ${score(a.bound)}: within ${percent(a.gap)} of the best`);
}

const preferred = ({ preference: p = {} }) => (p.scores ?? [p]).map((one) => el('span', { class: 'under' },
  code(one.addonPlacementScore ?? one.addOnPlacementScore ?? ''), one.weight !== undefined && ` × ${one.weight}`));

function planFacts(s, p) {
  const a = p.answer, applied = p.appliedAt;
  return facts(
    fact('Objective', a.objective_value === null ? 'none' : score(a.objective_value), quality(a)),
    fact('Score', preferred(p.request)),
    fact('Engine', a.engine, soft(`took ${seconds(p.seconds)}`, a.deadlineReached ? ', until the deadline' : '')),
    fact('Planned', moment(s.now, p.at)),
    fact('Applied', applied ? moment(s.now, applied) : a.objective_value === null ? 'no' : 'not applied'),
    fact('Namespace', code(p.request.namespace ?? 'default')),
    wideFact('Plan hash', code(a.planHash)));
}

const applyLine = (s, p) => !p.appliedAt && p.answer.objective_value !== null && s.writeNamespaces.length > 0
  && el('details', {}, el('summary', {}, 'How to apply it'), curl('apply', JSON.stringify({ planHash: p.answer.planHash })));

function requestDetails(p) {
  const text = JSON.stringify(p.request, null, 2);
  return el('details', {}, el('summary', {}, 'The request'), text.length > MAX_REQUEST
    ? el('p', { class: 'soft' }, 'It is long: ', el('a', { href: 'api/v1/plan' }, '/api/v1/plan'), ' has it.') : el('pre', {}, bdi(text)));
}

// `used` of `supplied`, as a bar and in words.
function capacity(c) {
  const share = c.supplied > 0 ? Math.min(1, c.used / c.supplied) : 0;
  const others = Object.entries(c.resources ?? {});
  return [`${amount(c.used)} of ${amount(c.supplied)}`,
    el('svg:svg', { class: 'bar', viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      el('svg:rect', { width: 100, height: 6, class: 'track' }), el('svg:rect', { width: 100 * share, height: 6, class: 'used' })),
    others.map(([kind, r]) =>
      el('span', { class: 'under' }, bdi(kind), ` ${amount(r.used)} of ${amount(r.supplied)}`))];
}

function clusterLines(a) {
  const held = new Map();
  for (const w of a.placements) {
    const key = JSON.stringify([w.cluster, w.policy]);
    if (!held.has(key)) held.set(key, []);
    held.get(key).push(w);
  }
  return a.clusters.map((c) => {
    const workloads = c.policy ? held.get(JSON.stringify([c.name, c.policy])) ?? [] : [];
    return { ...c, workloads, sum: workloads.reduce((n, w) => n + w.score, 0), share: c.supplied > 0 ? c.used / c.supplied : 0 };
  });
}

const CLUSTERS = [
  { key: 'name', title: 'Cluster', as: 'name', value: (c) => c.name, cell: (c) => [bdi(c.name), el('span', { class: 'under' }, bdi(c.kind))] },
  { key: 'device', title: 'Device', value: (c) => c.device, cell: (c) => (c.policy
    ? [bdi(c.device), el('span', { class: 'under' }, bdi(c.policy))] : soft('not set')) },
  { key: 'used', title: 'Capacity used', value: (c) => (c.policy ? c.share : null), cell: (c) => (c.policy ? capacity(c) : '–') },
  { key: 'workloads', title: 'Workloads', number: true, value: (c) => c.workloads.length, cell: (c) => count(c.workloads.length) },
  { key: 'sum', title: 'Score', number: true, value: (c) => c.sum, cell: (c) => score(c.sum) },
  { title: 'Placed', wide: true, cell: (c) => [c.workloads.slice(0, NAMED).map((w, i) => [i > 0 && ', ', bdi(w.workload)]),
    c.workloads.length > NAMED && soft(` and ${count(c.workloads.length - NAMED)} more`)] },
];

const WORKLOADS = [
  { key: 'name', title: 'Workload', as: 'name', value: (w) => w.workload, cell: (w) => bdi(w.workload) },
  { key: 'cluster', title: 'Cluster', value: (w) => w.cluster, cell: (w) => bdi(w.cluster) },
  { key: 'device', title: 'Device', value: (w) => w.device, cell: (w) => bdi(w.device) },
  { key: 'score', title: 'Score', number: true, value: (w) => w.score, cell: (w) => score(w.score) },
];

const LEFT_OUT = [
  { key: 'reason', title: 'Reason', as: 'state', value: (w) => w.reason, cell: (w) => badge('warning', w.reason) },
  { key: 'name', title: 'Workload', as: 'name', value: (w) => w.workload, cell: (w) => bdi(w.workload) },
  { key: 'replicas', title: 'Replicas', number: true, value: (w) => w.replicas, cell: (w) => count(w.replicas) },
  { title: 'Why', wide: true, cell: (w) => bdi(w.message) },
];

const MOVES = [
  { key: 'name', title: 'Workload', as: 'name', value: (m) => m.workload, cell: (m) => bdi(m.workload) },
  { key: 'from', title: 'From', value: (m) => m.from, cell: (m) => bdi(m.from) },
  { key: 'to', title: 'To', value: (m) => m.to ?? '', cell: (m) => (m.to ? bdi(m.to) : soft('nowhere')) },
];

const section = (id, title, rows, columns, names, more) => {
  const { shown, metadata } = local(id, rows, columns, names);
  return [el('h2', { id }, title, more && [' ', soft(more)]),
    rows.length > 10 && tools(id, title.toLowerCase(), [], columns),
    table(id, title, columns, shown, metadata, (row) => columns.map((c) => c.value?.(row)).join(' '), 'Nothing matches.')];
};

function missingNote({ missingScores: m }) {
  return m.count > 0 && note(false, [bold(plural(m.count, 'score')), ' missing: these workloads cannot go there.'],
    m.first.map((one) => `${one.workload} on ${one.cluster} with ${one.device}`).join('\n'));
}

function planSections(s, p) {
  const a = p.answer, lines = clusterLines(a), used = lines.filter((c) => c.policy);
  return [
    tiles(tile('placed', 'all', a.placements.length), tile('left out', 'warning', a.leftOut.reduce((n, w) => n + w.replicas, 0)),
      tile('moves', 'all', a.moves.length), tile('clusters used', 'all', used.length)),
    el('section', { class: 'card', 'aria-label': 'The plan' }, a.notes.map((text) => note(false, bdi(text))), missingNote(a),
      planFacts(s, p), applyLine(s, p), requestDetails(p)),
    a.leftOut.length > 0 && section('left', 'Left out', a.leftOut, LEFT_OUT, (w) => [w.workload]),
    a.moves.length > 0 && section('moves', 'Moves', a.moves, MOVES, (m) => [m.workload, m.from, m.to ?? '']),
    lines.length > 0 && section('clusters', 'Clusters', lines, CLUSTERS, (c) => [c.name, ...c.workloads.map((w) => w.workload)]),
    a.placements.length > 0 && section('workloads', 'Workloads', a.placements, WORKLOADS, (w) => [w.workload, w.cluster]),
  ];
}

export async function planPage(api) {
  const s = await api('status');
  const p = s.plan && await lastPlan(api, s.plan);
  const a = p?.answer;
  const bad = Object.values(s.troubles).some(Boolean) || a?.status === 'Infeasible' || s.webConfig?.ok === false;
  return {
    title: `${a ? `${a.status} · ` : ''}optimizer · dynamic-scoring`,
    bad,
    content: [
      el('header', {}, el('p', { class: 'over-title' }, 'dynamic-scoring optimizer'),
        el('div', { class: 'name' }, el('h1', {}, a ? 'Last plan' : 'Plans'), a && badge(SEVERITY[a.status] ?? 'pending', a.status),
          a && badge(p.appliedAt ? 'ok' : 'pending', p.appliedAt ? 'applied' : 'not applied')),
        el('nav', { 'aria-label': 'Links' }, ['openapi.json', 'metrics', 'api/v1/status', ...(a ? ['api/v1/plan'] : [])].map((path) =>
          el('a', { href: path }, `/${path}`)))),
      el('main', {}, statusNotes(s), a ? planSections(s, p) : noPlan(), settings(s),
        build(s.now, s.build.version, s.build.revision, s.startedAt)),
    ],
  };
}
