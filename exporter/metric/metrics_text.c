/* The program's own metrics as text for /metrics. */
#include "exporter/base/escape.h"
#include "exporter/metric/metrics.h"
#include "exporter/num/num.h"

struct text {
    struct buf *into;
    bool openmetrics;
    const struct metric_info *family; /* the last one whose TYPE and HELP were written */
};

static int put_head(struct text *t, const struct metric_info *info)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    int n = (int)strlen(info->name);

    /* OpenMetrics names the family without the suffix of its samples. */
    if (t->openmetrics && info->type == METRIC_TYPE_COUNTER)
        n -= (int)sizeof("_total") - 1;
    t->family = info;
    return buf_printf(t->into, "# TYPE %.*s %s\n# HELP %.*s %s\n", n, info->name, types[info->type], n,
                      info->name, info->help);
}

static char *put_str(char *to, struct str s)
{
    return mempcpy(to, s.p, s.n);
}

static int put_sample(void *arg, const struct metric_sample *s)
{
    struct text *t = arg;
    struct str name = str_of(s->info->name), suffix = str_of(s->suffix);
    size_t room = name.n + suffix.n + NUM_MAX + 4;
    char *to, *p;
    int r = t->family == s->info ? 0 : put_head(t, s->info);

    for (size_t i = 0; i < s->n_labels; i++)
        room += s->labels[i].name.n + 2 * s->labels[i].value.n + 4;
    r = r ?: buf_room(t->into, room, &to);
    if (r < 0)
        return r;
    p = put_str(put_str(to, name), suffix);
    for (size_t i = 0; i < s->n_labels; i++) {
        *p++ = i ? ',' : '{';
        p = put_str(put_str(p, s->labels[i].name), STR("=\""));
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

int metrics_render(const struct metrics *m, bool openmetrics, struct buf *into)
{
    struct text t = {.into = into, .openmetrics = openmetrics};
    size_t mark = into->n;
    int r = metrics_each(m, put_sample, &t);

    if (r < 0)
        buf_truncate(into, mark);
    return r;
}
