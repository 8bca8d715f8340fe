#include "controller/assist/state/world_score.h"

#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"
#include "exporter/base/hash.h"

#include <errno.h>

int world_item_compare(const void *a, const void *b)
{
    const struct world_item *x = a, *y = b;

    return str_cmp(x->name, y->name);
}

/* Fills `items` with the usable ones, their names borrowed from the list; returns their number. */
static size_t score_read_items(const json_t *list, struct world_item *items)
{
    const json_t *one;
    size_t i, n = 0;

    json_array_foreach(list, i, one)
    {
        struct str name = kube_text(one, "name", NULL);
        int64_t value;

        if (name.p && kube_int(one, &value, "value", NULL) && value >= INT32_MIN && value <= INT32_MAX)
            items[n++] = (struct world_item){name, (int32_t)value};
    }
    return n;
}

static size_t score_text_bytes(const json_t *list)
{
    const json_t *one;
    size_t i, n = 0;

    json_array_foreach(list, i, one) n += kube_text(one, "name", NULL).n + sizeof(int32_t);
    return n;
}

/* Copies names to `text`, each with its value behind, so that one hash covers both. */
static void score_own_names(struct world_score *s, struct world_item *items, char *text)
{
    char *at = text;

    for (size_t i = 0; i < s->n_items; i++) {
        struct world_item *item = &items[i];

        memcpy(at, cstr(item->name.p), item->name.n);
        memcpy(at + item->name.n, &item->value, sizeof(item->value));
        item->name.p = at;
        at += item->name.n + sizeof(item->value);
    }
    s->hash = hash_lasting((struct str){text, (size_t)(at - text)});
}

void world_shared_done(struct world_shared *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(s->objects); i++)
        json_decref(TAKE_PTR(s->objects[i]));
}

/* A reference to the object, or to an equal one. */
static json_t *score_share(struct world_shared *s, json_t *object)
{
    json_t **oldest = &s->objects[s->next % ARRAY_SIZE(s->objects)];

    if (!object)
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(s->objects); i++)
        if (s->objects[i] && json_equal(s->objects[i], object))
            return json_incref(s->objects[i]);
    json_decref(*oldest);
    *oldest = json_incref(object);
    s->next++;
    return json_incref(object);
}

/* All is well if Scored is True and all others are False. -ENOMEM. */
static int score_read_conditions(const json_t *object, json_t **ret)
{
    json_auto_t *bad = NULL;
    json_t *one;
    size_t i;

    json_array_foreach(kube_list(object, "status", "conditions", NULL), i, one)
    {
        const char *good = strcmp(cstr(kube_str(one, "type", NULL)), "Scored") == 0 ? "True" : "False";

        if (kube_condition_is(one, good))
            continue;
        if ((!bad && !(bad = json_array())) || json_array_append(bad, one) < 0)
            return -ENOMEM;
    }
    *ret = TAKE_PTR(bad);
    return 0;
}

static const char *score_put_text(char **at, const char *text)
{
    char *to = *at;
    size_t n = strlen(text) + 1;

    memcpy(to, text, n);
    *at += n;
    return to;
}

int world_score_new(struct world_score **ret, json_t *object, struct world_shared *shared)
{
    const json_t *list = kube_list(object, "status", "scores", NULL);
    const char *namespace = kube_namespace(object), *name = kube_name(object);
    size_t bytes = sizeof(struct world_item) * json_array_size(list);
    CLEANUP(cleanup_world_score_free)
    struct world_score *s =
        malloc(sizeof(*s) + bytes + strlen(namespace) + strlen(name) + 2 + score_text_bytes(list));
    struct world_item *items;
    char *text;

    if (!s)
        return -ENOMEM;
    items = (void *)(s + 1);
    text = (char *)items + bytes;
    *s = (struct world_score){
        .namespace = score_put_text(&text, namespace),
        .name = score_put_text(&text, name),
        .valid_until = kube_time_parse(kube_str(object, "status", "validUntil", NULL)),
        .labels = score_share(shared, kube_map(object, "metadata", "labels", NULL)),
        .annotations = score_share(shared, kube_map(object, "metadata", "annotations", NULL)),
        .items = items,
        .n_items = score_read_items(list, items),
    };
    if (score_read_conditions(object, &s->conditions) < 0)
        return -ENOMEM;
    qsort(items, s->n_items, sizeof(*items), world_item_compare);
    score_own_names(s, items, text);
    *ret = TAKE_PTR(s);
    return 0;
}

struct world_score *world_score_free(struct world_score *s)
{
    if (s && s->refs > 0) {
        s->refs--;
        return NULL;
    }
    if (s) {
        json_decref(s->labels);
        json_decref(s->annotations);
        json_decref(s->conditions);
    }
    free(s);
    return NULL;
}

const struct world_score *world_score_keep(const struct world_score *s)
{
    ((struct world_score *)(uintptr_t)s)->refs++;
    return s;
}

void world_score_release(const struct world_score *s)
{
    (void)world_score_free((struct world_score *)(uintptr_t)s);
}

/* As Placement judges it: at the very second it still counts. */
bool world_score_is_expired(const struct world_score *s, unix_ms now)
{
    return s->valid_until.ms && now.ms > s->valid_until.ms;
}
