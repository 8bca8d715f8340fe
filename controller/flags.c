#include "controller/flags.h"

#include "controller/kube/guard.h"
#include "controller/server_flags.h"
#include "exporter/base/def.h"
#include "exporter/base/httpd.h"
#include "exporter/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMESPACE = 63 };

static void flags_print_table(const struct flag *table)
{
    for (const struct flag *f = table; f && f->name; f++)
        (void)printf("  --%s%s%s\n        %s\n", f->name, f->value ? "=" : "", f->value ? f->value : "",
                     f->help);
}

static void flags_print_help(const struct command *c)
{
    (void)printf("usage: dynamic-scoring %s %s\n\n%s\n", c->name, c->arguments, c->help);
    if (!c->flags[0].name)
        return;
    (void)printf("\nflags:\n");
    flags_print_table(c->flags);
    flags_print_table(c->shared);
}

static const struct flag *flags_find(const struct flag *table, const char *name, size_t n)
{
    for (const struct flag *f = table; f && f->name; f++)
        if (strlen(f->name) == n && strncmp(f->name, name, n) == 0)
            return f;
    return NULL;
}

static int flags_refuse(const struct command *c, const char *name, size_t n, const char *what,
                        const char *more)
{
    (void)fprintf(stderr, "dynamic-scoring %s: --%.*s: %s%s\nTry 'dynamic-scoring %s --help'.\n", c->name,
                  (int)n, name, what, more, c->name);
    return -1;
}

/* Parses the flag at argv[i]. Returns the number of arguments used, or -1. */
static int flags_parse_one(const struct command *c, int argc, char **argv, int i, void *options)
{
    const char *name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
    size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    const struct flag *f = flags_find(c->flags, name, n);
    char *at = options;
    int used = 1;

    if (!f) {
        f = flags_find(c->shared, name, n);
        at += c->shared_at;
    }
    if (!f)
        return flags_refuse(c, name, n, "unknown flag", "");
    if (f->value && !value) {
        if (i + 1 >= argc)
            return flags_refuse(c, name, n, "expected a value: ", f->value);
        value = argv[i + 1];
        used = 2;
    }
    if (!f->parse(at + f->field, value ? value : "true", f))
        return flags_refuse(c, name, n, "expected ", f->value ? f->expected : "true or false");
    return used;
}

int flags_parse(const struct command *c, int argc, char **argv, void *options, const char **rest)
{
    int n = 0;

    for (int i = 1; i < argc;) {
        int used = 1;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "-help") == 0) {
            flags_print_help(c);
            return -2;
        }
        if (strcmp(argv[i], "--") == 0) {
            for (i++; i < argc; i++)
                rest[n++] = argv[i];
            break;
        }
        if (argv[i][0] == '-' && argv[i][1])
            used = flags_parse_one(c, argc, argv, i, options);
        else
            rest[n++] = argv[i];
        if (used < 0)
            return -1;
        i += used;
    }
    return n;
}

int flags_error(const struct command *c, const char *error, const char *detail)
{
    (void)fprintf(stderr, "dynamic-scoring %s: %s%s\nTry 'dynamic-scoring %s --help'.\n", c->name, error,
                  detail, c->name);
    return EXIT_USAGE;
}

int flags_parse_all(const struct command *c, int argc, char **argv, void *options)
{
    CLEANUP(cleanup_free) const char **rest = xcalloc((size_t)argc, sizeof(*rest));
    int n = rest ? flags_parse(c, argc, argv, options, rest) : -1;

    if (n > 0)
        return flags_error(c, "unexpected argument: ", rest[0]);
    return n == -2 ? 0 : n < 0 ? EXIT_USAGE : -1;
}

bool flag_text(void *field, const char *value, const struct flag *f)
{
    (void)f;
    *(const char **)field = value;
    return *value;
}

bool flag_namespace(void *field, const char *value, const struct flag *f)
{
    size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-");

    (void)f;
    *(const char **)field = value;
    return n > 0 && n <= MAX_NAMESPACE && !value[n] && value[0] != '-' && value[n - 1] != '-';
}

bool flag_switch(void *field, const char *value, const struct flag *f)
{
    (void)f;
    *(bool *)field = strcmp(value, "true") == 0;
    return *(bool *)field || strcmp(value, "false") == 0;
}

bool flag_number(void *field, const char *value, const struct flag *f)
{
    char *end;
    unsigned long n;

    if (*value < '0' || *value > '9')
        return false;
    n = strtoul(value, &end, 10); /* ULONG_MAX on overflow */
    if (*end || n < 1 || n > (unsigned long)f->max)
        return false;
    *(unsigned *)field = (unsigned)n;
    return true;
}

/* One number with its unit, in milliseconds. Returns the bytes used, 0 if invalid. */
static size_t flag_duration_part(const char *v, double *ret)
{
    static const char digits[] = "0123456789.";
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ns", 1e-6}, {"us", 1e-3}, {"µs", 1e-3}, {"ms", 1},
                 {"s", 1000},  {"m", 60e3},  {"h", 3600e3}};
    size_t n = strspn(v, digits), u = strcspn(v + n, digits);
    char *end;
    double x = strtod(v, &end);

    if (n == 0 || end != v + n)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strlen(units[i].name) == u && strncmp(v + n, units[i].name, u) == 0) {
            *ret = x * units[i].ms;
            return n + u;
        }
    return 0;
}

bool flag_duration(void *field, const char *value, const struct flag *f)
{
    double sum = 0;

    do {
        double part;
        size_t used = flag_duration_part(value, &part);

        if (!used)
            return false;
        sum += part;
        value += used;
    } while (*value);
    if (sum < (double)f->min || sum > (double)f->max)
        return false;
    *(int64_t *)field = (int64_t)(sum + 0.5);
    return true;
}

enum { MAX_CACHE_TTL_MS = 3600 * 1000, MIN_TIMEOUT_MS = 100, MAX_TIMEOUT_MS = 60 * 1000 };

const struct server_flags server_flags_default = {
    .log_level = LOG_LEVEL_INFO,
    .log_format = LOG_FORMAT_LOGFMT,
    .guard = {.cache_ttl_ms = 60 * 1000, .timeout_ms = 10 * 1000},
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
     flag_duration, FIELD(guard.cache_ttl_ms), .expected = "a duration from 0s to 1h",
     .max = MAX_CACHE_TTL_MS},
    {"web.kubernetes-auth.timeout", "DURATION",
     "Timeout of the API server's review of a token, from 100ms to 1m. Default 10s.", flag_duration,
     FIELD(guard.timeout_ms), .expected = "a duration from 100ms to 1m", .min = MIN_TIMEOUT_MS,
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
    struct kube_guard_options o = f->guard;

    *ret = NULL;
    o.kube = k;
    if (f->kubernetes_auth)
        *ret = kube_guard_new(&o, rights);
    return 0;
}

bool flag_address(void *field, const char *value, const struct flag *f)
{
    (void)f;
    *(const char **)field = value;
    return strcmp(value, "0") == 0 || httpd_is_address(value);
}
