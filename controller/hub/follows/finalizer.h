/* The finalizer that holds the DynamicScoringConfig until all ManifestWorks have gone. Pure; loop thread. */
#pragma once

#include "controller/hub/observed/config.h"
#include "controller/hub/observed/observed.h"

/* A merge patch that adds our finalizer to a DynamicScoringConfig or removes it, a new reference; NULL: it is
 * as it should be. */
json_t *config_finalizer_patch(const struct observed *seen, const struct hub_config *c);
