#include "exporter/otlp/translate.h"

#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/otlp/decode.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Text being written; the first error is kept. */
struct text {
    struct buf *buf;
    int error;
};

static void put(struct text *t, struct str s)
{
    t->error = t->error ?: buf_put_str(t->buf, s);
}

static void put_char(struct text *t, char c)
{
    put(t, (struct str){&c, 1});
}

static void put_front(struct text *t, size_t at, struct str s)
{
    put(t, s);
    if (t->error)
        return;
    memmove(t->buf->p + at + s.n, t->buf->p + at, t->buf->n - s.n - at);
    memcpy(t->buf->p + at, s.p, s.n);
}

/* ---- Metric names ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

static bool is_metric_char(char c)
{
    return is_letter_or_digit(c) || c == ':';
}

/* The next run of characters that a metric's name may have; *rest is what follows. */
static bool next_token(struct str *rest, struct str *ret)
{
    size_t at = 0, end;

    while (at < rest->n && !is_metric_char(rest->p[at]))
        at++;
    for (end = at; end < rest->n && is_metric_char(rest->p[end]);)
        end++;
    *ret = (struct str){rest->p + at, end - at};
    *rest = (struct str){rest->p + end, rest->n - end};
    return ret->n > 0;
}

static bool has_token(struct str name, struct str token)
{
    struct str t;

    while (next_token(&name, &t))
        if (str_eq(t, token))
            return true;
    return false;
}

struct unit_word {
    const char *unit, *word;
};

/* UCUM's codes and what Prometheus calls them. */
static const struct unit_word units[] = {
    /* clang-format off */
    {"d", "days"}, {"h", "hours"}, {"min", "minutes"}, {"s", "seconds"}, {"ms", "milliseconds"},
    {"us", "microseconds"}, {"ns", "nanoseconds"}, {"By", "bytes"}, {"KiBy", "kibibytes"},
    {"MiBy", "mebibytes"}, {"GiBy", "gibibytes"}, {"TiBy", "tibibytes"}, {"KBy", "kilobytes"},
    {"MBy", "megabytes"}, {"GBy", "gigabytes"}, {"TBy", "terabytes"}, {"m", "meters"}, {"V", "volts"},
    {"A", "amperes"}, {"J", "joules"}, {"W", "watts"}, {"g", "grams"}, {"Cel", "celsius"}, {"Hz", "hertz"},
    {"1", ""}, {"%", "percent"}, {NULL, NULL},
    /* clang-format on */
};

/* After a slash. */
static const struct unit_word per_units[] = {
    {"s", "second"}, {"m", "minute"}, {"h", "hour"}, {"d", "day"},
    {"w", "week"},   {"mo", "month"}, {"y", "year"}, {NULL, NULL},
};

/* Appends the unit's word, or the unit itself with underscores for other characters, never two in a row, and
 * none in front. Nothing for one in braces, which is only a remark. */
static void put_unit(struct text *t, struct str unit, const struct unit_word *table)
{
    char last = '_';

    unit = str_trim(unit);
    if (unit.n && (memchr(unit.p, '{', unit.n) || memchr(unit.p, '}', unit.n)))
        return;
    for (; table->unit; table++)
        if (str_eq(unit, str_of(table->unit)))
            unit = str_of(table->word);
    for (size_t i = 0; i < unit.n; i++) {
        char c = is_metric_char(unit.p[i]) ? unit.p[i] : '_';
        if (c != '_' || last != '_')
            put_char(t, c);
        last = c;
    }
}

static void trim_underscore(struct buf *b)
{
    if (b->n > 0 && b->p[b->n - 1] == '_')
        b->n--;
}

/* The unit's words: `main` as "bytes", `per` as "per_second". */
static int split_unit(struct str unit, struct buf *main, struct buf *per)
{
    const char *slash = unit.n ? memchr(unit.p, '/', unit.n) : NULL;
    size_t n = slash ? (size_t)(slash - unit.p) : unit.n;
    struct text t = {.buf = main};

    put_unit(&t, (struct str){unit.p, n}, units);
    if (!slash)
        return t.error;
    t.buf = per;
    put(&t, STR("per_"));
    put_unit(&t, (struct str){slash + 1, unit.n - n - 1}, per_units);
    trim_underscore(per);
    if (per->n == strlen("per"))
        per->n = 0;
    else
        trim_underscore(main);
    return t.error;
}

