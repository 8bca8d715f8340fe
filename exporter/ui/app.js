// The page: fetches the JSON of /api/v1 again and again, and shows it. All URLs are relative, so that a path prefix does not matter.

import { el, morph } from './dom.js';
import { agentPage } from './agent.js';
import { clusterPage, hubPage, scorerPage } from './hub.js';
import { planPage } from './plan.js';
import { modelPage } from './scorer.js';
import { choose, showMore, sortBy } from './table.js';

const PAGES = { agent: agentPage, scorer: modelPage, optimizer: planPage };
const REFRESH_MS = 5000, LONGEST_MS = 60000, TYPING_MS = 250;
const page = document.getElementById('page');
const pause = document.getElementById('pause');
let timer, request, role, updatedAt, paused = false, failures = 0, landed = false;

async function api(path, query) {
  const answer = await fetch(`api/v1/${path}${query ? '?' + query : ''}`, { signal: request.signal, cache: 'no-store' });
  const text = await answer.text();
  if (!answer.ok) throw Object.assign(new Error(text.trim() || `HTTP ${answer.status}`), { status: answer.status });
  return JSON.parse(text);
}

// The view that this page's path names.
async function view() {
  const name = new URLSearchParams(location.search).get('name');
  const last = location.pathname.split('/').pop();
  if (last === 'scorer') return scorerPage(api, name ?? '');
  if (last === 'cluster') return clusterPage(api, name ?? '');
  role ??= (await api('status', 'limit=1')).role;
  return (PAGES[role] ?? hubPage)(api);
}

function show({ title, bad, content }) {
  const focused = document.activeElement;
  document.title = title;
  document.querySelector('link[rel=icon]').setAttribute('href', bad ? 'ui/icon-bad.svg' : 'ui/icon.svg');
  morph(page, el('div', { id: 'page' }, content));
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  if (!landed && document.getElementById(location.hash.slice(1))) {
    landed = true;
    location.replace(location.hash); // the browser looked for it in the empty page
  }
}

const notFound = (error) => ({
  title: 'not found · dynamic-scoring',
  bad: true,
  content: [el('header', {}, el('p', { class: 'over-title' }, el('a', { href: './' }, 'dynamic-scoring controller')),
    el('h1', {}, error.message))],
});

function showProgress(trouble) {
  const at = updatedAt && `${updatedAt.toISOString().slice(11, 19)} UTC`;
  document.getElementById('updated').textContent = !at ? '' : paused ? `Paused, last updated ${at}`
    : `Updated ${at}, every ${REFRESH_MS / 1000} s`;
  document.getElementById('trouble').textContent = trouble;
  pause.textContent = paused ? 'Resume' : 'Pause';
}

async function refresh() {
  clearTimeout(timer);
  request?.abort();
  const mine = (request = new AbortController());
  const deadline = setTimeout(() => mine.abort(new Error('no answer in 30 s')), 30000);
  try {
    show(await view().catch((error) => { if (error.status === 404 || error.status === 400) return notFound(error); throw error; }));
    failures = 0;
    updatedAt = new Date();
    showProgress('');
  } catch (error) {
    if (mine !== request) return;
    failures++;
    const wait = Math.min(REFRESH_MS * 2 ** (failures - 1), LONGEST_MS);
    showProgress(`last update failed: ${error.message}` + (paused ? '' : `; next try in ${wait / 1000} s`));
    if (!page.firstChild) show({ title: 'dynamic-scoring', bad: true, content: [] });
  } finally {
    clearTimeout(deadline);
  }
  if (mine === request && !paused) schedule(Math.min(REFRESH_MS * 2 ** Math.max(0, failures - 1), LONGEST_MS));
}

function schedule(ms) {
  clearTimeout(timer);
  timer = setTimeout(refresh, ms);
}

pause.hidden = false;
pause.addEventListener('click', () => {
  paused = !paused;
  if (paused) clearTimeout(timer);
  else refresh();
  showProgress(document.getElementById('trouble').textContent);
});

page.addEventListener('click', (event) => {
  const { sort, table, more } = event.target.closest('button')?.dataset ?? {};
  if (sort) sortBy(table, sort);
  if (more) showMore(more);
  if (sort || more) refresh();
});
page.addEventListener('input', (event) => {
  const { filter, state, order } = event.target.dataset;
  if (filter) choose(filter, 'filter', event.target.value.trim());
  if (state) choose(state, 'state', event.target.value);
  if (order) choose(order, 'sort', event.target.value);
  if (filter || state || order) schedule(filter ? TYPING_MS : 0);
});

refresh();
