/* The power that the nodes of a request draw, altogether and by application and device. */
#ifndef DS_MODELS_POWER_NODES_H
#define DS_MODELS_POWER_NODES_H

#include "exporter/base/map.h"
#include "exporter/models/model.h"
#include "exporter/models/power_config.h"
#include "exporter/models/power_line.h"
#include "exporter/models/request.h"

enum { POWER_MAX_NODES = 10000 };

struct power_node {
    struct power_node *next;
    char *name;
    struct power_line total;
    struct power_line *pairs; /* one for each pair of the configuration */
};

struct power_nodes {
    const struct power_config *config;
    struct power_node *list; /* owned */
    struct map by_name;
    size_t n;
    int64_t newest; /* minute; 0 before the first */
};

void power_nodes_done(struct power_nodes *nodes);
/* Adds a series of DCGM_FI_DEV_POWER_USAGE, of which the labels Hostname, exported_pod and GPU_I_PROFILE
 * are read; *ret_why is set if it is left out. -E2BIG for more than POWER_MAX_NODES, -ENOMEM. */
MUST_USE int power_nodes_add(struct power_nodes *nodes, const struct input_series *series,
                             enum left_out *ret_why);
/* What all nodes together are expected to draw: the mean of the forecast of the next 10 minutes. Nodes
 * that ended more than MAX_GAP minutes before the newest sample count no more. Errors of the backtests
 * are added to *s. -ERANGE if the values of a node span more than POWER_MAX_MINUTES, -ENOMEM. */
MUST_USE int power_nodes_base(const struct power_nodes *nodes, struct scoring *s, double *ret);
/* The most that a pair drew on a node, as the mean of the nodes that have it at that minute; NAN without
 * data. -ENOMEM. */
MUST_USE int power_nodes_highest(const struct power_nodes *nodes, size_t pair, double *ret);

#endif
