/* `dynamic-scoring check-config FILE`: prints everything that is wrong with a configuration. */
#include "controller/commands.h"
#include "exporter/agent/config.h"
#include "remotewrite/config.h"

#include <stdio.h>

static const struct flag flags[] = {{NULL, NULL, NULL, NULL}};

static int check(const char *path)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    BUF_AUTO(text, 64u << 20);

    if (problems_init(&p, path) < 0) {
        (void)fprintf(stderr, "out of memory\n");
        return 1;
    }
    int r = config_load(&c, path, &rw_config_section, 1, &p);
    problems_sort(&p);
    if (problems_print(&p, &text) == 0 && text.n)
        (void)fwrite(text.p, 1, text.n, r == 0 ? stdout : stderr);
    if (r < 0) {
        (void)fprintf(stderr, "%s: %zu error%s\n", path, p.errors, p.errors == 1 ? "" : "s");
        return 1;
    }
    (void)printf("%s: good, %zu scorer%s\n", path, c->summaries.n, c->summaries.n == 1 ? "" : "s");
    return 0;
}

static int run(int argc, char **argv)
{
    CLEANUP(cleanup_free) const char **files = calloc((size_t)argc, sizeof(*files));
    int n = files ? flags_parse(&command_check_config, argc, argv, NULL, files) : -1, status = 0;

    if (n == -2)
        return 0;
    if (n < 0)
        return EXIT_USAGE;
    if (n == 0) {
        (void)fprintf(stderr, "dynamic-scoring check-config: expected a file\n");
        return EXIT_USAGE;
    }
    for (int i = 0; i < n; i++)
        if (check(files[i]) != 0)
            status = 1;
    return status;
}

const struct command command_check_config = {
    .name = "check-config",
    .arguments = "FILE...",
    .help = "Check an agent's configuration, print every problem, exit with 1 if there are errors.",
    .flags = flags,
    .run = run,
};
