/* Owns the object without its items; the items and their names are one piece of memory with the score.
 * Made on the loop as a page of a list is read, then only read, by one worker at a time. */
#include "controller/assist/score.h"

#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"

DEFINE_ORDER(score_compare_items, struct score_item, str_cmp(a->name, b->name))

/* Items with a name and an integer, their names copied to `text`; returns their number. */
static size_t score_read_items(const json_t *list, struct score_item *items, char *text)
{
    const json_t *one;
    size_t i, n = 0;

    json_array_foreach(list, i, one)
    {
        struct str name = kube_text(one, "name", NULL);
        int64_t value;

        if (!name.p || !kube_int(one, &value, "value", NULL) || value < INT32_MIN || value > INT32_MAX)
            continue;
        memcpy(text, name.p, name.n);
        items[n++] = (struct score_item){{text, name.n}, (int32_t)value};
        text += name.n;
    }
    qsort(items, n, sizeof(*items), score_compare_items);
    return n;
}

/* Items and their names are one piece of memory with it. */
struct score *score_new(json_t *object, unix_ms now)
{
    const json_t *list = kube_list(object, "status", "scores", NULL), *one;
    size_t bytes = sizeof(struct score_item) * json_array_size(list), text = 0, i;
    struct score_item *items;
    struct score *s;

    json_array_foreach(list, i, one) text += kube_text(one, "name", NULL).n;
    s = xmalloc(sizeof(*s) + bytes + text);
    items = (void *)(s + 1);
    *s = (struct score){.cluster = kube_namespace(object),
                        .name = kube_name(object),
                        .valid_until = kube_time_parse(kube_str(object, "status", "validUntil", NULL)),
                        .object = json_incref(object),
                        .items = items};
    s->n_items = score_read_items(list, items, (char *)items + bytes);
    /* As Placement judges it: at the very second it still counts. */
    s->is_expired = s->valid_until.ms && now.ms > s->valid_until.ms;
    return s;
}

struct score *score_free(struct score *s)
{
    if (!s)
        return NULL;
    json_decref(s->object);
    free(s);
    return NULL;
}

json_t *score_valid_until_value(const struct score *s)
{
    char until[KUBE_TIME_BYTES];

    kube_time_format(s->valid_until, until);
    return s->valid_until.ms ? json_string(until) : NULL;
}
