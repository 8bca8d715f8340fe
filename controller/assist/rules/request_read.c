#include "controller/assist/rules/request_internal.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/map.h"
#include "exporter/base/problems.h"
#include "exporter/ui/members.h"

#include <stdio.h>

enum { MAX_NAME_BYTES = 253 };

bool reading_failed(const struct reading *rd)
{
    return rd->no_memory || rd->ob->status;
}

static const char *value_kind(const json_t *v)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    return v ? kinds[json_typeof(v)] : "nothing";
}

void reading_expected(struct reading *rd, const struct place *at, const char *what)
{
    (void)objection_set(rd->ob, 422, at->path, "%s%sexpected %s, got %s", at->path, *at->path ? ": " : "",
                        what, value_kind(at->value));
}

struct place reading_member(struct reading *rd, const struct place *map, const char *key, bool is_required)
{
    struct place at = {.value = reading_failed(rd) ? NULL : json_object_get(map->value, key)};

    if (json_is_null(at.value))
        at.value = NULL;
    (void)snprintf(at.path, sizeof(at.path), "%.120s%s%.35s", map->path, *map->path ? "." : "", key);
    if (is_required && !at.value && !reading_failed(rd))
        (void)objection_set(rd->ob, 422, at.path, "%s: missing", at.path);
    return at;
}

struct place reading_item(const struct place *list, size_t i)
{
    struct place at = {.value = json_array_get(list->value, i)};

    (void)snprintf(at.path, sizeof(at.path), "%.130s[%zu]", list->path, i);
    return at;
}

static void reading_unknown(struct reading *rd, const struct place *at, const char *key,
                            const char *const *known)
{
    const char *near = name_nearest(str_of(key), known);
    struct place member = {0};
    BUF_AUTO(words, 1024);

    (void)snprintf(member.path, sizeof(member.path), "%.100s%s%.50s", at->path, *at->path ? "." : "", key);
    if (near)
        (void)objection_set(rd->ob, 422, member.path, "%s: unknown member, did you mean %s?", member.path,
                            near);
    else if (problem_choices(known, &words) < 0)
        rd->no_memory = true;
    else
        (void)objection_set(rd->ob, 422, member.path, "%s: unknown member, expected one of %.*s", member.path,
                            STR_ARG(buf_str(&words)));
}

void reading_object(struct reading *rd, const struct place *at, const char *const *known)
{
    const char *key;
    json_t *v;

    if (reading_failed(rd))
        return;
    if (!json_is_object(at->value)) {
        reading_expected(rd, at, "an object");
        return;
    }
    json_object_foreach(at->value, key, v)
    {
        size_t i = 0;

        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            reading_unknown(rd, at, key, known);
    }
}

size_t reading_list(struct reading *rd, const struct place *at, size_t min, size_t max)
{
    size_t n = json_array_size(at->value);

    if (reading_failed(rd) || !at->value)
        return 0;
    if (!json_is_array(at->value))
        reading_expected(rd, at, "a list");
    else if (n < min || n > max)
        (void)objection_set(rd->ob, 422, at->path, "%s: has %zu items, expected %zu to %zu", at->path, n, min,
                            max);
    return reading_failed(rd) ? 0 : n;
}

void *reading_alloc(struct reading *rd, size_t n, size_t size)
{
    void *p = n ? arena_alloc(rd->arena, n * size) : NULL;

    if (p)
        memset(p, 0, n * size);
    else if (n)
        rd->no_memory = true;
    return p;
}

const char *reading_string(struct reading *rd, const struct place *at)
{
    if (reading_failed(rd) || !at->value)
        return NULL;
    if (!json_is_string(at->value) || json_string_length(at->value) == 0)
        reading_expected(rd, at, json_is_string(at->value) ? "a text that is not empty" : "a string");
    else if (strlen(json_string_value(at->value)) != json_string_length(at->value))
        (void)objection_set(rd->ob, 422, at->path, "%s: has a NUL character", at->path);
    else
        return json_string_value(at->value);
    return NULL;
}

const char *reading_name(struct reading *rd, const struct place *at)
{
    const char *s = reading_string(rd, at);
    struct str name = str_of(s);

    if (!s)
        return NULL;
    if (name.n > MAX_NAME_BYTES || !str_has_only(name, "-.") || name.p[0] == '.')
        (void)objection_set(rd->ob, 422, at->path, "%s: is no name of a Kubernetes object", at->path);
    return s;
}

double reading_number(struct reading *rd, const struct place *at, double min, double max, double absent)
{
    double v = json_number_value(at->value);

    if (reading_failed(rd) || !at->value)
        return absent;
    if (!json_is_number(at->value))
        reading_expected(rd, at, "a number");
    else if (!(v >= min && v <= max))
        (void)objection_set(rd->ob, 422, at->path, "%s: %g is not between %g and %g", at->path, v, min, max);
    else
        return v;
    return absent;
}

bool reading_bool(struct reading *rd, const struct place *at)
{
    if (!reading_failed(rd) && at->value && !json_is_boolean(at->value))
        reading_expected(rd, at, "true or false");
    return json_is_true(at->value);
}

void reading_unique(struct reading *rd, const struct place *list, const char *member, const void *table,
                    size_t n, size_t size)
{
    struct map seen = {0};

    for (size_t i = 0; i < n && !reading_failed(rd); i++) {
        const char *const *name = (const void *)((const char *)table + i * size);
        char path[200];

        (void)snprintf(path, sizeof(path), "%s[%zu]%s", list->path, i, member);
        if (map_get(&seen, *name))
            (void)objection_set(rd->ob, 422, path, "%s: %s is there twice", path, *name);
        else if (map_set(&seen, *name, (void *)(uintptr_t)name) < 0)
            rd->no_memory = true;
    }
    map_done(&seen);
}

struct request_names reading_names(struct reading *rd, const struct place *at, size_t min, size_t max)
{
    size_t n = reading_list(rd, at, min, max);
    struct request_names out = {.names = reading_alloc(rd, n, sizeof(char *)), .n = n};

    for (size_t i = 0; i < n && !reading_failed(rd); i++) {
        struct place item = reading_item(at, i);

        out.names[i] = reading_name(rd, &item);
    }
    if (!reading_failed(rd))
        reading_unique(rd, at, "", out.names, n, sizeof(char *));
    return reading_failed(rd) ? (struct request_names){0} : out;
}
