/* Objects that are needed so rarely that they are not watched: a cluster's ManifestWork, which has the
 * report of the cluster's agent. One request each, when somebody asks for it. */
#ifndef DS_ASSIST_STATE_WORLD_FETCH_H
#define DS_ASSIST_STATE_WORLD_FETCH_H

#include "controller/assist/state/world.h"

/* Runs once, on the loop, never within world_fetch_work(); also when the world is freed. `object` is
 * borrowed; NULL if there is none, or with `why` if it could not be read. */
typedef void (*world_fetched_fn)(void *arg, const json_t *object, const char *why);

/* Reads the ManifestWork that the hub's controller writes for a cluster, within five seconds. -ENOMEM;
 * -EINVAL for what is no name of a namespace. */
MUST_USE int world_fetch_work(const struct world *w, const char *cluster, world_fetched_fn done, void *arg);

/* Of the world's owner. */
struct world_fetches;
MUST_USE int world_fetches_new(struct world_fetches **ret, struct kube *k);
struct world_fetches *world_fetches_free(struct world_fetches *f);
struct world_fetches *world_fetches_of(const struct world *w);

#endif
