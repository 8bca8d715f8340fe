/* The spec of a DynamicScorer and the /config of a scoring API, parsed into one struct.
 *
 * Both have a source and a scoring endpoint; a DynamicScorer has more. All strings point into a JSON
 * document that is owned here. A value that is absent, null or empty reads as NULL (0 for numbers): the
 * effective configuration adds the defaults. controller/README.md has the aliases. Pure; any thread. */
#pragma once

#include "controller/kube/json.h"
#include "exporter/score/summary.h"

enum { SPEC_MAX_SOURCES = 16, SPEC_WHY_BYTES = 512, API_CONFIG_MAX_BYTES = 128 << 10 };

enum sync_mode { SYNC_NONE, SYNC_FULL };

/* Who finds out whether the scoring API is healthy. */
enum health_check { HEALTH_CHECK_HUB, HEALTH_CHECK_AGENTS, HEALTH_CHECK_NONE };
/* "Hub", "Agents", "None". */
const char *health_check_word(enum health_check c);

/* A Secret, and the key of its bearer token. name is NULL for none; key, for its other credentials alone. */
struct token_ref {
    const char *name, *key;
};

/* Credentials, and the hosts that they may be sent to. Never set in /config. */
struct auth {
    struct token_ref token;
    const char *hosts[2];        /* in the DynamicScorer, the field's own first; NULL for none */
    const json_t *allowed_hosts; /* strings such as "https://prometheus.example:9090", or "*"; NULL: none */
};

struct source_spec {
    enum source_type type;
    const char *host, *path, *query;
    int64_t range_s, step_s;
    struct auth auth;
};

struct scoring_spec {
    const char *host, *path, *score_name;
    int64_t interval_s;
    const json_t *params; /* query parameters: strings, numbers, booleans; NULL: none */
    struct auth auth;
};

/* The fields that both documents have. */
struct api_config {
    json_t *owner; /* a reference; NULL: nothing read */
    const char *name, *description;
    struct source_spec sources[SPEC_MAX_SOURCES];
    size_t n_sources;
    struct scoring_spec scoring;
};

struct scorer_spec {
    enum sync_mode mode;
    enum health_check health_check;
    const char *config_url;
    struct token_ref config_token;      /* of configAuth; the Secret is in the controller's namespace */
    const char *location, *destination; /* canonical spellings */
    const char *dimension_format, *aggregation;
    const json_t *score_items, *score_range, *score_tolerance, *fallback_score, *timeout; /* as written */
    const json_t *placements; /* names of Placements whose clusters get it; NULL: all clusters do */
    struct api_config own;
};

/* object: the whole DynamicScorer, of which a reference is kept. Unknown fields are ignored. -EINVAL with all
 * errors in `why`, each with its field ("spec.configURL: expected ..."); then only health_check is set. */
MUST_USE int scorer_spec_read(struct scorer_spec *ret, json_t *object, char why[SPEC_WHY_BYTES]);
void scorer_spec_done(struct scorer_spec *s);

/* Parses the body of a /config response. All is optional, but an error document has neither `source` nor
 * `scoring`. -EINVAL with all errors in `why`, each with its field; -EBADMSG, with its position: not JSON. */
MUST_USE int api_config_parse(struct api_config *ret, struct str body, char why[SPEC_WHY_BYTES]);
/* Like api_config_parse(), of status.lastSyncedConfig, where "" and 0 are absent. Keeps a reference. */
MUST_USE int api_config_read(struct api_config *ret, json_t *value, char why[SPEC_WHY_BYTES]);
/* status.lastSyncedConfig, a new reference, with "" and 0 for absent members that its schema requires. */
json_t *api_config_value(const struct api_config *c);
void api_config_done(struct api_config *c);
