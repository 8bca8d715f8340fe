/* The agent's HTTP endpoints. */
#ifndef DS_AGENT_WEB_H
#define DS_AGENT_WEB_H

#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/httpd.h"

#include <stdbool.h>

struct agent;
struct web;

struct web_options {
    bool lifecycle;            /* serve POST /-/reload */
    const char *probe_address; /* serve /-/healthy and /-/ready here too; NULL: no address of their own */
    const char *config_file;   /* --web.config.file; NULL: none */
    const struct httpd_guard *guard; /* who may use the listen addresses; must outlive the server; or NULL */
};

/* Serves on the configuration's listen addresses. On failure *ret_why (from malloc) says what is wrong; the
 * log has the problems of the web configuration file. */
MUST_USE int web_start(struct web **ret, struct agent *a, const struct web_options *o, char **ret_why);
/* Reads the web configuration file again, as access_reload() does. */
MUST_USE int web_reload_config(struct web *w, struct buf *ret_why);
/* Lets answers under way leave for at most grace_ms. Takes NULL, returns NULL. */
struct web *web_stop(struct web *w, int grace_ms);

#endif
