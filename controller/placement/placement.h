/* Scores for Open Cluster Management's Placement: one AddOnPlacementScore per scorer, in the cluster's
 * namespace on the hub. On the loop.
 *
 * One patch carries scores, their validity and why a round failed. Nothing is sent while an object has the
 * state it should have and less than half of validUntil has passed. Each object has at most one write
 * under way, and a newer state is written after it.
 *
 * Objects made by others are left alone and reported, or adopted if they name no owner and the options say
 * so. This agent's objects without a scorer, as found by the first list, are deleted.
 *
 * When an add-on moves to another namespace, its old agent and its new one may both lead for a while, as
 * each namespace has a Lease of its own. Whoever begins to lead takes over what the first list shows of
 * the other. Whoever later finds the other's name on an object lets go of it, until its scores have
 * expired. */
#pragma once

#include "controller/kube/client.h"
#include "controller/placement/adjust.h"
#include "controller/placement/options.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/sink.h"
#include "exporter/score/summary.h"

struct placement;

struct placement *placement_new(const struct placement_options *o);
/* Leaves the objects as they are. */
struct placement *placement_free(struct placement *p);

/* What an agent tells its sinks (exporter/score/sink.h). Rounds may end before the first call of
 * placement_sync(), which says which of them matter. */
void placement_round_ended(struct placement *p, const char *score_name, const struct round_outcome *o);
void placement_withdrawn(struct placement *p, const char *score_name);
/* Sets the scorers, in the order of the configuration; the list must live until the next call. If two lead
 * to one object name, the first gets the object. */
void placement_sync(struct placement *p, const struct summaries *list, int64_t stale_intervals);

/* What the hub adjusts from now on. Before the placement_sync() that came with it: both lead to one write.
 * Takes the list. An entry that ends is taken back by itself. */
void placement_adjust(struct placement *p, struct adjustments *list);

/* There is no configuration, so no scorers. What was taken over from another namespace stays until there is
 * one: it may be on its way. */
void placement_sync_none(struct placement *p);

/* What is wrong with the scorer's object, for people; "" if nothing. */
const char *placement_error(const struct placement *p, const struct summary *s);
/* Why the scorer's last round led to no item although it succeeded, for people; "" if it did not. */
const char *placement_why_no_items(const struct placement *p, const char *score_name);
/* How far the agent's clock has been set since the scorer's last success, once the hub's clock has shown it:
 * what times of that success lack. 0 if it was not, or if there was none. */
int64_t placement_clock_set_by_ms(const struct placement *p, const char *score_name);
/* Why the objects on the hub cannot be read; NULL if they can, or while this is unknown. */
const char *placement_hub_error(const struct placement *p);
/* The number of objects whose state on the hub is out of date. */
size_t placement_behind(const struct placement *p);
