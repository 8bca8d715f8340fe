/* What the roles of the program share, from their flags to the exit status. */
#pragma once

#include "controller/kube/client.h"
#include "controller/kube/guard.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/site.h"

#include <stdio.h>

/* ---- Command-line flags: `--name=value`, `--name value`, one dash or two, as Go programs read them ---- */

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

extern const struct command command_agent, command_controller, command_optimizer, command_check_config,
    command_check_scorer, command_policy_watcher, command_scorer, command_spool;

/* Parses flags into *options; the last one of a name wins. Moves other arguments to argv[1] and so on. False
 * to exit with *ret_status: after the help, or an error on stderr. */
bool flags_parse(const struct command *c, char **argv, void *options, int *ret_status);
/* Prints the error and the hint to use --help; returns EXIT_USAGE. */
int flags_error(const struct command *c, const char *error, const char *detail);

#define FLAG_NAMESPACE_EXPECTED "a namespace: at most 63 of a-z, 0-9 and -, not starting or ending with -"
bool flag_is_namespace(const char *value);

/* ---- Flags that several roles have ---- */

struct server_flags {
    int log_level, log_format;   /* -1: not given */
    const char *web_config_file; /* NULL: none */
    bool kubernetes_auth;
    int64_t auth_cache_ttl_ms, auth_timeout_ms; /* as for kube_guard_new() */
};

extern const struct server_flags server_flags_default;
extern const struct flag server_flags[]; /* for struct command */
enum { SERVER_FLAGS_OF_CLUSTER = 3 };    /* how many, from the first, need a cluster */

/* ---- The role ---- */

enum { FIRST_TRIM_MS = 10000 };
enum { STOP_GRACE_MS = 5000 }; /* for HTTP responses under way */

struct role {
    const struct server_flags *flags;
    struct loop *loop;
    /* NULL without role_open_kube() */
    struct http *http;
    struct kube *kube;
    struct metrics *metrics;
    struct kube_guard *guard;
    /* What it serves: reads its web configuration again on SIGHUP, and is stopped by role_run(). */
    struct site *site;
    /* SIGINT or SIGTERM: ends what must end before the loop stops, then calls done(done_arg). NULL: nothing
     * must. A second such signal stops the loop at once. */
    void (*on_stop)(struct role *r, void (*done)(void *arg), void *done_arg);
    void (*on_reload)(struct role *r); /* SIGHUP, before the site's; NULL: nothing else is read again */
    void (*on_end)(struct role *r);    /* after the loop, instead of stopping the site; may be NULL */
    struct watch signals;
    bool stopping;
};

/* Sets up the log, the loop and the signals, before any thread starts. A negative errno, which is logged. */
MUST_USE int role_open(struct role *r, const struct server_flags *f);
/* Also the client of an API server, as for kube_new(), and the guard that the flags ask for. */
MUST_USE int role_open_kube(struct role *r, const char *label, const char *kubeconfig,
                            const struct server_flags *f, const struct kube_path_right *rights);
/* The role's part of the options. */
struct site_options role_site(const struct role *r, const char *const *listen, size_t n_listen,
                              const char *probe_address);
/* Logs why something did not start; why (may be NULL) is freed. Returns the exit status. */
int role_failed(const char *what, int r, char *why);
/* If serving has begun (r and why say so), runs the loop until a signal stops it, then stops what serves.
 * Returns the exit status. */
int role_run(struct role *role, int r, char *why);
/* Frees all, after what uses it; also after a start that failed. */
void role_close(struct role *r);

/* Prints the text; r is the outcome of making it. False, and stderr says why, if it cannot be printed. */
bool terminal_print(struct str text, int r);
/* The same for JSON: what could move a terminal's cursor is escaped, which means the same to programs. */
bool terminal_print_json(struct str text, int r);
/* The same for lines that people read, parts of which others decide: control and bidirectional characters
 * and ill-formed UTF-8 become U+FFFD, so that no name or message can move the cursor or hide a line. */
bool terminal_print_lines(FILE *to, struct str text);
/* Prints such lines by a format. */
void terminal_say(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);
