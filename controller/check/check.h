/* Checks a scoring API: what the hub and an agent make of its answers, and which rules it breaks. Blocks. */
#pragma once

#include "controller/check/findings.h"
#include "exporter/base/str.h"

struct check_options {
    const char *url;              /* of the scoring API: its base, or its /config */
    struct str token;             /* empty: none */
    const char *ca_file;          /* NULL: the system's CAs */
    int64_t timeout_ms;           /* of each call; 0: that of an agent's round */
    const char *cluster_name;     /* as an agent's --cluster-name */
    const char *dimension_format; /* as of a DynamicScorer */
};

/* Makes all calls, one after the other, and fills *ret, which is zeroed. Blocks. 0 also if there are
 * findings, or if the scoring API cannot be reached (ret->unreachable). -EINVAL if options->url is no URL. */
MUST_USE int check_run(struct findings *ret, const struct check_options *options);
