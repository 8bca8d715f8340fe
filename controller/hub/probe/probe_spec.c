/* What a probe needs of a spec. Pure. */
#include "controller/hub/probe/probe_internal.h"

#include "controller/hub/rules/effective.h"
#include "controller/kube/json.h"

#include <errno.h>
#include <stdio.h>

static bool same_str(const char *a, const char *b)
{
    return strcmp(cstr(a), cstr(b)) == 0;
}

static bool same_auth(const struct auth *a, const struct auth *b)
{
    return same_str(a->token.name, b->token.name) && same_str(a->token.key, b->token.key) &&
           (a->allowed_hosts == b->allowed_hosts || json_equal(a->allowed_hosts, b->allowed_hosts));
}

/* Compares all that effective_refuses() reads. */
static bool same_rules(const struct api_config *a, const struct api_config *b)
{
    if (a->n_sources != b->n_sources || !same_str(a->scoring.host, b->scoring.host) ||
        !same_auth(&a->scoring.auth, &b->scoring.auth))
        return false;
    for (size_t i = 0; i < a->n_sources; i++)
        if (a->sources[i].type != b->sources[i].type || !same_str(a->sources[i].host, b->sources[i].host) ||
            !same_auth(&a->sources[i].auth, &b->sources[i].auth))
            return false;
    return true;
}

bool probe_same_spec(const struct scorer_spec *a, const struct scorer_spec *b)
{
    return a->mode == b->mode && a->health_check == b->health_check &&
           same_str(a->config_token.name, b->config_token.name) &&
           same_str(a->config_token.key, b->config_token.key) && same_rules(&a->own, &b->own);
}

int probe_health_url(const struct scorer_spec *spec, char **ret, const char **ret_error)
{
    const char *base = spec->config_url ? spec->config_url : spec->own.scoring.host;
    CLEANUP(cleanup_free) char *origin = NULL;
    int r = base ? url_origin(base, &origin) : 0;

    if (r < 0)
        return r;
    *ret_error = !base              ? "neither spec.configURL nor spec.scoring.host is set"
                 : spec->config_url ? "spec.configURL: expected an http or https URL without a user"
                                    : "spec.scoring.host: expected an http or https URL without a user";
    if (!origin || !*origin)
        return 0;
    return asprintf(ret, "%s/healthz", origin) < 0 ? -ENOMEM : 0;
}
