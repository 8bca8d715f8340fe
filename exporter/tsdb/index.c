#include "exporter/tsdb/index.h"

#include "exporter/tsdb/slab.h"

enum { FIRST_CAP = 8 };

static struct index_part *part_of(const struct index *x, uint32_t hash)
{
    return (struct index_part *)&x->parts[hash % INDEX_PARTS];
}

static uint32_t place_of(const struct index_part *part, uint32_t hash)
{
    return hash / INDEX_PARTS & (part->cap - 1);
}

void index_done(struct index *x)
{
    for (size_t i = 0; i < INDEX_PARTS; i++)
        free(x->parts[i].slots);
    *x = (struct index){0};
}

uint32_t index_find(const struct index *x, uint32_t hash, bool (*same)(const void *arg, uint32_t id),
                    const void *arg)
{
    const struct index_part *part = part_of(x, hash);

    if (part->n == 0)
        return 0;
    for (uint32_t i = place_of(part, hash); part->slots[i].id; i = (i + 1) & (part->cap - 1))
        if (part->slots[i].hash == hash && same(arg, part->slots[i].id))
            return part->slots[i].id;
    return 0;
}

static void part_put(struct index_part *part, struct index_slot slot)
{
    uint32_t i = place_of(part, slot.hash);

    while (part->slots[i].id)
        i = (i + 1) & (part->cap - 1);
    part->slots[i] = slot;
    part->n++;
}

static int part_grow(struct index *x, struct index_part *part)
{
    struct index_part grown = {.cap = part->cap ? part->cap * 2 : FIRST_CAP};
    int r = budget_take(x->budget, budget_cost(grown.cap * sizeof(*grown.slots)));

    if (r < 0)
        return r;
    grown.slots = calloc(grown.cap, sizeof(*grown.slots));
    if (!grown.slots) {
        budget_give(x->budget, budget_cost(grown.cap * sizeof(*grown.slots)));
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < part->cap; i++)
        if (part->slots[i].id)
            part_put(&grown, part->slots[i]);
    free(part->slots);
    if (part->cap)
        budget_give(x->budget, budget_cost(part->cap * sizeof(*part->slots)));
    *part = grown;
    return 0;
}

int index_add(struct index *x, uint32_t hash, uint32_t id)
{
    struct index_part *part = part_of(x, hash);
    int r = 4 * (uint64_t)(part->n + 1) > 3 * (uint64_t)part->cap ? part_grow(x, part) : 0;

    if (r == 0)
        part_put(part, (struct index_slot){.id = id, .hash = hash});
    return r;
}

/* Moves later entries of the run up, so that no search ends early at the hole. */
static void part_close_hole(struct index_part *part, uint32_t hole)
{
    uint32_t mask = part->cap - 1;

    for (uint32_t i = (hole + 1) & mask; part->slots[i].id; i = (i + 1) & mask) {
        uint32_t home = place_of(part, part->slots[i].hash);

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        part->slots[hole] = part->slots[i];
        hole = i;
    }
    part->slots[hole] = (struct index_slot){0};
}

void index_remove(struct index *x, uint32_t hash, uint32_t id)
{
    struct index_part *part = part_of(x, hash);
    uint32_t i = place_of(part, hash);

    while (part->slots[i].id != id)
        i = (i + 1) & (part->cap - 1);
    part->n--;
    part_close_hole(part, i);
}
