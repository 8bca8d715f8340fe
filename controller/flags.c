/* Reads command lines by tables of flags, and prints help from the same tables. Owns nothing: values point
 * into argv. Before any thread starts. */
#include "controller/flags.h"

#include "controller/terminal.h"
#include "exporter/base/alloc.h"
#include "exporter/base/utf8.h"

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/http/httpd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMESPACE = 63, MAX_LISTEN = 16, EXPECTED_BYTES = 256 };

static const struct {
    const char *value, *expected;
} flag_types[] = {
    [FLAG_SWITCH] = {NULL, "true or false"},
    [FLAG_PATH] = {"FILE", "a path"},
    [FLAG_NAME] = {"NAME", "a name"},
    [FLAG_TEXT] = {NULL, NULL},
    [FLAG_NAMESPACE] = {"NAMESPACE", FLAG_NAMESPACE_EXPECTED},
    [FLAG_ADDRESS] = {"ADDRESS", "host:port, :port, or 0 for none; ports are 0 to 65535"},
    [FLAG_LISTEN] = {"ADDRESS", "host:port or :port, at most 16 times"},
    [FLAG_NAMESPACES] = {"NAMESPACE", "a namespace, at most 256 times"},
    [FLAG_NUMBER] = {"N", NULL},
    [FLAG_DURATION] = {"DURATION", NULL},
    [FLAG_WORD] = {"FORMAT", NULL},
    [FLAG_OTHER] = {NULL, "true or false"},
};

static const char *flag_value_name(const struct flag *f)
{
    return f->value ? f->value : flag_types[f->type].value;
}

/* ---- Values ---- */

bool flag_is_namespace(const char *value)
{
    size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return n > 0 && n <= MAX_NAMESPACE && !value[n] && value[0] != '-' && value[n - 1] != '-';
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

static bool flag_parse_duration(const char *value, const struct flag *f, int64_t *ret)
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
    *ret = (int64_t)(sum + 0.5);
    return sum >= (double)f->min && sum <= (double)f->max;
}

static bool flag_add(struct flag_list *list, const char *value, size_t max, bool is_valid)
{
    if (list->n == max || !is_valid)
        return false;
    list->items[list->n++] = value;
    return true;
}

static bool flag_parse(const struct flag *f, const char *value, void *field)
{
    const char **text = field;
    uint64_t n = 0;

    switch (f->type) {
    case FLAG_SWITCH:
        *(bool *)field = strcmp(value, "true") == 0;
        return *(bool *)field || strcmp(value, "false") == 0;
    case FLAG_LISTEN:
        return flag_add(field, value, MAX_LISTEN, strrchr(value, ':'));
    case FLAG_NAMESPACES:
        return flag_add(field, value, FLAG_LIST_MAX, flag_is_namespace(value));
    case FLAG_NUMBER:
        if (!str_to_u64(str_of(value), &n) || n < 1 || n > (uint64_t)f->max)
            return false;
        *(unsigned *)field = (unsigned)n;
        return true;
    case FLAG_DURATION:
        return flag_parse_duration(value, f, field);
    case FLAG_WORD:
        while (f->words[n] && strcmp(value, f->words[n]) != 0)
            n++;
        *(int *)field = (int)n;
        return f->words[n];
    case FLAG_OTHER:
        return f->parse(field, value, f);
    case FLAG_ADDRESS:
        *text = strcmp(value, "0") == 0 ? NULL : value;
        return !*text || httpd_is_address(value);
    case FLAG_TEXT:
        *text = value;
        return f->is_valid(value);
    case FLAG_NAMESPACE:
        *text = value;
        return flag_is_namespace(value);
    default:
        *text = value;
        return *value && (f->type == FLAG_PATH || utf8_valid_prefix(str_of(value)) == strlen(value));
    }
}

/* "1s", "5m", "24h" */
static void flag_print_duration(int64_t ms, struct buf *into)
{
    static const struct {
        int64_t ms;
        const char *word;
    } units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    size_t i = ms == 0 ? 2 : 0; /* "0s" */

    while (ms % units[i].ms != 0)
        i++;
    buf_printf(into, "%lld%s", (long long)(ms / units[i].ms), units[i].word);
}

