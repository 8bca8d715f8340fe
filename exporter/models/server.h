/* Serving an instance: the scoring API, /healthz, /metrics and the page. Loop thread. */
#pragma once

#include "exporter/base/loop.h"
#include "exporter/models/instance.h"
#include "exporter/ui/site.h"

struct model_server;

struct model_server_options {
    struct loop *loop;
    struct instance *instance; /* configured, not open; must outlive the server */
    const char *const *listen;
    size_t n_listen;
    const char *config_file;        /* --web.config.file; NULL: none */
    const char *token_file, *token; /* the callers' bearer token; at most one */
};

/* Opens the instance and serves it. On failure *ret_why (from malloc) says what is wrong. */
MUST_USE int model_server_start(struct model_server **ret, const struct model_server_options *o,
                                char **ret_why);
/* NULL for NULL. */
struct site *model_server_site(const struct model_server *s);
/* Scores the calls that wait, for a few seconds, and closes the instance. Takes NULL, returns NULL. */
struct model_server *model_server_stop(struct model_server *s, int grace_ms);
