/* Private to spec*.c: reads members of users' documents and collects errors. */
#ifndef DS_HUB_SPEC_INTERNAL_H
#define DS_HUB_SPEC_INTERNAL_H

#include "controller/hub/rules/spec.h"
#include "exporter/base/buf.h"

/* All errors of one document, joined. */
struct spec_reading {
    struct buf errors;
    bool no_memory;
};

/* An object in the document. map is NULL when it is absent; then all its members read as absent. */
struct spec_place {
    const json_t *map;
    char path[160]; /* "spec.source.params"; empty at the top of /config */
};

enum { SPEC_ERRORS_BYTES = 8192 };

/* What an api_config is read from. */
enum spec_document {
    DOCUMENT_SCORER, /* a DynamicScorer, the only one with tokens */
    DOCUMENT_CONFIG, /* a /config response */
    DOCUMENT_STATUS, /* from api_config_value(): has both `source` and, with all of them, `sources` */
};

/* Adds an error, formatted as by printf(). */
void spec_error(struct spec_reading *rd, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Adds "<path>.<key>: expected <what>, got <kind of value>". Strings are not shown, as a misplaced one may
 * be a token. */
void spec_expected(struct spec_reading *rd, const struct spec_place *at, const char *key, const char *what,
                   const json_t *got);
/* 0 without errors; else -EINVAL with all of them in `why`, or -ENOMEM. */
MUST_USE int spec_result(const struct spec_reading *rd, char why[SPEC_WHY_BYTES]);

/* The member, which must be an object. */
struct spec_place spec_object(struct spec_reading *rd, const struct spec_place *at, const char *key);
/* NULL when absent, null or empty, and after an error. */
const char *spec_string(struct spec_reading *rd, const struct spec_place *at, const char *key);
/* Whole seconds; 0 when absent or null, and after an error. */
int64_t spec_seconds(struct spec_reading *rd, const struct spec_place *at, const char *key);
/* One of the NULL-terminated words, as the list spells it; the value may be in any case. NULL as for
 * spec_string(). */
const char *spec_word(struct spec_reading *rd, const struct spec_place *at, const char *key,
                      const char *const *words);
/* The members name and key. */
struct token_ref spec_token(struct spec_reading *rd, const struct spec_place *at);

/* Reads the fields that both documents have. *c is zeroed; the caller releases it also after an error. */
void spec_read_config(struct spec_reading *rd, struct api_config *c, json_t *owner,
                      const struct spec_place *top, enum spec_document document);

#endif
