/* Memory that is freed all at once: many small pieces in few large chunks. An arena belongs to one thread. */
#pragma once

#include "exporter/base/str.h"

struct arena {
    struct arena_chunk *chunks; /* the one in use first */
    size_t chunk_bytes;         /* size of a chunk; a larger piece gets one of its own */
};

/* n bytes, not zeroed, aligned for pointers, integers and doubles. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
/* A terminated copy. */
char *arena_text(struct arena *a, struct str text) __attribute__((malloc, returns_nonnull));
/* Frees everything. The arena may be used again. */
void arena_done(struct arena *a);
