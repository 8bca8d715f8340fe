/* Names and values of labels, each stored once. Not locked. */
#ifndef DS_TSDB_SYMBOLS_H
#define DS_TSDB_SYMBOLS_H

#include "exporter/base/str.h"
#include "exporter/tsdb/index.h"
#include "exporter/tsdb/slab.h"

struct symbol {
    uint32_t refs;   /* 0: free */
    uint32_t series; /* the first of those whose __name__ this is; 0: none */
    uint32_t n;
    char *text; /* on the heap: does not move while it is referenced */
};

struct symbols {
    struct slab slab;
    struct index index;
};

void symbols_init(struct symbols *s, struct tsdb_budget *budget);
void symbols_done(struct symbols *s);
/* 0 without a symbol of this text. */
uint32_t symbols_find(const struct symbols *s, struct str text);
/* Finds or adds it, with one more reference. -ENOBUFS, -ENOMEM. */
MUST_USE int symbols_ref(struct symbols *s, struct str text, uint32_t *ret);
/* Drops a reference; the last one frees the symbol. */
void symbols_unref(struct symbols *s, uint32_t id);

static inline struct symbol *symbols_at(const struct symbols *s, uint32_t id)
{
    return slab_at(&s->slab, id);
}

static inline struct str symbols_text(const struct symbols *s, uint32_t id)
{
    const struct symbol *symbol = symbols_at(s, id);

    return (struct str){symbol->text, symbol->n};
}

#endif
