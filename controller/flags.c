#include "controller/flags.h"

#include "exporter/base/def.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(const struct command *c)
{
    (void)printf("usage: dynamic-scoring %s %s\n\n%s\n", c->name, c->arguments, c->help);
    if (!c->flags[0].name)
        return;
    (void)printf("\nflags:\n");
    for (const struct flag *f = c->flags; f->name; f++)
        (void)printf("  --%s%s%s\n        %s\n", f->name, f->value ? "=" : "", f->value ? f->value : "",
                     f->help);
}

static const struct flag *find_flag(const struct command *c, const char *name, size_t n)
{
    for (const struct flag *f = c->flags; f->name; f++)
        if (strlen(f->name) == n && strncmp(f->name, name, n) == 0)
            return f;
    return NULL;
}

static int usage(const struct command *c, const char *name, int n, const char *what, const char *more)
{
    (void)fprintf(stderr, "dynamic-scoring %s: --%.*s: %s%s\nTry 'dynamic-scoring %s --help'.\n", c->name, n,
                  name, what, more, c->name);
    return -1;
}

/* Takes the flag at argv[i]. The number of words used, or -1. */
static int take_flag(const struct command *c, int argc, char **argv, int i, void *arg)
{
    const char *name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
    size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    const struct flag *f = find_flag(c, name, n);
    const char *wrong;
    int used = 1;

    if (!f)
        return usage(c, name, (int)n, "no such flag", "");
    if (f->value && !value) {
        if (i + 1 >= argc)
            return usage(c, name, (int)n, "expected a value: ", f->value);
        value = argv[i + 1];
        used = 2;
    }
    if (!f->value && !value)
        value = "true";
    if (!f->value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return usage(c, name, (int)n, "expected true or false", "");
    wrong = f->take(arg, value);
    return wrong ? usage(c, name, (int)n, "expected ", wrong) : used;
}

int flags_parse(const struct command *c, int argc, char **argv, void *arg, const char **rest)
{
    int n = 0;

    for (int i = 1; i < argc;) {
        int used = 1;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "-help") == 0) {
            print_help(c);
            return -2;
        }
        if (strcmp(argv[i], "--") == 0) {
            for (i++; i < argc; i++)
                rest[n++] = argv[i];
            break;
        }
        if (argv[i][0] == '-' && argv[i][1])
            used = take_flag(c, argc, argv, i, arg);
        else
            rest[n++] = argv[i];
        if (used < 0)
            return -1;
        i += used;
    }
    return n;
}

bool flag_on(const char *v)
{
    return strcmp(v, "true") == 0;
}

bool flag_number(const char *v, unsigned max, unsigned *ret)
{
    char *end;
    unsigned long n;

    if (*v < '0' || *v > '9')
        return false;
    n = strtoul(v, &end, 10); /* ULONG_MAX for what is larger */
    if (*end || n < 1 || n > max)
        return false;
    *ret = (unsigned)n;
    return true;
}

/* One number with its unit, in milliseconds; the characters used, 0 for what is none. */
static size_t take_piece(const char *v, double *ret)
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

bool flag_duration(const char *v, int64_t min_ms, int64_t max_ms, int64_t *ret)
{
    double sum = 0;

    do {
        double piece;
        size_t used = take_piece(v, &piece);

        if (!used)
            return false;
        sum += piece;
        v += used;
    } while (*v);
    if (sum < (double)min_ms || sum > (double)max_ms)
        return false;
    *ret = (int64_t)(sum + 0.5);
    return true;
}
