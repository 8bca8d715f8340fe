#include "exporter/models/power_nodes.h"

#include "exporter/base/json.h"
#include "exporter/models/predict.h"
#include "exporter/models/spacing.h"

#include <errno.h>
#include <math.h>

enum {
    MIN_MINUTES = 20, /* for a forecast; with fewer, the mean of what there is */
    HORIZON = 10
};

static void power_node_free(struct power_node *n, size_t n_pairs)
{
    power_line_done(&n->total);
    for (size_t i = 0; n->pairs && i < n_pairs; i++)
        power_line_done(&n->pairs[i]);
    free(n->pairs);
    free(n->name);
    free(n);
}

void power_nodes_done(struct power_nodes *nodes)
{
    for (struct power_node *n = nodes->list, *next; n; n = next) {
        next = n->next;
        power_node_free(n, nodes->config->n_pairs);
    }
    map_done(&nodes->by_name);
    *nodes = (struct power_nodes){.config = nodes->config};
}

/* A label with its escapes replaced, "" if the series has none; to be freed. NULL when out of memory. */
static char *power_label(struct str metric, const char *name)
{
    struct str raw = {"", 0};
    char *text;

    (void)series_label(metric, name, &raw);
    text = malloc(3 * raw.n + 1);
    if (text)
        text[jr_unescape(raw, text)] = '\0';
    return text;
}

static int power_node_new(struct power_nodes *nodes, const char *name, struct power_node **ret)
{
    struct power_node *n;

    if (nodes->n == POWER_MAX_NODES)
        return -E2BIG;
    n = calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    n->name = strdup(name);
    n->pairs = calloc(nodes->config->n_pairs + 1, sizeof(*n->pairs));
    if (!n->name || !n->pairs || map_set(&nodes->by_name, n->name, n) < 0) {
        power_node_free(n, nodes->config->n_pairs);
        return -ENOMEM;
    }
    n->next = nodes->list;
    nodes->list = n;
    nodes->n++;
    *ret = n;
    return 0;
}

/* Adds a line to its node, and to the application's if the pod belongs to one. */
static int power_nodes_add_line(struct power_nodes *nodes, const char *host, const char *pod,
                                const char *profile, const struct power_line *line)
{
    struct power_node *n = map_get(&nodes->by_name, host);
    const char *app = power_config_app(nodes->config, pod);
    size_t pair = app ? power_config_pair(nodes->config, app, power_device(profile)) : nodes->config->n_pairs;
    int r = 0;

    if (!n)
        r = power_node_new(nodes, host, &n);
    if (r == 0)
        r = power_line_add(&n->total, line, true);
    if (r == 0 && pair < nodes->config->n_pairs)
        r = power_line_add(&n->pairs[pair], line, true);
    return r;
}

int power_nodes_add(struct power_nodes *nodes, const struct input_series *series, enum left_out *ret_why)
{
    CLEANUP(cleanup_free) char *host = power_label(series->metric, "Hostname");
    CLEANUP(cleanup_free) char *pod = power_label(series->metric, "exported_pod");
    CLEANUP(cleanup_free) char *profile = power_label(series->metric, "GPU_I_PROFILE");
    CLEANUP(power_line_done) struct power_line line = {0};
    int r;

    if (!host || !pod || !profile)
        return -ENOMEM;
    if (!*pod) {
        *ret_why = LEFT_OUT_LABEL;
        return 0;
    }
    r = power_line_read(&line, series);
    if (r == -EINVAL || (r == 0 && line.n == 0)) {
        *ret_why = r < 0 ? LEFT_OUT_DISORDERED : series->n ? LEFT_OUT_NOT_FINITE : LEFT_OUT_SHORT;
        return 0;
    }
    if (r < 0)
        return r;
    if (nodes->n == 0 || line.points[line.n - 1].minute > nodes->newest)
        nodes->newest = line.points[line.n - 1].minute;
    return power_nodes_add_line(nodes, host, pod, profile, &line);
}

/* The mean of the next minutes; of those that are there, if they are too few for a forecast. */
static double power_expected(double *values, size_t n, struct scoring *s)
{
    double out[HORIZON], *of = values, sum = 0;
    struct prediction p;

    if (n >= MIN_MINUTES) {
        predict(values, n, HORIZON, HORIZON, out, &p);
        of = out;
        n = HORIZON;
        if (p.tested && isfinite(p.errors[p.method])) {
            s->backtest_error += p.errors[p.method];
            s->n_backtests++;
        }
    }
    for (size_t i = 0; i < n; i++)
        sum += of[i] / (double)n;
    return sum;
}

int power_nodes_base(const struct power_nodes *nodes, struct scoring *s, double *ret)
{
    double base = 0;

    for (struct power_node *n = nodes->list; n; n = n->next) {
        CLEANUP(cleanup_free) double *values = NULL;
        size_t n_values;
        int r = power_line_merge(&n->total, true);

        if (r < 0)
            return r;
        if (n->total.n == 0 || nodes->newest - n->total.points[n->total.n - 1].minute > MAX_GAP)
            continue;
        r = power_line_fill(&n->total, &values, &n_values);
        if (r < 0)
            return r;
        base += power_expected(values, n_values, s);
    }
    *ret = base;
    return 0;
}

int power_nodes_highest(const struct power_nodes *nodes, size_t pair, double *ret)
{
    CLEANUP(power_line_done) struct power_line all = {0};
    int r = 0;

    for (struct power_node *n = nodes->list; r == 0 && n; n = n->next)
        r = power_line_merge(&n->pairs[pair], true) ?: power_line_add(&all, &n->pairs[pair], false);
    r = r ?: power_line_merge(&all, false);
    if (r == 0)
        *ret = all.n ? power_line_highest_mean(&all) : NAN;
    return r;
}