/* Appends a part of the name that begins at `mark`, after an underscore. */
static void put_part(struct text *t, size_t mark, struct str part, struct str dropped)
{
    if (part.n == 0 || str_eq(part, dropped))
        return;
    if (t->buf->n > mark)
        put_char(t, '_');
    put(t, part);
}

int translate_metric_name(struct str name, struct str unit, enum otlp_type type, struct buf *into)
{
    struct str suffix = type == OTLP_COUNTER                           ? STR("total")
                        : type == OTLP_GAUGE && str_eq(unit, STR("1")) ? STR("ratio")
                                                                       : STR("");
    BUF_AUTO(main, into->max);
    BUF_AUTO(per, into->max);
    struct text t = {into, split_unit(unit, &main, &per)};
    struct str token, rest = name;
    size_t mark = into->n;

    while (next_token(&rest, &token))
        put_part(&t, mark, token, suffix);
    if (!has_token(name, buf_str(&main)))
        put_part(&t, mark, buf_str(&main), suffix);
    if (!has_token(name, buf_str(&per)))
        put_part(&t, mark, buf_str(&per), suffix);
    put_part(&t, mark, suffix, STR(""));
    if (!t.error && into->n > mark && is_digit(into->p[mark]))
        put_front(&t, mark, STR("_"));
    return t.error;
}

int translate_label_name(struct str name, struct buf *into)
{
    struct text t = {.buf = into};
    size_t mark = into->n;

    while (name.n && !t.error) {
        size_t n = utf8_char(name) ?: 1;
        put_char(&t, is_letter_or_digit(name.p[0]) ? name.p[0] : '_');
        name = (struct str){name.p + n, name.n - n};
    }
    if (t.error || into->n == mark)
        return t.error;
    if (is_digit(into->p[mark]))
        put_front(&t, mark, STR("key_"));
    else if (into->p[mark] == '_' && (into->n == mark + 1 || into->p[mark + 1] != '_'))
        put_front(&t, mark, STR("key"));
    return t.error;
}

/* ---- Values of attributes, as the collector's libraries write them, which Prometheus uses ---- */

size_t translate_decimal(double v, char to[DECIMAL_MAX])
{
    char text[NUM_MAX + 1], digits[NUM_MAX];
    size_t n = num_put_double(text, v), count = 0, at = 0;
    const char *e = memchr(text, 'e', n);
    long point; /* its place among the digits */

    text[n] = '\0';
    if (!e) {
        memcpy(to, text, n);
        return n;
    }
    point = strtol(e + 1, NULL, 10) + 1;
    for (const char *p = text; p < e; p++)
        if (is_digit(*p))
            digits[count++] = *p;
    if (text[0] == '-')
        to[at++] = '-';
    if (point <= 0) {
        to[at++] = '0';
        to[at++] = '.';
    }
    for (long i = point; i < 0; i++)
        to[at++] = '0';
    for (long i = 0; i < (long)count || i < point; i++) {
        if (point > 0 && i == point)
            to[at++] = '.';
        to[at++] = i < (long)count ? digits[i] : '0';
    }
    return at;
}

/* As JavaScript prints it: an exponent below 1e-6 and from 1e21. */
static void put_double(struct text *t, double v)
{
    char text[DECIMAL_MAX];
    double magnitude = fabs(v);

    if (isnan(v) || isinf(v)) {
        put(t, STR("json: unsupported value: "));
        put(t, isnan(v) ? STR("NaN") : v > 0 ? STR("+Inf") : STR("-Inf"));
    } else if (magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21)) {
        put(t, (struct str){text, num_put_double(text, v)});
    } else {
        put(t, (struct str){text, translate_decimal(v, text)});
    }
}

