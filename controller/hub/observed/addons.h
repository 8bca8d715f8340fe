/* Which clusters have the agent's ManagedClusterAddOn, and since when the others lack it. Loop thread. */
#pragma once

#include "controller/hub/observed/cluster.h"
#include "controller/hub/observed/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"

struct addons {
    /* Private */
    struct map present; /* the names of clusters with the agent's add-on */
    mono_ms since;      /* absences before this do not count */
    mono_ms due;        /* when the next absence has lasted too long; 0: none will */
};

/* What the watch shows. Returns what has to be looked at again. */
unsigned addons_see(struct addons *a, const char *cluster, bool exists, mono_ms now);
/* There was no news for a while: absences count from now. */
void addons_note_gap(struct addons *a, mono_ms now);
/* Before a plan: brings up to date which clusters lack the add-on, and says so. False: there is no news,
 * so that nothing changes. watch: of the ManagedClusterAddOns. */
bool addons_review(struct addons *a, const struct kube_watch *watch, struct clusters *clusters,
                   const struct configs *configs, mono_ms now);
/* Milliseconds until the next review is due; INT64_MAX: not by time alone. */
int64_t addons_due_ms(const struct addons *a, mono_ms now);
void addons_done(struct addons *a);
