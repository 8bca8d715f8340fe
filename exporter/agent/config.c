/* The agent's configuration file: its top-level keys, their defaults and bounds. */
#include "exporter/agent/config.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/http/httpd.h"

#include <errno.h>
#include <sys/stat.h>

enum { PIPE_WAIT_MS = 10000, CHUNK_BYTES = 1024 };

const struct limits limits_default = {
    .response_bytes = 256u << 20,
    .series_per_scorer = 100000,
    .series = 1000000,
    .otlp_series = 200000,
    .label_value_bytes = 256,
    .round_ms = 5 * 60 * 1000,
    .stale_intervals = 3,
};

struct config *config_free(struct config *c)
{
    if (!c)
        return NULL;
    if (c->section)
        c->section_type->done(c->section);
    summaries_done(&c->summaries);
    arena_done(&c->arena);
    free(c);
    return NULL;
}

static void read_listen(struct config *c, const struct node *root, struct problems *p)
{
    const struct node *n = node_given(root, "listenAddresses");
    bool is_list = n && n->kind == NODE_LIST;
    size_t count = is_list ? n->n : 1;

    if (!n) {
        c->listen[c->n_listen++] = ":8080";
        return;
    }
    if (count == 0 || count > CONFIG_MAX_LISTEN) {
        node_problem(n, p, PROBLEM_ERROR, "expected 1 to %d addresses, got %zu", CONFIG_MAX_LISTEN, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct node *item = is_list ? n->items[i] : n;

        if (item->kind == NODE_STRING && strlen(item->text.p) == item->text.n &&
            httpd_is_address(item->text.p))
            c->listen[c->n_listen++] = arena_text(&c->arena, item->text);
        else
            node_expected(item, p,
                          "an address to listen on, like \":8080\", \"127.0.0.1:8080\" or \"[::1]:8080\"");
    }
}

static void read_limits(struct limits *l, const struct node *root, struct problems *p)
{
    static const char *const known[] = {
        "memory",          "responseBytes", "seriesPerScorer",     "series", "otlpMemory", "otlpSeries",
        "labelValueBytes", "roundTime",     "staleAfterIntervals", NULL};
    const struct node *n = node_object(root, "limits", known, p);

    (void)node_bytes(n, "responseBytes", p, 1 << 10, 4ull << 30, &l->response_bytes);
    (void)node_bytes(n, "memory", p, 1 << 20, 1ull << 44, &l->memory_bytes);
    (void)node_int(n, "seriesPerScorer", p, 1, 10000000, &l->series_per_scorer);
    (void)node_int(n, "series", p, 1, 100000000, &l->series);
    (void)node_bytes(n, "otlpMemory", p, 1 << 20, 1ull << 44, &l->otlp_bytes);
    (void)node_int(n, "otlpSeries", p, 1, 100000000, &l->otlp_series);
    (void)node_int(n, "labelValueBytes", p, 16, 65536, &l->label_value_bytes);
    (void)node_duration(n, "roundTime", p, 1000, 3600 * 1000, &l->round_ms);
    (void)node_int(n, "staleAfterIntervals", p, 1, 1000, &l->stale_intervals);
}

static int read_root(struct config *c, const struct node *root, struct problems *p)
{
    const struct config_section *type = c->section_type;
    const char *const known[] = {
        "clusterName", "listenAddresses", "secretsDir", "storagePath",           "logLevel",
        "logFormat",   "limits",          "summaries",  type ? type->key : NULL, NULL};
    const struct node *list = node_given(root, "summaries"), *section = NULL;
    struct str level = {0};
    int r = 0;

    if (root->kind == NODE_MAP) {
        section = type ? node_given(root, type->key) : NULL;
        node_only_keys(root, known, PROBLEM_ERROR, p);
        if (node_str(root, "logLevel", p, &level) && level.n)
            c->log_level = (enum log_level)node_choice(root, "logLevel", p, log_levels);
        c->log_format = (enum log_format)node_choice(root, "logFormat", p, log_formats);
        read_limits(&c->limits, root, p);
        c->cluster_name = node_text(root, "clusterName", p, &c->arena);
        c->secrets_dir = node_text(root, "secretsDir", p, &c->arena);
        c->storage_path = node_text(root, "storagePath", p, &c->arena);
        if (list)
            summaries_parse(&c->summaries, list, PROBLEM_ERROR, p);
        if (section)
            r = type->parse(section, p, &c->section);
    } else if (root->kind == NODE_LIST) {
        /* It comes from the hub by way of the ConfigMap. A newer hub may write keys unknown to this agent, so
         * they are only warnings. */
        summaries_parse(&c->summaries, root, PROBLEM_WARNING, p);
    } else {
        node_expected(root, p, "an object with clusterName, summaries and so on, or a list of summaries");
    }
    read_listen(c, root, p);
    return r;
}

int config_parse(struct config **ret, struct str text, const struct config_section *section,
                 struct problems *p)
{
    CLEANUP(cleanup_config_free) struct config *c = xcalloc(1, sizeof(*c));
    CLEANUP(cleanup_doc_free) struct doc *d = NULL;
    int r;

    *c = (struct config){.arena.chunk_bytes = CHUNK_BYTES,
                         .log_level = LOG_LEVEL_INFO,
                         .log_format = LOG_FORMAT_LOGFMT,
                         .limits = limits_default,
                         .section_type = section,
                         .loaded_at_ms = clock_system.wall(&clock_system).ms};
    r = doc_parse(&d, text, p) ?: read_root(c, d->root, p);
    problems_sort(p);
    if (r < 0 || p->errors)
        return -EINVAL;
    *ret = TAKE_PTR(c);
    return 0;
}

static const char *config_read_error(int r)
{
    switch (r) {
    case -EFBIG:
        return "larger than 16 MiB";
    case -ETIMEDOUT:
        return "the pipe was not written and closed within 10 s";
    default:
        return strerror(-r);
    }
}

int config_read(const char *path, struct buf *into, bool *ret_pipe, struct problems *p)
{
    struct stat st;
    int r;

    *ret_pipe = stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    if (*ret_pipe)
        log_info("reading the configuration from a pipe", L_STR("file", path),
                 L_INT("timeout_s", PIPE_WAIT_MS / 1000));
    r = file_read_within(path, into, PIPE_WAIT_MS);
    if (r == 0 || r == -ENOMEM)
        return r;
    problems_add(p, PROBLEM_ERROR, 0, 0, "cannot be read: %s", config_read_error(r));
    return -EINVAL;
}