static void put_base64(struct text *t, struct str s)
{
    char *to;

    t->error = t->error ?: buf_room(t->buf, (s.n + 2) / 3 * 4, &to);
    if (!t->error)
        t->buf->n += base64_encode(s, to);
}

static void put_any_value(struct text *t, struct str any_value);

/* A JSON string with the escapes of Go's encoder, which is made for HTML. */
static void put_json_string(struct text *t, struct str s)
{
    BUF_AUTO(plain, t->buf->max);
    int r = buf_put_json(&plain, s);

    t->error = t->error ?: r;
    for (size_t i = 0; i < plain.n && !t->error; i++)
        if (strchr("<>&", plain.p[i]) && plain.p[i])
            t->error = buf_printf(t->buf, "\\u%04x", (unsigned)plain.p[i]);
        else
            put_char(t, plain.p[i]);
}

/* The last field of an AnyValue; false for an empty one. */
static bool any_field(struct str any_value, struct wire_field *ret)
{
    struct wire w = wire_of(any_value);
    bool found = false;
    struct wire_field f = {0};

    while (wire_next(&w, &f))
        if (f.number >= ANY_STRING && f.number <= ANY_BYTES) {
            *ret = f;
            found = true;
        }
    return found;
}

static void put_json_value(struct text *t, struct str any_value)
{
    struct wire_field f = {0};

    if (!any_field(any_value, &f)) {
        put(t, STR("null"));
    } else if (f.number == ANY_STRING) {
        put_json_string(t, f.bytes);
    } else if (f.number == ANY_BYTES) {
        put_char(t, '"');
        put_base64(t, f.bytes);
        put_char(t, '"');
    } else {
        put_any_value(t, any_value);
    }
}

static void put_json_array(struct text *t, struct str values)
{
    struct wire w = wire_of(values);
    struct wire_field f = {0};
    bool first = true;

    put_char(t, '[');
    while (!t->error && wire_next(&w, &f))
        if (f.number == VALUES_VALUES) {
            if (!first)
                put_char(t, ',');
            put_json_value(t, f.bytes);
            first = false;
        }
    put_char(t, ']');
}

struct attribute {
    struct str key, value;
};

static struct attribute attribute_of(struct str key_value)
{
    struct attribute a = {STR(""), STR("")};
    struct wire w = wire_of(key_value);
    struct wire_field f = {0};

    while (wire_next(&w, &f))
        if (f.number == KEY_VALUE_KEY)
            a.key = f.bytes;
        else if (f.number == KEY_VALUE_VALUE)
            a.value = f.bytes;
    return a;
}

/* The attributes of a message, sorted by key; equal keys stay in their order. -EFBIG. */
static int read_attributes(struct attribute *list, size_t max, size_t *ret_n, struct str message,
                           unsigned number)
{
    struct wire w = wire_of(message);
    struct wire_field f = {0};
    size_t n = 0, at;

    while (wire_next(&w, &f)) {
        struct attribute a;

        if (f.number != number)
            continue;
        if (n == max)
            return -EFBIG;
        a = attribute_of(f.bytes);
        for (at = n++; at > 0 && str_cmp(a.key, list[at - 1].key) < 0; at--)
            list[at] = list[at - 1];
        list[at] = a;
    }
    *ret_n = n;
    return 0;
}

/* Keys are sorted; the later one of two with the same key wins. */
static void put_json_map(struct text *t, struct str values)
{
    struct attribute list[SERIES_MAX_LABELS];
    size_t n = 0;
    bool first = true;

    t->error = t->error ?: read_attributes(list, ARRAY_SIZE(list), &n, values, VALUES_VALUES);
    put_char(t, '{');
    for (size_t i = 0; i < n && !t->error; i++) {
        if (i + 1 < n && str_eq(list[i].key, list[i + 1].key))
            continue;
        if (!first)
            put_char(t, ',');
        first = false;
        put_json_string(t, list[i].key);
        put_char(t, ':');
        put_json_value(t, list[i].value);
    }
    put_char(t, '}');
}

