/* Looks up what an answer means. Owns nothing; any thread. */
#include "exporter/http/rule.h"

#include "exporter/base/invariant.h"

#include <stdbool.h>

static bool rule_is_default(const struct http_rule *r)
{
    return r->from == 0 && r->to == HTTP_STATUS_MAX && r->cause == HTTP_ANY;
}

static bool rule_matches(const struct http_rule *r, long status, enum http_error cause)
{
    if (r->cause != HTTP_ANY && r->cause != cause)
        return false;
    return status >= r->from && status <= r->to;
}

int http_rule_verdict(const struct http_rule *rules, size_t n, long status, enum http_error cause)
{
    invariant(n > 0 && rule_is_default(&rules[n - 1]));
    for (size_t i = 0; i < n - 1; i++)
        if (rule_matches(&rules[i], status, cause))
            return rules[i].verdict;
    return rules[n - 1].verdict; /* also for a status above HTTP_STATUS_MAX */
}
