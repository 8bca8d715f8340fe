/* Private to effective*.c: the fields of a scorer, merged from the DynamicScorer and /config. */
#ifndef DS_HUB_EFFECTIVE_INTERNAL_H
#define DS_HUB_EFFECTIVE_INTERNAL_H

#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/score/source.h"

struct merged {
    const struct scorer_spec *spec;
    const struct api_config *api; /* NULL: ignored */
    const char *name, *score_name;
    bool has_sources;                             /* in either document */
    struct source_spec sources[SPEC_MAX_SOURCES]; /* none of type None; with defaults */
    size_t index[SPEC_MAX_SOURCES];               /* of each in its document */
    size_t n_sources;                             /* 0: type None */
    struct scoring_spec scoring;                  /* without params */
    char *origin;                                 /* of configURL */
    json_t *params;                               /* of both documents; NULL for none */
};

/* The source of the DynamicScorer that supplies the fields which the i-th of /config leaves out: one
 * source serves all. NULL for none. */
const struct source_spec *merged_fallback(const struct scorer_spec *spec, size_t i);
/* The source of the DynamicScorer whose token is sent to the i-th source. NULL for none. */
const struct source_spec *merged_token_source(const struct scorer_spec *spec, size_t i);
/* The documents must outlive *ret. -ENOMEM. */
MUST_USE int merged_init(struct merged *ret, const char *name, const struct scorer_spec *spec,
                         const struct api_config *synced);
void merged_done(struct merged *m);

/* Whether the spec allows each token in the summary to go where the summary sends it. */
bool effective_tokens_stay(const struct scorer_spec *spec, struct str summary);

/* Appends host and path, joined by one slash. -ENOMEM, -EFBIG. */
MUST_USE int url_join(struct buf *into, const char *host, const char *path);
/* Appends the params, sorted by name, as a query string to the URL in `into`. -ENOMEM, -EFBIG. */
MUST_USE int url_add_params(struct buf *into, const json_t *params);

/* The summary with all sources, or with the given one alone. A new reference. -ENOMEM, -EFBIG. */
MUST_USE int merged_summary(json_t **ret, const struct merged *m, size_t source, bool all);

/* Sets reason and error, or interval and warning. `source`, `all`: what merged_summary() made the text from.
 * -ENOMEM. */
MUST_USE int effective_check(struct effective *e, struct str text, const struct merged *m, size_t source,
                             bool all);

enum { SUMMARY_MAX_BYTES = 256 * 1024 };

#endif
