/* `dynamic-scoring check-config FILE`: prints every problem of a configuration. */
#include "controller/flags.h"
#include "controller/placement/items.h"
#include "exporter/agent/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/map.h"
#include "exporter/base/tls.h"
#include "exporter/score/summary.h"
#include "exporter/web/web_file.h"
#include "remotewrite/config.h"

#include <errno.h>
#include <stdio.h>

struct check_options {
    const char *web;
};

static const struct flag check_flags[] = {
    {"web", FLAG_PATH, .field = offsetof(struct check_options, web),
     "Check a web configuration file, as --web.config.file takes it, and its certificates."},
    {.name = NULL},
};

/* The agent has a name from the file or from a flag; a file that relies on the name had better say so. */
static void check_cluster_name(const struct config *c, struct problems *p)
{
    for (size_t i = 0; !*c->cluster_name && i < c->summaries.n; i++) {
        const struct summary *s = &c->summaries.list[i];

        for (size_t k = 0; k < summary_sources(s); k++)
            if (summary_query_uses_cluster(str_of(cstr(summary_source(s, k).query)), true)) {
                problems_add(p, PROBLEM_WARNING, s->line, s->column,
                             "sourceQuery of %s contains ${cluster}: set clusterName, or run the agent with "
                             "--cluster-name",
                             s->score_name);
                return;
            }
    }
}

/* As on the hub: the second of two score names that map to one object would have none. */
static void check_object_names(const struct config *c, struct problems *p)
{
    CLEANUP(map_done) struct map objects = {0};

    for (size_t i = 0; i < c->summaries.n; i++) {
        const struct summary *s = &c->summaries.list[i], *first;
        char object[OBJECT_NAME_MAX + 1];

        if (s->destination != DESTINATION_PLACEMENT_SCORE)
            continue;
        (void)object_name(str_of(s->score_name), object);
        first = map_get(&objects, object);
        if (first)
            problems_add(p, PROBLEM_ERROR, s->line, s->column,
                         "score name %s maps to AddOnPlacementScore %s, as does score name %s at line %u",
                         s->score_name, object, first->score_name, first->line);
        else
            map_set(&objects, object, (void *)(uintptr_t)s);
    }
}

/* Prints the problems, and the line that ends a check: `valid` if there are no errors. */
static int check_report(const char *path, struct problems *p, int r, const char *valid)
{
    BUF_AUTO(text, 64u << 20);

    problems_sort(p);
    if (problems_print(p, &text) == 0 && text.n)
        (void)fwrite(text.p, 1, text.n, r == 0 ? stdout : stderr);
    if (r < 0)
        (void)fprintf(stderr, "%s: %zu error%s\n", path, p->errors, p->errors == 1 ? "" : "s");
    else
        (void)printf("%s: valid, %s\n", path, valid);
    return r < 0;
}

static int check_file(const char *path)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    char valid[64] = "";
    int r;

    problems_init(&p, path);
    r = config_load(&c, path, &rw_config_section, &p);
    if (r == 0) {
        check_cluster_name(c, &p);
        check_object_names(c, &p);
        r = p.errors ? -EINVAL : 0;
        (void)snprintf(valid, sizeof(valid), "%zu scorer%s", c->summaries.n, c->summaries.n == 1 ? "" : "s");
    }
    return check_report(path, &p, r, valid);
}

static int check_web_file(const char *path)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(cleanup_httpd_tls_unref) struct httpd_tls *tls = NULL;
    char valid[64] = "";
    int r;

    problems_init(&p, path);
    r = web_file_read(&f, path, &p);
    r = r ?: web_file_tls(f, &tls, &p);
    if (r == 0)
        (void)snprintf(valid, sizeof(valid), "%s, %zu user%s", f->has_tls ? "TLS" : "no TLS", f->n_users,
                       f->n_users == 1 ? "" : "s");
    return check_report(path, &p, r, valid);
}

static int check_main(char **argv)
{
    struct check_options options = {0};
    int status;

    if (!flags_parse(&command_check_config, argv, &options, &status))
        return status;
    if (!argv[1] && !options.web)
        return flags_error(&command_check_config, "missing argument: FILE", "");
    status = options.web ? check_web_file(options.web) : 0;
    for (char **file = argv + 1; *file; file++)
        status |= check_file(*file);
    return status;
}

const struct command command_check_config = {
    .name = "check-config",
    .arguments = "[--web=FILE] FILE...",
    .help = "Print every problem of an agent's configuration or of a web configuration file; exit with "
            "status 1 if "
            "there are errors.",
    .flags = check_flags,
    .takes_arguments = true,
    .run = check_main,
};
