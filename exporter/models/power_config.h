/* Which application a pod belongs to, and on which devices each may run. */
#ifndef DS_MODELS_POWER_CONFIG_H
#define DS_MODELS_POWER_CONFIG_H

#include "exporter/base/arena.h"
#include "exporter/base/doc.h"

/* An application on one of its devices: one result. */
struct power_pair {
    const char *app, *device;
};

/* Pods whose names match belong to the application. */
struct power_alias {
    const char *pattern;
    const char *app;
};

/* Zeroed: empty. */
struct power_config {
    struct power_pair *pairs;
    size_t n_pairs;
    struct power_alias *aliases; /* in the order of the file */
    size_t n_aliases;
    struct arena arena; /* of all of it */
};

void power_config_done(struct power_config *c);
/* Reads, once, [{name: app01, device_candidates: [all, 3g.48gb], pod_alias: [vllm-app01-*]}]. Problems
 * are added to p. */
void power_config_read(struct power_config *c, const struct node *list, struct problems *p);
/* The application of a pod: of the first alias that matches the whole name, or NULL. */
const char *power_config_app(const struct power_config *c, const char *pod);
/* The index of a pair; n_pairs if there is none. */
size_t power_config_pair(const struct power_config *c, const char *app, const char *device);
/* The device of a GPU profile, as DCGM names it: `3g.47gb` is `3g.48gb`, and without a profile it is
 * `all`. */
const char *power_device(const char *profile);

#endif
