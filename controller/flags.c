#include "controller/flags.h"

#include <stdio.h>
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
    /* Every switch is off until it is given. */
    if (!f->value && value && strcmp(value, "false") == 0)
        return used;
    if (!f->value && value && strcmp(value, "true") != 0)
        return usage(c, name, (int)n, "expected true or false", "");
    wrong = f->take(arg, value ? value : "");
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
