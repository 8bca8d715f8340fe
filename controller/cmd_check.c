/* `dynamic-scoring check-config FILE` and `check-scorer URL`: what an agent would say of a configuration,
 * and the hub and an agent of a scoring API. */
#include "controller/check/check.h"
#include "controller/check/findings.h"
#include "controller/flags.h"
#include "controller/placement/items.h"
#include "controller/role.h"
#include "controller/terminal.h"
#include "exporter/agent/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/base/map.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"
#include "exporter/http/tls.h"
#include "exporter/score/scoring_url.h"
#include "exporter/score/summary.h"
#include "exporter/web/web_file.h"
#include "remotewrite/config.h"

#include <errno.h>
#include <stdio.h>

/* ---- check-config ---- */

static const struct flag check_flags[] = {
    {"web", FLAG_PATH, .field = 0,
     "Check a web configuration file, as --web.config.file takes it, and its certificates."},
    {.name = NULL},
};

/* The first field that has ${cluster}; NULL if none has. */
static const char *cluster_name_field(const struct summary *s)
{
    for (size_t i = 0; i < s->n_sources; i++)
        if (summary_query_uses_cluster(str_of(s->sources[i].query), true))
            return "sourceQuery";
    return scoring_url_uses_cluster(s->scoring_endpoint) ? "scoringEndpoint" : NULL;
}