static void put_any_value(struct text *t, struct str any_value)
{
    struct wire_field f = {0};

    if (!any_field(any_value, &f))
        return;
    switch (f.number) {
    case ANY_STRING:
        put(t, f.bytes);
        break;
    case ANY_BOOL:
        put(t, f.value ? STR("true") : STR("false"));
        break;
    case ANY_INT:
        t->error = t->error ?: buf_printf(t->buf, "%lld", (long long)f.value);
        break;
    case ANY_DOUBLE:
        put_double(t, wire_double(f.value));
        break;
    case ANY_ARRAY:
        put_json_array(t, f.bytes);
        break;
    case ANY_MAP:
        put_json_map(t, f.bytes);
        break;
    default:
        put_base64(t, f.bytes);
    }
}

/* Appends the text of an attribute's value: the bytes of an AnyValue. Arrays and maps become JSON. */
static int translate_value(struct str any_value, struct buf *into)
{
    struct text t = {.buf = into};

    put_any_value(&t, any_value);
    return t.error;
}

/* ---- Promotion ---- */

static void promote(struct otlp_promotion *p, size_t at, struct str attribute, struct str label)
{
    memmove(&p->list[at + 1], &p->list[at], (p->n++ - at) * sizeof(p->list[0]));
    p->list[at].attribute = attribute;
    p->list[at].label = label;
}

void otlp_promote_k8s(struct otlp_promotion *p)
{
    promote(p, p->n, STR("k8s.node.name"), STR("node"));
    promote(p, p->n, STR("k8s.namespace.name"), STR("namespace"));
    promote(p, p->n, STR("k8s.pod.name"), STR("pod"));
    promote(p, p->n, STR("k8s.container.name"), STR("container"));
}

/* Keeps the list sorted: of two attributes with the same translation the first one counts. */
bool otlp_promote(struct otlp_promotion *p, struct str names)
{
    size_t from = p->n, at;

    while (names.n) {
        const char *comma = memchr(names.p, ',', names.n);
        size_t n = comma ? (size_t)(comma - names.p) : names.n;
        struct str name = str_trim((struct str){names.p, n});

        if (name.n && p->n == OTLP_MAX_PROMOTED)
            return false;
        for (at = from; at < p->n && str_cmp(p->list[at].attribute, name) <= 0;)
            at++;
        if (name.n)
            promote(p, at, name, STR(""));
        names = (struct str){names.p + n + !!comma, names.n - n - !!comma};
    }
    return true;
}

/* ---- Labels ---- */

/* Moves the text into the arena, and empties it. */
static struct str labels_keep(struct labels *l, struct buf *b, int r)
{
    char *copy = r == 0 ? arena_alloc(&l->arena, b->n + !b->n) : NULL;
    struct str kept = {copy, copy ? b->n : 0};

    if (kept.n)
        memcpy(copy, b->p, b->n);
    l->error = l->error ?: r ?: copy ? 0 : -ENOMEM;
    b->n = 0;
    return kept;
}

