/* What this build is. */
#ifndef DS_METRIC_VERSION_H
#define DS_METRIC_VERSION_H

extern const char ds_version[];  /* "0.1.0" */
extern const char ds_revision[]; /* of the source tree, "unknown" outside one */
/* "dynamic-scoring/0.1.0", the User-Agent. */
extern const char ds_user_agent[];

#endif
