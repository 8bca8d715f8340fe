/* Reads adjustments and applies them to values. Owns nothing. Called by the placement on an agent's loop,
 * and by the hub for the entries of the DynamicScoringConfig. An entry whose time has passed stays in the
 * list, without effect. */
#include "controller/placement/adjust.h"

#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/doc.h"
#include "exporter/base/glob.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

static int adjust_fail(char why[ADJUST_WHY_BYTES], const char *where, const char *field, const char *expected)
{
    BUF_AUTO(text, 1024);

    buf_puts(&text, where);
    if (*field) {
        buf_putc(&text, '.');
        buf_puts(&text, field);
    }
    buf_puts(&text, ": expected ");
    buf_puts(&text, expected);
    text_line(why, ADJUST_WHY_BYTES, buf_str(&text));
    return -EINVAL;
}

/* Exactly one of add and set. */
static int adjust_read_value(struct adjustment *a, const json_t *entry, const char *where,
                             char why[ADJUST_WHY_BYTES])
{
    const json_t *add = kube_get(entry, "add", NULL), *set = kube_get(entry, "set", NULL);
    int64_t value;

    if (!add == !set)
        return adjust_fail(why, where, "", "exactly one of add and set");
    a->how = set ? ADJUST_SET : ADJUST_ADD;
    if (set && (!kube_int(set, &value, NULL) || value < -100 || value > 100))
        return adjust_fail(why, where, "set", "a whole number from -100 to 100");
    if (add && (!kube_int(add, &value, NULL) || value < -200 || value > 200))
        return adjust_fail(why, where, "add", "a whole number from -200 to 200");
    a->value = (int)value;
    return 0;
}

int adjustment_read(struct adjustment *ret, const json_t *entry, const char *where,
                    char why[ADJUST_WHY_BYTES])
{
    struct adjustment a = {.name = kube_str(entry, "name", NULL),
                           .score = kube_str(entry, "scoreName", NULL),
                           .reason = cstr(kube_str(entry, "reason", NULL))};
    const char *until = cstr(kube_str(entry, "until", NULL));

    if (!json_is_object(entry))
        return adjust_fail(why, where, "", "an object");
    if (!*cstr(a.name) || strlen(a.name) > ADJUST_NAME_MAX)
        return adjust_fail(why, where, "name", "a name of 1 to 63 bytes");
    if (!*cstr(a.score))
        return adjust_fail(why, where, "scoreName", "a name or a pattern with * and ?");
    if (strlen(a.reason) > ADJUST_REASON_MAX)
        return adjust_fail(why, where, "reason", "at most 256 bytes");
    a.until = kube_time_parse(until);
    if (*until && a.until.ms <= 0)
        return adjust_fail(why, where, "until", "a time such as 2026-12-01T06:00:00Z");
    if (adjust_read_value(&a, entry, where, why) < 0)
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

int adjustments_parse(struct adjustments *ret, struct str text, char why[ADJUST_WHY_BYTES])
{
    struct adjustments a = {0};
    const json_t *entry;
    size_t i;

    if (text.n && kube_json_parse(&a.owner, text, why) < 0)
        return -EINVAL;
    if (text.n && (!json_is_array(a.owner) || json_array_size(a.owner) > ADJUST_MAX)) {
        adjustments_done(&a);
        return adjust_fail(why, "adjustments", "", "a list of at most 100 entries");
    }
    a.list = xcalloc(json_array_size(a.owner) + 1, sizeof(*a.list));
    json_array_foreach(a.owner, i, entry)
    {
        char where[40];

        (void)snprintf(where, sizeof(where), "adjustments[%zu]", i);
        if (adjustment_read(&a.list[a.n++], entry, where, why) < 0) {
            adjustments_done(&a);
            return -EINVAL;
        }
    }
    *ret = a;
    return 0;
}

bool adjustment_applies(const struct adjustment *a, const char *score, unix_ms now)
{
    return (a->until.ms == 0 || now.ms < a->until.ms) && glob_match(a->score, score);
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

void adjust_put(const struct adjuster *a, const char *score, struct buf *into)
{
    size_t before = into->n;

    for (size_t i = 0; a->all && i < a->all->n; i++) {
        const struct adjustment *one = &a->all->list[i];

        if (!adjustment_applies(one, score, a->now))
            continue;
        if (into->n > before)
            buf_puts(into, "; ");
        problem_quote(str_of(one->name), into);
        buf_printf(into, one->how == ADJUST_SET ? " sets %d" : " adds %d", one->value);
        if (*one->reason) {
            buf_puts(into, ": ");
            buf_puts(into, one->reason);
        }
    }
}
