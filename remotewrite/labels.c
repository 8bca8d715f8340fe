/* Makes the encoded labels of series: external labels, relabelling, order, checks. Owns what a label_maker
 * has until label_maker_end(). Endpoint's thread. A series that is invalid, or that a rule drops, is counted
 * and left out; it never fails the others. */
#include "remotewrite/labels.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/regex.h"
#include "exporter/base/strset.h"
#include "exporter/num/num.h"
#include "remotewrite/config.h"
#include "remotewrite/families.h"
#include "remotewrite/format.h"
#include "remotewrite/relabel.h"

#include <errno.h>
#include <stdio.h>

enum { LABEL_ROOM = 1 << 20, PREFETCHED = 8 /* series ahead */ };
/* Fields of prometheus.TimeSeries and prometheus.Label. */
enum { TIMESERIES_LABELS = 1, LABEL_NAME = 1, LABEL_VALUE = 2 };

struct label_maker {
    const struct rw_endpoint_config *config;
    struct label_list labels; /* of one series; its room has LABEL_ROOM bytes */
    struct str bad_name;      /* the invalid name, if -EINVAL is about one */
    struct label_bytes *out;  /* all series so far */
    size_t cap;               /* series for which there is room */
};

/* ---- Encoding ---- */

/* Sorts by name and removes empty values. -EINVAL for a repeated or empty name, or without a metric name. */
static int labels_normalize(struct label_maker *m)
{
    size_t n = 0;
    bool named = false;

    for (size_t i = 0; i < m->labels.n; i++) {
        struct label label = m->labels.list[i];
        size_t k = n;
        int order = -1;

        if (label.value.n == 0)
            continue;
        for (; k && (order = str_cmp(m->labels.list[k - 1].name, label.name)) > 0; k--)
            m->labels.list[k] = m->labels.list[k - 1];
        if (order == 0 || label.name.n == 0)
            return -EINVAL;
        named = named || str_eq(label.name, STR("__name__"));
        m->labels.list[k] = label;
        n++;
    }
    m->labels.n = n;
    return named ? 0 : -EINVAL;
}

/* The names that 1.0 requires. 2.0 only recommends them, but a record may be sent in either. -EINVAL. */
static int labels_check_names(struct label_maker *m)
{
    for (size_t i = 0; i < m->labels.n; i++) {
        struct label label = m->labels.list[i];

        if (!label_is_name(label.name)) {
            m->bad_name = label.name;
            return -EINVAL;
        }
        if (str_eq(label.name, STR("__name__")) && !label_is_metric_name(label.value)) {
            m->bad_name = label.value;
            return -EINVAL;
        }
    }
    return 0;
}

/* Encodes the labels that are not empty. */
static int labels_encode(struct label_maker *m)
{
    struct buf *bytes = &m->out->bytes;
    size_t room = 0;
    char *p;

    for (size_t i = 0; i < m->labels.n; i++)
        room += 3 * (1 + VARINT_MAX) + m->labels.list[i].name.n + m->labels.list[i].value.n;
    if (buf_reserve(bytes, room, &p) < 0)
        return -EFBIG;
    for (size_t i = 0; i < m->labels.n; i++) {
        struct str name = m->labels.list[i].name, value = m->labels.list[i].value;

        if (value.n == 0)
            continue;
        p = put_tag(p, TIMESERIES_LABELS, 2 + varint_size(name.n) + name.n + varint_size(value.n) + value.n);
        p = mempcpy(put_tag(p, LABEL_NAME, name.n), name.p, name.n);
        p = mempcpy(put_tag(p, LABEL_VALUE, value.n), value.p, value.n);
    }
    bytes->n = (size_t)(p - bytes->p);
    return 0;
}

struct label_bytes *label_bytes_free(struct label_bytes *l)
{
    if (!l)
        return NULL;
    buf_done(&l->bytes);
    free(l->at);
    free(l->series);
    free(l);
    return NULL;
}

void label_bytes_distil(struct label_bytes *l, const struct label_bytes *not_in)
{
    CLEANUP(strset_done) struct strset seen = {0};
    size_t n = 0;

    for (size_t i = 0; not_in && i < not_in->n; i++)
        (void)strset_add(&seen, label_bytes_at(not_in, i));
    for (size_t i = 0; i < l->n; i++) {
        struct str labels = label_bytes_at(l, i), to = {l->bytes.p + l->at[n], labels.n};

        if (strset_find(&seen, labels) != SIZE_MAX)
            continue;
        memmove(l->bytes.p + l->at[n], labels.p, labels.n);
        (void)strset_add(&seen, to);
        if (l->series)
            l->series[n] = l->series[i];
        l->at[n + 1] = l->at[n] + labels.n;
        n++;
    }
    l->n = n;
    buf_truncate(&l->bytes, n ? l->at[n] : 0);
}

