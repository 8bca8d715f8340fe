/* Who may use an HTTP server, by the web configuration file, read again when it changes, or by a guard. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"

struct access_options {
    struct loop *loop;
    struct metrics *metrics;
    const char *file;                /* --web.config.file; NULL: none */
    const struct httpd_guard *guard; /* asked instead of the file, which must not have users then; or NULL */
    void (*changed)(void *arg);      /* the file was read again: the metrics have changed. May be NULL */
    void *arg;
};

/* The file's last reading. */
struct access_status {
    const char *file;
    bool ok;
    int64_t at_ms;  /* Unix time */
    char *problems; /* errors and warnings, a line each; NULL for none */
};

struct access;

/* Reads the file. -EINVAL: the log says why, and *ret_why (from malloc) names the file. -EAGAIN. */
MUST_USE int access_new(struct access **ret, const struct access_options *o, char **ret_why);
/* Starts the server, once, with the guard, TLS and headers of the file; `a` owns it. Fails as httpd_new(). */
MUST_USE int access_serve(struct access *a, struct httpd **ret, struct httpd_options o, char **ret_why);
/* Whether a request needs a user, a token or a client certificate. */
bool access_authenticates(const struct access *a);
/* Reads the file now, if there is one. -EINVAL: the last valid one stays in force, and *ret_why (may be NULL)
 * gets the problems, a line each. */
MUST_USE int access_reload(struct access *a, struct buf *ret_why);
/* NULL without a file. Valid until the next turn of the loop. */
const struct access_status *access_status(const struct access *a);
/* Lets nobody else in, stops the server as httpd_stop() does, and frees all. Takes NULL, returns NULL. */
struct access *access_stop(struct access *a, int grace_ms);
