/* DynamicScorer as users write it, and what a scoring API's /config says, read into one shape.
 *
 * Both name a source and a scoring endpoint; a DynamicScorer says more. All strings point into a JSON document that is
 * owned here, so nothing is copied and all goes at once. What is not said, null, or empty reads as NULL (0 for numbers):
 * defaults are for effective.h, which knows both.
 *
 * Spellings: facts of the framework's documents, see controller/README.md. `sources` (a list) stands for `source`; the
 * enum values are read in any case; `source.endpoint.{host,path}`, `source.query.{query,range,step}`, `scoring.endpoint.{host,path}`
 * and `spec.name` are taken where the canonical field is absent; members of `scoring.params` other than name and interval are
 * passed on to the scoring API as query parameters. */
#ifndef DS_HUB_SPEC_H
#define DS_HUB_SPEC_H

#include "controller/kube/json.h"

enum { SPEC_MAX_SOURCES = 16, SPEC_WHY_BYTES = 512 };

enum sync_mode { SYNC_NONE, SYNC_FULL };
enum source_kind { SOURCE_KIND_UNSAID, SOURCE_KIND_PROMETHEUS, SOURCE_KIND_NONE };

/* A key of a Secret. Both or neither are set. */
struct token_ref {
    const char *name, *key;
};

/* Where a token may go besides the host beside it: {"allowedHosts": ["https://prometheus.example:9090"]}, "*" for any. */
struct auth {
    struct token_ref token;
    const json_t
        *allowed_hosts; /* an array of strings; NULL: none. Only in a DynamicScorer, as is the token */
};

struct source_spec {
    enum source_kind kind;
    const char *host, *path, *query;
    int64_t range_s, step_s;
    struct auth auth;
};

struct scoring_spec {
    const char *host, *path, *score_name;
    int64_t interval_s;
    const json_t *params; /* what else is in scoring.params: strings, numbers, booleans; NULL: nothing */
    struct auth auth;
};

/* What both documents say. */
struct api_config {
    json_t *owner; /* a reference; NULL: nothing was read */
    const char *name, *description;
    struct source_spec sources[SPEC_MAX_SOURCES];
    size_t n_sources;
    struct scoring_spec scoring;
};

struct scorer_spec {
    enum sync_mode mode;
    const char *config_url;
    struct token_ref
        config_token; /* spec.configAuth.tokenSecretRef: a Secret in the controller's namespace */
    const char *location, *destination; /* canonical spellings; NULL when not said */
    const char *dimension_format, *aggregation;
    const json_t *score_range, *fallback_score, *timeout; /* as written; NULL when not said */
    struct api_config own;
};

/* Reads the spec of a DynamicScorer (the whole object is given; a reference to it is kept). -EINVAL with every problem in one
 * sentence, each with its field ("spec.source.params.range: expected ..."): *ret is then untouched. Unknown fields are ignored. -ENOMEM. */
MUST_USE int scorer_spec_read(struct scorer_spec *ret, json_t *object, char why[SPEC_WHY_BYTES]);
void scorer_spec_done(struct scorer_spec *s);

/* Reads a body of /config: one JSON object, NaN and the like refused. -EINVAL with the reason, positions for bad JSON, fields for bad
 * shapes. Nothing has to be there, but `source` or `scoring` must, so that an error document is not taken for one. -ENOMEM. */
MUST_USE int api_config_parse(struct api_config *ret, struct str body, char why[SPEC_WHY_BYTES]);
/* The same from a value: status.lastSyncedConfig, where empty strings and zeros stand for what was not said. A reference is kept. */
MUST_USE int api_config_read(struct api_config *ret, json_t *value, char why[SPEC_WHY_BYTES]);
/* As status.lastSyncedConfig: every member that its schema requires is there, with "" and 0 for what was not said. A new
 * reference; NULL when memory is out. */
json_t *api_config_value(const struct api_config *c);
void api_config_done(struct api_config *c);

/* Copies share the document. */
static inline struct api_config api_config_copy(const struct api_config *c)
{
    json_incref(c->owner);
    return *c;
}

static inline struct scorer_spec scorer_spec_copy(const struct scorer_spec *s)
{
    json_incref(s->own.owner);
    return *s;
}

#endif