/* ---- Making label bytes ---- */

struct label_maker *label_maker_new(const struct rw_endpoint_config *c)
{
    struct label_maker *m = xmalloc(sizeof(*m));

    m->config = c;
    buf_init(&m->labels.room, LABEL_ROOM);
    m->out = xcalloc(1, sizeof(*m->out));
    buf_init(&m->out->bytes, LABEL_BYTES_MAX);
    m->cap = 0;
    m->labels.matcher = regex_matcher_new();
    buf_expect(&m->labels.room, LABEL_ROOM);
    return m;
}

struct label_maker *label_maker_free(struct label_maker *m)
{
    if (!m)
        return NULL;
    buf_done(&m->labels.room);
    (void)regex_matcher_free(m->labels.matcher);
    (void)label_bytes_free(m->out);
    free(m);
    return NULL;
}

/* Fills the list with the labels of a series, relabels, checks and sorts it: 0, or 1 if a rule drops the
 * series. -EINVAL for invalid labels, -ELOOP if an expression exceeds its limits, -EFBIG. */
static int label_maker_list(struct label_maker *m, const struct label *labels, size_t n)
{
    const struct rw_endpoint_config *c = m->config;
    int r = 0;

    m->labels.n = 0;
    buf_clear(&m->labels.room);
    m->bad_name = STR("");
    for (size_t i = 0; i < n && r == 0; i++)
        r = label_list_add(&m->labels, labels[i].name, labels[i].value);
    /* A label of the series overrides an external one of the same name. */
    for (size_t i = 0; i < c->n_external_labels && r == 0; i++)
        if (!label_list_find(&m->labels, c->external_labels[i].name))
            r = label_list_add(&m->labels, c->external_labels[i].name, c->external_labels[i].value);
    r = r ?: relabel_apply(&c->relabel, &m->labels);
    r = r ?: labels_normalize(m);
    return r == 0 && c->relabel.n ? labels_check_names(m) : r;
}

/* Adds the prepared list if r, the result of label_maker_list(), is 0; counts errors. */
static bool label_maker_put(struct label_maker *m, int r, uint32_t series)
{
    struct label_bytes *out = m->out;

    r = r ?: labels_encode(m);
    out->over_limit += r == -ELOOP;
    out->invalid += r < 0 && r != -ELOOP;
    if (r < 0 && !*out->bad_name)
        (void)snprintf(out->bad_name, sizeof(out->bad_name), "%.*s", STR_ARG(m->bad_name));
    if (r != 0)
        return false;
    if (out->n == m->cap) {
        m->cap = size_max(256, m->cap * 2);
        out->at = xreallocarray(out->at, m->cap + 1, sizeof(out->at[0]));
        out->at[0] = 0;
        out->series = xreallocarray(out->series, m->cap, sizeof(out->series[0]));
    }
    out->series[out->n++] = series;
    out->at[out->n] = out->bytes.n;
    return true;
}

bool label_maker_add(struct label_maker *m, const struct label *labels, size_t n, uint32_t series)
{
    return label_maker_put(m, label_maker_list(m, labels, n), series);
}

struct str label_maker_name(struct label_maker *m)
{
    return label_list_find(&m->labels, STR("__name__"))->value;
}

struct label_bytes *label_maker_end(struct label_maker *m)
{
    buf_shrink(&m->out->bytes);
    /* Rules may merge series. The first is kept: two samples with one timestamp contradict each other. */
    if (m->config->relabel.n) {
        size_t before = m->out->n;

        label_bytes_distil(m->out, NULL);
        m->out->merged += before - m->out->n;
    }
    return TAKE_PTR(m->out);
}

/* Empty without an external label of this name. */
static struct str config_external(const struct rw_endpoint_config *c, struct str name)
{
    for (size_t i = 0; i < c->n_external_labels; i++)
        if (str_eq(c->external_labels[i].name, name))
            return c->external_labels[i].value;
    return STR("");
}

