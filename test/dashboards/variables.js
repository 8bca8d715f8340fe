// A dashboard's variables: their options, their values, and their places in queries, titles and links.

// As Grafana's Prometheus data source: for the inside of a string literal.
const escapeRegex = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
const inString = (text) => text.replace(/\\/g, '\\\\').replace(/'/g, "\\'");
const pattern = (values) => (values.length === 1 ? escapeRegex(values[0]) : `(${values.map(escapeRegex).join('|')})`);

const FORMATS = {
  raw: (values) => values.join(','),
  text: (values) => values.join(' + '),
  percentencode: (values) => encodeURIComponent(values),
};

// Those that a query names come before it.
function inOrder(list) {
  const left = [...list], done = [];
  const names = (v, other) => new RegExp(`\\$\\{?${other.name}\\b`).test(JSON.stringify([v.query, v.datasource]));
  while (left.length) {
    const next = left.findIndex((v) => !left.some((other) => other !== v && names(v, other)));
    if (next < 0) throw new Error(`variables in a circle: ${left.map((v) => v.name)}`);
    done.push(...left.splice(next, 1));
  }
  return done;
}

const ALL = '$__all';

export class Variables {
  // list: as in the dashboard's templating; wanted: URLSearchParams with var-NAME; ask(query, source): a label's values.
  static async read(list, wanted, sources, ask) {
    const all = new Variables();
    all.byName = new Map();
    for (const v of inOrder(list)) {
      const given = wanted.getAll(`var-${v.name}`);
      const options = await all.optionsOf(v, sources, ask); // [[value, text]]
      const values = v.type === 'textbox' && given.length ? given : all.choose(v, options, given);
      all.byName.set(v.name, { ...v, options, values });
    }
    return all;
  }

  async optionsOf(v, sources, ask) {
    const same = (values) => values.map((value) => [value, value]);
    if (v.type === 'datasource') return same(sources.map((s) => s.name));
    if (v.type === 'textbox' || v.type === 'constant') return same([v.query]);
    if (v.type === 'custom') { // "value, text : value"
      const choices = v.query.split(',').map((choice) => choice.trim().split(/\s+:\s+/));
      return choices.map((choice) => [choice.at(-1), choice[0]]);
    }
    if (v.type !== 'query') throw new Error(`unknown type of variable: ${v.type}`);
    return same((await ask(this.fill(v.query.query), this.sourceOf(v, sources))).sort());
  }

  choose(v, options, given) {
    const exists = (x) => (v.includeAll && x === ALL) || options.some(([value]) => value === x);
    const lists = [given, [v.current?.value ?? []].flat(), [ALL], options.slice(0, 1).map(([value]) => value)];
    return lists.map((list) => list.filter(exists)).find((list) => list.length) || [];
  }

  sourceOf({ datasource }, sources) {
    const name = this.fill(datasource.uid);
    return sources.find((s) => s.name === name) || sources[0];
  }

  valueOf(name, format) {
    const v = this.byName.get(name);
    if (!v) return null;
    if (format === 'queryparam') return v.values.map((x) => `var-${name}=${encodeURIComponent(x)}`).join('&');
    const all = v.values[0] === ALL;
    if (all && format === 'text') return 'All';
    if (all) return v.allValue;
    if (!v.values.length) return '';
    if (!format) return inString(v.multi || v.includeAll ? pattern(v.values) : v.values[0]);
    if (!FORMATS[format]) throw new Error(`unknown format of a variable: ${format}`);
    return FORMATS[format](v.values);
  }

  // Replaces $name, ${name} and ${name:format}; more: further names, such as __interval. Unknown names stay.
  fill(text, more = {}, format = null) {
    return text.replace(/\$(?:(\w+)|\{(\w+)(?::(\w+))?\})/g, (whole, a, b, own) =>
      more[a || b] ?? this.valueOf(a || b, own || format) ?? whole);
  }

  words(text) {
    return this.fill(text || '', {}, 'text');
  }
}
