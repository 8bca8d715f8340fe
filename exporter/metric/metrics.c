#include "exporter/metric/metrics.h"

#include "exporter/base/num.h"

#include <errno.h>

/* The text of each bound stands in the `le` label the same way in both formats, so that a series does not change its name
 * with the format. */
static const struct {
    double bound;
    const char *text;
} buckets[] = {
    {0.001, "0.001"}, {0.0025, "0.0025"}, {0.005, "0.005"}, {0.01, "0.01"}, {0.025, "0.025"}, {0.05, "0.05"},
    {0.1, "0.1"},     {0.25, "0.25"},     {0.5, "0.5"},     {1, "1.0"},     {2.5, "2.5"},     {5, "5.0"},
    {10, "10.0"},     {30, "30.0"},       {60, "60.0"},     {300, "300.0"},
};
enum { BUCKETS = ARRAY_SIZE(buckets) };

const struct metric_info metric_infos[METRICS] = {
#define METRIC(id, type, owner, name, labels, help) \
    [METRIC_##id] = {METRIC_TYPE_##type, METRIC_OWNER_##owner, name, labels, help},
#include "exporter/metric/metrics.def"
#undef METRIC
};

/* One series of a family; its labels as they are written, without braces. */
struct child {
    char *labels;
    double value; /* a histogram's sum */
    uint64_t count;
    uint64_t *in_bucket; /* histograms only: not cumulative */
};

struct family {
    struct child *list; /* sorted by labels */
    size_t n, cap;
};

struct metrics {
    enum metric_owner owner;
    struct family families[METRICS];
};

int metrics_new(struct metrics **ret, enum metric_owner owner)
{
    struct metrics *m = calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    m->owner = owner;
    *ret = m;
    return 0;
}

static void child_done(struct child *c)
{
    free(c->labels);
    free(c->in_bucket);
}

struct metrics *metrics_free(struct metrics *m)
{
    if (!m)
        return NULL;
    for (size_t i = 0; i < METRICS; i++) {
        for (size_t k = 0; k < m->families[i].n; k++)
            child_done(&m->families[i].list[k]);
        free(m->families[i].list);
    }
    free(m);
    return NULL;
}

static int put_label(struct buf *b, struct str name, struct str value)
{
    int r = buf_printf(b, "%s%.*s=\"", b->n ? "," : "", STR_ARG(name));

    for (size_t i = 0; r == 0 && i < value.n; i++) {
        char c = value.p[i];
        if (c == '\\' || c == '"' || c == '\n')
            r = buf_putc(b, '\\');
        if (r == 0)
            r = buf_putc(b, c == '\n' ? 'n' : c);
    }
    return r == 0 ? buf_putc(b, '"') : r;
}

/* `a="x",b="y"` and a NUL. */
static int render_labels(const char *names, const char *const *values, struct buf *b)
{
    int r = 0;

    while (r == 0 && *names) {
        size_t n = strcspn(names, ",");
        r = put_label(b, (struct str){names, n}, str_of(*values++));
        names += n + (names[n] == ',');
    }
    return r == 0 ? buf_putc(b, '\0') : r;
}

/* The place of the labels, or where they would go. */
static bool find(const struct family *f, const char *labels, size_t *ret)
{
    size_t lo = 0, hi = f->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int d = strcmp(f->list[mid].labels, labels);
        if (d == 0) {
            *ret = mid;
            return true;
        }
        if (d < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret = lo;
    return false;
}

static struct child *insert(struct family *f, size_t at, struct str labels, bool histogram)
{
    struct child c = {0};

    if (f->n == f->cap) {
        size_t cap = size_max(4, f->cap * 2);
        struct child *list = realloc(f->list, cap * sizeof(*list));
        if (!list)
            return NULL;
        f->list = list;
        f->cap = cap;
    }
    c.labels = str_dup(labels);
    if (histogram)
        c.in_bucket = calloc(BUCKETS, sizeof(*c.in_bucket));
    if (!c.labels || (histogram && !c.in_bucket)) {
        child_done(&c);
        return NULL;
    }
    memmove(&f->list[at + 1], &f->list[at], (f->n - at) * sizeof(*f->list));
    f->list[at] = c;
    f->n++;
    return &f->list[at];
}

static struct child *get(struct metrics *m, enum metric id, const char *const *labels, bool create)
{
    BUF_AUTO(text, 64u << 10);
    struct family *f = &m->families[id];
    size_t at;

    if (render_labels(metric_infos[id].labels, labels, &text) < 0)
        return NULL;
    if (find(f, text.p, &at))
        return &f->list[at];
    if (!create)
        return NULL;
    return insert(f, at, (struct str){text.p, text.n - 1}, metric_infos[id].type == METRIC_TYPE_HISTOGRAM);
}

void metric_add(struct metrics *m, enum metric id, const char *const *labels, double v)
{
    struct child *c = get(m, id, labels, true);

    if (c)
        c->value += v;
}

void metric_set(struct metrics *m, enum metric id, const char *const *labels, double v)
{
    struct child *c = get(m, id, labels, true);

    if (c)
        c->value = v;
}

void metric_observe(struct metrics *m, enum metric id, const char *const *labels, double seconds)
{
    struct child *c = get(m, id, labels, true);
    size_t i = 0;

    if (!c)
        return;
    while (i < BUCKETS && seconds > buckets[i].bound)
        i++;
    if (i < BUCKETS)
        c->in_bucket[i]++;
    c->count++;
    c->value += seconds;
}

static void remove_at(struct family *f, size_t at)
{
    child_done(&f->list[at]);
    f->n--;
    memmove(&f->list[at], &f->list[at + 1], (f->n - at) * sizeof(*f->list));
}

void metric_remove(struct metrics *m, enum metric id, const char *const *labels)
{
    struct child *c = get(m, id, labels, false);

    if (!c)
        return;
    remove_at(&m->families[id], (size_t)(c - m->families[id].list));
}

/* Whether `name="value"` is one of the labels: values are escaped, so a quote always ends one. */
static bool has_label(const char *labels, const char *pair)
{
    for (const char *p = labels; (p = strstr(p, pair)); p++)
        if (p == labels || p[-1] == ',')
            return true;
    return false;
}

void metrics_forget(struct metrics *m, const char *label, const char *value)
{
    BUF_AUTO(pair, 64u << 10);

    if (put_label(&pair, str_of(label), str_of(value)) < 0 || buf_putc(&pair, '\0') < 0)
        return;
    for (size_t i = 0; i < METRICS; i++)
        for (size_t k = m->families[i].n; k-- > 0;)
            if (has_label(m->families[i].list[k].labels, pair.p))
                remove_at(&m->families[i], k);
}

double metric_get(const struct metrics *m, enum metric id, const char *const *labels)
{
    BUF_AUTO(text, 64u << 10);
    size_t at;

    if (render_labels(metric_infos[id].labels, labels, &text) < 0 || !find(&m->families[id], text.p, &at))
        return 0;
    return m->families[id].list[at].value;
}

static int put_sample(struct buf *b, const char *name, const char *suffix, const char *labels,
                      const char *more, double v)
{
    char number[NUM_MAX];
    bool braces = *labels || *more;
    int r = buf_puts(b, name);

    if (r == 0)
        r = buf_puts(b, suffix);
    if (r == 0 && braces)
        r = buf_printf(b, "{%s%s%s}", labels, *labels && *more ? "," : "", more);
    if (r == 0)
        r = buf_putc(b, ' ');
    if (r == 0)
        r = buf_put(b, number, num_put_double(number, v));
    return r == 0 ? buf_putc(b, '\n') : r;
}

static int put_histogram(struct buf *b, const char *name, const struct child *c)
{
    uint64_t seen = 0;
    char le[32] = "le=\"+Inf\"";
    int r = 0;

    for (size_t i = 0; r == 0 && i < BUCKETS; i++) {
        BUF_AUTO(text, 32);
        seen += c->in_bucket[i];
        r = buf_printf(&text, "le=\"%s\"", buckets[i].text);
        if (r == 0)
            r = buf_putc(&text, '\0');
        if (r == 0)
            r = put_sample(b, name, "_bucket", c->labels, text.p, (double)seen);
    }
    if (r == 0)
        r = put_sample(b, name, "_bucket", c->labels, le, (double)c->count);
    if (r == 0)
        r = put_sample(b, name, "_sum", c->labels, "", c->value);
    return r == 0 ? put_sample(b, name, "_count", c->labels, "", (double)c->count) : r;
}

static int put_head(struct buf *b, const struct metric_info *info, bool openmetrics)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    size_t n = strlen(info->name);

    /* OpenMetrics names the family without the suffix that its samples carry. */
    if (openmetrics && info->type == METRIC_TYPE_COUNTER)
        n -= sizeof("_total") - 1;
    return buf_printf(b, "# TYPE %.*s %s\n# HELP %.*s %s\n", (int)n, info->name, types[info->type], (int)n,
                      info->name, info->help);
}

static int render_family(const struct metrics *m, enum metric id, bool openmetrics, struct buf *b)
{
    const struct metric_info *info = &metric_infos[id];
    const struct family *f = &m->families[id];
    int r = put_head(b, info, openmetrics);

    for (size_t i = 0; r == 0 && i < f->n; i++)
        r = info->type == METRIC_TYPE_HISTOGRAM
                ? put_histogram(b, info->name, &f->list[i])
                : put_sample(b, info->name, "", f->list[i].labels, "", f->list[i].value);
    return r;
}

int metrics_render(const struct metrics *m, bool openmetrics, struct buf *into)
{
    size_t mark = into->n;
    int r = 0;

    for (size_t i = 0; r == 0 && i < METRICS; i++)
        if (metric_infos[i].owner == m->owner && m->families[i].n)
            r = render_family(m, (enum metric)i, openmetrics, into);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}
