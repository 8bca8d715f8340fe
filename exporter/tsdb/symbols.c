#include "exporter/tsdb/symbols.h"

#include "exporter/base/hash.h"

struct symbol_key {
    const struct symbols *symbols;
    struct str text;
};

void symbols_init(struct symbols *s, struct tsdb_budget *budget)
{
    slab_init(&s->slab, budget, sizeof(struct symbol));
    s->index = (struct index){.budget = budget};
}

void symbols_done(struct symbols *s)
{
    for (uint32_t id = 1; id < slab_last(&s->slab); id++) {
        struct symbol *symbol = slab_find(&s->slab, id);

        if (symbol)
            free(symbol->text);
    }
    slab_done(&s->slab);
    index_done(&s->index);
}

static bool symbol_is(const void *arg, uint32_t id)
{
    const struct symbol_key *key = arg;

    return str_eq(symbols_text(key->symbols, id), key->text);
}

uint32_t symbols_find(const struct symbols *s, struct str text)
{
    return index_find(&s->index, (uint32_t)hash_bytes(text), symbol_is, &(struct symbol_key){s, text});
}

static int symbols_add(struct symbols *s, struct str text, uint32_t *ret)
{
    struct tsdb_budget *budget = s->slab.budget;
    char *copy = NULL;
    uint32_t id;
    int r = slab_alloc(&s->slab, &id);

    if (r < 0)
        return r;
    r = budget_take(budget, budget_cost(text.n));
    if (r < 0)
        goto no_budget;
    copy = malloc(text.n ?: 1);
    r = copy ? index_add(&s->index, (uint32_t)hash_bytes(text), id) : -ENOMEM;
    if (r < 0)
        goto no_room;
    memcpy(copy, text.p, text.n);
    *(struct symbol *)symbols_at(s, id) = (struct symbol){.refs = 1, .n = (uint32_t)text.n, .text = copy};
    *ret = id;
    return 0;
no_room:
    free(copy);
    budget_give(budget, budget_cost(text.n));
no_budget:
    slab_free(&s->slab, id);
    return r;
}

int symbols_ref(struct symbols *s, struct str text, uint32_t *ret)
{
    uint32_t id = symbols_find(s, text);

    if (!id)
        return symbols_add(s, text, ret);
    symbols_at(s, id)->refs++;
    *ret = id;
    return 0;
}

void symbols_unref(struct symbols *s, uint32_t id)
{
    struct symbol *symbol = symbols_at(s, id);

    if (--symbol->refs > 0)
        return;
    index_remove(&s->index, (uint32_t)hash_bytes(symbols_text(s, id)), id);
    free(symbol->text);
    budget_give(s->slab.budget, budget_cost(symbol->n));
    slab_free(&s->slab, id);
}
