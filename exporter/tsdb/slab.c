#include "exporter/tsdb/slab.h"

#include <stdbool.h>
#include <string.h>

enum { PAGE_BYTES = 32 << 10, FIRST_PAGES = 16 };

void slab_init(struct slab *s, struct tsdb_budget *budget, uint32_t item_bytes)
{
    *s = (struct slab){.budget = budget, .item_bytes = item_bytes};
    while ((uint64_t)item_bytes << (s->page_shift + 1) <= PAGE_BYTES)
        s->page_shift++;
}

static uint64_t page_cost(const struct slab *s)
{
    return budget_cost(sizeof(struct slab_page) + ((size_t)s->item_bytes << s->page_shift));
}

void slab_done(struct slab *s)
{
    for (uint32_t i = 0; i < s->n_pages; i++)
        free(s->pages[i]);
    free(s->pages);
    *s = (struct slab){0};
}

static void page_link(struct slab *s, uint32_t i)
{
    s->pages[i]->previous = 0;
    s->pages[i]->next = s->open;
    if (s->open)
        s->pages[s->open - 1]->previous = i + 1;
    s->open = i + 1;
}

static void page_unlink(struct slab *s, uint32_t i)
{
    const struct slab_page *page = s->pages[i];

    if (page->previous)
        s->pages[page->previous - 1]->next = page->next;
    else
        s->open = page->next;
    if (page->next)
        s->pages[page->next - 1]->previous = page->previous;
}

/* Room for one more pointer; their number is a power of two. */
static int slab_grow(struct slab *s)
{
    size_t cap = s->n_pages ? (size_t)s->n_pages * 2 : FIRST_PAGES;
    struct slab_page **pages;

    if (s->n_pages && (s->n_pages < FIRST_PAGES || s->n_pages & (s->n_pages - 1)))
        return 0;
    pages = realloc(s->pages, cap * sizeof(struct slab_page *));
    if (!pages)
        return -ENOMEM;
    s->pages = pages;
    return 0;
}

/* The place of a page that was freed, or a new one. */
static uint32_t free_place(const struct slab *s)
{
    uint32_t i = 0;

    while (i < s->n_pages && s->pages[i])
        i++;
    return i;
}

static int page_new(struct slab *s)
{
    uint32_t i = free_place(s);
    struct slab_page *page;
    int r;

    if ((uint64_t)(i + 1) << s->page_shift > UINT32_MAX)
        return -ENOBUFS;
    r = i == s->n_pages ? slab_grow(s) : 0;
    r = r ?: budget_take(s->budget, page_cost(s));
    if (r < 0)
        return r;
    page = calloc(1, sizeof(*page) + ((size_t)s->item_bytes << s->page_shift));
    if (!page) {
        budget_give(s->budget, page_cost(s));
        return -ENOMEM;
    }
    page->fresh = i == 0; /* number 0 stands for none */
    s->pages[i] = page;
    s->n_pages += i == s->n_pages;
    s->live++;
    page_link(s, i);
    return 0;
}

int slab_alloc(struct slab *s, uint32_t *ret)
{
    struct slab_page *page;
    uint32_t slot;
    int r = s->open ? 0 : page_new(s);

    if (r < 0)
        return r;
    page = s->pages[s->open - 1];
    if (page->free) {
        slot = page->free - 1;
        memcpy(&page->free, page->items + (size_t)slot * s->item_bytes, sizeof(page->free));
        memset(page->items + (size_t)slot * s->item_bytes, 0, sizeof(page->free));
    } else {
        slot = page->fresh++;
    }
    *ret = (s->open - 1) << s->page_shift | slot;
    page->used++;
    s->used++;
    if (!page->free && page->fresh >> s->page_shift)
        page_unlink(s, s->open - 1);
    return 0;
}

void slab_free(struct slab *s, uint32_t id)
{
    uint32_t i = id >> s->page_shift, slot = id & ((1u << s->page_shift) - 1);
    struct slab_page *page = s->pages[i];
    char *item = page->items + (size_t)slot * s->item_bytes;
    bool full = !page->free && page->fresh >> s->page_shift;

    memset(item, 0, s->item_bytes);
    memcpy(item, &page->free, sizeof(page->free));
    page->free = slot + 1;
    s->used--;
    if (full)
        page_link(s, i);
    if (--page->used > 0)
        return;
    page_unlink(s, i);
    s->pages[i] = NULL;
    s->live--;
    free(page);
    budget_give(s->budget, page_cost(s));
}

uint32_t slab_last(const struct slab *s)
{
    return s->n_pages << s->page_shift;
}

void *slab_find(const struct slab *s, uint32_t id)
{
    return id >> s->page_shift < s->n_pages && s->pages[id >> s->page_shift] ? slab_at(s, id) : NULL;
}
