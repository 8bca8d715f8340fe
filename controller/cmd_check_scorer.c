/* `dynamic-scoring check-scorer URL`: what the hub and an agent make of a scoring API. */
#include "controller/check/check.h"
#include "controller/flags.h"
#include "controller/role.h"
#include "exporter/base/buf.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <stdio.h>

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
        (void)fprintf(stderr, "%s: %s\n", path, why);
    return why ? -EINVAL : 0;
}

static int checker_main(char **argv)
{
    struct checker_options o = {.check = {.cluster_name = "cluster1", .dimension_format = "${scoreName}"}};
    SECRET_AUTO(token, TOKEN_MAX_BYTES);
    CLEANUP(findings_done) struct findings findings = {0};
    BUF_AUTO(text, SCORER_FINDINGS_MAX_BYTES);
    int status, r;

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
        (void)fprintf(stderr, "%s: %s\n", findings.url, findings.unreachable);
        return EXIT_USAGE;
    }
    r = o.output == 1 ? findings_json(&findings, &text) : findings_table(&findings, &text);
    return terminal_print(buf_str(&text), r) ? findings.by_level[RULE_PROBLEM] > 0 : 1;
}

const struct command command_check_scorer = {
    .name = "check-scorer",
    .arguments = "[flags] URL",
    .help = "Check a scoring API: what the hub and an agent make of its answers, and which rules it breaks.",
    .flags = checker_flags,
    .takes_arguments = true,
    .run = checker_main,
};
