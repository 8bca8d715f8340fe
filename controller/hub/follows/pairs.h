/* The state of one scorer on one cluster, from all that the hub knows (rules/pair.c decides it from these
 * facts). Pure; loop thread. */
#pragma once

#include "controller/hub/follows/fleet.h"
#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/report.h"

/* What is the same for all scorers on a cluster. */
struct pair_facts pair_facts_of_cluster(const struct fleet *f, const struct hub_cluster *c);
/* The scorer in the cluster's report; NULL when it is not there, or not selected. */
const struct report_cell *fleet_pair_cell(const struct fleet *f, const struct hub_scorer *s,
                                          const struct hub_cluster *c);
/* pair_state() now. *ret: what decides it, for pair_reason(). */
enum pair_state fleet_pair_state(const struct fleet *f, const struct hub_scorer *s,
                                 const struct hub_cluster *c, struct pair_facts *ret);
