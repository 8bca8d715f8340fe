/* Looks for the other writer, and says in words that there is one. Owns nothing; on the loop. */
#include "controller/kube/fight.h"

#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/text.h"

enum {
    SETTLE_MIN_MS = 20 * 1000,
    SETTLE_MAX_MS = 10 * 60 * 1000,
};

/* The last one to write, by whole seconds. Within one, another than we: it came after our write. */
static const json_t *fight_last_entry(const json_t *object, const char *ours, const char *subresource)
{
    const json_t *list = kube_list(object, "metadata", "managedFields", NULL), *entry, *last = NULL;
    int64_t last_ms = 0;
    size_t i;

    json_array_foreach(list, i, entry)
    {
        int64_t ms = kube_time_parse(kube_str(entry, "time", NULL)).ms;
        bool is_ours = strcmp(cstr(kube_str(entry, "manager", NULL)), ours) == 0;

        if (strcmp(cstr(kube_str(entry, "subresource", NULL)), subresource) != 0)
            continue;
        if (ms > last_ms || (ms == last_ms && !is_ours)) {
            last = entry;
            last_ms = ms;
        }
    }
    return last;
}

bool kube_fight_note(struct kube_fight *f, const json_t *object, const char *ours, const char *subresource)
{
    const char *manager;

    if (f->rival == RIVAL_NAMED)
        return false;
    manager = cstr(kube_str(fight_last_entry(object, ours, subresource), "manager", NULL));
    if (!*manager || strcmp(manager, ours) == 0)
        return false;
    f->rival = RIVAL_NAMED;
    text_line(f->manager, sizeof(f->manager), str_of(manager));
    return true;
}

int64_t kube_fight_settle_ms(const struct kube_fight *f)
{
    int64_t ms = 2 * f->longest_ms;

    if (ms < SETTLE_MIN_MS)
        return SETTLE_MIN_MS;
    return ms < SETTLE_MAX_MS ? ms : SETTLE_MAX_MS;
}

char *kube_fight_text(const struct kube_fight *f, const char *object)
{
    if (f->rival == RIVAL_NAMED)
        return xasprintf(
            "another writer (field manager %s) keeps undoing what this one writes to %s: stop it "
            "from managing this object",
            f->manager, object);
    return xasprintf("another writer keeps undoing what this one writes to %s: managedFields do not name it; "
                     "look for it in the API server's audit log, and stop it from managing this object",
                     object);
}
