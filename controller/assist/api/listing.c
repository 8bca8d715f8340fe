#include "controller/assist/api/listing.h"

#include <errno.h>
#include <stdio.h>

/* Of the bytes of an answer, these are for the members around the items. */
enum { ENVELOPE_BYTES = 400, MIN_BYTES = 512 };

/* A number of the input; `otherwise` without. */
static size_t listing_number(const struct call *c, const char *name, size_t otherwise)
{
    const json_t *v = json_object_get(call_input(c), name);

    return json_is_integer(v) && json_integer_value(v) >= 0 ? (size_t)json_integer_value(v) : otherwise;
}

int listing_init(struct listing *l, const struct call *c)
{
    size_t max = call_max_bytes(c);

    *l = (struct listing){.items = json_array(),
                          .max_bytes = max == SIZE_MAX ? max : size_max(max, MIN_BYTES) - ENVELOPE_BYTES,
                          .from = listing_number(c, "offset", 0),
                          .limit = listing_number(c, "limit", SIZE_MAX)};
    return l->items ? 0 : -ENOMEM;
}

bool listing_wants(struct listing *l)
{
    size_t at = l->total++;

    return l->items && !l->is_full && at >= l->from && json_array_size(l->items) < l->limit;
}

void listing_add(struct listing *l, json_t *item)
{
    size_t n = l->max_bytes == SIZE_MAX ? 0 : json_dumpb(item, NULL, 0, JSON_COMPACT) + 1;

    if (item && l->bytes + n > l->max_bytes) {
        l->is_full = true;
        json_decref(item);
    } else if (!item || json_array_append_new(l->items, item) < 0) {
        json_decref(l->items);
        l->items = NULL;
    } else {
        l->bytes += n;
    }
}

json_t *listing_end(struct listing *l)
{
    size_t shown = json_array_size(l->items), next = l->from + shown;
    json_t *items = l->items, *o;
    char note[200];

    l->items = NULL;
    if (!items)
        return NULL;
    o = json_pack("{s:o,s:I,s:I}", "items", items, "total", (json_int_t)l->total, "shown", (json_int_t)shown);
    if (!o || next >= l->total)
        return o;
    if (shown == 0 && l->is_full)
        (void)snprintf(note, sizeof(note), "element %zu of %zu alone is too long: ask with a larger maxBytes",
                       next, l->total);
    else
        (void)snprintf(note, sizeof(note), "%zu of %zu shown%s: ask again with offset %zu for more", shown,
                       l->total, l->is_full ? ", cut at maxBytes" : "", next);
    if (json_object_set_new(o, "next", json_integer((json_int_t)next)) < 0 ||
        json_object_set_new(o, "note", json_string(note)) < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}
