#include "controller/assist/operations/answer.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/snapshot.h"
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

static void answer_end(struct answer *a)
{
    json_auto_t *list = listing_end(&a->listing);
    json_t *answer = TAKE_PTR(a->head);
    bool ok = answer && a->notes && list;

    if (ok && json_array_size(a->notes) > 0)
        ok = json_object_set(answer, "notes", a->notes) == 0;
    ok = ok && json_object_update(answer, list) == 0;
    json_decref(TAKE_PTR(a->notes));
    if (!ok || a->has_failed) {
        json_decref(answer);
        answer = NULL;
    }
    if (!a->has_failed)
        call_done(a->call, answer);
}

void answer_fail(struct answer *a, unsigned status, const char *field, const char *fmt, ...)
{
    char text[NOTE_BYTES];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    a->has_failed = true;
    call_fail(a->call, status, json_pack("{s:s}", "field", field), "%s", text);
}

/* ---- From the call to the hub, and back ---- */

struct asking {
    struct call *call;
    void (*fill)(struct answer *a);
};

static void answer_on_read(void *arg, struct snapshot *s, const struct outcome *failure)
{
    CLEANUP(cleanup_snapshot_free) struct snapshot *hub = s;
    CLEANUP(cleanup_free) struct asking *asking = arg;
    struct answer a = {.call = asking->call, .hub = hub, .head = json_object(), .notes = json_array()};

    if (failure) {
        call_fail(asking->call, failure->status, NULL, "%s", failure->detail);
    } else {
        listing_init(&a.listing, asking->call);
        (void)!snapshot_note_missing_kinds(hub, a.notes);
        if (json_array_size(a.notes) > 0)
            answer_take_room(&a, answer_bytes(a.notes));
        asking->fill(&a);
        answer_end(&a);
        return;
    }
    json_decref(a.head);
    json_decref(a.notes);
    json_decref(a.listing.items);
}

void answer_from_hub(struct assist *a, struct call *c, const struct reader_query *q,
                     void (*fill)(struct answer *a))
{
    struct asking *asking = xmalloc(sizeof(*asking));

    *asking = (struct asking){c, fill};
    reader_read(assist_reader(a), q, answer_on_read, asking);
}

json_t *answer_text(const char *text, size_t max)
{
    size_t n = strlen(cstr(text));

    if (n <= max)
        return json_string(cstr(text));
    return json_sprintf("%.*s...", (int)utf8_cut(str_of(text), max).n, text);
}
