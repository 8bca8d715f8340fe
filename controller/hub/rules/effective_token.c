/* A token goes where the DynamicScorer says, not where a scoring API would like to have it. */
#include "controller/hub/rules/effective_internal.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

/* One token, and where it may go. */
struct gate {
    const struct auth *auth;
    const char *hosts[2]; /* that the DynamicScorer names; NULL for none */
};

/* 1 when both are one place; 0; -ENOMEM. */
static int same_origin(const char *origin, const char *url)
{
    CLEANUP(cleanup_free) char *other = NULL;
    int r = url_origin(url, &other);

    return r < 0 ? r : *other && strcmp(origin, other) == 0;
}

static int is_allowed(const struct gate *g, const char *origin)
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

static int put_host(struct buf *into, const char *host, const char *origin)
{
    return *origin ? buf_puts(into, origin) : problem_quote(str_of(host), into);
}

static int say(char why[SPEC_WHY_BYTES], const char *host, const char *origin, const char *what,
               const struct gate *g, const char *fields)
{
    BUF_AUTO(text, 16384);
    int r = buf_printf(&text, "/config sends %s to ", what) ?: put_host(&text, host, origin);

    r = r
            ?: buf_printf(
                   &text,
                   ", but the token of Secret %.253s may only go to hosts that %s.auth.allowedHosts name",
                   g->auth->token.name, fields);
    if (r == 0)
        text_line(why, SPEC_WHY_BYTES, buf_str(&text));
    return r;
}

/* 1 with the sentence when the token may not go to the host that /config names; 0; or an error. */
static int gate_refuses(const struct gate *g, const char *host, const char *what, const char *fields,
                        char why[SPEC_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *origin = NULL;
    int r;

    if (!g->auth->token.name || !host)
        return 0;
    r = url_origin(host, &origin);
    if (r == 0)
        r = is_allowed(g, origin);
    if (r != 0)
        return r < 0 ? r : 0;
    return say(why, host, origin, what, g, fields) ?: 1;
}

static int source_refuses(const struct scorer_spec *spec, const struct api_config *synced, size_t i,
                          char why[SPEC_WHY_BYTES])
{
    const struct source_spec *api = &synced->sources[i], *own = merged_token_source(spec, i),
                             *fallback = merged_fallback(spec, i);
    enum source_kind kind = api->kind ?: (fallback ? fallback->kind : SOURCE_KIND_UNSAID);
    char fields[96], at[32];

    if (!own || kind == SOURCE_KIND_NONE)
        return 0;
    (void)snprintf(at, sizeof(at), "spec.sources[%zu]", (size_t)(own - spec->own.sources));
    if (spec->own.n_sources == 1)
        (void)snprintf(at, sizeof(at), "spec.source");
    (void)snprintf(fields, sizeof(fields), "%s.host or %s", at, at);
    return gate_refuses(&(struct gate){.auth = &own->auth, .hosts = {own->host}}, api->host,
                        "the source's queries", fields, why);
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
        r = gate_refuses(&(struct gate){.auth = &own->auth, .hosts = {own->host, spec->config_url}},
                         synced->scoring.host, "the scoring requests",
                         "spec.scoring.host, spec.configURL or spec.scoring", why);
    /* What could not be judged is not let through. */
    if (r < 0)
        (void)snprintf(why, SPEC_WHY_BYTES, "there is not enough memory to judge where /config sends tokens");
    return r != 0;
}

/* ---- A summary that is in force ---- */

/* What cannot be judged is not let through. */
static bool lets_through(const struct gate *g, struct token_ref token, const char *endpoint)
{
    CLEANUP(cleanup_free) char *origin = NULL;

    return strcmp(cstr(g->auth->token.name), token.name) == 0 &&
           strcmp(cstr(g->auth->token.key), token.key) == 0 && url_origin(cstr(endpoint), &origin) == 0 &&
           is_allowed(g, origin) == 1;
}

static struct token_ref token_of(const json_t *place, const char *name, const char *key)
{
    return (struct token_ref){cstr(kube_str(place, name, NULL)), cstr(kube_str(place, key, NULL))};
}

static bool source_stays(const struct scorer_spec *spec, const json_t *place)
{
    struct token_ref token = token_of(place, "sourceEndpointAuthName", "sourceEndpointAuthKey");
    bool stays = !*token.name;

    for (size_t i = 0; i < spec->own.n_sources && !stays; i++) {
        const struct source_spec *own = &spec->own.sources[i];
        stays = lets_through(&(struct gate){.auth = &own->auth, .hosts = {own->host}}, token,
                             kube_str(place, "sourceEndpoint", NULL));
    }
    return stays;
}

static bool scoring_stays(const struct scorer_spec *spec, const json_t *summary)
{
    struct token_ref token = token_of(summary, "scoringEndpointAuthName", "scoringEndpointAuthKey");
    const struct scoring_spec *own = &spec->own.scoring;

    return !*token.name ||
           lets_through(&(struct gate){.auth = &own->auth, .hosts = {own->host, spec->config_url}}, token,
                        kube_str(summary, "scoringEndpoint", NULL));
}

bool effective_tokens_stay(const struct scorer_spec *spec, struct str summary)
{
    json_auto_t *o = NULL;
    const json_t *place;
    size_t i;

    if (kube_json_parse(&o, summary, NULL) < 0 || !source_stays(spec, o) || !scoring_stays(spec, o))
        return false;
    json_array_foreach(kube_list(o, "sources", NULL), i, place) if (!source_stays(spec, place)) return false;
    return true;
}
