#include "controller/assist/api.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

/* ---- Objections ---- */

void objection_at(struct objection *ob, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(ob->field, sizeof(ob->field), fmt, args);
    va_end(args);
}

int objection_set(struct objection *ob, unsigned status, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ob->status = status;
    text_line(ob->detail, sizeof(ob->detail), str_of(text));
    return -EINVAL;
}

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

void call_refuse(struct call *c, const struct objection *ob, json_t *more)
{
    bool is_busy = ob->status == 503 || ob->status == 504;
    json_t *answer =
        json_pack("{s:s%,s:o*,s:o*}", "detail", ob->detail, utf8_valid_prefix(str_of(ob->detail)), "field",
                  *ob->field ? json_string(ob->field) : NULL, "retryAfterSeconds",
                  is_busy ? json_integer(CALL_RETRY_AFTER_S) : NULL);

    (void)json_object_update_missing(answer, more);
    json_decref(more);
    call_end(c, ob->status, answer);
}

void call_fail(struct call *c, unsigned status, const char *field, const char *fmt, ...)
{
    struct objection ob = {.status = status};
    va_list args;

    objection_at(&ob, "%s", cstr(field));
    va_start(args, fmt);
    (void)vsnprintf(ob.detail, sizeof(ob.detail), fmt, args);
    va_end(args);
    call_refuse(c, &ob, NULL);
}

bool call_deadline(struct call *c, int64_t *ret_ms)
{
    const char *text = kube_str(c->input, "deadline", NULL);

    if (!text || (duration_parse(str_of(text), ret_ms) && *ret_ms >= 10 && *ret_ms <= 600 * 1000))
        return true;
    call_fail(c, 422, "deadline", "deadline: expected a duration of 10 ms to 600 s, such as \"5s\"");
    return false;
}

/* ---- Arguments ---- */

enum { MAX_NAMES = 64 };

static int schema_check(const json_t *schema, const json_t *value, struct objection *ob);

/* Puts a member's name, or an element's index if that is NULL, before the path to what is wrong. */
static int schema_fail_within(struct objection *ob, const char *name, size_t index)
{
    CLEANUP(cleanup_free) char *inner = xstrdup(ob->field);
    const char *dot = *inner && *inner != '[' ? "." : "";

    if (name)
        objection_at(ob, "%s%s%s", name, dot, inner);
    else
        objection_at(ob, "[%zu]%s%s", index, dot, inner);
    return -EINVAL;
}

static bool value_is(const json_t *value, const char *type)
{
    static const char *const types[] = {"object", "array",   "string", "integer",
                                        "number", "boolean", "boolean"};
    json_type of = json_typeof(value); /* from JSON_OBJECT to JSON_NULL */

    return (of != JSON_NULL && strcmp(types[of], type) == 0) ||
           (of == JSON_INTEGER && strcmp(type, "number") == 0);
}

/* The unit of what is counted; "" for the value itself. */
static int schema_check_limits(const json_t *schema, double value, const char *least, const char *most,
                               const char *unit, struct objection *ob)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);
    const char *verb = *unit ? "have" : "be";

    if (low && value < json_number_value(low))
        return objection_set(ob, 422, "must %s at least %.17g%s", verb, json_number_value(low), unit);
    if (high && value > json_number_value(high))
        return objection_set(ob, 422, "must %s at most %.17g%s", verb, json_number_value(high), unit);
    return 0;
}

static int schema_check_string(const json_t *schema, const json_t *value, struct objection *ob)
{
    const char *s = json_string_value(value);
    size_t n = json_string_length(value), characters = 0;

    if (strlen(s) != n)
        return objection_set(ob, 422, "must not contain a NUL");
    for (size_t i = 0; i < n; i++)
        characters += ((unsigned char)s[i] & 0xc0) != 0x80;
    return schema_check_limits(schema, (double)characters, "minLength", "maxLength", " characters", ob);
}

static int schema_fail_unknown(const json_t *properties, const char *name, struct objection *ob)
{
    const char *known[MAX_NAMES + 1] = {NULL}, *key, *nearest;
    size_t n = 0;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)properties, key, value) if (n < MAX_NAMES) known[n++] = key;
    nearest = name_nearest(str_of(name), known);
    return objection_set(ob, 422, "unknown field%s%s%s", nearest ? "; did you mean " : "", cstr(nearest),
                         nearest ? "?" : "");
}

static int schema_check_object(const json_t *schema, const json_t *value, struct objection *ob)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required"), *own;
    bool is_closed = json_is_false(json_object_get(schema, "additionalProperties"));
    const char *name;
    json_t *part;

    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        own = json_object_get(properties, name);
        if (own ? schema_check(own, part, ob) < 0
                : is_closed && schema_fail_unknown(properties, name, ob) < 0)
            return schema_fail_within(ob, name, 0);
    }
    for (size_t i = 0; i < json_array_size(required); i++) {
        name = json_string_value(json_array_get(required, i));
        if (!json_object_get(value, name)) {
            (void)objection_set(ob, 422, "missing field");
            return schema_fail_within(ob, name, 0);
        }
    }
    return 0;
}

static int schema_check_array(const json_t *schema, const json_t *value, struct objection *ob)
{
    const json_t *items = json_object_get(schema, "items");

    if (schema_check_limits(schema, (double)json_array_size(value), "minItems", "maxItems", " elements", ob) <
        0)
        return -EINVAL;
    for (size_t i = 0; items && i < json_array_size(value); i++)
        if (schema_check(items, json_array_get(value, i), ob) < 0)
            return schema_fail_within(ob, NULL, i);
    return 0;
}

static int schema_check(const json_t *schema, const json_t *value, struct objection *ob)
{
    const char *type = json_string_value(json_object_get(schema, "type"));

    if (type && !value_is(value, type))
        return objection_set(ob, 422, "must be %s%s", strchr("aeiou", *type) ? "an " : "a ", type);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return schema_check_object(schema, value, ob);
    case JSON_ARRAY:
        return schema_check_array(schema, value, ob);
    case JSON_STRING:
        return schema_check_string(schema, value, ob);
    case JSON_INTEGER:
    case JSON_REAL:
        return schema_check_limits(schema, json_number_value(value), "minimum", "maximum", "", ob);
    default:
        return 0;
    }
}

bool schema_accepts(const json_t *schema, const json_t *value, const char *whole, struct objection *ret)
{
    *ret = (struct objection){0};
    if (schema_check(schema, value, ret) < 0)
        (void)objection_set(ret, 422, "%s: %s", *ret->field ? ret->field : whole, ret->detail);
    return !ret->status;
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
    size_t mark = items->n, room = listing_room(l);

    if (mark)
        (void)!buf_putc(items, ',');
    l->is_full = kube_json_print(item, items) < 0 || items->n - mark > room;
    if (l->is_full)
        buf_truncate(items, mark);
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
