/* Serves a model: its scoring API, /healthz, /metrics and the page. */
#ifndef DS_MODELS_SERVER_H
#define DS_MODELS_SERVER_H

#include "exporter/base/loop.h"
#include "exporter/models/model.h"
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
/* Refuses new calls; done(arg) when those under way have been answered, or after a few seconds. */
void model_server_drain(struct model_server *s, void (*done)(void *arg), void *arg);
/* Closes the instance. Takes NULL, returns NULL. */
struct model_server *model_server_stop(struct model_server *s, int grace_ms);

#endif
