// Elements, made of text and attributes only, and words for times and amounts.

const SVG = 'http://www.w3.org/2000/svg';

// el('p', {class: 'soft'}, 'text', el(...)): children may be nested lists; null and false are left out. 'svg:' names SVG elements.
export function el(name, attributes, ...children) {
  const node = name.startsWith('svg:')
    ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value === true ? '' : value);
  for (const child of children.flat(9))
    if (child !== undefined && child !== null && child !== false) node.append(child instanceof Node ? child : visible(child));
  return node;
}

// Control characters (but line ends and tabs) are shown as U+FFFD.
const visible = (text) => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');

// Changes `from` into `to`, keeping nodes that stay: with them focus, selection, scroll positions and open details.
export function morph(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  const fixed = (name) => name === 'open' && from.nodeName === 'DETAILS';
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && !fixed(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes)
    if (!fixed(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  const keyOf = (node) => node.nodeName + ' ' + (node.dataset?.key ?? '');
  const old = new Map();
  for (const child of from.childNodes) old.set(keyOf(child), [...(old.get(keyOf(child)) || []), child]);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const found = old.get(keyOf(wanted))?.shift();
    if (found) morph(found, wanted);
    const child = found || wanted;
    if (child === place) place = place.nextSibling;
    else from.insertBefore(child, place);
  }
  for (const rest of old.values()) for (const child of rest) child.remove();
}

// ---- Words ----

export const count = (n) => Number(n).toLocaleString('en-US');
export const plural = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`;
export const score = (v) => (typeof v === 'number' ? String(Number(v.toPrecision(12))) : v);

export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  for (const [unit, big, lesser, small] of [['d', 86400, 3600, 'h'], ['h', 3600, 60, 'm'], ['m', 60, 1, 's']])
    if (s >= big) {
      const rest = Math.floor((s % big) / lesser);
      return Math.floor(s / big) + unit + (rest ? ` ${rest}${small}` : '');
    }
  return `${s} s`;
}

export function seconds(s) {
  if (s >= 60) return duration(s);
  if (s >= 0.9995) return `${Number(s.toPrecision(3))} s`;
  return `${(s * 1000).toFixed(s < 0.000995 ? 2 : s < 0.00995 ? 1 : 0)} ms`;
}

export function bytes(n) {
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let i = 0;
  if (n < 1024) return `${n} B`;
  for (n /= 1024; n >= 1023.5 && i + 1 < units.length; i++) n /= 1024;
  return `${n < 9.95 && Math.abs(n - Math.round(n)) >= 0.05 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

// "12 s ago", "in 3m 10s", "now"; "never" for null.
export function when(now, time) {
  if (!time) return 'never';
  const ago = (Date.parse(now) - Date.parse(time)) / 1000;
  return Math.abs(ago) < 1 ? 'now' : ago < 0 ? `in ${duration(-ago)}` : `${duration(ago)} ago`;
}

// ---- Parts of every page ----

export const bdi = (text) => el('bdi', {}, text);
export const code = (text) => el('code', {}, bdi(text));
export const soft = (...what) => el('span', { class: 'soft' }, what);
export const badge = (severity, words) => el('span', { class: `state ${severity}` }, words);
export const card = (...what) => el('section', { class: 'card' }, what);
export const unseen = (text) => el('span', { class: 'unseen' }, text);

export const utc = (time) => time.slice(0, 19).replace('T', ' ') + ' UTC';
export const moment = (now, time) =>
  time ? el('time', { datetime: time }, when(now, time), soft(utc(time))) : 'never';

export const facts = (...list) => el('dl', { class: 'facts' }, list);
export const fact = (what, ...words) => words.some((w) => w !== null && w !== undefined && w !== false)
  && el('div', {}, el('dt', {}, what), el('dd', {}, words));
export const wideFact = (what, ...words) =>
  el('div', { class: 'wide' }, el('dt', {}, what), el('dd', {}, words));

export const tiles = (...list) => el('dl', { class: 'tiles' }, list);
export const tile = (what, severity, n) => el('div', { class: n === 0 ? 'none' : severity },
  el('dt', {}, what), el('dd', {}, typeof n === 'number' ? count(n) : n));

// A box about a problem: a title, and the error as it was reported.
export const note = (bad, title, text, ...more) => el('div', { class: bad ? 'note bad' : 'note' },
  el('p', {}, title), text && el('pre', {}, bdi(text)), more);

// The state of --web.config.file; w is null without the flag.
export const webNote = (w) => w && w.problems.length > 0 && note(!w.ok, el('b', {}, w.ok ? 'Warnings about the web configuration'
  : 'The web configuration was rejected; the last valid one stays active'), w.problems.join('\n'));
export const webFact = (now, w) => w && fact('Web configuration', code(w.file), w.ok ? null : badge('error', 'rejected'),
  soft(when(now, w.lastTriedAt)));

// Only http and https can be followed.
export function url(text) {
  let safe = false;
  try { safe = ['http:', 'https:'].includes(new URL(text).protocol); } catch { /* not a URL: shown as text */ }
  return safe ? el('a', { href: text, rel: 'noopener noreferrer' }, code(text)) : code(text ?? 'none');
}