/* The agent has a name from the file or from a flag; a file that relies on the name had better say so. */
static void check_cluster_name(const struct config *c, struct problems *p)
{
    for (size_t i = 0; !c->cluster_name && i < c->summaries.n; i++) {
        const struct summary *s = &c->summaries.list[i];
        const char *field = cluster_name_field(s);

        if (!field)
            continue;
        problems_add(p, PROBLEM_WARNING, s->line, s->column,
                     "%s of %s contains ${cluster}: set clusterName, or run the agent with --cluster-name",
                     field, s->score_name);
        return;
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
static int check_report(const char *path, struct problems *p, int r, struct str valid)
{
    BUF_AUTO(text, 64u << 20);

    problems_sort(p);
    problems_print(p, &text);
    if (buf_failed(&text) == 0 && text.n)
        (void)terminal_print_lines(r == 0 ? stdout : stderr, buf_str(&text));
    if (r < 0)
        terminal_printf(stderr, "%s: %zu error%s\n", path, p->errors, p->errors == 1 ? "" : "s");
    else
        terminal_printf(stdout, "%s: valid, %.*s\n", path, STR_ARG(valid));
    return r < 0;
}

static int check_file(const char *path)
{
    CLEANUP(cleanup_config_free) struct config *c = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    BUF_AUTO(text, CONFIG_MAX_BYTES);
    BUF_AUTO(valid, 64);
    bool is_pipe;
    int r;

    problems_init(&p, path);
    r = config_read(path, &text, &is_pipe, &p) ?: config_parse(&c, buf_str(&text), &rw_config_section, &p);
    if (r == 0) {
        check_cluster_name(c, &p);
        check_object_names(c, &p);
        r = p.errors ? -EINVAL : 0;
        text_count(&valid, c->summaries.n, "scorer");
    }
    return check_report(path, &p, r, buf_str(&valid));
}

static void web_file_describe(struct buf *into, const struct web_file *f)
{
    buf_puts(into, f->has_tls ? "TLS, " : "no TLS, ");
    text_count(into, f->n_users, "user");
}

static int check_web_file(const char *path)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(cleanup_httpd_tls_unref) struct httpd_tls *tls = NULL;
    BUF_AUTO(valid, 64);
    int r;

    problems_init(&p, path);
    r = web_file_read(&f, path, &p) ?: web_file_tls(f, &tls, &p);
    if (r == 0)
        web_file_describe(&valid, f);
    return check_report(path, &p, r, buf_str(&valid));
}

static int check_main(char **argv)
{
    const char *web = NULL;
    int status;

    if (!flags_parse(&command_check_config, argv, &web, &status))
        return status;
    if (!argv[1] && !web)
        return flags_error(&command_check_config, "missing argument: FILE", "");
    status = web ? check_web_file(web) : 0;
    for (char **file = argv + 1; *file; file++)
        status |= check_file(*file);
    return status;
}

const struct command command_check_config = {
    .name = "check-config",
    .arguments = "[--web=FILE] FILE...",
    .help = "Print every problem of an agent's configuration or of a web configuration file; exit with "
            "status 1 if there are errors.",
    .flags = check_flags,
    .takes_arguments = true,
    .run = check_main,
};

/* ---- check-scorer ---- */

enum { TOKEN_MAX_BYTES = 64 << 10, SCORER_FINDINGS_MAX_BYTES = 64 << 20 };

struct checker_options {
    struct check_options check;
    const char *token_file;
    int output; /* of `outputs` */
};

static const char *const outputs[] = {"table", "json", NULL};

#define FIELD(name) .field = offsetof(struct checker_options, name)

static const struct flag checker_flags[] = {
    {"token-file", FLAG_PATH, FIELD(token_file),
     "Bearer token of the scoring API. Also checks that other tokens are refused."},
    {"ca-file", FLAG_PATH, FIELD(check.ca_file),
     "CA certificates to verify the server with. Default: SSL_CERT_FILE, or the system's."},
    {"timeout", FLAG_DURATION, FIELD(check.timeout_ms),
     "Deadline of each call. Default: that of an agent's round, which is the interval of /config, at least "
     "10s.",
     .min = 100, .max = 300 * 1000},
    {"cluster-name", FLAG_NAME, FIELD(check.cluster_name),
     "Name of the cluster, for ${cluster}. Default cluster1."},
    {"score-dimension-format", FLAG_NAME, FIELD(check.dimension_format),
     "Names of the items, as scoreDimensionFormat of a DynamicScorer. Default ${scoreName}.", "FORMAT",
     "a text in UTF-8"},
    {"output", FLAG_WORD, FIELD(output), "Output: table or json. Default table.", .words = outputs},
    {.name = NULL},
};

static int checker_read_token(const char *path, struct buf *file, struct str *ret)
{
    const char *why;
    int r = file_read(path, file);

    why = r < 0 ? strerror(-r) : secret_token(buf_str(file), ret);
    if (why)
        terminal_printf(stderr, "%s: %s\n", path, why);
    return why ? -EINVAL : 0;
}

static bool checker_print(const struct findings *findings, bool as_json)
{
    BUF_AUTO(text, SCORER_FINDINGS_MAX_BYTES);
    int r;

    if (as_json) {
        r = findings_json(findings, &text);
        return terminal_print_json(buf_str(&text), r);
    }
    r = findings_table(findings, &text);
    return r < 0 ? terminal_print(STR(""), r) : terminal_print_lines(stdout, buf_str(&text));
}

static int checker_main(char **argv)
{
    struct checker_options o = {.check = {.cluster_name = "cluster1", .dimension_format = "${scoreName}"}};
    SECRET_AUTO(token, TOKEN_MAX_BYTES);
    CLEANUP(findings_done) struct findings findings = {0};
    int status;

    if (!flags_parse(&command_check_scorer, argv, &o, &status))
        return status;
    if (!argv[1])
        return flags_error(&command_check_scorer, "missing argument: URL", "");
    if (argv[2])
        return flags_error(&command_check_scorer, "unexpected argument: ", argv[2]);
    o.check.url = argv[1];
    if (o.token_file && checker_read_token(o.token_file, &token, &o.check.token) < 0)
        return EXIT_USAGE;
    if (check_run(&findings, &o.check) < 0)
        return flags_error(&command_check_scorer, "expected an http or https URL without a user, got ",
                           o.check.url);
    if (*findings.unreachable) {
        terminal_printf(stderr, "%s: %s\n", findings.url, findings.unreachable);
        return EXIT_USAGE;
    }
    if (!checker_print(&findings, o.output == 1))
        return 1;
    return findings.by_level[RULE_PROBLEM] > 0;
}

const struct command command_check_scorer = {
    .name = "check-scorer",
    .arguments = "[flags] URL",
    .help = "Check a scoring API: what the hub and an agent make of its answers, and which rules it breaks.",
    .flags = checker_flags,
    .takes_arguments = true,
    .run = checker_main,
};
