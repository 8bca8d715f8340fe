/* Private to config*.c: what the readers of an endpoint's parts share. */
#ifndef DS_REMOTEWRITE_CONFIG_READ_H
#define DS_REMOTEWRITE_CONFIG_READ_H

#include "remotewrite/config.h"

/* Memory that runs out is remembered, so that each field is one line. */
struct rw_reader {
    struct problems *p;
    bool no_memory;
};

char *rw_keep(struct rw_reader *r, struct str text);
/* A string; NULL when it is absent, empty or none. */
char *rw_read_text(struct rw_reader *r, const struct node *map, const char *key);
/* http or https with a host; for a proxy also socks. */
bool rw_is_url(const char *url, bool proxy);

/* headers, basic_auth, authorization, tls_config, proxy_url */
void rw_read_credentials(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map);
/* queue_config, metadata_config */
void rw_read_queue(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map);
/* external_labels */
void rw_read_labels(struct rw_reader *r, struct rw_endpoint_config *c, const struct node *map);

#endif
