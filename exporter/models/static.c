/* Fixed scores: the same for every cluster, whatever the request says. */
#include "exporter/base/doc.h"
#include "exporter/models/model.h"
#include "exporter/models/score_table.h"

enum { STATIC_TABLES = 2 };

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
    {"performance", "TABLE", TABLE_HELP, SETTING_TEXT, .field = offsetof(struct static_state, texts[0])},
    {"powerconsumption", "TABLE", TABLE_HELP, SETTING_TEXT, .field = offsetof(struct static_state, texts[1])},
    {.name = NULL},
};

static const char *const static_file_keys[] = {"performance", "powerconsumption", NULL};

static void static_read_file(void *state, const struct node *root, struct problems *p)
{
    struct static_state *s = state;

    for (size_t i = 0; i < STATIC_TABLES; i++) {
        const struct node *n = node_given(root, static_file_keys[i]);

        if (n && n->kind != NODE_STRING)
            score_table_read(&s->tables[i], n, p);
    }
}

static int static_open(void *state, const struct model_env *env, char **ret_why)
{
    struct static_state *s = state;
    int r = 0;

    (void)env;
    for (size_t i = 0; r == 0 && i < STATIC_TABLES; i++) {
        if (s->texts[i])
            score_table_done(&s->tables[i]);
        if (s->tables[i].n == 0)
            r = score_table_parse(&s->tables[i], s->texts[i] ? s->texts[i] : static_examples[i], ret_why);
    }
    return r;
}

static void static_close(void *state)
{
    struct static_state *s = state;

    for (size_t i = 0; i < STATIC_TABLES; i++)
        score_table_done(&s->tables[i]);
}

static int static_score(const void *state, struct scoring *s)
{
    const struct static_state *own = state;

    score_table_write(&own->tables[s->endpoint], &s->results);
    return 0;
}

const struct model model_static = {
    .name = "static",
    .help = "Fixed scores from a table, without a source.",
    .endpoints = static_endpoints,
    .n_endpoints = STATIC_TABLES,
    .settings = static_settings,
    .file_keys = static_file_keys,
    .size = sizeof(struct static_state),
    .takes_any_body = true,
    .read_file = static_read_file,
    .open = static_open,
    .close = static_close,
    .score = static_score,
};