static struct series_label *labels_find(struct labels *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

/* Adds a label; `replace` decides about one that is there already. */
static void labels_put(struct labels *l, struct str name, struct str value, bool replace)
{
    struct series_label *old = labels_find(l, name);

    if (old)
        old->value = replace ? value : old->value;
    else if (l->n == ARRAY_SIZE(l->list))
        l->error = l->error ?: -EFBIG;
    else
        l->list[l->n++] = (struct series_label){name, value};
}

/* Whether an attribute of a resource makes up job or instance. */
static bool is_identity(struct str key)
{
    return str_eq(key, STR("service.name")) || str_eq(key, STR("service.namespace")) ||
           str_eq(key, STR("service.instance.id"));
}

/* Values of attributes whose names become the same are joined by a semicolon. */
static void labels_put_attributes(struct labels *l, struct str message, unsigned number,
                                  bool (*skipped)(struct str key))
{
    struct attribute list[SERIES_MAX_LABELS];
    BUF_AUTO(text, SERIES_MAX_LABEL_BYTES);
    size_t n = 0;
    int r = read_attributes(list, ARRAY_SIZE(list), &n, message, number);

    l->error = l->error ?: r;
    for (size_t i = 0; i < n && !l->error; i++) {
        struct series_label *old;
        struct str name;

        if (skipped && skipped(list[i].key))
            continue;
        name = labels_keep(l, &text, translate_label_name(list[i].key, &text));
        old = labels_find(l, name);
        if (old)
            l->error = l->error ?: buf_put_str(&text, old->value) ?: buf_putc(&text, ';');
        labels_put(l, name, labels_keep(l, &text, translate_value(list[i].value, &text)), true);
    }
}

/* Appends the text of the first attribute with this name; false without one. */
static bool put_attribute(struct labels *l, struct str resource, struct str name, struct buf *into)
{
    struct wire w = wire_of(resource);
    struct wire_field f = {0};

    while (wire_next(&w, &f))
        if (f.number == RESOURCE_ATTRIBUTES && str_eq(attribute_of(f.bytes).key, name)) {
            l->error = l->error ?: translate_value(attribute_of(f.bytes).value, into);
            return true;
        }
    return false;
}

/* Returns whether there is any. */
static bool labels_put_identity(struct labels *l, struct str resource)
{
    BUF_AUTO(text, SERIES_MAX_LABEL_BYTES);
    BUF_AUTO(job, SERIES_MAX_LABEL_BYTES);
    bool named = put_attribute(l, resource, STR("service.name"), &text), has_instance;

    if (named && put_attribute(l, resource, STR("service.namespace"), &job))
        l->error = l->error ?: buf_putc(&job, '/');
    if (named) {
        l->error = l->error ?: buf_put_str(&job, buf_str(&text));
        labels_put(l, STR("job"), labels_keep(l, &job, 0), true);
    }
    text.n = 0;
    has_instance = put_attribute(l, resource, STR("service.instance.id"), &text);
    if (has_instance)
        labels_put(l, STR("instance"), labels_keep(l, &text, 0), true);
    return named || has_instance;
}

static void labels_put_promoted(struct labels *l, struct str resource, const struct otlp_promotion *p)
{
    BUF_AUTO(text, SERIES_MAX_LABEL_BYTES);

    for (size_t i = 0; i < p->n && !l->error; i++) {
        struct str value, name = p->list[i].label;

        if (!put_attribute(l, resource, p->list[i].attribute, &text))
            continue;
        value = labels_keep(l, &text, 0);
        if (!name.n)
            name = labels_keep(l, &text, translate_label_name(p->list[i].attribute, &text));
        labels_put(l, name, value, false);
    }
}

/* Sorts by name and removes labels without a value. */
static int labels_finish(struct labels *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n && !l->error; i++) {
        struct series_label label = l->list[i];
        size_t at = n;

        if (label.value.n == 0 || label.name.n == 0)
            continue;
        if (utf8_valid_prefix(label.value) < label.value.n)
            return -EILSEQ;
        for (; at > 0 && str_cmp(label.name, l->list[at - 1].name) < 0; at--)
            l->list[at] = l->list[at - 1];
        l->list[at] = label;
        n++;
    }
    l->n = n;
    return l->error;
}

void labels_done(struct labels *l)
{
    arena_done(&l->arena);
    l->n = 0;
    l->error = 0;
}

int labels_build(struct labels *l, const struct labels_source *s)
{
    BUF_AUTO(text, SERIES_MAX_LABEL_BYTES);

    labels_done(l);
    labels_put_attributes(l, s->point, s->attributes, NULL);
    labels_put_promoted(l, s->resource, s->promotion);
    (void)labels_put_identity(l, s->resource);
    if (s->extra.name.n)
        labels_put(l, s->extra.name, labels_keep(l, &text, buf_put_str(&text, s->extra.value)), true);
    labels_put(l, STR("__name__"), labels_keep(l, &text, buf_put_str(&text, s->name)), true);
    return labels_finish(l);
}

int labels_target_info(struct labels *l, struct str resource)
{
    labels_done(l);
    labels_put_attributes(l, resource, RESOURCE_ATTRIBUTES, is_identity);
    if (l->n == 0 || !labels_put_identity(l, resource))
        l->n = 0;
    else
        labels_put(l, STR("__name__"), STR("target_info"), true);
    return labels_finish(l);
}
