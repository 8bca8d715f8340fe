#include "exporter/otlp/translate.h"

#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/otlp/decode.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { ARENA_BYTES = 16 << 10 };

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

    if (rest->n == 0)
        return false;
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

static void put_label_name(struct text *t, struct str name)
{
    size_t mark = t->buf->n;

    while (name.n && !t->error) {
        size_t n = utf8_char(name) ?: 1;

        put_char(t, is_letter_or_digit(name.p[0]) ? name.p[0] : '_');
        name = (struct str){name.p + n, name.n - n};
    }
    if (t->error || t->buf->n == mark)
        return;
    if (is_digit(t->buf->p[mark]))
        put_front(t, mark, STR("key_"));
    else if (t->buf->p[mark] == '_' && (t->buf->n == mark + 1 || t->buf->p[mark + 1] != '_'))
        put_front(t, mark, STR("key"));
}

int translate_label_name(struct str name, struct buf *into)
{
    struct text t = {.buf = into};

    put_label_name(&t, name);
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

struct attribute {
    struct str key, value;
};

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
        a = (struct attribute){wire_last(f.bytes, KEY_VALUE_KEY).bytes,
                               wire_last(f.bytes, KEY_VALUE_VALUE).bytes};
        for (at = n++; at > 0 && str_cmp(a.key, list[at - 1].key) < 0; at--)
            list[at] = list[at - 1];
        list[at] = a;
    }
    *ret_n = n;
    return 0;
}

static void put_value(struct text *t, struct str any_value, bool in_json);

static void put_json_array(struct text *t, struct str values)
{
    struct wire w = wire_of(values);
    struct wire_field f = {0};
    const char *between = "";

    put_char(t, '[');
    while (!t->error && wire_next(&w, &f))
        if (f.number == VALUES_VALUES) {
            put(t, str_of(between));
            put_value(t, f.bytes, true);
            between = ",";
        }
    put_char(t, ']');
}

/* Keys are sorted; the later one of two with the same key wins. */
static void put_json_map(struct text *t, struct str values)
{
    struct attribute list[SERIES_MAX_LABELS];
    size_t n = 0;
    const char *between = "";

    t->error = t->error ?: read_attributes(list, ARRAY_SIZE(list), &n, values, VALUES_VALUES);
    put_char(t, '{');
    for (size_t i = 0; i < n && !t->error; i++) {
        if (i + 1 < n && str_eq(list[i].key, list[i + 1].key))
            continue;
        put(t, str_of(between));
        put_json_string(t, list[i].key);
        put_char(t, ':');
        put_value(t, list[i].value, true);
        between = ",";
    }
    put_char(t, '}');
}

