/* Private to exporter/metric: how the last answer spelled the labels of its results.
 *
 * Most answers name the same series in the same order and in the same bytes as the previous one. For each
 * result, the place of its series is kept with the length and a keyed hash of the bytes that spelled its
 * labels. If the next answer has these bytes where they are expected, they need not be parsed, checked and
 * rendered again. A false match needs 64 bits to agree by chance at just that position. */
#ifndef DS_METRIC_SPELLINGS_H
#define DS_METRIC_SPELLINGS_H

#include "exporter/base/str.h"

struct spelling {
    uint64_t hash;
    uint32_t bytes, place;
};

struct spellings {
    struct spelling *was, *now; /* in the order of the last answer, and of the current one */
    size_t n_was, n_now, cap_now;
    size_t next;     /* index in `was` of the one expected next */
    uint32_t *index; /* index in `was` + 1 by place; built for the first unexpected result */
};

/* The length of the expected spelling if text starts with it, else 0. */
size_t spellings_match(const struct spellings *s, struct str text);
/* Consumes the spelling that matched; *ret is its place. -ENOMEM. */
void spellings_take(struct spellings *s, size_t *ret);
/* Records the spelling of a result that was parsed. -ENOMEM. */
void spellings_note(struct spellings *s, struct str text, size_t place);
/* After an unexpected result for a known place of n_places: expects what followed it in the last answer.
 * -ENOMEM. */
void spellings_follow(struct spellings *s, size_t place, size_t n_places);
/* The answer is complete: the next one is compared with it. `moved` maps old places to new ones; NULL:
 * unchanged. */
void spellings_keep(struct spellings *s, const uint32_t *moved);
/* Discards the current answer and keeps the last one. */
void spellings_drop(struct spellings *s);
void spellings_done(struct spellings *s);

#endif
