/* Writes status.lastSyncedConfig. */
#include "controller/hub/rules/spec.h"

/* An object under construction. jansson accepts NULL for a value that could not be made, and fails. */
struct value_object {
    json_t *o;
    bool no_memory;
};

static void value_set(struct value_object *m, const char *key, json_t *value)
{
    if (json_object_set_new(m->o, key, value) < 0)
        m->no_memory = true;
}

static void value_set_string(struct value_object *m, const char *key, const char *s)
{
    value_set(m, key, json_string(cstr(s)));
}

static void value_set_if_any(struct value_object *m, const char *key, const char *s)
{
    if (s)
        value_set_string(m, key, s);
}

static json_t *value_end(struct value_object *m)
{
    if (!m->no_memory)
        return m->o;
    json_decref(m->o);
    return NULL;
}

static json_t *scoring_params(const struct scoring_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set(&m, "interval", json_integer(s->interval_s));
    value_set_string(&m, "name", s->score_name);
    if (s->params && json_object_update(m.o, (json_t *)(uintptr_t)s->params) < 0)
        m.no_memory = true;
    return value_end(&m);
}

static json_t *scoring_value(const struct scoring_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set_if_any(&m, "host", s->host);
    value_set(&m, "params", scoring_params(s));
    value_set_string(&m, "path", s->path);
    return value_end(&m);
}

static json_t *source_params(const struct source_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set_string(&m, "query", s->query);
    value_set(&m, "range", json_integer(s->range_s));
    value_set(&m, "step", json_integer(s->step_s));
    return value_end(&m);
}

static json_t *source_value(const struct source_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set_if_any(&m, "host", s->host);
    value_set(&m, "params", source_params(s));
    value_set_string(&m, "path", s->path);
    value_set_if_any(&m, "type", source_type_word(s->type));
    return value_end(&m);
}

static json_t *sources_value(const struct api_config *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->n_sources; i++) {
        if (json_array_append_new(list, source_value(&c->sources[i])) == 0)
            continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *api_config_value(const struct api_config *c)
{
    struct value_object m = {.o = json_object()};

    value_set_string(&m, "description", c->description);
    value_set_string(&m, "name", c->name);
    value_set(&m, "scoring", scoring_value(&c->scoring));
    value_set(&m, "source", source_value(&c->sources[0]));
    /* Another CRD may know one source only: a server that prunes the list keeps the first. */
    if (c->n_sources > 1)
        value_set(&m, "sources", sources_value(c));
    return value_end(&m);
}
