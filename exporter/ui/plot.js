// Small plots of the last minutes.

import { duration, el } from './dom.js';

const WIDTH = 240, HEIGHT = 44, EDGE = 3;

const numbers = (values) => values.filter((v) => typeof v === 'number');

// Lines over equal steps; a gap where nothing was measured.
function path(values, x, y) {
  let pen = 'M';
  return values.map((v, i) => {
    if (typeof v !== 'number') { pen = 'M'; return ''; }
    const point = `${pen}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    pen = 'L';
    return point;
  }).join('');
}

function band(low, high, x, y) {
  const known = low.map((v, i) => i).filter((i) => typeof low[i] === 'number' && typeof high[i] === 'number');
  const corner = (v, i) => `${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
  return known.length < 2 ? '' : 'M' + [...known.map((i) => corner(high[i], i)),
    ...known.reverse().map((i) => corner(low[i], i))].join('L') + 'Z';
}

// lines: [{name, values, low, high}]; low and high: a band around the line. Nothing with fewer than two values.
export function plot(title, times, lines, words) {
  const all = lines.flatMap((l) => numbers([...l.values, ...(l.low || []), ...(l.high || [])]));
  if (times.length < 2 || all.length < 2) return null;
  const least = Math.min(...all), most = Math.max(...all);
  const x = (i) => EDGE + (i / (times.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (v) => HEIGHT - EDGE - (most > least ? (v - least) / (most - least) : 0.5) * (HEIGHT - 2 * EDGE);
  const texts = lines.map(({ name, values, low, high }) => {
    const known = numbers(values);
    return known.length > 0 && `${name}: last ${words(known.at(-1))}, ` +
      `${low ? 'lowest' : 'min'} ${words(Math.min(...numbers(low || values)))}, ` +
      `${high ? 'highest' : 'max'} ${words(Math.max(...numbers(high || values)))}`;
  });
  const period = `over ${duration(times.at(-1) - times[0])}`;
  return el('figure', { class: 'plot', 'data-key': title },
    el('figcaption', {}, title, ' ', el('span', { class: 'soft' }, period)),
    el('svg:svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img',
      'aria-label': `${title} ${period}. ${texts.filter(Boolean).join('. ')}` },
      lines.map((l, i) => [
        l.low && el('svg:path', { class: `band line-${i}`, d: band(l.low, l.high, x, y) }),
        el('svg:path', { class: `line line-${i}`, d: path(l.values, x, y) })])),
    texts.map((text, i) => text && el('p', { class: `legend-${i}` }, text)));
}
