/* Private to config*.c. */
#ifndef DS_REMOTEWRITE_CONFIG_READ_H
#define DS_REMOTEWRITE_CONFIG_READ_H

#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "remotewrite/config.h"

/* A failed allocation is remembered, so that callers need not check each field. */
struct rw_reader {
    struct problems *p;
    struct arena *memory; /* of the endpoint */
    bool no_memory;
};

/* A copy, or NULL when out of memory. */
char *rw_keep(struct rw_reader *r, struct str text);
/* A copy of a string; NULL if it is absent, empty or not a string (a problem). */
char *rw_read_text(struct rw_reader *r, const struct node *map, const char *key);
/* http or https with a host; for a proxy socks4 and socks5 too. */
bool rw_is_url(const char *url, bool proxy);

/* headers, basic_auth, authorization, tls_config, proxy_url */
void rw_read_credentials(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map);
/* queue_config, metadata_config */
void rw_read_queue(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map);
/* external_labels */
void rw_read_labels(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map);

#endif
