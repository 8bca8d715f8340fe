/* The labels and values of the program's own metrics. */
#include "remotewrite/intake_internal.h"

#include "exporter/base/buf.h"
#include "remotewrite/relabel.h"

#include <errno.h>

enum { METRICS_LABELS_MAX = 64 << 20 };

struct collector {
    struct intake *in;
    struct label_list list;
    struct label_bytes *labels;
    double *values;
    size_t cap;
    struct buf bytes;
};

static void collector_done(struct collector *c)
{
    label_list_done(&c->list);
    (void)label_bytes_free(c->labels);
    free(c->values);
    buf_done(&c->bytes);
}

static int collector_grow(struct collector *c)
{
    size_t cap = size_max(256, c->cap * 2);
    size_t *at = realloc(c->labels->at, (cap + 1) * sizeof(*at));
    double *values;

    if (!at)
        return -ENOMEM;
    c->labels->at = at;
    at[0] = 0;
    values = realloc(c->values, cap * sizeof(*values));
    if (!values)
        return -ENOMEM;
    c->values = values;
    c->cap = cap;
    return 0;
}

static const enum family_type family_types[] = {[METRIC_TYPE_COUNTER] = FAMILY_COUNTER,
                                                [METRIC_TYPE_GAUGE] = FAMILY_GAUGE,
                                                [METRIC_TYPE_HISTOGRAM] = FAMILY_HISTOGRAM};

/* Labels that are invalid after relabelling leave the sample out. */
static int collect_sample(void *arg, const struct metric_sample *s)
{
    struct collector *c = arg;
    struct label_list *l = &c->list;
    int r = c->labels->n == c->cap ? collector_grow(c) : 0;

    label_list_reset(l);
    r = r ?: label_list_add(l, STR("__name__"), label_list_join(l, str_of(s->info->name), str_of(s->suffix)));
    for (size_t i = 0; r == 0 && i < s->n_labels; i++)
        r = label_list_add(l, s->labels[i].name, s->labels[i].value);
    r = r ?: labels_pack(l, c->in->config, &c->bytes);
    if (r < 0 && r != -ENOMEM)
        label_bytes_reject(c->labels, l);
    if (r == 1) {
        families_note(&c->in->families, label_list_find(l, STR("__name__"))->value, s->suffix,
                      family_types[s->info->type], s->info->help);
        c->values[c->labels->n++] = s->value;
        c->labels->at[c->labels->n] = c->bytes.n;
    }
    return r == -ENOMEM ? r : 0;
}

int intake_collect_metrics(struct intake *in, const struct metrics *m, struct label_bytes **ret,
                           double **ret_values)
{
    CLEANUP(collector_done)
    struct collector c = {.in = in, .bytes = {.max = METRICS_LABELS_MAX}};
    int r;

    c.labels = calloc(1, sizeof(*c.labels));
    if (!c.labels || label_list_init(&c.list) < 0 || collector_grow(&c) < 0)
        return -ENOMEM;
    r = metrics_each(m, collect_sample, &c);
    if (r < 0)
        return r;
    c.labels->bytes_n = c.bytes.n;
    c.labels->bytes = buf_take(&c.bytes).p;
    *ret = TAKE_PTR(c.labels);
    *ret_values = TAKE_PTR(c.values);
    return 0;
}
