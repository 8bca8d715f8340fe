#include "exporter/otlp/labels.h"

#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"
#include "exporter/otlp/schema.h"
#include "exporter/otlp/translate.h"
#include "exporter/otlp/wire.h"

#include <errno.h>

/* ---- Promotion ---- */

void otlp_promote_k8s(struct otlp_promotion *p)
{
    static const struct otlp_promoted k8s[] = {
        {STR("k8s.node.name"), STR("node")},
        {STR("k8s.namespace.name"), STR("namespace")},
        {STR("k8s.pod.name"), STR("pod")},
        {STR("k8s.container.name"), STR("container")},
    };

    for (size_t i = 0; i < ARRAY_SIZE(k8s) && p->n < OTLP_MAX_PROMOTED; i++)
        p->list[p->n++] = k8s[i];
}

/* Keeps the list sorted from `from` on: of two attributes with the same translation the first one counts.
 * */
static void insert_promoted(struct otlp_promotion *p, size_t from, struct str attribute)
{
    size_t at = p->n++;

    for (; at > from && str_cmp(attribute, p->list[at - 1].attribute) < 0; at--)
        p->list[at] = p->list[at - 1];
    p->list[at] = (struct otlp_promoted){attribute, STR("")};
}

bool otlp_promote(struct otlp_promotion *p, struct str names)
{
    size_t from = p->n;

    while (names.n) {
        const char *comma = memchr(names.p, ',', names.n);
        size_t n = comma ? (size_t)(comma - names.p) : names.n;
        struct str name = str_trim((struct str){names.p, n});
        if (name.n && p->n == OTLP_MAX_PROMOTED)
            return false;
        if (name.n)
            insert_promoted(p, from, name);
        names = (struct str){names.p + n + !!comma, names.n - n - !!comma};
    }
    return true;
}

/* ---- Text in an arena ---- */

static int keep_copy(struct str s, struct arena *arena, struct str *ret)
{
    char *copy = arena_alloc(arena, s.n + !s.n);

    if (!copy)
        return -ENOMEM;
    if (s.n)
        memcpy(copy, s.p, s.n);
    *ret = (struct str){copy, s.n};
    return 0;
}

/* Moves what is in b into the arena, and empties b. */
static int keep(struct buf *b, struct arena *arena, struct str *ret)
{
    int r = keep_copy(buf_str(b), arena, ret);

    buf_truncate(b, 0);
    return r;
}

static int keep_value(struct str any_value, struct arena *arena, struct str *ret)
{
    BUF_AUTO(text, TSDB_MAX_LABEL_BYTES);
    int r = translate_value(any_value, &text);

    return r ?: keep(&text, arena, ret);
}

static int keep_name(struct str name, struct arena *arena, struct str *ret)
{
    BUF_AUTO(text, TSDB_MAX_LABEL_BYTES);
    int r = translate_label_name(name, &text);

    return r ?: keep(&text, arena, ret);
}

/* a + between + b. */
static int keep_joined(struct str a, char between, struct str b, struct arena *arena, struct str *ret)
{
    BUF_AUTO(text, TSDB_MAX_LABEL_BYTES);
    int r = buf_put_str(&text, a);

    r = r ?: buf_putc(&text, between);
    r = r ?: buf_put_str(&text, b);
    return r ?: keep(&text, arena, ret);
}

/* ---- A label set ---- */

