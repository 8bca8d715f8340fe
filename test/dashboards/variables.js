// A dashboard's variables: their options, their values, and their places in queries, titles and links.

// As Grafana's Prometheus data source: for the inside of a string literal.
const escapeRegex = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
const inString = (text) => text.replace(/\\/g, '\\\\').replace(/'/g, "\\'");

const FORMATS = {
  raw: (values) => values.join(','),
  csv: (values) => values.join(','),
  pipe: (values) => values.join('|'),
  text: (values) => values.join(' + '),
  percentencode: (values) => encodeURIComponent(values.length > 1 ? `{${values}}` : values[0]),
  regex: (values) => (values.length === 1 ? escapeRegex(values[0]) : `(${values.map(escapeRegex).join('|')})`),
  doublequote: (values) => values.map((v) => `"${v}"`).join(','),
};

// Those that a query names come before it.
function inOrder(list) {
  const left = [...list], done = [];
  while (left.length) {
    const waits = (v) => left.some((other) => other !== v && JSON.stringify([v.query, v.datasource]).match(new RegExp(`\\$\\{?${other.name}\\b`)));
    const next = left.findIndex((v) => !waits(v));
    if (next < 0) throw new Error(`variables in a circle: ${left.map((v) => v.name)}`);
    done.push(...left.splice(next, 1));
  }
  return done;
}

export class Variables {
  // list: as in the dashboard's templating; wanted: URLSearchParams with var-NAME; ask: see query.js.
  static async read(list, wanted, sources, ask, builtIn) {
    const all = new Variables();
    all.builtIn = builtIn;
    all.byName = new Map();
    for (const v of inOrder(list)) {
      const one = { ...v, options: await all.optionsOf(v, sources, ask) };
      const given = wanted.getAll(`var-${v.name}`);
      one.values = one.type === 'textbox' && given.length ? given : all.choose(one, given);
      all.byName.set(v.name, one);
    }
    return all;
  }

  async optionsOf(v, sources, ask) {
    if (v.type === 'datasource') return sources.map((s) => s.name);
    if (v.type === 'textbox' || v.type === 'constant') return [v.query ?? v.current?.value ?? ''];
    if (v.type === 'custom' || v.type === 'interval')
      return v.query.split(',').map((word) => word.trim().split(/\s+:\s+/).at(-1));
    if (v.type === 'adhoc') return [];
    if (v.type !== 'query') throw new Error(`unknown type of variable: ${v.type}`);
    const query = this.fill(typeof v.query === 'string' ? v.query : v.query.query);
    const found = await ask.values(query, this.sourceOf(v, sources));
    const pattern = v.regex && new RegExp(v.regex.replace(/^\/|\/$/g, ''));
    const kept = pattern ? found.map((x) => pattern.exec(x)).filter(Boolean).map((m) => m.groups?.value ?? m[1] ?? m[0]) : found;
    const order = { 1: 1, 2: -1, 3: 1, 4: -1, 5: 1, 6: -1, 7: 1, 8: -1 }[v.sort];
    const unique = [...new Set(kept)];
    return order ? unique.sort((a, b) => order * a.localeCompare(b, 'en', { numeric: v.sort === 3 || v.sort === 4 })) : unique;
  }

  choose(v, given) {
    const known = given.filter((x) => x === '$__all' || x === 'All' || v.options.includes(x));
    const saved = [v.current?.value ?? []].flat().filter((x) => x === '$__all' || v.options.includes(x));
    const chosen = known.length ? known : saved.length ? saved : v.includeAll ? ['$__all'] : v.options.slice(0, 1);
    return v.includeAll && chosen.some((x) => x === '$__all' || x === 'All') ? ['$__all'] : chosen;
  }

  sourceOf({ datasource }, sources) {
    const name = this.fill(datasource?.uid ?? '');
    return sources.find((s) => s.name === name) || sources[0];
  }

  valuesOf(name) {
    const v = this.byName.get(name);
    return v.values[0] === '$__all' ? v.options : v.values;
  }

  one(name, format) {
    const v = this.byName.get(name);
    if (!v) return null;
    const all = v.values[0] === '$__all';
    if (format === 'queryparam') return v.values.map((x) => `var-${name}=${encodeURIComponent(x)}`).join('&') || `var-${name}=`;
    if (all && v.allValue && format !== 'text') return v.allValue;
    if (all && format === 'text') return 'All';
    const values = this.valuesOf(name);
    if (!values.length) return '';
    if (format) {
      if (!FORMATS[format]) throw new Error(`unknown format of a variable: ${format}`);
      return FORMATS[format](values);
    }
    return v.multi || v.includeAll ? inString(FORMATS.regex(values)) : inString(values[0]);
  }

  // Replaces $name, ${name} and ${name:format}; more: further names of this place, such as __interval.
  fill(text, more = {}, format = null) {
    return text.replace(/\$(\w+)|\$\{(\w+)(?:\.(\w+))?(?::(\w+))?\}|\[\[(\w+)\]\]/g, (whole, a, b, member, own, c) => {
      const name = a || b || c;
      const given = { ...this.builtIn, ...more }[name];
      return given !== undefined ? given : this.one(name, own || format) ?? whole;
    });
  }

  words(text, more) {
    return this.fill(text || '', more, 'text');
  }
}
