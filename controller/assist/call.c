#include "controller/assist/api.h"
#include "controller/assist/api_error.h"
#include "exporter/base/utf8.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"

#include <errno.h>
#include <stdio.h>

/* ---- Calls ---- */

const char *call_text(const struct call *c, const char *name)
{
    const char *text = kube_str(c->input, name, NULL);

    return text && *text ? text : NULL;
}

static void call_end(struct call *c, unsigned status, json_t *answer)
{
    c->status = status;
    c->answer = answer;
    if (!c->hub)
        c->ended(c);
}

void call_done(struct call *c, json_t *answer)
{
    call_end(c, 200, answer);
}

void call_refuse(struct call *c, const struct api_error *error, json_t *more)
{
    bool is_busy = error->status == 503 || error->status == 504;
    json_t *answer =
        json_pack("{s:s%,s:o*,s:o*}", "detail", error->detail, utf8_valid_prefix(str_of(error->detail)),
                  "field", *error->field ? json_string(error->field) : NULL, "retryAfterSeconds",
                  is_busy ? json_integer(CALL_RETRY_AFTER_S) : NULL);

    (void)json_object_update_missing(answer, more);
    json_decref(more);
    call_end(c, error->status, answer);
}

void call_fail(struct call *c, unsigned status, const char *field, const char *fmt, ...)
{
    struct api_error error = {.status = status};
    va_list args;

    api_error_at(&error, "%s", cstr(field));
    va_start(args, fmt);
    (void)vsnprintf(error.detail, sizeof(error.detail), fmt, args);
    va_end(args);
    call_refuse(c, &error, NULL);
}

bool call_deadline(struct call *c, int64_t *ret_ms)
{
    const char *text = kube_str(c->input, "deadline", NULL);

    if (!text || (duration_parse(str_of(text), ret_ms) && *ret_ms >= 10 && *ret_ms <= 600 * 1000))
        return true;
    call_fail(c, 422, "deadline", "deadline: expected a duration of 10 ms to 600 s, such as \"5s\"");
    return false;
}

/* ---- Lists ---- */

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

void listing_end(struct listing *l)
{
    size_t next = l->from + l->shown;
    json_t *rest = NULL, *note = NULL;

    if (next < l->total) {
        rest = json_integer((json_int_t)next);
        note = l->shown == 0 && l->is_full
                   ? json_sprintf("element %zu of %zu alone is too long: ask with a larger maxBytes", next,
                                  l->total)
                   : json_sprintf("%zu of %zu shown%s: ask again with offset %zu for more", l->shown,
                                  l->total, l->is_full ? ", cut at maxBytes" : "", next);
    }
    (void)json_object_update_new(l->head, json_pack("{s:I,s:I,s:O*,s:o*,s:o*}", "total", (json_int_t)l->total,
                                                    "shown", (json_int_t)l->shown, "notes",
                                                    json_array_size(l->notes) ? l->notes : NULL, "next", rest,
                                                    "note", note));
    json_decref(l->notes);
    if (l->call->status) /* an error */
        json_decref(l->head);
    else
        call_done(l->call, l->head);
}

void list_note(json_t *list, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)json_array_append_new(list, json_vsprintf(fmt, ap));
    va_end(ap);
}

const json_t *list_find(const json_t *list, const char *key, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (strcmp(cstr(kube_str(one, key, NULL)), text) == 0)
            return one;
    }
    return NULL;
}

json_t *list_head(const json_t *list, size_t n)
{
    json_t *head = json_array();

    for (size_t i = 0; i < n && i < json_array_size(list); i++)
        (void)json_array_append(head, json_array_get(list, i));
    return head;
}
