/* Sorts names by eight bytes at a time, behind what they have in common. */
#include "exporter/base/order.h"

#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"

#include <endian.h>

enum { READ_AHEAD = 8 /* names whose bytes are asked for before they are compared */ };

struct sort_item {
    uint64_t key; /* eight bytes, the first one uppermost */
    struct str name;
    uint32_t place;
};

/* Reads the keys behind what all of these have in common, and returns the depth there. They are equal
 * up to `depth`. */
static size_t sort_read_keys(struct sort_item *items, size_t n, size_t depth)
{
    struct str first = items[0].name;
    size_t common = first.n;

    for (size_t i = 1; i < n; i++) {
        struct str name = items[i].name;
        size_t k = depth;

        if (i + READ_AHEAD < n)
            __builtin_prefetch(items[i + READ_AHEAD].name.p + depth);
        common = size_min(common, name.n);
        while (k + 8 <= common && memcmp(first.p + k, name.p + k, 8) == 0)
            k += 8;
        while (k < common && first.p[k] == name.p[k])
            k++;
        common = k;
    }
    for (size_t i = 0; i < n; i++) {
        struct str name = items[i].name;

        items[i].key = 0;
        memcpy(&items[i].key, name.p + common, size_min(name.n - common, sizeof(items[i].key)));
        items[i].key = be64toh(items[i].key);
    }
    return common;
}

static void sort_swap(struct sort_item *x, struct sort_item *y)
{
    struct sort_item was = *x;

    *x = *y;
    *y = was;
}

/* Quicksort; no answer can be made to be slow to sort, as the pivots depend on this process' key. */
static void sort_items(struct sort_item *items, size_t n, size_t depth)
{
    while (n > 1) {
        uint64_t pivot = items[hash_chain_u64(depth, n) % n].key;
        size_t less = 0, i = 0, end = n;

        while (i < end)
            if (items[i].key < pivot)
                sort_swap(&items[i++], &items[less++]);
            else if (items[i].key > pivot)
                sort_swap(&items[i], &items[--end]);
            else
                i++;
        sort_items(items, less, depth);
        sort_items(items + end, n - end, depth);
        items += less;
        n = end - less;
        if (n > 1)
            depth = sort_read_keys(items, n, depth + sizeof(pivot));
    }
}

uint32_t *str_order(const struct str *list, size_t n)
{
    struct sort_item *items = xcalloc(size_max(n, 1), sizeof(*items));
    uint32_t *order = xcalloc(size_max(n, 1), sizeof(*order));

    for (size_t i = 0; i < n; i++)
        items[i] = (struct sort_item){.name = list[i], .place = (uint32_t)i};
    if (n)
        sort_items(items, n, sort_read_keys(items, n, 0));
    for (size_t i = 0; i < n; i++)
        order[i] = items[i].place;
    free(items);
    return order;
}
