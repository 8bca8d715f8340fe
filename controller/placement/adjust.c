/* Reads adjustments and applies them to values. Owns nothing. Called by the placement on an agent's loop,
 * and by the hub for the entries of the DynamicScoringConfig. An entry whose time has passed stays in the
 * list, without effect. */
#include "controller/placement/adjust.h"

#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/glob.h"
#include "exporter/base/hash.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* Exactly one of add and set. */
static int adjust_read_value(struct adjustment *a, const struct list_place *at, const json_t *entry,
                             struct buf *why)
{
    const json_t *add = kube_get(entry, "add", NULL), *set = kube_get(entry, "set", NULL);
    int64_t value;

    if (!add == !set)
        return list_entry_error(why, at, "expected exactly one of add and set");
    a->how = set ? ADJUST_SET : ADJUST_ADD;
    if (set && (!kube_int(set, &value, NULL) || value < -100 || value > 100))
        return list_member_error(why, at, "set", "expected a whole number from -100 to 100");
    if (add && (!kube_int(add, &value, NULL) || value < -200 || value > 200))
        return list_member_error(why, at, "add", "expected a whole number from -200 to 200");
    a->value = (int)value;
    return 0;
}

int adjustment_read(struct adjustment *ret, const struct list_place *at, const json_t *entry, struct buf *why)
{
    struct adjustment a = {.name = kube_str(entry, "name", NULL),
                           .score = kube_str(entry, "scoreName", NULL),
                           .reason = cstr(kube_str(entry, "reason", NULL))};
    const char *until = cstr(kube_str(entry, "until", NULL));

    if (!json_is_object(entry))
        return list_entry_error(why, at, "expected an object");
    if (!*cstr(a.name) || strlen(a.name) > ADJUST_NAME_MAX || !str_has_only(str_of(a.name), "-_."))
        return list_member_error(why, at, "name", "expected 1 to 63 letters, digits, '-', '_' and '.'");
    if (!*cstr(a.score))
        return list_member_error(why, at, "scoreName", "expected a name or a pattern with * and ?");
    if (strlen(a.reason) > ADJUST_REASON_MAX)
        return list_member_error(why, at, "reason", "expected at most 256 characters");
    a.until = kube_time_parse(until);
    if (*until && a.until.ms <= 0)
        return list_member_error(why, at, "until", "expected a time such as 2026-12-01T06:00:00Z");
    if (adjust_read_value(&a, at, entry, why) < 0)
        return -EINVAL;
    *ret = a;
    return 0;
}

void adjustments_done(struct adjustments *a)
{
    json_decref(a->owner);
    free(a->list);
    *a = (struct adjustments){0};
}

/* Appends the entries of a document that is owned by *a. */
static int adjustments_read_list(struct adjustments *a, struct buf *why)
{
    struct list_place at = {.list = "adjustments"};
    const json_t *entry;

    if (!json_is_array(a->owner) || json_array_size(a->owner) > ADJUST_MAX)
        return list_error(why, at.list, "expected a list of at most 100 entries");
    a->list = xcalloc(json_array_size(a->owner) + 1, sizeof(*a->list));
    json_array_foreach(a->owner, at.i, entry)
    {
        if (adjustment_read(&a->list[a->n++], &at, entry, why) < 0)
            return -EINVAL;
    }
    return 0;
}

int adjustments_parse(struct adjustments *ret, struct str text, struct buf *why)
{
    CLEANUP(adjustments_done) struct adjustments a = {0};
    char syntax[LIST_ERROR_BYTES];

    if (text.n && kube_json_parse(&a.owner, text, syntax) < 0) {
        buf_clear(why);
        buf_puts(why, syntax);
        return -EINVAL;
    }
    if (text.n && adjustments_read_list(&a, why) < 0)
        return -EINVAL;
    *ret = a;
    a = (struct adjustments){0};
    return 0;
}

bool adjustment_applies(const struct adjustment *a, const char *score, unix_ms now)
{
    return (a->until.ms == 0 || now.ms < a->until.ms) && glob_match(a->score, score);
}

bool adjust_sets(const struct adjuster *a, const char *score)
{
    for (size_t i = 0; a->all && i < a->all->n; i++)
        if (a->all->list[i].how == ADJUST_SET && adjustment_applies(&a->all->list[i], score, a->now))
            return true;
    return false;
}

double adjust_value(const struct adjuster *a, const char *score, double value)
{
    for (size_t i = 0; a->all && i < a->all->n; i++) {
        const struct adjustment *one = &a->all->list[i];

        if (!adjustment_applies(one, score, a->now))
            continue;
        value = one->how == ADJUST_SET ? one->value : value + one->value;
    }
    return value;
}

unix_ms adjustments_next_end(const struct adjustments *a, unix_ms now)
{
    unix_ms next = {0};

    for (size_t i = 0; i < a->n; i++) {
        unix_ms until = a->list[i].until;

        if (until.ms > now.ms && (next.ms == 0 || until.ms < next.ms))
            next = until;
    }
    return next;
}

/* `"maintenance" adds -30: new disk` */
static void adjustment_put(const struct adjustment *a, struct buf *into)
{
    char reason[ADJUST_REASON_MAX + 1];

    buf_printf(into, "\"%s\" %s %d", a->name, a->how == ADJUST_SET ? "sets" : "adds", a->value);
    if (!*a->reason)
        return;
    text_line(reason, sizeof(reason), str_of(a->reason));
    buf_puts(into, ": ");
    buf_puts(into, reason);
}

void adjust_put(const struct adjuster *a, const char *score, struct buf *into)
{
    size_t before = into->n, more = 0;

    for (size_t i = 0; a->all && i < a->all->n; i++) {
        const struct adjustment *one = &a->all->list[i];

        if (!adjustment_applies(one, score, a->now))
            continue;
        if (into->n - before > ADJUST_TEXT_BYTES - ADJUST_REASON_MAX - 256) {
            more++;
            continue;
        }
        if (into->n > before)
            buf_puts(into, "; ");
        adjustment_put(one, into);
    }
    if (more)
        buf_printf(into, "; and %zu more", more);
}

uint64_t adjust_hash(const struct adjuster *a, const char *score)
{
    uint64_t h = 0;

    for (size_t i = 0; a->all && i < a->all->n; i++) {
        const struct adjustment *one = &a->all->list[i];

        if (!adjustment_applies(one, score, a->now))
            continue;
        h = hash_chain(hash_chain(h, str_of(one->name)), str_of(one->reason));
        h = hash_chain_u64(hash_chain_u64(h, one->how), (uint64_t)one->value);
    }
    return h;
}
