#include "controller/assist/operations/answer.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/snapshot.h"
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
    return a->call->max_bytes != SIZE_MAX;
}

size_t answer_room(const struct answer *a)
{
    return a->listing.max_bytes;
}

void answer_put(struct answer *a, const char *name, json_t *value)
{
    answer_take_room(a, strlen(name) + MEMBER_BYTES + answer_bytes(value));
    (void)json_object_set_new(a->head, name, value);
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
    json_t *text;
    va_list ap;

    va_start(ap, fmt);
    text = json_vsprintf(fmt, ap);
    va_end(ap);
    answer_take_room(a, json_string_length(text) + MEMBER_BYTES);
    (void)json_array_append_new(a->notes, text);
}

static void answer_end(struct answer *a)
{
    json_auto_t *list = listing_end(&a->listing);

    if (json_array_size(a->notes) > 0)
        (void)json_object_set(a->head, "notes", a->notes);
    (void)json_object_update(a->head, list);
    json_decref(a->notes);
    if (a->has_failed)
        json_decref(a->head);
    else
        call_done(a->call, a->head);
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
    struct answer a = {.call = asking->call, .hub = hub};

    if (failure) {
        call_fail(asking->call, failure->status, NULL, "%s", failure->detail);
        return;
    }
    a.head = json_object();
    a.notes = json_array();
    listing_init(&a.listing, asking->call);
    snapshot_note_missing_kinds(hub, a.notes);
    if (json_array_size(a.notes) > 0)
        answer_take_room(&a, answer_bytes(a.notes));
    asking->fill(&a);
    answer_end(&a);
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
