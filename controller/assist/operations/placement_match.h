/* Which clusters a Placement may select, as Open Cluster Management's placement controller judges it: cluster
 * sets bound to the namespace, predicates, taints. */
#ifndef DS_ASSIST_OPERATIONS_PLACEMENT_MATCH_H
#define DS_ASSIST_OPERATIONS_PLACEMENT_MATCH_H

#include "exporter/base/clock.h"

#include <jansson.h>
#include <stdbool.h>

struct world;

enum { PLACEMENT_WHY_BYTES = 256 };

/* Whether a metav1.LabelSelector selects these labels; NULL selects all. If not, *ret_why is a text of what
 * fails first. */
bool placement_selects(const json_t *selector, const json_t *labels, const char *what,
                       char ret_why[PLACEMENT_WHY_BYTES]);
/* Whether the cluster is in a set that is bound to the Placement's namespace. */
bool placement_reaches(const struct world *w, const json_t *placement, const json_t *cluster,
                       char ret_why[PLACEMENT_WHY_BYTES]);
/* Whether one of the predicates selects the cluster. *ret_unknown is set if that depends on a CEL expression
 * other than managedCluster.metadata.name == "...": the cluster counts as selected. */
bool placement_requires(const json_t *placement, const json_t *cluster, bool *ret_unknown,
                        char ret_why[PLACEMENT_WHY_BYTES]);
/* Whether the cluster's taints are tolerated. is_selected: the Placement has selected it already. */
bool placement_tolerates(const json_t *placement, const json_t *cluster, bool is_selected, unix_ms now,
                         char ret_why[PLACEMENT_WHY_BYTES]);

#endif
