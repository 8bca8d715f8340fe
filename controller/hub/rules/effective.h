/* The summary that agents receive.
 *
 * In Full mode a field comes from /config, else from the DynamicScorer, else from the default; in None
 * mode /config is ignored. scoring.host defaults to the host of configURL. Pure; any thread. */
#pragma once

#include "controller/hub/rules/spec.h"
#include "exporter/base/buf.h"

enum effective_reason {
    EFFECTIVE_OK,
    EFFECTIVE_INCOMPLETE, /* a field is missing or invalid: agents would reject the summary */
    EFFECTIVE_TOKEN_HOST, /* /config would send a token to a host that the DynamicScorer does not allow */
    EFFECTIVE_WAITING, /* Full mode, nothing synced yet, and the DynamicScorer's own fields are incomplete */
};

enum config_source { CONFIG_FROM_SPEC, CONFIG_FROM_API };

struct effective {
    enum effective_reason reason;
    char error[SPEC_WHY_BYTES]; /* names the fields as the DynamicScorer spells them; empty on EFFECTIVE_OK */
    char warning[SPEC_WHY_BYTES]; /* on EFFECTIVE_OK: what may be a mistake; usually empty */
    bool unknown_placeholder;     /* it is about one, in a format of items or in the URL of the scoring API */
    enum sync_mode mode;
    enum config_source source;
    char *score_name; /* also set on errors in other fields; NULL when unknown */
    struct buf text;  /* the summary, a compact JSON object; empty unless EFFECTIVE_OK or kept */
    int64_t interval_ms;
    unsigned needs;          /* features of agents (exporter/score/feature.h) that do all it says */
    bool only_spec_is_wrong; /* on EFFECTIVE_INCOMPLETE: no /config would help */
    bool kept; /* the last good summary stays active: only reason and error are about the newest */
};

/* Whether there is a summary to distribute. */
static inline bool effective_usable(const struct effective *e)
{
    return e->text.n > 0;
}

/* name: metadata.name. synced: the last good /config; NULL or an empty one without. A summary that is
 * EFFECTIVE_OK passes summary_parse() and is the same, byte for byte, for the same input. */
void effective_make(struct effective *ret, const char *name, const struct scorer_spec *spec,
                    const struct api_config *synced);
void effective_done(struct effective *e);
/* A previous controller's summary, from the status, as after effective_keep(). False if agents reject it. */
bool effective_resume(struct effective *ret, struct str text, enum config_source source);
/* Keeps the last good summary active while the newest spec is incomplete, or its new configURL `unread`:
 * moves *last into *now, with now->kept set, and returns true. Not after a change of the mode or of the score
 * name, nor when the newest spec no longer allows where its tokens go. */
bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest,
                    bool unread);

/* Appends the fields of the DynamicScorer that the /config of mode Full replaces by other values, such as
 * "spec.source.params.query, spec.scoring.params.interval"; nothing if there are none. */
void effective_overrides(const struct scorer_spec *spec, const struct api_config *synced, struct buf *into);
