/* Private to spec*.c: members of users' documents, with a message for each that is not as it should be. */
#ifndef DS_HUB_SPEC_INTERNAL_H
#define DS_HUB_SPEC_INTERNAL_H

#include "controller/hub/rules/spec.h"
#include "exporter/base/buf.h"

/* Every problem of one document, joined. */
struct spec_reading {
    struct buf said;
    bool no_memory;
};

/* An object in the document; map is NULL when there is none, and then all its members read as not said. */
struct spec_place {
    const json_t *map;
    char path[160]; /* "spec.source.params"; empty at the top of /config */
};

enum { SPEC_SAID_BYTES = 8192 };

/* What api_config is read from. */
enum spec_document {
    DOCUMENT_SCORER, /* a DynamicScorer's spec: tokens count */
    DOCUMENT_CONFIG, /* a body of /config */
    DOCUMENT_STATUS, /* what api_config_value() made: `sources` beside `source` holds all of them */
};

/* Notes a problem, in printf's way. */
void spec_note(struct spec_reading *rd, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Notes "<path>.<key>: expected <what>, got <kind of thing>". Strings are not shown: one that is in the wrong place may be a token. */
void spec_expected(struct spec_reading *rd, const struct spec_place *at, const char *key, const char *what,
                   const json_t *got);
/* 0 when nothing was noted; else -EINVAL with all of it in `why`, or -ENOMEM. */
MUST_USE int spec_verdict(const struct spec_reading *rd, char why[SPEC_WHY_BYTES]);

/* The object that is a member. */
struct spec_place spec_inside(struct spec_reading *rd, const struct spec_place *at, const char *key);
/* NULL when absent, null, or empty, as after a problem. */
const char *spec_string(struct spec_reading *rd, const struct spec_place *at, const char *key);
/* Whole seconds; 0 when absent or null. */
int64_t spec_seconds(struct spec_reading *rd, const struct spec_place *at, const char *key);
/* The one of the NULL-terminated words that is there in any case, as the list spells it. */
const char *spec_word(struct spec_reading *rd, const struct spec_place *at, const char *key,
                      const char *const *words);
/* `at` holds name and key. */
struct token_ref spec_token(struct spec_reading *rd, const struct spec_place *at);

/* Reads what both documents say. *c is zeroed; the caller releases it in any case. */
void spec_read_config(struct spec_reading *rd, struct api_config *c, json_t *owner,
                      const struct spec_place *top, enum spec_document document);

#endif
