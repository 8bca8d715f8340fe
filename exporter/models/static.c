/* Fixed scores from a table: the same for every cluster, whatever the request says. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/escape.h"
#include "exporter/models/model.h"
#include "exporter/models/setting.h"
#include "exporter/models/wire.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>

enum { STATIC_TABLES = 2, TABLE_MAX_BYTES = 16 << 20 /* far more than a file's or a flag's text makes */ };

/* ---- A table ---- */

/* Zeroed: empty. */
struct score_table {
    struct buf text; /* the list of results, as it is answered */
    size_t n;
};

static void table_add(struct score_table *t, const struct buf *metric, double score)
{
    struct results rs = {.n = t->n};

    t->text.max = TABLE_MAX_BYTES;
    rs.out = &t->text;
    results_add(&rs, &(struct result){.metric = buf_str(metric), .score = score});
    t->n = rs.n;
}

static void table_put_label(struct buf *metric, struct str name, struct str value)
{
    buf_puts(metric, metric->n ? "," : "{");
    buf_put_json(metric, name);
    buf_puts(metric, ":");
    buf_put_json(metric, value);
}

static bool is_score(struct str text, double *ret)
{
    return num_parse(text, ret) == NUM_OK && isfinite(*ret);
}

/* "app=app01,device=all 80"; false for other texts. */
static bool table_parse_row(struct score_table *t, struct str row)
{
    BUF_AUTO(metric, TABLE_MAX_BYTES);
    size_t space = row.n;
    struct str labels;
    double score;

    while (space > 0 && row.p[space - 1] != ' ' && row.p[space - 1] != '\t')
        space--;
    labels = str_trim((struct str){row.p, space});
    if (labels.n == 0 || !is_score((struct str){row.p + space, row.n - space}, &score))
        return false;
    while (labels.n) {
        struct str value = str_take(&labels, ','), name = str_take(&value, '=');

        if (!name.n || value.p == name.p + name.n) /* without "=" */
            return false;
        table_put_label(&metric, str_trim(name), str_trim(value));
    }
    buf_puts(&metric, "}");
    table_add(t, &metric, score);
    return true;
}

static int table_parse(struct score_table *t, const char *text, char **ret_why)
{
    while (*text) {
        size_t n = strcspn(text, ";\n");
        struct str row = str_trim((struct str){text, n});

        if (row.n > 0 && !table_parse_row(t, row)) {
            *ret_why = xasprintf("row \"%.*s\": expected labels and a score, like app=app01,device=all 80",
                                 (int)size_min(row.n, 80), row.p);
            return -EINVAL;
        }
        text += n + (text[n] != '\0');
    }
    return 0;
}

static void table_read_row(struct score_table *t, const struct node *row, struct problems *p)
{
    const struct node *metric = node_get(row, "metric"), *score = node_get(row, "score");
    static const char *const keys[] = {"metric", "score", NULL};
    BUF_AUTO(text, TABLE_MAX_BYTES);
    double v;

    node_only_keys(row, keys, PROBLEM_ERROR, p);
    if (!metric || metric->kind != NODE_MAP || metric->n == 0)
        node_expected(metric ? metric : row, p, "an object with labels as \"metric\"");
    else if (!score || (score->kind != NODE_INT && score->kind != NODE_DOUBLE) || !is_score(score->text, &v))
        node_expected(score ? score : row, p, "a number as \"score\"");
    else {
        for (size_t i = 0; i < metric->n; i++)
            table_put_label(&text, metric->items[i]->key, metric->items[i]->text);
        buf_puts(&text, "}");
        table_add(t, &text, v);
    }
}

/* ---- The model ---- */

struct static_state {
    const char *texts[STATIC_TABLES]; /* set by a flag or the environment; NULL: not */
    struct score_table tables[STATIC_TABLES];
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

        if (n && n->kind != NODE_STRING && n->kind != NODE_LIST)
            node_expected(n, p, "a list of objects with \"metric\" and \"score\"");
        for (size_t k = 0; n && n->kind == NODE_LIST && k < n->n; k++)
            table_read_row(&s->tables[i], n->items[k], p);
    }
}

static int static_open(void *state, struct loop *loop, struct metrics *metrics, char **ret_why)
{
    struct static_state *s = state;
    int r = 0;

    (void)loop, (void)metrics;
    for (size_t i = 0; r == 0 && i < STATIC_TABLES; i++) {
        if (s->texts[i]) {
            buf_done(&s->tables[i].text);
            s->tables[i].n = 0;
        }
        if (s->tables[i].n == 0)
            r = table_parse(&s->tables[i], s->texts[i] ? s->texts[i] : static_examples[i], ret_why);
    }
    return r;
}

static void static_close(void *state)
{
    struct static_state *s = state;

    for (size_t i = 0; i < STATIC_TABLES; i++)
        buf_done(&s->tables[i].text);
}

static int static_score(const void *state, struct scoring *s)
{
    const struct score_table *t = &((const struct static_state *)state)->tables[s->endpoint];

    buf_put_str(s->results.out, buf_str(&t->text));
    s->results.n = t->n;
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
