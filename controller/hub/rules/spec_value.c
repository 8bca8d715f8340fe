/* A configuration as status.lastSyncedConfig keeps it. */
#include "controller/hub/rules/spec.h"

/* An object in the making. jansson takes a NULL for a value that could not be made. */
struct making {
    json_t *o;
    bool no_memory;
};

static void set(struct making *m, const char *key, json_t *value)
{
    if (json_object_set_new(m->o, key, value) < 0)
        m->no_memory = true;
}

static void set_text(struct making *m, const char *key, const char *s)
{
    set(m, key, json_string(cstr(s)));
}

static void set_said(struct making *m, const char *key, const char *s)
{
    if (s)
        set_text(m, key, s);
}

static json_t *finish(struct making *m)
{
    if (!m->no_memory)
        return m->o;
    json_decref(m->o);
    return NULL;
}

static json_t *scoring_params(const struct scoring_spec *s)
{
    struct making m = {.o = json_object()};

    set(&m, "interval", json_integer(s->interval_s));
    set_text(&m, "name", s->score_name);
    if (s->params && json_object_update(m.o, (json_t *)(uintptr_t)s->params) < 0)
        m.no_memory = true;
    return finish(&m);
}

static json_t *scoring_value(const struct scoring_spec *s)
{
    struct making m = {.o = json_object()};

    set_said(&m, "host", s->host);
    set(&m, "params", scoring_params(s));
    set_text(&m, "path", s->path);
    return finish(&m);
}

static json_t *source_params(const struct source_spec *s)
{
    struct making m = {.o = json_object()};

    set_text(&m, "query", s->query);
    set(&m, "range", json_integer(s->range_s));
    set(&m, "step", json_integer(s->step_s));
    return finish(&m);
}

static json_t *source_value(const struct source_spec *s)
{
    struct making m = {.o = json_object()};

    set_said(&m, "host", s->host);
    set(&m, "params", source_params(s));
    set_text(&m, "path", s->path);
    if (s->kind != SOURCE_KIND_UNSAID)
        set_text(&m, "type", s->kind == SOURCE_KIND_NONE ? "None" : "Prometheus");
    return finish(&m);
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
    struct making m = {.o = json_object()};

    set_text(&m, "description", c->description);
    set_text(&m, "name", c->name);
    set(&m, "scoring", scoring_value(&c->scoring));
    set(&m, "source", source_value(&c->sources[0]));
    /* The schema knows one source; a server that drops the list leaves the first. */
    if (c->n_sources > 1)
        set(&m, "sources", sources_value(c));
    return finish(&m);
}
