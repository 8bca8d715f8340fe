/* Memory of the process: how much it may use, and arenas. */
#ifndef DS_BASE_MEMORY_H
#define DS_BASE_MEMORY_H

#include "exporter/base/str.h"

#include <stddef.h>
#include <stdint.h>

/* The lowest limit of the process's cgroup and those above it (version 2, or the memory controller of version
 * 1), or else the machine's memory. `root` is put before the paths of /proc and /sys; "" outside of tests. */
uint64_t memory_limit(const char *root);

/* ---- Arenas: memory that is freed all at once, many small pieces in few large chunks ---- */

struct arena_chunk;

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

#endif
