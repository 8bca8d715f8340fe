/* Where tokens may go: the DynamicScorer decides, not the scoring API. */
#include "controller/hub/rules/effective_internal.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

/* A token, and the hosts that it may be sent to. */
struct token_gate {
    const struct auth *auth;
    const char *hosts[2]; /* in the DynamicScorer, the field's own first; NULL for none */
};

/* 1 for the same origin, else 0; -ENOMEM. */
static int same_origin(const char *origin, const char *url)
{
    CLEANUP(cleanup_free) char *other = NULL;
    int r = url_origin(url, &other);

    return r < 0 ? r : *other && strcmp(origin, other) == 0;
}

/* 1 or 0; -ENOMEM. */
static int gate_allows(const struct token_gate *g, const char *origin)
{
    const json_t *entry;
    int r = 0;
    size_t i;

    json_array_foreach(g->auth->allowed_hosts, i, entry)
    {
        const char *allowed = cstr(kube_str(entry, NULL));

        r = strcmp(allowed, "*") == 0 ? 1 : same_origin(origin, allowed);
        if (r != 0)
            return r;
    }
    for (i = 0; i < ARRAY_SIZE(g->hosts) && r == 0; i++)
        if (g->hosts[i])
            r = same_origin(origin, g->hosts[i]);
    return r;
}

static int gate_explain(char why[SPEC_WHY_BYTES], const struct token_gate *g, const char *host,
                        const char *origin, const char *field)
{
    BUF_AUTO(text, 16384);
    int r = buf_printf(&text, "the credentials in Secret %.253s may not be sent to ", g->auth->token.name);

    r = r ?: *origin ? buf_puts(&text, origin) : problem_quote(str_of(host), &text);
    r = r ?: buf_puts(&text, ", which /config names; ");
    if (r == 0 && *origin && !g->hosts[0]) /* the very line to add */
        r = buf_printf(&text, "to allow it, set %s.host: %s", field, origin);
    else if (r == 0)
        r = buf_printf(&text, "allow it in %s.auth.allowedHosts", field);
    if (r == 0)
        text_line(why, SPEC_WHY_BYTES, buf_str(&text));
    return r;
}

/* 1 with the reason when the token may not be sent to the host in /config; 0; -ENOMEM, -EFBIG. field:
 * where the gate is set. */
static int gate_refuses(const struct token_gate *g, const char *host, const char *field,
                        char why[SPEC_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *origin = NULL;
    int r;

    if (!g->auth->token.name || !host)
        return 0;
    r = url_origin(host, &origin);
    if (r == 0)
        r = gate_allows(g, origin);
    if (r != 0)
        return r < 0 ? r : 0;
    return gate_explain(why, g, host, origin, field) ?: 1;
}

static int source_refuses(const struct scorer_spec *spec, const struct api_config *synced, size_t i,
                          char why[SPEC_WHY_BYTES])
{
    const struct source_spec *api = &synced->sources[i], *own = merged_token_source(spec, i),
                             *fallback = merged_fallback(spec, i);
    enum source_type type = api->type ?: (fallback ? fallback->type : SOURCE_UNSET) ?: SOURCE_PROMETHEUS;
    char field[32];

    if (!own || !source_of_type(type)->path)
        return 0;
    (void)snprintf(field, sizeof(field), "spec.sources[%zu]", (size_t)(own - spec->own.sources));
    if (spec->own.n_sources == 1)
        (void)snprintf(field, sizeof(field), "spec.source");
    return gate_refuses(&(struct token_gate){.auth = &own->auth, .hosts = {own->host}}, api->host, field,
                        why);
}

bool effective_refuses(const struct scorer_spec *spec, const struct api_config *synced,
                       char why[SPEC_WHY_BYTES])
{
    const struct scoring_spec *own = &spec->own.scoring;
    int r = 0;

    if (spec->mode != SYNC_FULL || !synced)
        return false;
    for (size_t i = 0; i < synced->n_sources && r == 0; i++)
        r = source_refuses(spec, synced, i, why);
    if (r == 0)
        r = gate_refuses(&(struct token_gate){.auth = &own->auth, .hosts = {own->host, spec->config_url}},
                         synced->scoring.host, "spec.scoring", why);
    /* Refused when in doubt. */
    if (r < 0)
        (void)snprintf(why, SPEC_WHY_BYTES, "out of memory");
    return r != 0;
}

/* ---- A summary that is active ---- */

/* False when in doubt. */
static bool gate_permits(const struct token_gate *g, struct token_ref token, const char *endpoint)
{
    CLEANUP(cleanup_free) char *origin = NULL;

    return strcmp(cstr(g->auth->token.name), token.name) == 0 &&
           strcmp(cstr(g->auth->token.key), token.key) == 0 && url_origin(cstr(endpoint), &origin) == 0 &&
           gate_allows(g, origin) == 1;
}

static struct token_ref token_of(const json_t *source, const char *name, const char *key)
{
    return (struct token_ref){cstr(kube_str(source, name, NULL)), cstr(kube_str(source, key, NULL))};
}

static bool source_stays(const struct scorer_spec *spec, const json_t *source)
{
    struct token_ref token = token_of(source, "sourceEndpointAuthName", "sourceEndpointAuthKey");
    bool stays = !*token.name;

    for (size_t i = 0; i < spec->own.n_sources && !stays; i++) {
        const struct source_spec *own = &spec->own.sources[i];
        stays = gate_permits(&(struct token_gate){.auth = &own->auth, .hosts = {own->host}}, token,
                             kube_str(source, "sourceEndpoint", NULL));
    }
    return stays;
}

static bool scoring_stays(const struct scorer_spec *spec, const json_t *summary)
{
    struct token_ref token = token_of(summary, "scoringEndpointAuthName", "scoringEndpointAuthKey");
    const struct scoring_spec *own = &spec->own.scoring;

    return !*token.name ||
           gate_permits(&(struct token_gate){.auth = &own->auth, .hosts = {own->host, spec->config_url}},
                        token, kube_str(summary, "scoringEndpoint", NULL));
}

bool effective_tokens_stay(const struct scorer_spec *spec, struct str summary)
{
    json_auto_t *o = NULL;
    const json_t *source;
    size_t i;

    if (kube_json_parse(&o, summary, NULL) < 0 || !source_stays(spec, o) || !scoring_stays(spec, o))
        return false;
    json_array_foreach(kube_list(o, "sources", NULL), i,
                       source) if (!source_stays(spec, source)) return false;
    return true;
}
