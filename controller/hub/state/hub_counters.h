/* The hub's counters and histograms; its gauges are in hub_gauges.c. */
#ifndef DS_HUB_COUNTERS_H
#define DS_HUB_COUNTERS_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/state/state.h"
#include "controller/kube/client.h"

void hub_count_probe(struct hub *h, const struct hub_scorer *s, enum probe_what what,
                     const struct probe_part *part);
void hub_count_write(struct hub *h, const char *operation, const struct kube_answer *a);
/* Seconds from behind to up to date, of one cluster. */
void hub_count_distributed(struct hub *h, double seconds);
void hub_count_reconcile(struct hub *h, const char *controller, bool ok);
void hub_forget_scorer_metrics(struct hub *h, const char *name);

#endif
