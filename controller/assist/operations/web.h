/* The optimizer's HTTP server: its operations as REST requests, /mcp, /openapi.json, and the page of the last
 * plan. */
#ifndef DS_ASSIST_OPERATIONS_WEB_H
#define DS_ASSIST_OPERATIONS_WEB_H

#include "controller/assist/state/assist.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

#include <stdbool.h>

struct assist_web;

struct assist_web_options {
    struct loop *loop;
    struct assist *assist; /* may be freed before the server is stopped, once the loop has ended */
    struct metrics *metrics;
    const char *const *listen;
    size_t n_listen;
    const char *health_address;      /* of probes, plain and open; NULL: only on the addresses above */
    const char *config_file;         /* --web.config.file; NULL: none */
    const struct httpd_guard *guard; /* must outlive the server; or NULL */
    bool allow_writes;               /* by assistants */
};

/* On failure *ret_why (from malloc) says what is wrong. */
MUST_USE int assist_web_start(struct assist_web **ret, const struct assist_web_options *o, char **ret_why);
/* The bound port of listen address i. */
unsigned assist_web_port(const struct assist_web *w, size_t i);
/* Reads the web configuration file again; the log says how that went. */
void assist_web_reload(struct assist_web *w);
/* Takes NULL, returns NULL. */
struct assist_web *assist_web_stop(struct assist_web *w, int grace_ms);

#endif
