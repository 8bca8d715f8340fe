/* Inside of the metric layer: how the last answer spelled its results' labels.
 *
 * Answers mostly name the same series in the same order and in the same bytes as the answer before. For
 * each result the place of its series is kept with the length and a keyed hash of the bytes that its
 * labels were read from. Where the next answer has those bytes again where they are expected, they are not
 * read, checked and rendered once more. A false match needs 64 bits to agree by chance, at the one place
 * where it would be looked for. */
#ifndef DS_METRIC_SPELLINGS_H
#define DS_METRIC_SPELLINGS_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"

struct spelling {
    uint64_t hash;
    uint32_t bytes, place;
};

struct spellings {
    struct spelling *was, *now; /* in the order of the last answer, and of the one that is being read */
    size_t n_was, n_now, cap_now;
    size_t next;     /* of `was`, expected to come next */
    uint32_t *index; /* index in `was` and 1 by place; made for the first result that comes unexpected */
};

/* The length of the expected spelling when text begins with it, else 0. */
size_t spellings_match(const struct spellings *s, struct str text);
/* Takes the one that matched; *ret is its place. -ENOMEM. */
MUST_USE int spellings_take(struct spellings *s, size_t *ret);
/* Notes the spelling of a result that was read in full. -ENOMEM. */
MUST_USE int spellings_note(struct spellings *s, struct str text, size_t place);
/* A result of a known place (of n_places in all) came unexpected: what followed it the last time is
 * expected next. -ENOMEM. */
MUST_USE int spellings_follow(struct spellings *s, size_t place, size_t n_places);
/* The answer was read to its end: the next one will be compared with it. `moved` (NULL: they stay) has the
 * new place of each. */
void spellings_keep(struct spellings *s, const uint32_t *moved);
/* The answer is given up: the one before stays. */
void spellings_drop(struct spellings *s);
void spellings_done(struct spellings *s);

#endif
