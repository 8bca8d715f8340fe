/* `dynamic-scoring check-scorer URL`: what the hub and an agent make of a scoring API. */
#include "controller/check/check.h"
#include "controller/check/findings.h"
#include "controller/commands.h"
#include "controller/flags.h"
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <stdio.h>

enum { TOKEN_MAX_BYTES = 64 << 10, SCORER_FINDINGS_MAX_BYTES = 64 << 20 };

struct checker_options {
    struct check_options check;
    const char *token_file;
    bool json;
};

static bool checker_parse_output(void *field, const char *v, const struct flag *f)
{
    (void)f;
    *(bool *)field = strcmp(v, "json") == 0;
    return *(bool *)field || strcmp(v, "table") == 0;
}

static bool checker_parse_text(void *field, const char *v, const struct flag *f)
{
    return flag_text(field, v, f) && utf8_valid_prefix(str_of(v)) == strlen(v);
}

#define FIELD(name) .field = offsetof(struct checker_options, name)

static const struct flag checker_flags[] = {
    {"token-file", "FILE", "Bearer token of the scoring API. Also checks that other tokens are refused.",
     flag_text, FIELD(token_file), .expected = "a path"},
    {"ca-file", "FILE", "CA certificates to verify the server with. Default: SSL_CERT_FILE, or the system's.",
     flag_text, FIELD(check.ca_file), .expected = "a path"},
    {"timeout", "DURATION",
     "Deadline of each call. Default: that of an agent's round, which is the interval of /config, at least "
     "10s.",
     flag_duration, FIELD(check.timeout_ms), .expected = "a duration from 100ms to 5m", .min = 100,
     .max = 300 * 1000},
    {"cluster-name", "NAME", "Name of the cluster, for ${cluster}. Default cluster1.", checker_parse_text,
     FIELD(check.cluster_name), .expected = "a name"},
    {"score-dimension-format", "FORMAT",
     "Names of the items, as scoreDimensionFormat of a DynamicScorer. Default ${scoreName}.",
     checker_parse_text, FIELD(check.dimension_format), .expected = "a text in UTF-8"},
    {"output", "FORMAT", "Output: table or json. Default table.", checker_parse_output, FIELD(json),
     .expected = "table or json"},
    {.name = NULL},
};

#undef FIELD

static int checker_read_token(const char *path, struct buf *file, struct str *ret)
{
    const char *why;
    int r = file_read(path, file);

    why = r < 0 ? strerror(-r) : secret_token(buf_str(file), ret);
    if (why)
        (void)fprintf(stderr, "%s: %s\n", path, why);
    return why ? -EINVAL : 0;
}

static int checker_print(const struct findings *findings, bool json)
{
    BUF_AUTO(text, SCORER_FINDINGS_MAX_BYTES);
    int r = json ? findings_json(findings, &text) : findings_table(findings, &text);

    if (r == 0 && (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0))
        r = -errno;
    if (r < 0)
        (void)fprintf(stderr, "cannot print: %s\n", strerror(-r));
    return r < 0 ? 1 : findings_has_problems(findings);
}

static int checker_check(const struct checker_options *o)
{
    CLEANUP(findings_done) struct findings findings;
    int r;

    findings_init(&findings);
    r = check_run(&findings, &o->check);
    if (r == -EINVAL)
        return flags_error(&command_check_scorer, "expected an http or https URL without a user, got ",
                           o->check.url);
    if (r < 0) {
        (void)fprintf(stderr, "%s\n", strerror(-r));
        return 1;
    }
    if (*findings.unreachable) {
        (void)fprintf(stderr, "%s: %s\n", findings.url, findings.unreachable);
        return EXIT_USAGE;
    }
    return checker_print(&findings, o->json);
}

static int checker_main(int argc, char **argv)
{
    CLEANUP(cleanup_free) const char **urls = xcalloc((size_t)argc, sizeof(*urls));
    SECRET_AUTO(token, TOKEN_MAX_BYTES);
    struct checker_options o = {.check = {.cluster_name = "cluster1", .dimension_format = "${scoreName}"}};
    int n = urls ? flags_parse(&command_check_scorer, argc, argv, &o, urls) : -1;

    if (n == -2)
        return 0;
    if (n < 0)
        return EXIT_USAGE;
    if (n != 1)
        return flags_error(&command_check_scorer, n ? "unexpected argument: " : "missing argument: URL",
                           n ? urls[1] : "");
    o.check.url = urls[0];
    if (o.token_file && checker_read_token(o.token_file, &token, &o.check.token) < 0)
        return EXIT_USAGE;
    return checker_check(&o);
}

const struct command command_check_scorer = {
    .name = "check-scorer",
    .arguments = "[flags] URL",
    .help = "Check a scoring API: what the hub and an agent make of its answers, and which rules it breaks.",
    .flags = checker_flags,
    .run = checker_main,
};
