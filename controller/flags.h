/* Command-line flags: `--name=value`, `--name value`, one dash or two, as Go programs read them. */
#ifndef DS_CONTROLLER_FLAGS_H
#define DS_CONTROLLER_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flag {
    const char *name;  /* without dashes */
    const char *value; /* the value's name in the help; NULL: a switch */
    const char *help;
    /* Parses the value ("true" or "false" for a switch) into the field. The last flag of a name wins.
     * False if invalid. */
    bool (*parse)(void *field, const char *value, const struct flag *f);
    size_t field;         /* offset in the options given to flags_parse() */
    const char *expected; /* what an invalid value is not, for the error: "a path" */
    int64_t min, max;     /* of a flag_duration, in milliseconds; max alone of a flag_number */
};

/* A subcommand. */
struct command {
    const char *name, *arguments, *help;
    const struct flag *flags;          /* ends with one without a name */
    const struct flag *shared;         /* more of them, which other commands have as well; NULL for none */
    size_t shared_at;                  /* the offset of their fields' struct in the options */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand; returns the exit status */
};

enum { EXIT_USAGE = 2 };

/* Parses flags into *options and moves the other arguments to rest[], which has room for argc. Returns
 * their number, or -1 after an error on stderr (exit with EXIT_USAGE), or -2 after printing the help (exit
 * with 0). */
int flags_parse(const struct command *c, int argc, char **argv, void *options, const char **rest);
/* Like flags_parse() for a command without other arguments. Returns -1 to go on, or the exit status. */
int flags_parse_all(const struct command *c, int argc, char **argv, void *options);
/* Prints the error and the hint to use --help; returns EXIT_USAGE. */
int flags_error(const struct command *c, const char *error, const char *detail);

/* ---- Types of values: functions for struct flag's `parse` ---- */

/* const char *: a non-empty text, not copied. */
bool flag_text(void *field, const char *value, const struct flag *f);
/* const char *: an RFC 1123 label, as the API server wants of a namespace; not copied. */
bool flag_namespace(void *field, const char *value, const struct flag *f);
#define FLAG_NAMESPACE_EXPECTED "a namespace: at most 63 of a-z, 0-9 and -, not starting or ending with -"
/* bool: a switch. */
bool flag_switch(void *field, const char *value, const struct flag *f);
/* unsigned: from 1 to max. */
bool flag_number(void *field, const char *value, const struct flag *f);
/* int64_t: milliseconds, from a duration as Go writes it: 500ms, 1.5s, 1m30s. */
bool flag_duration(void *field, const char *value, const struct flag *f);

#endif
