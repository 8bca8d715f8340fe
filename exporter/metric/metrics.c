/* The registry: for each metric of metrics.def, its series by label values. */
#include "exporter/metric/metrics.h"

#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/file.h"
#include "exporter/base/invariant.h"
#include "exporter/num/num.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

const char ds_version[] = DS_VERSION;
const char ds_revision[] = DS_REVISION;
const char ds_user_agent[] = "dynamic-scoring/" DS_VERSION;

/* Both text formats get the same `le`, so that a series keeps its name in either. */
static const struct {
    double bound;
    struct str text;
} buckets[] = {
    {0.001, STR("0.001")}, {0.0025, STR("0.0025")}, {0.005, STR("0.005")}, {0.01, STR("0.01")},
    {0.025, STR("0.025")}, {0.05, STR("0.05")},     {0.1, STR("0.1")},     {0.25, STR("0.25")},
    {0.5, STR("0.5")},     {1, STR("1.0")},         {2.5, STR("2.5")},     {5, STR("5.0")},
    {10, STR("10.0")},     {30, STR("30.0")},       {60, STR("60.0")},     {300, STR("300.0")},
};
enum { BUCKETS = ARRAY_SIZE(buckets) };

static const struct metric_info metric_infos[METRICS] = {
#define METRIC(id, type, owner, name, labels, help) \
    [METRIC_##id] = {METRIC_TYPE_##type, METRIC_OWNER_##owner, name, labels, help},
#include "exporter/metric/metrics.def"
#undef METRIC
};

/* One series of a family. */
struct child {
    char *labels[METRIC_MAX_LABELS]; /* their values */
    double value;                    /* a histogram's sum */
    uint64_t count;
    uint64_t *in_bucket; /* histograms only; not cumulative */
};

struct metric_family {
    struct child *list; /* sorted by label values */
    size_t n, cap;
};

struct metrics {
    enum metric_owner owner;
    struct metric_family families[METRICS];
};

struct metrics *metrics_new(enum metric_owner owner)
{
    struct metrics *m = xcalloc(1, sizeof(*m));

    m->owner = owner;
    return m;
}

static void child_done(struct child *c)
{
    for (size_t i = 0; i < METRIC_MAX_LABELS; i++)
        free(c->labels[i]);
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

static size_t count_labels(enum metric id)
{
    struct str names = str_of(metric_infos[id].labels);
    size_t n = 0;

    for (; names.n; n++)
        (void)str_take(&names, ',');
    return n;
}

static int compare_labels(const struct child *c, const char *const *labels, size_t n)
{
    int d = 0;

    for (size_t i = 0; i < n && d == 0; i++)
        d = strcmp(c->labels[i], labels[i]);
    return d;
}

/* The index of the child with these labels, or where to insert it. */
static bool family_find(const struct metric_family *f, const char *const *labels, size_t n_labels,
                        size_t *ret)
{
    size_t lo = 0, hi = f->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int d = compare_labels(&f->list[mid], labels, n_labels);

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

/* The child with these labels, which is made if there is none. */
static struct child *get_child(struct metrics *m, enum metric id, const char *const *labels)
{
    struct metric_family *f = &m->families[id];
    size_t n_labels = count_labels(id), at;
    struct child c = {0};

    if (family_find(f, labels, n_labels, &at))
        return &f->list[at];
    if (f->n == f->cap) {
        f->cap = size_max(4, f->cap * 2);
        f->list = xreallocarray(f->list, f->cap, sizeof(*f->list));
    }
    for (size_t i = 0; i < n_labels; i++)
        c.labels[i] = xstrdup(labels[i]);
    if (metric_infos[id].type == METRIC_TYPE_HISTOGRAM)
        c.in_bucket = xcalloc(BUCKETS, sizeof(*c.in_bucket));
    memmove(&f->list[at + 1], &f->list[at], (f->n - at) * sizeof(*f->list));
    f->list[at] = c;
    f->n++;
    return &f->list[at];
}

void metric_add(struct metrics *m, enum metric id, const char *const *labels, double v)
{
    get_child(m, id, labels)->value += v;
}

void metric_set(struct metrics *m, enum metric id, const char *const *labels, double v)
{
    get_child(m, id, labels)->value = v;
}

void metric_observe(struct metrics *m, enum metric id, const char *const *labels, double seconds)
{
    struct child *c = get_child(m, id, labels);
    size_t i = 0;

    while (i < BUCKETS && seconds > buckets[i].bound)
        i++;
    if (i < BUCKETS)
        c->in_bucket[i]++;
    c->count++;
    c->value += seconds;
}

static void family_remove(struct metric_family *f, size_t at)
{
    child_done(&f->list[at]);
    f->n--;
    memmove(&f->list[at], &f->list[at + 1], (f->n - at) * sizeof(*f->list));
}

void metric_remove(struct metrics *m, enum metric id, const char *const *labels)
{
    size_t at;

    if (family_find(&m->families[id], labels, count_labels(id), &at))
        family_remove(&m->families[id], at);
}

static bool child_has(enum metric id, const struct child *c, const char *label, const char *value)
{
    struct str names = str_of(metric_infos[id].labels);

    for (size_t i = 0; names.n; i++)
        if (str_eq(str_take(&names, ','), str_of(label)))
            return strcmp(c->labels[i], value) == 0;
    return false;
}

void metrics_forget(struct metrics *m, const char *label, const char *value)
{
    for (enum metric id = 0; id < METRICS; id++)
        for (size_t k = m->families[id].n; k-- > 0;)
            if (child_has(id, &m->families[id].list[k], label, value))
                family_remove(&m->families[id], k);
}

struct metrics *metrics_copy(const struct metrics *m)
{
    struct metrics *copy = metrics_new(m->owner);

    for (enum metric id = 0; id < METRICS; id++)
        for (size_t i = 0; i < m->families[id].n; i++) {
            const struct child *from = &m->families[id].list[i];
            struct child *to = get_child(copy, id, (const char *const *)from->labels);

            to->value = from->value;
            to->count = from->count;
            if (from->in_bucket)
                memcpy(to->in_bucket, from->in_bucket, BUCKETS * sizeof(*to->in_bucket));
        }
    return copy;
}

static size_t sample_labels(enum metric id, const struct child *c, struct metric_label *ret)
{
    struct str names = str_of(metric_infos[id].labels);
    size_t n = 0;

    for (; names.n; n++)
        ret[n] = (struct metric_label){str_take(&names, ','), str_of(c->labels[n])};
    return n;
}

static int each_of_histogram(const struct child *c, struct metric_sample *s,
                             int (*fn)(void *arg, const struct metric_sample *s), void *arg)
{
    struct metric_label *le = &s->labels[s->n_labels];
    uint64_t seen = 0;
    int r = 0;

    s->suffix = "_bucket";
    s->n_labels++;
    for (size_t i = 0; r == 0 && i <= BUCKETS; i++) {
        seen = i < BUCKETS ? seen + c->in_bucket[i] : c->count;
        *le = (struct metric_label){STR("le"), i < BUCKETS ? buckets[i].text : STR("+Inf")};
        s->value = (double)seen;
        r = fn(arg, s);
    }
    s->n_labels--;
    s->suffix = "_sum";
    s->value = c->value;
    r = r ?: fn(arg, s);
    s->suffix = "_count";
    s->value = (double)c->count;
    return r ?: fn(arg, s);
}

int metrics_each(const struct metrics *m, int (*fn)(void *arg, const struct metric_sample *s), void *arg)
{
    int r = 0;

    for (enum metric id = 0; id < METRICS; id++)
        for (size_t i = 0; r == 0 && metric_infos[id].owner == m->owner && i < m->families[id].n; i++) {
            const struct child *c = &m->families[id].list[i];
            struct metric_sample s = {.info = &metric_infos[id], .suffix = "", .value = c->value};

            s.n_labels = sample_labels(id, c, s.labels);
            r = c->in_bucket ? each_of_histogram(c, &s, fn, arg) : fn(arg, &s);
        }
    return r;
}

/* The program's own metrics as text for /metrics. */

struct text {
    struct buf *into;
    const struct metric_info *family; /* the last one whose TYPE and HELP were written */
};

#define HEAD_BEGIN STR("# TYPE ")

/* Of both formats: in OpenMetrics, a family of counters is named without the suffix of its samples. */
static void put_head(struct buf *into, struct str family, const struct metric_info *info)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};

    buf_put_str(into, HEAD_BEGIN);
    buf_put_str(into, family);
    buf_putc(into, ' ');
    buf_puts(into, types[info->type]);
    buf_puts(into, "\n# HELP ");
    buf_put_str(into, family);
    buf_putc(into, ' ');
    buf_puts(into, info->help);
    buf_putc(into, '\n');
}

static int put_sample(void *arg, const struct metric_sample *s)
{
    struct text *t = arg;
    struct str name = str_of(s->info->name), suffix = str_of(s->suffix);
    size_t room = name.n + suffix.n + NUM_MAX + 4;
    char *to, *p;
    int r;

    if (t->family != s->info)
        put_head(t->into, name, s->info);
    t->family = s->info;
    for (size_t i = 0; i < s->n_labels; i++)
        room += s->labels[i].name.n + 2 * s->labels[i].value.n + 4;
    r = buf_reserve(t->into, room, &to);
    if (r < 0) {
        buf_fail(t->into, r);
        return r;
    }
    p = mempcpy(mempcpy(to, name.p, name.n), suffix.p, suffix.n);
    for (size_t i = 0; i < s->n_labels; i++) {
        *p++ = i ? ',' : '{';
        p = stpcpy(mempcpy(p, s->labels[i].name.p, s->labels[i].name.n), "=\"");
        p = escape_label_value(p, s->labels[i].value);
        *p++ = '"';
    }
    if (s->n_labels)
        *p++ = '}';
    *p++ = ' ';
    p += num_put_double(p, s->value);
    *p++ = '\n';
    t->into->n += (size_t)(p - to);
    return 0;
}

void metrics_render(const struct metrics *m, struct buf *into)
{
    struct text t = {.into = into};

    if (metrics_each(m, put_sample, &t) < 0)
        invariant(buf_failed(into) < 0);
}

enum { HEAD_BYTES = 4096 };

static struct str openmetrics_family(const struct metric_info *info)
{
    const struct str total = STR("_total");
    struct str name = str_of(info->name);

    if (info->type != METRIC_TYPE_COUNTER)
        return name;
    invariant(str_eq((struct str){name.p + name.n - total.n, total.n}, total));
    return (struct str){name.p, name.n - total.n};
}

static struct str take_bytes(struct str *text, size_t n)
{
    struct str taken = {text->p, n};

    invariant(n <= text->n);
    *text = (struct str){text->p + n, text->n - n};
    return taken;
}

/* Most families have no series: their heads need not be made to see that. */
static bool may_be_head(struct str text, const struct metric_info *info)
{
    struct str name = str_of(info->name);

    return text.n > HEAD_BEGIN.n + name.n && memcmp(text.p + HEAD_BEGIN.n, name.p, name.n) == 0;
}

/* Takes the head of this family if the text begins with it. */
static bool take_head(struct str *text, const struct metric_info *info)
{
    BUF_AUTO(head, HEAD_BYTES);

    if (!may_be_head(*text, info))
        return false;
    put_head(&head, str_of(info->name), info);
    invariant(buf_failed(&head) == 0);
    if (!str_starts(*text, buf_str(&head)))
        return false;
    (void)take_bytes(text, head.n);
    return true;
}

/* Takes all up to the next head: no line of a sample begins so, as label values have no line ends. */
static struct str take_samples(struct str *text)
{
    const char *end = text->p + text->n, *at = text->p;

    while ((at = memchr(at, '#', (size_t)(end - at))) && at > text->p && at[-1] != '\n')
        at++;
    return take_bytes(text, at ? (size_t)(at - text->p) : text->n);
}

void metrics_put_openmetrics(struct buf *into, struct str text)
{
    buf_expect(into, text.n);
    while (text.n) {
        size_t left = text.n;

        for (enum metric id = 0; id < METRICS && text.n; id++) {
            if (!take_head(&text, &metric_infos[id]))
                continue;
            put_head(into, openmetrics_family(&metric_infos[id]), &metric_infos[id]);
            buf_put_str(into, take_samples(&text));
        }
        invariant(text.n < left); /* it is of families of the table, each rendering in their order */
    }
}

/* The process_* metrics, as client libraries of Prometheus name them, from /proc/self. */

enum { FIELD_THREADS = 20, FIELD_START = 22, FIELD_VIRTUAL = 23, FIELD_RESIDENT = 24, FIELDS = 25 };

/* Numbers of /proc/self/stat by their number in proc(5). The second, the command in parentheses, may contain
 * any character. */
static bool read_stat(double fields[FIELDS])
{
    BUF_AUTO(text, 4096);
    const char *p;

    if (file_read("/proc/self/stat", &text) < 0)
        return false;
    buf_putc(&text, '\0');
    if (buf_failed(&text) < 0)
        return false;
    p = strrchr(text.p, ')');
    if (!p)
        return false;
    p += sizeof(") S") - 1;
    for (size_t i = 4; i < FIELDS; i++) {
        char *end;
        fields[i] = strtod(p, &end);
        p = end;
    }
    return true;
}

static double cpu_seconds(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    double n = -3; /* ".", ".." and the one of opendir() */

    if (!d)
        return 0;
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

/* Converts clock ticks since boot to Unix time, once, so that a later step of the wall clock does not move
 * it. If several threads get here first, one of them sets it. */
static double start_time(double ticks)
{
    static _Atomic int64_t start_ms; /* in steps of 10 ms, as clock ticks are */
    int64_t unset = 0, ms = (int64_t)(ticks * 1000 / (double)sysconf(_SC_CLK_TCK));

    ms += clock_system.wall(&clock_system).ms - clock_system.mono(&clock_system).ms;
    (void)atomic_compare_exchange_strong(&start_ms, &unset, ms / 10 * 10);
    return (double)atomic_load(&start_ms) / 1000;
}

int64_t metrics_process_start_ms(void)
{
    double f[FIELDS] = {0};

    return read_stat(f) ? (int64_t)(start_time(f[FIELD_START]) * 1000) : 0;
}

void metrics_set_process(struct metrics *m)
{
    struct rlimit files;
    double f[FIELDS] = {0};

    metric_set(m, METRIC_PROCESS_CPU, LV_NONE, cpu_seconds());
    metric_set(m, METRIC_PROCESS_OPEN_FDS, LV_NONE, open_fds());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        metric_set(m, METRIC_PROCESS_MAX_FDS, LV_NONE, (double)files.rlim_cur);
    if (!read_stat(f))
        return;
    metric_set(m, METRIC_PROCESS_VIRTUAL, LV_NONE, f[FIELD_VIRTUAL]);
    metric_set(m, METRIC_PROCESS_RESIDENT, LV_NONE, f[FIELD_RESIDENT] * (double)sysconf(_SC_PAGESIZE));
    metric_set(m, METRIC_PROCESS_START, LV_NONE, start_time(f[FIELD_START]));
    metric_set(m, METRIC_PROCESS_THREADS, LV_NONE, f[FIELD_THREADS]);
}
