/* The agent's HTTP endpoints. */
#ifndef DS_AGENT_WEB_H
#define DS_AGENT_WEB_H

#include "exporter/base/def.h"

#include <stdbool.h>

struct agent;
struct httpd_guard;
struct web;

struct web_options {
    bool lifecycle;            /* serve POST /-/reload */
    const char *probe_address; /* serve /-/healthy and /-/ready here too; NULL: no address of their own */
    const struct httpd_guard *guard; /* of all other addresses; NULL: everyone may send every request */
};

/* Serves on the configuration's listen addresses. On failure *ret_why (from malloc) says what is wrong. */
MUST_USE int web_start(struct web **ret, struct agent *a, const struct web_options *o, char **ret_why);
/* Lets answers under way leave for at most grace_ms. Takes NULL, returns NULL. */
struct web *web_stop(struct web *w, int grace_ms);

#endif
