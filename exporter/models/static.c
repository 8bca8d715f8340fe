/* Fixed scores from a table: the same for every cluster, whatever the request says. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/json.h"
#include "exporter/base/problems.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { STATIC_TABLES = 2, TABLE_MAX_BYTES = 16 << 20, FIRST_ROWS = 16 };

/* ---- A table ---- */

struct table_row {
    size_t at, n; /* the metric, as JSON, in `text` */
    double score;
};

/* Zeroed: empty. */
struct table {
    struct buf text;
    struct table_row *rows;
    size_t n, cap;
};

static void table_done(struct table *t)
{
    buf_done(&t->text);
    free(t->rows);
    *t = (struct table){0};
}

/* The metric has been written to t->text from `at`. */
static void table_add(struct table *t, size_t at, double score)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : FIRST_ROWS;

        t->rows = xreallocarray(t->rows, cap, sizeof(*t->rows));
        t->cap = cap;
    }
    t->rows[t->n++] = (struct table_row){at, t->text.n - at, score};
}

static int table_put_label(struct table *t, bool first, struct str name, struct str value)
{
    struct buf *b = &t->text;

    b->max = TABLE_MAX_BYTES;
    return buf_putc(b, first ? '{' : ',')
               ?: buf_put_json(b, name) ?: buf_putc(b, ':') ?: buf_put_json(b, value);
}

static bool is_score(struct str text, double *ret)
{
    return num_parse(text, ret) == NUM_OK && isfinite(*ret);
}

/* The text up to a character of `stops`; moves past it. */
static struct str table_cut(struct str *rest, const char *stops)
{
    struct str cut = {rest->p, 0};

    while (cut.n < rest->n && !strchr(stops, rest->p[cut.n]))
        cut.n++;
    *rest =
        cut.n < rest->n ? (struct str){rest->p + cut.n + 1, rest->n - cut.n - 1} : (struct str){rest->p, 0};
    return cut;
}

/* "app=app01,device=all 80" */
static int table_parse_row(struct table *t, struct str row)
{
    size_t at = t->text.n, space = row.n;
    struct str labels;
    double score;
    int r = 0;

    while (space > 0 && row.p[space - 1] != ' ' && row.p[space - 1] != '\t')
        space--;
    if (!is_score((struct str){row.p + space, row.n - space}, &score))
        return -EINVAL;
    labels = str_trim((struct str){row.p, space});
    if (labels.n == 0)
        r = -EINVAL;
    for (bool first = true; r == 0 && labels.n; first = false) {
        struct str value = table_cut(&labels, ","), name = table_cut(&value, "=");

        /* Without "=" the name takes all of it, and the rest still begins where the name does. */
        r = name.n && value.p != name.p ? table_put_label(t, first, str_trim(name), str_trim(value))
                                        : -EINVAL;
    }
    r = r ?: buf_putc(&t->text, '}');
    if (r == 0)
        table_add(t, at, score);
    return r;
}

static int table_parse(struct table *t, const char *text, char **ret_why)
{
    struct str rest = str_of(text);
    int r = 0;

    while (r == 0 && rest.n) {
        struct str row = str_trim(table_cut(&rest, ";\n"));

        if (row.n == 0)
            continue;
        r = table_parse_row(t, row);
        if (r == -EINVAL)
            *ret_why = xasprintf("row \"%.*s\": expected labels and a score, like app=app01,device=all 80",
                                 (int)size_min(row.n, 80), row.p);
    }
    return r;
}

static void table_read_row(struct table *t, const struct node *row, struct problems *p)
{
    const struct node *metric = node_get(row, "metric"), *score = node_get(row, "score");
    static const char *const keys[] = {"metric", "score", NULL};
    size_t at = t->text.n;
    double v;
    int r = 0;

    node_only_keys(row, keys, PROBLEM_ERROR, p);
    if (!metric || metric->kind != NODE_MAP || metric->n == 0)
        node_expected(metric ? metric : row, p, "an object with labels as \"metric\"");
    else if (!score || (score->kind != NODE_INT && score->kind != NODE_DOUBLE) || !is_score(score->text, &v))
        node_expected(score ? score : row, p, "a number as \"score\"");
    else {
        for (size_t i = 0; r == 0 && i < metric->n; i++)
            r = table_put_label(t, i == 0, metric->items[i]->key, metric->items[i]->text);
        r = r ?: buf_putc(&t->text, '}');
        if (r < 0)
            node_problem(row, p, PROBLEM_ERROR, "the scores together are too large");
        else
            table_add(t, at, v);
    }
}

