/* Many items of one size, named by numbers of 32 bits, in pages that are freed once all their items are.
 * Items never move. Not locked. */
#ifndef DS_TSDB_SLAB_H
#define DS_TSDB_SLAB_H

#include "exporter/base/def.h"

#include <errno.h>
#include <stdint.h>

/* Memory in use and its ceiling, shared by all parts of a store. */
struct tsdb_budget {
    uint64_t bytes, max;
};

/* -ENOBUFS if `n` more bytes exceed the ceiling. */
static inline int budget_take(struct tsdb_budget *b, uint64_t n)
{
    if (b->bytes + n > b->max)
        return -ENOBUFS;
    b->bytes += n;
    return 0;
}

static inline void budget_give(struct tsdb_budget *b, uint64_t n)
{
    b->bytes -= n;
}

/* What malloc() takes for n bytes. */
static inline uint64_t budget_cost(size_t n)
{
    return (n + 8 + 15) & ~(uint64_t)15;
}

struct slab_page {
    uint32_t next, previous; /* among pages with free items, plus 1; 0: none */
    uint32_t used, fresh;    /* items in use; items that were ever in use */
    uint32_t free;           /* a freed item, plus 1; its first bytes name the next */
    uint32_t padding;
    _Alignas(8) char items[];
};

struct slab {
    struct tsdb_budget *budget;
    struct slab_page **pages;
    uint32_t item_bytes, page_shift; /* a page holds 1 << page_shift items */
    uint32_t n_pages, live;          /* places of pages, and those that hold one */
    uint32_t open;                   /* a page with free items, plus 1; 0: none */
    uint32_t used;                   /* items */
};

/* item_bytes: a multiple of 8. */
void slab_init(struct slab *s, struct tsdb_budget *budget, uint32_t item_bytes);
void slab_done(struct slab *s);
/* Sets *ret to an item's number, never 0; its bytes are 0. -ENOBUFS, -ENOMEM. */
MUST_USE int slab_alloc(struct slab *s, uint32_t *ret);
void slab_free(struct slab *s, uint32_t id);
/* The greatest number that may be in use. */
uint32_t slab_last(const struct slab *s);
/* NULL if no page holds the number. The item may be a free one, whose bytes are 0 but for the first four. */
void *slab_find(const struct slab *s, uint32_t id);

/* Bytes of items that need no new page. */
static inline uint64_t slab_spare(const struct slab *s)
{
    return (((uint64_t)s->live << s->page_shift) - s->used) * s->item_bytes;
}

/* slab_find() for a number in use. */
static inline void *slab_at(const struct slab *s, uint32_t id)
{
    uint32_t slot = id & ((1u << s->page_shift) - 1);

    return s->pages[id >> s->page_shift]->items + (size_t)slot * s->item_bytes;
}

#endif
