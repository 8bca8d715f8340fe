/* What the roles of the program share, from their flags to the exit status. */
#pragma once

#include "controller/flags.h"
#include "controller/kube/client.h"
#include "controller/kube/guard.h"
#include "exporter/base/loop.h"
#include "exporter/base/trim.h"
#include "exporter/http/http.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/site.h"

#include <stdio.h>

extern const struct command command_agent, command_controller, command_optimizer, command_check_config,
    command_check_scorer, command_policy_watcher, command_scorer, command_spool;

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
    struct trim trim;
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
