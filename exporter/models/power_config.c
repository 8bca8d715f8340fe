#include "exporter/models/power_config.h"

#include "exporter/base/glob.h"
#include "exporter/base/problems.h"

#include <errno.h>

enum { ARENA_CHUNK = 4096 };

void power_config_done(struct power_config *c)
{
    arena_done(&c->arena);
    *c = (struct power_config){0};
}

/* A terminated copy; NULL when out of memory. */
static const char *power_text(struct power_config *c, struct str text)
{
    char *copy = arena_alloc(&c->arena, text.n + 1);

    if (copy) {
        memcpy(copy, text.p, text.n);
        copy[text.n] = '\0';
    }
    return copy;
}

static int power_add_pair(struct power_config *c, const char *app, struct str text)
{
    const char *device = power_text(c, text);

    if (!device)
        return -ENOMEM;
    c->pairs[c->n_pairs++] = (struct power_pair){app, device};
    return 0;
}

static int power_add_alias(struct power_config *c, const char *app, struct str text)
{
    const char *pattern = power_text(c, text);

    if (!pattern)
        return -ENOMEM;
    c->aliases[c->n_aliases++] = (struct power_alias){pattern, app};
    return 0;
}

/* Adds each string of a list that must be there. */
static int power_read_words(struct power_config *c, const struct node *map, const char *key, const char *app,
                            int (*add)(struct power_config *, const char *, struct str), struct problems *p)
{
    const struct node *list = node_given(map, key);
    int r = 0;

    if (!list) {
        node_missing(map, key, p, "a list of strings");
        return 0;
    }
    if (list->kind != NODE_LIST) {
        node_expected(list, p, "a list of strings");
        return 0;
    }
    for (size_t i = 0; r == 0 && i < list->n; i++) {
        const struct node *item = list->items[i];

        if (item->kind != NODE_STRING || item->text.n == 0 || memchr(item->text.p, '\0', item->text.n))
            node_expected(item, p, "a string that is not empty");
        else
            r = add(c, app, item->text);
    }
    return r;
}

static int power_read_application(struct power_config *c, const struct node *map, struct problems *p)
{
    static const char *const keys[] = {"name", "device_candidates", "pod_alias", NULL};
    struct str name = {0};
    const char *app;

    if (map->kind != NODE_MAP) {
        node_expected(map, p, "an object with \"name\", \"device_candidates\" and \"pod_alias\"");
        return 0;
    }
    node_only_keys(map, keys, PROBLEM_ERROR, p);
    if (!node_str(map, "name", p, &name))
        return 0;
    if (name.n == 0) {
        node_missing(map, "name", p, "the application's name");
        return 0;
    }
    app = power_text(c, name);
    if (!app)
        return -ENOMEM;
    return power_read_words(c, map, "device_candidates", app, power_add_pair, p)
               ?: power_read_words(c, map, "pod_alias", app, power_add_alias, p);
}

/* Room for as many elements as the lists of all applications have. */
static bool power_reserve(struct power_config *c, const struct node *list)
{
    size_t pairs = 0, aliases = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct node *devices = node_get(list->items[i], "device_candidates");
        const struct node *pods = node_get(list->items[i], "pod_alias");

        pairs += devices ? devices->n : 0;
        aliases += pods ? pods->n : 0;
    }
    c->arena.chunk_bytes = ARENA_CHUNK;
    c->pairs = arena_alloc(&c->arena, (pairs + 1) * sizeof(*c->pairs));
    c->aliases = arena_alloc(&c->arena, (aliases + 1) * sizeof(*c->aliases));
    return c->pairs && c->aliases;
}

void power_config_read(struct power_config *c, const struct node *list, struct problems *p)
{
    bool good;

    if (list->kind != NODE_LIST) {
        node_expected(list, p, "a list of applications");
        return;
    }
    good = power_reserve(c, list);
    for (size_t i = 0; good && i < list->n; i++)
        good = power_read_application(c, list->items[i], p) == 0;
    if (!good)
        p->out_of_memory = true;
}

const char *power_config_app(const struct power_config *c, const char *pod)
{
    for (size_t i = 0; i < c->n_aliases; i++)
        if (glob_match(c->aliases[i].pattern, pod))
            return c->aliases[i].app;
    return NULL;
}

size_t power_config_pair(const struct power_config *c, const char *app, const char *device)
{
    size_t i = 0;

    while (i < c->n_pairs && (strcmp(c->pairs[i].app, app) != 0 || strcmp(c->pairs[i].device, device) != 0))
        i++;
    return i;
}

const char *power_device(const char *profile)
{
    static const struct {
        const char *prefix, *device;
    } profiles[] = {{"3g.47gb", "3g.48gb"}, {"2g", "2g.24gb"}, {"1g", "1g.12gb"}};

    for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
        if (strncmp(profile, profiles[i].prefix, strlen(profiles[i].prefix)) == 0)
            return profiles[i].device;
    return "all";
}
