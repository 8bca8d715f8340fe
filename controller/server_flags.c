#include "controller/server_flags.h"

#include "exporter/base/httpd.h"

#include <string.h>

enum { MAX_CACHE_TTL_MS = 3600 * 1000, MIN_TIMEOUT_MS = 100, MAX_TIMEOUT_MS = 60 * 1000 };

const struct server_flags server_flags_default = {
    .log_level = LOG_LEVEL_INFO,
    .log_format = LOG_FORMAT_LOGFMT,
    .review = {.cache_ttl_ms = 60 * 1000, .timeout_ms = 10 * 1000},
};

static bool server_parse_log_level(void *field, const char *v, const struct flag *f)
{
    struct server_flags *flags = field;

    (void)f;
    flags->has_log_level = true;
    return log_level_parse(str_of(v), &flags->log_level);
}

static bool server_parse_log_format(void *field, const char *v, const struct flag *f)
{
    struct server_flags *flags = field;

    (void)f;
    flags->has_log_format = true;
    return log_format_parse(str_of(v), &flags->log_format);
}

#define FIELD(name) .field = offsetof(struct server_flags, name)

const struct flag server_flags[] = {
    {"web.kubernetes-auth", NULL,
     "Answer a request only if the user of its bearer token or client certificate may, by the RBAC of the "
     "cluster, get /metrics, post /-/reload, post /optimize (in the optimizer: requests that plan or write), "
     "or get /status for all other paths; probes on an address of their own stay open. Default false.",
     flag_switch, FIELD(kubernetes_auth)},
    {"web.kubernetes-auth.cache-ttl", "DURATION",
     "How long an allowed token is not reviewed again, from 0s to 1h; a refused one, for at most 10s of it. "
     "Default 1m.",
     flag_duration, FIELD(review.cache_ttl_ms), .expected = "a duration from 0s to 1h",
     .max = MAX_CACHE_TTL_MS},
    {"web.kubernetes-auth.timeout", "DURATION",
     "Timeout of the API server's review of a token, from 100ms to 1m. Default 10s.", flag_duration,
     FIELD(review.timeout_ms), .expected = "a duration from 100ms to 1m", .min = MIN_TIMEOUT_MS,
     .max = MAX_TIMEOUT_MS},
    {"web.config.file", "FILE",
     "Web configuration file, as Prometheus' exporters have it: TLS, basic authentication, headers and a "
     "rate limit. Not for the address of the probes. Read again when it changes. Default none.",
     flag_text, FIELD(web_config_file), .expected = "a path"},
    {"log.level", "LEVEL", "Log level: debug, info, warn or error. Default info.", server_parse_log_level,
     .expected = "debug, info, warn or error"},
    {"log.format", "FORMAT", "Log format: logfmt or json. Default logfmt.", server_parse_log_format,
     .expected = "logfmt or json"},
    {.name = NULL},
};

#undef FIELD

const struct flag *const server_flags_anywhere = server_flags + 3;

int server_flags_guard(struct kube_guard **ret, const struct server_flags *f, struct kube *k,
                       const struct kube_path_right *rights)
{
    struct kube_review_options o = f->review;

    *ret = NULL;
    o.kube = k;
    return f->kubernetes_auth ? kube_guard_new(ret, &o, rights) : 0;
}

bool flag_address(void *field, const char *value, const struct flag *f)
{
    (void)f;
    *(const char **)field = value;
    return strcmp(value, "0") == 0 || httpd_is_address(value);
}
