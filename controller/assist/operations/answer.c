#include "controller/assist/operations/answer.h"

#include "controller/assist/api/operation.h"
#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"

enum { NOTE_BYTES = 1024, MEMBER_BYTES = 4 /* quotes, colon, comma */ };

static size_t answer_bytes(const json_t *value)
{
    return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

static void answer_take_room(struct answer *a, size_t n)
{
    if (answer_is_short(a))
        a->listing.max_bytes -= size_min(n, a->listing.max_bytes);
}

bool answer_begin(struct answer *a, struct call *c, const struct world *w, const enum world_kind *kinds,
                  size_t n_kinds)
{
    *a = (struct answer){.call = c, .world = w};
    for (size_t i = 0; i < n_kinds; i++)
        if (!world_knows_kind(w, kinds[i])) {
            call_fail(c, 503, NULL, "%s are not known yet: %s", world_resource(kinds[i])->plural,
                      world_trouble(w, kinds[i]));
            return false;
        }
    a->head = json_object();
    a->notes = json_array();
    if (listing_init(&a->listing, c) < 0 || !a->head || !a->notes) {
        json_decref(TAKE_PTR(a->listing.items));
        json_decref(TAKE_PTR(a->head));
        json_decref(TAKE_PTR(a->notes));
        call_done(c, NULL);
        return false;
    }
    for (size_t i = 0; i < n_kinds; i++)
        if (world_note(w, kinds[i], a->notes) < 0) {
            json_decref(a->notes);
            a->notes = NULL;
        }
    if (json_array_size(a->notes) > 0)
        answer_take_room(a, answer_bytes(a->notes));
    return true;
}

const char *answer_input(const struct answer *a, const char *name)
{
    const char *text = json_string_value(json_object_get(call_input(a->call), name));

    return text && *text ? text : NULL;
}

bool answer_is_short(const struct answer *a)
{
    return call_max_bytes(a->call) != SIZE_MAX;
}

size_t answer_room(const struct answer *a)
{
    return a->listing.max_bytes;
}

void answer_put(struct answer *a, const char *name, json_t *value)
{
    answer_take_room(a, strlen(name) + MEMBER_BYTES + answer_bytes(value));
    if (json_object_set_new(a->head, name, value) < 0) {
        json_decref(a->head);
        a->head = NULL;
    }
}

void answer_put_if_short(struct answer *a, const char *name, json_t *value, const char *advice)
{
    if (!answer_is_short(a) || answer_bytes(value) <= answer_room(a) / 2) {
        answer_put(a, name, value);
        return;
    }
    json_decref(value);
    answer_note(a, "%s is left out as it is too long: %s.", name, advice);
}

void answer_note(struct answer *a, const char *fmt, ...)
{
    BUF_AUTO(text, NOTE_BYTES);
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (r == 0)
        r = json_array_append_new(a->notes, json_stringn(text.p, text.n));
    if (r < 0) {
        json_decref(a->notes);
        a->notes = NULL;
    }
    answer_take_room(a, text.n + MEMBER_BYTES);
}

void answer_end(struct answer *a)
{
    json_auto_t *list = listing_end(&a->listing);
    json_t *answer = TAKE_PTR(a->head);
    bool ok = answer && a->notes && list;

    if (ok && json_array_size(a->notes) > 0)
        ok = json_object_set(answer, "notes", a->notes) == 0;
    ok = ok && json_object_update(answer, list) == 0;
    json_decref(TAKE_PTR(a->notes));
    if (!ok) {
        json_decref(answer);
        answer = NULL;
    }
    call_done(a->call, answer);
}

json_t *answer_text(const char *text, size_t max)
{
    size_t n = strlen(cstr(text));

    if (n <= max)
        return json_string(cstr(text));
    return json_sprintf("%.*s...", (int)utf8_cut(str_of(text), max).n, text);
}
