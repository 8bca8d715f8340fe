/* What has to be looked at again after something was observed. Functions that observe return these bits;
 * the conductor (controller/hub/hub.c) decides when to look. */
#pragma once

enum hub_change {
    CHANGE_NONE = 0,
    CHANGE_PLAN = 1 << 0,       /* some cluster may have to get other summaries */
    CHANGE_TARGET = 1 << 1,     /* what this cluster's ManifestWork should be */
    CHANGE_CLUSTER = 1 << 2,    /* how this cluster counts; counts of before are merely a little old */
    CHANGE_COUNTS = 1 << 3,     /* how all clusters count: counts of before are wrong */
    CHANGE_STATUS = 1 << 4,     /* the status of this object */
    CHANGE_ATTRIBUTES = 1 << 6, /* labels or claims of this cluster */
    CHANGE_EDITED = 1 << 5,     /* likewise, by a person, who need not wait for the end of a back-off */
};
