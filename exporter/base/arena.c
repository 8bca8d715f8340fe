/* Pieces are cut from the end of the newest chunk; a piece is never freed or moved by itself. */
#include "exporter/base/arena.h"

#include "exporter/base/alloc.h"

enum { ALIGN = 8 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size;
    _Alignas(ALIGN) char bytes[];
};

void *arena_alloc(struct arena *a, size_t n)
{
    struct arena_chunk *c = a->chunks;

    n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!c || c->size - c->used < n) {
        size_t size = size_max(n, a->chunk_bytes);

        c = xmalloc(sizeof(*c) + size);
        *c = (struct arena_chunk){.next = a->chunks, .size = size};
        a->chunks = c;
    }
    c->used += n;
    return c->bytes + c->used - n;
}

void arena_done(struct arena *a)
{
    struct arena_chunk *c;

    while ((c = a->chunks)) {
        a->chunks = c->next;
        free(c);
    }
}

char *arena_text(struct arena *a, struct str text)
{
    char *copy = arena_alloc(a, text.n + 1);

    *(char *)mempcpy(copy, cstr(text.p), text.n) = '\0';
    return copy;
}
