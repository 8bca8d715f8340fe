/* Command-line flags: `--name=value`, `--name value`, one dash or two, as Go programs read them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flag_type {
    FLAG_SWITCH,     /* bool */
    FLAG_PATH,       /* const char *: not empty; not copied, like all texts */
    FLAG_NAME,       /* const char *: not empty, UTF-8 */
    FLAG_TEXT,       /* const char *: what `is_valid` accepts */
    FLAG_NAMESPACE,  /* const char *: an RFC 1123 label, as the API server wants of a namespace */
    FLAG_ADDRESS,    /* const char *: "host:port" or ":port"; NULL for "0", none */
    FLAG_LISTEN,     /* struct flag_list of "host:port" and ":port" */
    FLAG_NAMESPACES, /* struct flag_list */
    FLAG_NUMBER,     /* unsigned: from 1 to max */
    FLAG_DURATION,   /* int64_t: milliseconds from min to max, as Go writes it: 500ms, 1.5s, 1m30s */
    FLAG_WORD,       /* int: the index of one of `words` */
    FLAG_OTHER,      /* by `parse` */
};

enum { FLAG_LIST_MAX = 256, EXIT_USAGE = 2 };

struct flag_list {
    const char *items[FLAG_LIST_MAX];
    size_t n;
};

struct flag {
    const char *name; /* without dashes */
    enum flag_type type;
    size_t field; /* offset in the options given to flags_parse() */
    const char *help;
    const char *value;    /* the value's name in the help; NULL: that of the type */
    const char *expected; /* what an invalid value is not, for the error: "a path"; NULL: that of the type */
    int64_t min, max;
    const char *const *words; /* ends with NULL */
    bool (*is_valid)(const char *value);
    /* Parses the value into the field; false if invalid. */
    bool (*parse)(void *field, const char *value, const struct flag *f);
};

/* A subcommand. */
struct command {
    const char *name, *arguments, *help;
    const struct flag *flags;  /* ends with one without a name */
    const struct flag *shared; /* more of them, which other commands have as well; NULL for none */
    size_t shared_at;          /* the offset of their fields' struct in the options */
    bool takes_arguments;      /* other than flags */
    int (*run)(char **argv);   /* argv[0] is the subcommand; returns the exit status */
};

/* Parses flags into *options; the last one of a name wins. Moves other arguments to argv[1] and so on. False
 * to exit with *ret_status: after the help, or an error on stderr. */
bool flags_parse(const struct command *c, char **argv, void *options, int *ret_status);
/* Prints the error and the hint to use --help; returns EXIT_USAGE. */
int flags_error(const struct command *c, const char *error, const char *detail);

#define FLAG_NAMESPACE_EXPECTED "a namespace: at most 63 of a-z, 0-9 and -, not starting or ending with -"
bool flag_is_namespace(const char *value);
