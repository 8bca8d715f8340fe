/* Shared by the files that make up an instance. */
#ifndef DS_MODELS_INSTANCE_INTERNAL_H
#define DS_MODELS_INSTANCE_INTERNAL_H

#include "exporter/models/instance.h"

/* Sets the field. -EINVAL for an invalid value, -ENOMEM. */
MUST_USE int setting_set(struct instance *i, struct instance_setting *s, struct str text);
/* Lists the settings of the model and of its endpoints. -ENOMEM. */
MUST_USE int instance_make_settings(struct instance *i);
MUST_USE int settings_from_defaults(struct instance *i);
/* Whether /config names a source to query. */
bool endpoint_has_source(const struct model_endpoint *e);

#endif