static void table_read(struct table *t, const struct node *list, struct problems *p)
{
    if (list->kind != NODE_LIST) {
        node_expected(list, p, "a list of objects with \"metric\" and \"score\"");
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        table_read_row(t, list->items[i], p);
}

static void table_write(const struct table *t, struct results *rs)
{
    for (size_t i = 0; i < t->n; i++)
        results_add(rs, &(struct result){.metric = {t->text.p + t->rows[i].at, t->rows[i].n},
                                         .score = t->rows[i].score});
}

/* ---- The model ---- */

struct static_state {
    const char *texts[STATIC_TABLES]; /* set by a flag or the environment; NULL: not */
    struct table tables[STATIC_TABLES];
};

static const struct model_endpoint static_endpoints[STATIC_TABLES] = {
    {.prefix = "/performance",
     .name = "example-performance-scorer",
     .description = "An example performance score",
     .source_type = "None",
     .score_name = "example_performance_score",
     .interval = 30},
    {.prefix = "/powerconsumption",
     .name = "example-powerconsumption-scorer",
     .description = "An example power consumption score",
     .source_type = "None",
     .score_name = "example_powerconsumption_score",
     .interval = 30},
};

/* The example of the documents. A higher score for power means that less is drawn. */
static const char *const static_examples[STATIC_TABLES] = {
    "app=app01,device=all 80; app=app02,device=all 80; app=app01,device=3g.48gb 60; "
    "app=app02,device=3g.48gb 55; app=app01,device=2g.24gb 10; app=app02,device=2g.24gb 15",
    "app=app01,device=all 20; app=app02,device=all 10; app=app01,device=3g.48gb 30; "
    "app=app02,device=3g.48gb 55; app=app01,device=2g.24gb 80; app=app02,device=2g.24gb 90",
};

#define TABLE_HELP                                                                                         \
    "Labels and scores, \"app=app01,device=all 80; ...\". In the file a list is possible, too: [{metric: " \
    "{app: app01, device: all}, score: 80}]. Default: the example of the documents"

static const struct setting static_settings[] = {
    {"performance", "TABLE", TABLE_HELP, SETTING_TABLE, .field = offsetof(struct static_state, texts[0])},
    {"powerconsumption", "TABLE", TABLE_HELP, SETTING_TABLE,
     .field = offsetof(struct static_state, texts[1])},
    {.name = NULL},
};

static void static_read_file(void *state, const struct node *root, struct problems *p)
{
    struct static_state *s = state;

    for (size_t i = 0; i < STATIC_TABLES; i++) {
        const struct node *n = node_given(root, static_settings[i].name);

        if (n && n->kind != NODE_STRING)
            table_read(&s->tables[i], n, p);
    }
}

static int static_open(void *state, const struct model_env *env, char **ret_why)
{
    struct static_state *s = state;
    int r = 0;

    (void)env;
    for (size_t i = 0; r == 0 && i < STATIC_TABLES; i++) {
        if (s->texts[i])
            table_done(&s->tables[i]);
        if (s->tables[i].n == 0)
            r = table_parse(&s->tables[i], s->texts[i] ? s->texts[i] : static_examples[i], ret_why);
    }
    return r;
}

static void static_close(void *state)
{
    struct static_state *s = state;

    for (size_t i = 0; i < STATIC_TABLES; i++)
        table_done(&s->tables[i]);
}

static int static_score(const void *state, struct scoring *s)
{
    const struct static_state *own = state;

    table_write(&own->tables[s->endpoint], &s->results);
    return 0;
}

const struct model model_static = {
    .name = "static",
    .help = "Fixed scores from a table, without a source.",
    .endpoints = static_endpoints,
    .n_endpoints = STATIC_TABLES,
    .settings = static_settings,
    .size = sizeof(struct static_state),
    .takes_any_body = true,
    .read_file = static_read_file,
    .open = static_open,
    .close = static_close,
    .score = static_score,
};
