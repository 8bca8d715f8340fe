/* One word for each state of health. */
#include "controller/hub/probe/probe_status.h"

#include "exporter/base/def.h"

WORD_TABLE(probe_health_word, enum probe_health, HEALTH_STATES,
           {[HEALTH_UNKNOWN] = "Unknown",
            [HEALTH_ACTIVE] = "Active",
            [HEALTH_INACTIVE] = "Inactive",
            [HEALTH_DEGRADED] = "Degraded"});
