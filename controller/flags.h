/* Command-line flags: `--name=value`, `--name value`, one dash or two, as Go programs take them. */
#ifndef DS_CONTROLLER_FLAGS_H
#define DS_CONTROLLER_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flag {
    const char *name;  /* without dashes */
    const char *value; /* what the help calls its value; NULL: a switch */
    const char *help;
    /* Takes the value ("true" or "false" for a switch; the last one given counts). NULL when it is good, otherwise what was expected. */
    const char *(*take)(void *arg, const char *value);
};

/* One subcommand. */
struct command {
    const char *name, *arguments, *help;
    const struct flag *flags;          /* ended by one without a name */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

enum { EXIT_USAGE = 2 };

/* Reads flags. What is no flag is moved to rest[], which has room for argc. The number of those, or -1 after a
 * message on stderr (exit with EXIT_USAGE), or -2 when help was asked for and printed (exit with 0). */
int flags_parse(const struct command *c, int argc, char **argv, void *arg, const char **rest);

/* ---- Values ---- */

/* Of a switch. */
bool flag_on(const char *v);
/* A number from 1 to max. */
bool flag_number(const char *v, unsigned max, unsigned *ret);
/* A duration as Go writes it: 500ms, 1.5s, 1m30s. In milliseconds. */
bool flag_duration(const char *v, int64_t min_ms, int64_t max_ms, int64_t *ret);

#endif
