/* Owns the members around the items while an answer is made; the items are the call's. On the worker that
 * fills in the answer, or on the loop; never on both. */
#include "controller/assist/listing.h"

#include "controller/assist/call.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"

/* Of the bytes of an answer, these are for the members around the items. */
enum { ENVELOPE_BYTES = 397, MIN_BYTES = 512 };

void listing_init(struct listing *l, struct call *c)
{
    int64_t from = 0, limit = INT64_MAX;

    (void)kube_int(c->input, &from, "offset", NULL);
    (void)kube_int(c->input, &limit, "limit", NULL);
    *l = (struct listing){.call = c,
                          .head = json_object(),
                          .notes = json_array(),
                          .from = (size_t)from,
                          .limit = (size_t)limit};
    c->has_items = true;
}

bool listing_is_short(const struct listing *l)
{
    return l->call->max_bytes != SIZE_MAX;
}

size_t listing_at_most(const struct listing *l, size_t n)
{
    return listing_is_short(l) ? n : SIZE_MAX;
}

size_t listing_room(const struct listing *l)
{
    size_t used = ENVELOPE_BYTES + l->call->items.n, max = size_max(l->call->max_bytes, MIN_BYTES);

    if (!listing_is_short(l))
        return SIZE_MAX;
    used += json_dumpb(l->head, NULL, 0, JSON_COMPACT) + json_dumpb(l->notes, NULL, 0, JSON_COMPACT);
    return max > used ? max - used : 0;
}

bool listing_wants(struct listing *l)
{
    size_t at = l->total++;

    return !l->is_full && at >= l->from && l->shown < l->limit;
}

void listing_add(struct listing *l, json_t *item)
{
    struct buf *items = &l->call->items;
    struct buf_mark mark = buf_mark(items);
    size_t room = listing_room(l);

    if (mark.n)
        buf_putc(items, ',');
    kube_json_print(item, items);
    l->is_full = buf_failed(items) < 0 || items->n - mark.n > room;
    if (l->is_full)
        buf_rollback(items, mark);
    else
        l->shown++;
    json_decref(item);
}

void listing_add_all(struct listing *l, const json_t *items)
{
    for (size_t i = 0; i < json_array_size(items); i++)
        if (listing_wants(l))
            listing_add(l, json_incref(json_array_get(items, i)));
}

/* How to get the rest. */
static json_t *listing_cut_note(const struct listing *l, size_t next)
{
    if (l->shown == 0 && l->is_full)
        return json_sprintf("element %zu of %zu alone is too long: ask with a larger maxBytes", next,
                            l->total);
    if (l->is_full)
        return json_sprintf("%zu of %zu shown, cut at maxBytes: ask again with offset %zu for more", l->shown,
                            l->total, next);
    return json_sprintf("%zu of %zu shown: ask again with offset %zu for more", l->shown, l->total, next);
}

void listing_end(struct listing *l)
{
    size_t next = l->from + l->shown;

    kube_set_int(l->head, "total", (int64_t)l->total);
    kube_set_int(l->head, "shown", (int64_t)l->shown);
    if (json_array_size(l->notes))
        kube_set(l->head, "notes", json_incref(l->notes));
    if (next < l->total) {
        kube_set_int(l->head, "next", (int64_t)next);
        kube_set(l->head, "note", listing_cut_note(l, next));
    }
    json_decref(l->notes);
    if (l->call->status) /* an error */
        json_decref(l->head);
    else
        call_done(l->call, l->head);
}

void listing_fill(struct call *c)
{
    struct listing l;

    listing_init(&l, c);
    snapshot_note_missing_kinds(c->hub, l.notes);
    c->operation->fill(&l, c->hub);
    listing_end(&l);
}
