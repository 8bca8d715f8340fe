/* Private to effective*.c: a scorer's fields after the DynamicScorer and /config have been put together. */
#ifndef DS_HUB_EFFECTIVE_INTERNAL_H
#define DS_HUB_EFFECTIVE_INTERNAL_H

#include "controller/hub/rules/effective.h"

struct merged {
    const struct scorer_spec *spec;
    const struct api_config *api; /* NULL: does not count */
    const char *name, *score_name;
    bool sources_said;                            /* by either document */
    struct source_spec sources[SPEC_MAX_SOURCES]; /* of type Prometheus, with defaults; none: type None */
    size_t index[SPEC_MAX_SOURCES];               /* where each is in its document */
    size_t n_sources;
    struct scoring_spec scoring; /* without params */
    char *origin;                /* owned: of configURL */
    json_t *params;              /* owned: of both documents; NULL for none */
};

/* The i-th source of a DynamicScorer for a field that /config leaves out: one source stands for all. NULL without. */
const struct source_spec *merged_fallback(const struct scorer_spec *spec, size_t i);
/* The source of the DynamicScorer whose token is sent to the i-th source. NULL without. */
const struct source_spec *merged_token_source(const struct scorer_spec *spec, size_t i);
/* The documents must outlive *ret. -ENOMEM. */
MUST_USE int merged_init(struct merged *ret, const char *name, const struct scorer_spec *spec,
                         const struct api_config *synced);
void merged_done(struct merged *m);

/* Whether each token that the summary names goes to where the spec has it go, too. */
bool effective_tokens_stay(const struct scorer_spec *spec, struct str summary);

/* Appends host and path with one slash between. -ENOMEM, -EFBIG. */
MUST_USE int url_join(struct buf *into, const char *host, const char *path);
/* Appends the params, sorted by name, to the URL that `into` holds as its query string. -ENOMEM, -EFBIG. */
MUST_USE int url_add_params(struct buf *into, const json_t *params);

/* The summary. `source`: whose members stand at the top where there are several and `all` is false; else all of them are told. A new
 * reference. -ENOMEM, -EFBIG. */
MUST_USE int merged_summary(json_t **ret, const struct merged *m, size_t source, bool all);

enum { SUMMARY_MAX_BYTES = 256 * 1024 };

#endif
