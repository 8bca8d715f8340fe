/* Owns the DynamicScoringConfigs: the one in use, and those of other names, whose status says that they
 * are not used. */
#ifndef DS_HUB_CONFIGS_H
#define DS_HUB_CONFIGS_H

#include "controller/hub/state/state.h"

void hub_config_set(struct hub *h, json_t *object);
void hub_config_delete(struct hub *h, const char *namespace, const char *name);
void hub_config_done(struct hub_config *c);
/* A merge patch that adds or removes our finalizer; NULL when it is as it should be, or with *ret_error =
 * -ENOMEM. */
json_t *hub_config_finalizer_patch(const struct hub *h, const struct hub_config *c, int *ret_error);

#endif
