/* The controller's HTTP endpoints: /metrics, the pages and their JSON on one address, /healthz and /readyz
 * on another. */
#ifndef DS_HUB_WEB_H
#define DS_HUB_WEB_H

#include "controller/hub/state/hub.h"
#include "exporter/base/httpd.h"
#include "exporter/metric/page.h"

struct hub_web;

struct hub_web_options {
    struct loop *loop;
    struct hub *hub;
    struct metrics *metrics;
    const char *metrics_address;     /* "host:port" or ":port"; "0" or NULL: none */
    const char *health_address;      /* the same */
    const char *config_file;         /* --web.config.file, for the metrics address; NULL: none */
    const struct httpd_guard *guard; /* who may use the metrics address; must outlive the server; or NULL */
};

/* On failure *ret_why (from malloc) says what is wrong. */
MUST_USE int hub_web_start(struct hub_web **ret, const struct hub_web_options *o, char **ret_why);
/* Reads the web configuration file again; the log says how that went. */
void hub_web_reload(struct hub_web *w);
/* Before the hub is freed. Takes NULL, returns NULL. */
struct hub_web *hub_web_stop(struct hub_web *w, int grace_ms);

#endif
