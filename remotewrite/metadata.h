/* Sends type and help for 1.0 and vm, which have no place for them beside the samples, in requests of their
 * own that neither wait for samples nor hold them up. Sender thread. */
#ifndef DS_REMOTEWRITE_METADATA_H
#define DS_REMOTEWRITE_METADATA_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "remotewrite/config.h"
#include "remotewrite/families.h"
#include "remotewrite/transport.h"

struct metadata_stats {
    uint64_t sent, failed, retried; /* requests: accepted, rejected, sent again */
};

/* Owned by the endpoint; all zero but the first members at first. */
struct metadata {
    const struct rw_endpoint_config *config;
    struct loop *loop;
    struct transport *transport; /* of its own */
    const struct families *families;
    struct metadata_stats stats;
    struct buf body;
    bool in_flight;
    unsigned failures; /* consecutive */
    mono_ms next_at;
};

/* To be called about every second while the endpoint accepts samples in this form: sends what is due. */
void metadata_tick(struct metadata *m, enum rw_form form);
/* Ends a request in flight. */
void metadata_done(struct metadata *m);

#endif