struct label_source {
    const struct series_set *set;
    const struct rw_endpoint_config *config;
    struct label_maker *maker;
    struct label labels[1 + DS_LABELS]; /* of the series, as a score has them */
    struct label *of[DS_LABELS];        /* where the value of each label goes */
    struct str externals[DS_LABELS];    /* instead of an empty value */
    int prepared;                       /* without rules: what label_maker_list() said of every series */
};

/* Without rules, the list prepared for one series serves for all: only the values differ. */
struct label_source *label_source_new(const struct series_set *set, const struct rw_endpoint_config *c)
{
    struct label_source *s = xcalloc(1, sizeof(*s));

    s->set = set;
    s->config = c;
    s->maker = label_maker_new(c);
    s->labels[0] = (struct label){STR("__name__"), STR(SCORE_METRIC)};
    for (size_t k = 0; k < DS_LABELS; k++) {
        s->labels[1 + k] = (struct label){ds_label_names[k], STR("any")};
        s->externals[k] = config_external(c, ds_label_names[k]);
    }
    s->prepared = label_maker_list(s->maker, s->labels, ARRAY_SIZE(s->labels));
    for (size_t k = 0; k < DS_LABELS; k++)
        s->of[k] = c->relabel.n ? &s->labels[1 + k] : label_list_find(&s->maker->labels, ds_label_names[k]);
    return s;
}

struct label_source *label_source_free(struct label_source *s)
{
    if (!s)
        return NULL;
    (void)label_maker_free(s->maker);
    free(s);
    return NULL;
}

/* Fills the maker's list with the labels of a series; what label_maker_list() says of it. */
static int label_source_list(struct label_source *s, size_t series)
{
    struct str values[DS_LABELS];

    series_labels(s->set, series, values);
    for (size_t k = 0; k < DS_LABELS; k++)
        s->of[k]->value = values[k].n ? values[k] : s->externals[k];
    return s->config->relabel.n ? label_maker_list(s->maker, s->labels, ARRAY_SIZE(s->labels)) : s->prepared;
}

struct str label_source_at(struct label_source *s, size_t series)
{
    struct buf *bytes = &s->maker->out->bytes;
    int r = label_source_list(s, series);

    buf_clear(bytes);
    if (r == 0 && labels_encode(s->maker) == 0)
        return buf_str(bytes);
    return STR("");
}

bool label_source_is_same_for(struct label_source *s, size_t series, struct str other_score_name)
{
    struct buf *bytes = &s->maker->out->bytes;
    struct str own = label_source_at(s, series);
    CLEANUP(cleanup_free) char *kept = str_dup(own);

    own.p = kept;
    if (own.n == 0)
        return false;
    s->of[DS_SCORE_NAME]->value = other_score_name;
    buf_clear(bytes);
    return label_maker_list(s->maker, s->labels, ARRAY_SIZE(s->labels)) == 0 &&
           labels_encode(s->maker) == 0 && str_eq(buf_str(bytes), own);
}

/* Of the picked series, or of those from `first` on if pick is NULL. */
static struct label_bytes *label_bytes_make(const struct series_set *set, const uint32_t *pick, size_t first,
                                            size_t n, const struct rw_endpoint_config *c,
                                            struct families *families)
{
    CLEANUP(cleanup_label_source_free) struct label_source *s = label_source_new(set, c);
    size_t mean = series_names_bytes(set) / (series_count(set) + 1);
    struct label_maker *m = s->maker;

    /* About what is needed, at once: memory that grows by moving loses its huge pages. */
    buf_expect(&m->out->bytes, size_min(LABEL_BYTES_MAX, (mean + 16) * n));
    for (size_t i = 0; i < n; i++) {
        uint32_t series = pick ? pick[i] : (uint32_t)(first + i);
        int r;

        if (pick && i + PREFETCHED < n)
            series_prefetch(set, pick[i + PREFETCHED]);
        r = label_source_list(s, series);
        if (label_maker_put(m, r, series) && families && (c->relabel.n || m->out->n == 1))
            families_note(families, label_maker_name(m), "", METRIC_TYPE_GAUGE, SCORE_HELP);
    }
    return label_maker_end(m);
}

struct label_bytes *label_bytes_new(const struct series_set *set, size_t first, size_t n,
                                    const struct rw_endpoint_config *c, struct families *families)
{
    return label_bytes_make(set, NULL, first, n, c, families);
}

struct label_bytes *label_bytes_pick(const struct series_set *set, const uint32_t *pick, size_t n,
                                     const struct rw_endpoint_config *c)
{
    return label_bytes_make(set, pick, 0, n, c, NULL);
}
