/* `dynamic-scoring check-config FILE`: prints every problem of a configuration. */
#include "controller/commands.h"
#include "controller/flags.h"
#include "exporter/agent/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/problems.h"
#include "exporter/score/summary.h"
#include "remotewrite/config.h"

#include <stdio.h>

static const struct flag check_flags[] = {{.name = NULL}};

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

static int check_file(const char *path)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    BUF_AUTO(text, 64u << 20);

    if (problems_init(&p, path) < 0) {
        (void)fprintf(stderr, "out of memory\n");
        return 1;
    }
    int r = config_load(&c, path, &rw_config_section, 1, &p);
    if (r == 0)
        check_cluster_name(c, &p);
    problems_sort(&p);
    if (problems_print(&p, &text) == 0 && text.n)
        (void)fwrite(text.p, 1, text.n, r == 0 ? stdout : stderr);
    if (r < 0) {
        (void)fprintf(stderr, "%s: %zu error%s\n", path, p.errors, p.errors == 1 ? "" : "s");
        return 1;
    }
    (void)printf("%s: valid, %zu scorer%s\n", path, c->summaries.n, c->summaries.n == 1 ? "" : "s");
    return 0;
}

static int check_main(int argc, char **argv)
{
    CLEANUP(cleanup_free) const char **files = calloc((size_t)argc, sizeof(*files));
    int n = files ? flags_parse(&command_check_config, argc, argv, NULL, files) : -1, status = 0;

    if (n == -2)
        return 0;
    if (n < 0)
        return EXIT_USAGE;
    if (n == 0)
        return flags_error(&command_check_config, "missing argument: FILE", "");
    for (int i = 0; i < n; i++)
        if (check_file(files[i]) != 0)
            status = 1;
    return status;
}

const struct command command_check_config = {
    .name = "check-config",
    .arguments = "FILE...",
    .help = "Print every problem of an agent's configuration; exit with status 1 if there are errors.",
    .flags = check_flags,
    .run = check_main,
};