static struct tsdb_label *find(struct labels *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

/* Adds a label; `replace` decides about one that is there already. */
static int put(struct labels *l, struct tsdb_label label, bool replace)
{
    struct tsdb_label *old = find(l, label.name);

    if (old) {
        old->value = replace ? label.value : old->value;
        return 0;
    }
    if (l->n == ARRAY_SIZE(l->list))
        return -EFBIG;
    l->list[l->n++] = label;
    return 0;
}

struct attribute {
    struct str key, value;
};

/* Whether these bytes of a resource make up job or instance. */
static bool is_identity(struct str key)
{
    return str_eq(key, STR("service.name")) || str_eq(key, STR("service.namespace")) ||
           str_eq(key, STR("service.instance.id"));
}

/* The attributes of a message, sorted by key; equal keys stay in their order. */
static int read_attributes(struct attribute *list, size_t *ret_n, struct str message, unsigned number,
                           bool (*skipped)(struct str key))
{
    struct wire w = wire_of(message);
    struct wire_field f;
    size_t n = 0;

    while (wire_next(&w, &f)) {
        struct attribute a;
        size_t at;
        if (f.number != number)
            continue;
        translate_key_value(f.bytes, &a.key, &a.value);
        if (skipped && skipped(a.key))
            continue;
        if (n == TSDB_MAX_LABELS)
            return -EFBIG;
        for (at = n++; at > 0 && str_cmp(a.key, list[at - 1].key) < 0; at--)
            list[at] = list[at - 1];
        list[at] = a;
    }
    *ret_n = n;
    return 0;
}

/* Values of attributes whose names become the same are joined by a semicolon. */
static int put_attributes(struct labels *l, struct str message, unsigned number,
                          bool (*skipped)(struct str key), struct arena *arena)
{
    struct attribute list[TSDB_MAX_LABELS];
    size_t n = 0;
    int r = read_attributes(list, &n, message, number, skipped);

    for (size_t i = 0; i < n && r == 0; i++) {
        struct tsdb_label label = {0}, *old;
        r = keep_name(list[i].key, arena, &label.name);
        r = r ?: keep_value(list[i].value, arena, &label.value);
        if (r == 0 && (old = find(l, label.name)))
            r = keep_joined(old->value, ';', label.value, arena, &old->value);
        else if (r == 0)
            r = put(l, label, true);
    }
    return r;
}

static int put_if(struct labels *l, struct tsdb_label label)
{
    return label.name.n ? put(l, label, true) : 0;
}

/* Sorts by name and removes labels without a value. */
static int finish(struct labels *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct tsdb_label label = l->list[i];
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
    return 0;
}

int labels_build(struct labels *ret, const struct labels_source *s, struct arena *arena)
{
    struct tsdb_label name = {.name = STR("__name__")}, extra = s->extra;
    const struct labels_resource *res = s->resource;
    int r;

    ret->n = 0;
    r = put_attributes(ret, s->message, s->attributes, NULL, arena);
    for (size_t i = 0; i < res->n_promoted && r == 0; i++)
        r = put(ret, res->promoted[i], false);
    r = r ?: put_if(ret, res->job);
    r = r ?: put_if(ret, res->instance);
    r = r ?: keep_copy(s->name, arena, &name.value);
    r = r ?: keep_copy(extra.value, arena, &extra.value);
    r = r ?: put_if(ret, extra);
    r = r ?: put(ret, name, true);
    return r ?: finish(ret);
}

int labels_target_info(struct labels *ret, const struct labels_resource *res, struct arena *arena)
{
    int r;

    ret->n = 0;
    if (!res->job.name.n && !res->instance.name.n)
        return 0;
    r = put_attributes(ret, res->message, RESOURCE_ATTRIBUTES, is_identity, arena);
    if (r < 0 || ret->n == 0)
        return r;
    r = put_if(ret, res->job);
    r = r ?: put_if(ret, res->instance);
    r = r ?: put(ret, (struct tsdb_label){STR("__name__"), STR("target_info")}, true);
    return r ?: finish(ret);
}

/* ---- A resource ---- */

/* The value of the first attribute with this name; false without one. */
static bool find_attribute(struct str message, struct str name, struct str *ret)
{
    struct wire w = wire_of(message);
    struct wire_field f;
    struct str key;

    while (wire_next(&w, &f))
        if (f.number == RESOURCE_ATTRIBUTES) {
            translate_key_value(f.bytes, &key, ret);
            if (str_eq(key, name))
                return true;
        }
    return false;
}

static int read_job(struct labels_resource *res, struct arena *arena)
{
    struct str name, space, value, prefix;
    int r;

    if (!find_attribute(res->message, STR("service.name"), &name))
        return 0;
    res->job.name = STR("job");
    r = keep_value(name, arena, &value);
    if (r == 0 && find_attribute(res->message, STR("service.namespace"), &space)) {
        r = keep_value(space, arena, &prefix);
        return r ?: keep_joined(prefix, '/', value, arena, &res->job.value);
    }
    res->job.value = value;
    return r;
}

static int read_promoted(struct labels_resource *res, const struct otlp_promoted *p, struct arena *arena)
{
    struct tsdb_label label = {.name = p->label};
    struct str value;
    int r;

    if (!find_attribute(res->message, p->attribute, &value))
        return 0;
    r = label.name.n ? 0 : keep_name(p->attribute, arena, &label.name);
    r = r ?: keep_value(value, arena, &label.value);
    if (r == 0)
        res->promoted[res->n_promoted++] = label;
    return r;
}

int labels_resource_read(struct labels_resource *ret, struct str message, const struct otlp_promotion *p,
                         struct arena *arena)
{
    struct str value;
    int r;

    *ret = (struct labels_resource){.message = message};
    r = read_job(ret, arena);
    if (r == 0 && find_attribute(message, STR("service.instance.id"), &value)) {
        ret->instance.name = STR("instance");
        r = keep_value(value, arena, &ret->instance.value);
    }
    for (size_t i = 0; i < p->n && r == 0; i++)
        r = read_promoted(ret, &p->list[i], arena);
    return r;
}
