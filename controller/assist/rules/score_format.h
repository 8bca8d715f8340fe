/* The names of score items: `scoreDimensionFormat`, such as "${app};${device}". Placeholders other than these
 * two match any text; the text around placeholders is literal. A placeholder matches at least one byte. */
#ifndef DS_ASSIST_RULES_SCORE_FORMAT_H
#define DS_ASSIST_RULES_SCORE_FORMAT_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"

/* An item of an AddOnPlacementScore. */
struct world_item {
    struct str name;
    int32_t value;
};

enum { SCORE_FORMAT_PARTS = 16 };

enum score_part_kind { SCORE_LITERAL, SCORE_APP, SCORE_DEVICE, SCORE_ANY };

struct score_part {
    enum score_part_kind kind;
    struct str text; /* of a literal */
};

/* Borrows the text that it was parsed from. */
struct score_format {
    struct score_part parts[SCORE_FORMAT_PARTS];
    size_t n;
};

/* Whom a match asks and tells. */
struct score_matcher {
    /* The index of a name; SIZE_MAX if it is of no interest. */
    size_t (*app)(void *arg, struct str name);
    size_t (*device)(void *arg, struct str name);
    /* An index is SIZE_MAX if the format does not have the placeholder: the item is for all of them. */
    void (*found)(void *arg, size_t app, size_t device);
    void *arg;
};

/* -EINVAL, and *ret_why, a literal: "has a ${ without its }". */
MUST_USE int score_format_parse(struct score_format *ret, struct str text, const char **ret_why);
/* Calls found() for each way in which the item's name matches; an item whose placeholders can be told apart
 * matches in at most one. Gives up on a name after some 10,000 comparisons. */
void score_format_match(const struct score_format *f, struct str name, const struct score_matcher *m);

#endif
