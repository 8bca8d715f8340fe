// Tables that are filtered and paged by the server, or here if the page has all rows, and sorted by any column. The page's URL keeps the
// choice.

import { count, el } from './dom.js';

const PAGE = 100, MORE = 500;
const chosen = new URLSearchParams(location.search);
const DEFAULTS = { filter: '', state: '', sort: 'state', limit: String(PAGE) };

export const choice = (table, what) => chosen.get(`${table}.${what}`) ?? DEFAULTS[what];

export function choose(table, what, value) {
  if (value === DEFAULTS[what]) chosen.delete(`${table}.${what}`);
  else chosen.set(`${table}.${what}`, value);
  if (what === 'filter' || what === 'state') chosen.delete(`${table}.limit`);
  history.replaceState(null, '', `${location.pathname}${chosen.size ? '?' + chosen : ''}`);
}

// The parameters of the API for the chosen rows. The server sorts by name and by state; sorted() does the rest.
export function query(table, more = {}) {
  const sort = choice(table, 'sort').replace('-', '') === 'name' ? 'name' : 'state';
  const q = new URLSearchParams({ limit: choice(table, 'limit'), sort, ...more });
  for (const what of ['filter', 'state'])
    if (choice(table, what)) q.set(what, choice(table, what));
  return q;
}

// Clicking a column sorts by it, clicking it again turns the order.
export function sortBy(table, key) {
  choose(table, 'sort', choice(table, 'sort') === key ? `-${key}` : key);
}

export const showMore = (table) =>
  choose(table, 'limit', String(Number(choice(table, 'limit')) + MORE));

function sorted(table, rows, columns) {
  const sort = choice(table, 'sort'), down = sort.startsWith('-'), key = sort.replace('-', '');
  const column = columns.find((c) => c.key === key);
  const value = column?.value;
  if (!value && !down) return rows;
  if (!value) return [...rows].reverse();
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === y || (x ?? null) === (y ?? null)) return 0;
    if (x === null || x === undefined) return 1; // unknown values come last in both directions
    if (y === null || y === undefined) return -1;
    return (x < y ? -1 : 1) * (down ? -1 : 1);
  };
  return [...rows].sort(compare);
}

// The rows to show of all that the page has, and metadata as the server would give it. names(row): what the filter looks in.
export function local(id, rows, columns, names) {
  const wanted = choice(id, 'filter').toLowerCase();
  const found = wanted ? rows.filter((row) => names(row).some((name) => name.toLowerCase().includes(wanted))) : rows;
  const shown = sorted(id, found, columns).slice(0, Number(choice(id, 'limit')));
  return { shown, metadata: { remainingItemCount: found.length - shown.length, sorted: true } };
}

function head(table, c) {
  const sort = choice(table, 'sort');
  const order = sort === c.key ? 'ascending' : sort === `-${c.key}` ? 'descending' : null;
  return el('th', { scope: 'col', class: c.number && 'n', 'aria-sort': order, 'data-key': c.key },
    c.key ? el('button', { type: 'button', 'data-sort': c.key, 'data-table': table }, c.title) : c.title);
}

// Filter, states and, where there are no column heads (on a phone), the order.
export function tools(table, what, states, columns) {
  const option = (value, text, now) => el('option', { value, selected: value === now }, text);
  const sort = choice(table, 'sort');
  return el('div', { class: 'tools', 'data-key': `tools-${table}` },
    el('input', { type: 'search', placeholder: `Filter ${what}`, 'aria-label': `Filter ${what} by name`,
      value: choice(table, 'filter'), 'data-filter': table, maxlength: 253 }),
    states.length > 0 && el('select', { 'aria-label': `State of ${what}`, 'data-state': table },
      option('', 'any state', choice(table, 'state')),
      states.map(([value, text]) => option(value, text, choice(table, 'state')))),
    el('select', { class: 'narrow', 'aria-label': `Order of ${what}`, 'data-order': table },
      columns.filter((c) => c.key).map((c) => option(c.key, `by ${c.title.toLowerCase()}`, sort.replace('-', '')))));
}

// The server sorts all rows by name or by state; any other order covers only the rows that the page has.
function part(table, caption, columns, shown, { remainingItemCount: left, sorted: all }) {
  const sort = choice(table, 'sort');
  const column = columns.find((c) => c.key === sort.replace('-', ''));
  const matching = choice(table, 'filter') || choice(table, 'state') ? 'matching ' : '';
  const order = all ? column ? `, by ${column.title.toLowerCase()}` : '' : sort === 'state' ? ', worst first' : sort === 'name' ? ', by name'
    : `, sorted by ${(column?.title ?? sort).toLowerCase()} among those shown`;
  return `${count(shown)} of ${count(shown + left)} ${matching}${caption.toLowerCase()} shown${order}`;
}

// columns: [{key, title, number, wide, value(row), cell(row), as: 'state' | 'name'}]; metadata: of the API's answer.
export function table(id, caption, columns, rows, metadata, keyOf, empty) {
  const left = metadata?.remainingItemCount || 0;
  if (rows.length === 0)
    return el('div', { class: 'card', 'data-key': `table-${id}` }, el('p', {}, empty));
  const partial = left > 0 && part(id, caption, columns, rows.length, metadata);
  return el('div', { class: 'card rows', 'data-key': `table-${id}` },
    partial && el('p', { class: 'soft part' }, partial),
    el('table', {},
      el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, columns.map((c) => head(id, c)))),
      el('tbody', {}, sorted(id, rows, columns).map((row) => el('tr', { 'data-key': keyOf(row) }, columns.map((c) =>
        el(c.as === 'name' ? 'th' : 'td', {
          scope: c.as === 'name' && 'row',
          class: c.as === 'state' ? 'is' : c.wide ? 'wide' : c.number && 'n',
          'data-what': !c.as && !c.wide && c.title,
        }, c.cell(row))))))),
    partial && el('p', { class: 'soft part' }, partial, ' ',
      el('button', { type: 'button', 'data-more': id }, `Show ${count(Math.min(left, MORE))} more`)));
}
