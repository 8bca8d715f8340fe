/* The URLs of a scorer's summary. */
#ifndef DS_HUB_URL_H
#define DS_HUB_URL_H

#include "controller/kube/json.h"
#include "exporter/base/buf.h"

/* "scheme://host:port" of an http or https URL, in lower case and with the port; an empty string for
 * anything else. -ENOMEM. */
MUST_USE int url_origin(const char *url, char **ret);
/* Appends host and path, joined by one slash. -ENOMEM, -EFBIG. */
MUST_USE int url_join(struct buf *into, const char *host, const char *path);
/* Appends the params, sorted by name, as a query string to the URL in `into`. -ENOMEM, -EFBIG. */
MUST_USE int url_add_params(struct buf *into, const json_t *params);

#endif