static void flag_print_expected(const struct flag *f, struct buf *into)
{
    if (f->expected || flag_types[f->type].expected) {
        buf_puts(into, f->expected ? f->expected : flag_types[f->type].expected);
    } else if (f->type == FLAG_WORD) {
        problem_choices(f->words, into);
    } else if (f->type == FLAG_NUMBER) {
        buf_printf(into, "1 to %lld", (long long)f->max);
    } else {
        buf_puts(into, "a duration from ");
        flag_print_duration(f->min, into);
        buf_puts(into, " to ");
        flag_print_duration(f->max, into);
    }
}

/* ---- The command line ---- */

static void flags_print_table(const struct flag *table)
{
    for (const struct flag *f = table; f && f->name; f++) {
        (void)printf("  --%s", f->name);
        if (flag_value_name(f))
            (void)printf("=%s", flag_value_name(f));
        (void)printf("\n        %s\n", f->help);
    }
}

static void flags_print_help(const struct command *c)
{
    (void)printf("usage: dynamic-scoring %s %s\n\n%s\n", c->name, c->arguments, c->help);
    if (c->flags[0].name)
        (void)printf("\nflags:\n");
    flags_print_table(c->flags);
    flags_print_table(c->shared);
}

static const struct flag *flags_find(const struct flag *table, struct str name)
{
    for (const struct flag *f = table; f && f->name; f++)
        if (str_eq(str_of(f->name), name))
            return f;
    return NULL;
}

int flags_error(const struct command *c, const char *error, const char *detail)
{
    terminal_printf(stderr, "dynamic-scoring %s: %s%s\nTry 'dynamic-scoring %s --help'.\n", c->name, error,
                    detail, c->name);
    return EXIT_USAGE;
}

static size_t flags_refuse(const struct command *c, struct str name, const char *what, const char *more)
{
    CLEANUP(cleanup_free) char *error = xasprintf("--%.*s: %s", STR_ARG(name), what);

    (void)flags_error(c, error, more);
    return 0;
}

/* Parses the flag at argv[0]. Returns the number of arguments used; 0 after an error on stderr. */
static size_t flags_parse_one(const struct command *c, char **argv, char *options)
{
    const char *text = argv[0] + (argv[0][1] == '-' ? 2 : 1);
    const struct str name = {text, strcspn(text, "=")};
    const char *value = text[name.n] == '=' ? text + name.n + 1 : NULL;
    const struct flag *f = flags_find(c->flags, name);
    BUF_AUTO(expected, EXPECTED_BYTES);
    size_t used = 1;

    if (!f && (f = flags_find(c->shared, name)))
        options += c->shared_at;
    if (!f)
        return flags_refuse(c, name, "unknown flag", "");
    if (!value && !flag_value_name(f))
        value = "true";
    if (!value && !argv[used])
        return flags_refuse(c, name, "expected a value: ", flag_value_name(f));
    if (!value)
        value = argv[used++];
    if (flag_parse(f, value, options + f->field))
        return used;
    flag_print_expected(f, &expected);
    buf_putc(&expected, '\0');
    if (buf_failed(&expected) < 0)
        return flags_refuse(c, name, "expected another value", "");
    return flags_refuse(c, name, "expected ", expected.p);
}

bool flags_parse(const struct command *c, char **argv, void *options, int *ret_status)
{
    bool only_arguments = false;
    size_t n = 1, used;

    for (char **at = argv + 1; *at; at += used) {
        used = 1;
        if (only_arguments || **at != '-' || !(*at)[1]) {
            argv[n++] = *at;
        } else if (strcmp(*at, "--") == 0) {
            only_arguments = true;
        } else if (strcmp(*at, "--help") == 0 || strcmp(*at, "-h") == 0 || strcmp(*at, "-help") == 0) {
            flags_print_help(c);
            *ret_status = 0;
            return false;
        } else if (!(used = flags_parse_one(c, at, options))) {
            *ret_status = EXIT_USAGE;
            return false;
        }
    }
    argv[n] = NULL;
    if (n == 1 || c->takes_arguments)
        return true;
    *ret_status = flags_error(c, "unexpected argument: ", argv[1]);
    return false;
}