/* The text of an attribute's value, the bytes of an AnyValue. Arrays and maps become JSON. */
static void put_value(struct text *t, struct str any_value, bool in_json)
{
    struct wire w = wire_of(any_value);
    struct wire_field f = {0}, next;

    while (wire_next(&w, &next))
        if (next.number >= ANY_STRING && next.number <= ANY_BYTES)
            f = next;
    if (f.number == 0 && in_json)
        put(t, STR("null"));
    else if (f.number == ANY_STRING)
        in_json ? put_json_string(t, f.bytes) : put(t, f.bytes);
    else if (f.number == ANY_BOOL)
        put(t, f.value ? STR("true") : STR("false"));
    else if (f.number == ANY_INT)
        t->error = t->error ?: buf_printf(t->buf, "%lld", (long long)f.value);
    else if (f.number == ANY_DOUBLE)
        put_double(t, wire_double(f.value));
    else if (f.number == ANY_ARRAY)
        put_json_array(t, f.bytes);
    else if (f.number == ANY_MAP)
        put_json_map(t, f.bytes);
    else if (f.number == ANY_BYTES) {
        put(t, in_json ? STR("\"") : STR(""));
        put_base64(t, f.bytes);
        put(t, in_json ? STR("\"") : STR(""));
    }
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
static struct str labels_keep(struct labels *l)
{
    struct str kept = {arena_alloc(&l->arena, l->buf.n + 1), l->buf.n};

    if (kept.n)
        memcpy((char *)kept.p, l->buf.p, kept.n);
    l->buf.n = 0;
    return kept;
}

static struct series_label *labels_find(struct labels *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

/* Takes the text as the value of a label; `replace` decides about one that is there already. */
static void labels_put(struct labels *l, struct str name, bool replace)
{
    struct series_label *old = labels_find(l, name);
    struct str value = labels_keep(l);

    if (old)
        old->value = replace ? value : old->value;
    else if (l->n == ARRAY_SIZE(l->list))
        l->text.error = l->text.error ?: -EFBIG;
    else
        l->list[l->n++] = (struct series_label){name, value};
}

/* Values of attributes whose names become the same are joined by a semicolon. */
static void labels_put_attributes(struct labels *l, struct str message, unsigned number, bool skip_identity)
{
    struct attribute list[SERIES_MAX_LABELS];
    struct text *t = &l->text;
    size_t n = 0;

    t->error = t->error ?: read_attributes(list, ARRAY_SIZE(list), &n, message, number);
    for (size_t i = 0; i < n && !t->error; i++) {
        const struct series_label *old;
        struct str key = list[i].key, name;

        if (skip_identity && (str_eq(key, STR("service.name")) || str_eq(key, STR("service.namespace")) ||
                              str_eq(key, STR("service.instance.id"))))
            continue;
        put_label_name(t, key);
        name = labels_keep(l);
        old = labels_find(l, name);
        if (old) {
            put(t, old->value);
            put_char(t, ';');
        }
        put_value(t, list[i].value, false);
        labels_put(l, name, true);
    }
}

/* Appends the text of the first attribute with this name; false without one. */
static bool put_attribute(struct text *t, struct str resource, struct str name)
{
    struct wire w = wire_of(resource);
    struct wire_field f = {0};

    while (wire_next(&w, &f))
        if (f.number == RESOURCE_ATTRIBUTES && str_eq(wire_last(f.bytes, KEY_VALUE_KEY).bytes, name)) {
            put_value(t, wire_last(f.bytes, KEY_VALUE_VALUE).bytes, false);
            return true;
        }
    return false;
}

/* Returns whether there is any. */
static bool labels_put_identity(struct labels *l, struct str resource)
{
    bool named = put_attribute(&l->text, resource, STR("service.name")), has_instance;
    struct str service = labels_keep(l);

    if (named) {
        if (put_attribute(&l->text, resource, STR("service.namespace")))
            put_char(&l->text, '/');
        put(&l->text, service);
        labels_put(l, STR("job"), true);
    }
    has_instance = put_attribute(&l->text, resource, STR("service.instance.id"));
    if (has_instance)
        labels_put(l, STR("instance"), true);
    return named || has_instance;
}

static void labels_put_promoted(struct labels *l, struct str resource, const struct otlp_promotion *p)
{
    for (size_t i = 0; i < p->n && !l->text.error; i++) {
        struct str name = p->list[i].label;

        if (!name.n) {
            put_label_name(&l->text, p->list[i].attribute);
            name = labels_keep(l);
        }
        if (put_attribute(&l->text, resource, p->list[i].attribute))
            labels_put(l, name, false);
    }
}

static void labels_begin(struct labels *l)
{
    labels_done(l);
    l->arena.chunk_bytes = ARENA_BYTES;
    l->buf.max = SERIES_MAX_LABEL_BYTES;
    l->text = (struct text){.buf = &l->buf};
}

/* Sorts by name and removes labels without a value. */
static int labels_finish(struct labels *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n && !l->text.error; i++) {
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
    return l->text.error;
}

void labels_done(struct labels *l)
{
    arena_done(&l->arena);
    buf_done(&l->buf);
    l->n = 0;
}

int labels_build(struct labels *l, const struct labels_source *s)
{
    labels_begin(l);
    labels_put_attributes(l, s->point, s->attributes, false);
    labels_put_promoted(l, s->resource, s->promotion);
    (void)labels_put_identity(l, s->resource);
    put(&l->text, s->extra.value);
    if (s->extra.name.n)
        labels_put(l, s->extra.name, true);
    put(&l->text, s->name);
    labels_put(l, STR("__name__"), true);
    return labels_finish(l);
}

int labels_target_info(struct labels *l, struct str resource)
{
    labels_begin(l);
    labels_put_attributes(l, resource, RESOURCE_ATTRIBUTES, true);
    if (l->n == 0 || !labels_put_identity(l, resource))
        l->n = 0;
    put(&l->text, STR("target_info"));
    if (l->n)
        labels_put(l, STR("__name__"), true);
    return labels_finish(l);
}
