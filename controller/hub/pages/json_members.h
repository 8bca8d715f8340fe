/* Members of a scorer and of a cluster, wherever the JSON lists them. */
#ifndef DS_HUB_JSON_MEMBERS_H
#define DS_HUB_JSON_MEMBERS_H

#include "controller/hub/pages/view.h"

/* "scorers":[...], with the members of each; "clusters" likewise. */
void json_scorer_list(struct out *o, const struct view_scorers *v);
void json_cluster_list(struct out *o, const struct list *l);
void json_scorer_members(struct out *o, const struct view_scorer *v, bool with_history);
void json_cluster_members(struct out *o, const struct hub_cluster *c);
/* {"role":..., "now":..., "namespace":..., "leading":..., "troubles":...: what every answer begins with. */
void json_begin(struct out *o, const struct hub *h);

#endif
