/* What a scorer comes to: the summary that agents get, from the DynamicScorer and, in Full mode, what its API's /config said.
 *
 * In Full mode a field comes from /config, else from the DynamicScorer, else from the default; in None mode /config does not
 * count. The API's own host (of configURL) is scoring.host's default. */
#ifndef DS_HUB_EFFECTIVE_H
#define DS_HUB_EFFECTIVE_H

#include "controller/hub/rules/spec.h"

enum effective_reason {
    EFFECTIVE_OK,
    EFFECTIVE_INCOMPLETE, /* a field is missing or wrong: the summary would be refused by agents */
    EFFECTIVE_TOKEN_HOST, /* /config sends a token to a host that the DynamicScorer does not name */
    EFFECTIVE_WAITING, /* Full mode, nothing synced yet, and the DynamicScorer's own fields do not suffice */
};

enum config_source { CONFIG_FROM_SPEC, CONFIG_FROM_API };

struct effective {
    enum effective_reason reason;
    char why
        [SPEC_WHY_BYTES]; /* one sentence, naming the field as the DynamicScorer spells it; empty on EFFECTIVE_OK */
    char warning[SPEC_WHY_BYTES]; /* on EFFECTIVE_OK: agents take it, and will fail with it; mostly empty */
    enum sync_mode mode;
    enum config_source source;
    char *score_name; /* set whenever it is known, also when something else is wrong; NULL otherwise */
    struct buf text;  /* the summary: one JSON object, compact, members in the framework's order. Only on
                         EFFECTIVE_OK, or when it was kept */
    int64_t interval_ms;
    bool
        of_spec; /* EFFECTIVE_INCOMPLETE: by what the DynamicScorer says itself alone, whatever /config said */
    bool kept;   /* all but reason and why is of the last good one, which stays in force */
};

/* Whether there is a summary to give to clusters. */
static inline bool effective_usable(const struct effective *e)
{
    return e->text.n > 0;
}

/* `name`: metadata.name. `synced`: NULL when nothing has been (or in None mode). 0, -ENOMEM. What is EFFECTIVE_OK here
 * is accepted by summaries_parse() without an error, byte-stable for the same input. */
MUST_USE int effective_make(struct effective *ret, const char *name, const struct scorer_spec *spec,
                            const struct api_config *synced);
void effective_done(struct effective *e);
/* What a controller before this one gave to clusters, by the text that the status kept: in force, as after effective_keep(), until more is
 * known. -EINVAL for what agents would not take, -ENOMEM; *ret is untouched then. */
MUST_USE int effective_resume(struct effective *ret, struct str text, enum config_source source);
/* `now` is what the newest spec comes to, `last` what was in force so far. A spec that is incomplete does not end what was good before it:
 * *last is taken over, and now->kept set. Not so after a change of the mode or to another score name, nor when a token in it would go
 * where the newest spec does not send that token any more. Returns whether it is. */
bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest);

/* Whether a token of the DynamicScorer would follow what `synced` says to a host that is not allowed: such a /config is not
 * taken over. `why` then names the host and the field that would allow it. */
bool effective_refuses(const struct scorer_spec *spec, const struct api_config *synced,
                       char why[SPEC_WHY_BYTES]);

/* "scheme://host:port" in lower case, the port filled in, of an http or https URL; an empty string for anything else. -ENOMEM. */
MUST_USE int url_origin(const char *url, char **ret);

#endif
