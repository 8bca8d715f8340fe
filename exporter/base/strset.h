/* Distinct strings with their places in the order of arrival. Not copied: they must stay as they are. */
#pragma once

#include "exporter/base/str.h"

struct strset {
    struct str *list; /* by place */
    size_t n;
    uint32_t *slots; /* by hash: place + 1; 0: free */
    size_t cap;      /* slots, a power of two; 0 at first */
};

/* Frees the table, which can be used again. */
void strset_done(struct strset *s);
/* The place of the string; SIZE_MAX if it is missing. */
size_t strset_find(const struct strset *s, struct str text);
/* Likewise, but a missing string is added: its place is what s->n was. */
size_t strset_add(struct strset *s, struct str text);
