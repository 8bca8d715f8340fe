/* HTTP endpoints: /metrics, the pages and their JSON on one address, /healthz and /readyz on another. */
#pragma once

#include "controller/hub/hub.h"
#include "exporter/ui/site.h"

/* Sets the role's part of *o. Call site_stop() before hub_free(). *ret_why: why it failed, from malloc. */
MUST_USE int hub_web_start(struct site **ret, struct hub *h, struct site_options *o, char **ret_why);
