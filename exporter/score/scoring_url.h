/* The URL of a scoring API, in which ${cluster} stands for the cluster's name: in its path, and in its
 * query. In the rest of a URL it is no placeholder. Pure; any thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

/* As a CRD of Kubernetes and a shell write it. */
#define CLUSTER_PLACEHOLDER STR("${cluster}")

/* Whether the path or the query has ${cluster}. */
bool scoring_url_uses_cluster(const char *url);
/* The first other `${...}` of the path or the query, decoded, appended to `ret`: it is sent as it is, and
 * may be a mistake. Nothing if there is none. */
void scoring_url_unknown(const char *url, struct buf *ret);
/* The URL with the cluster's name, percent-encoded (RFC 3986, section 2.1), for each ${cluster}. It has
 * the origin and the user information of the one given. -EINVAL if it is not a URL, or if the name makes a
 * segment of its path `.` or `..`, which would lead to another path. */
MUST_USE int scoring_url_make(char **ret, const char *url, struct str cluster);
