#include "exporter/models/instance.h"

#include "exporter/models/instance_internal.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"

#include <errno.h>
#include <stdio.h>

enum { ARENA_BYTES = 4 << 10 };

int instance_new(struct instance **ret, const struct model *m)
{
    CLEANUP(cleanup_instance_free) struct instance *i = calloc(1, sizeof(*i));
    int r;

    if (!i)
        return -ENOMEM;
    i->model = m;
    i->arena.chunk_bytes = ARENA_BYTES;
    i->state = calloc(1, m->size ? m->size : 1);
    i->endpoints = calloc(m->n_endpoints, sizeof(*i->endpoints));
    if (!i->state || !i->endpoints)
        return -ENOMEM;
    memcpy(i->endpoints, m->endpoints, m->n_endpoints * sizeof(*i->endpoints));
    r = instance_make_settings(i) ?: settings_from_defaults(i);
    if (r == 0)
        *ret = TAKE_PTR(i);
    return r;
}

int instance_open(struct instance *i, const struct model_env *env, char **ret_why)
{
    return i->model->open ? i->model->open(i->state, env, ret_why) : 0;
}

void instance_close(struct instance *i)
{
    if (!i->closed && i->state && i->model->close)
        i->model->close(i->state);
    i->closed = true;
}

struct instance *instance_free(struct instance *i)
{
    if (!i)
        return NULL;
    instance_close(i);
    (void)doc_free(i->doc);
    arena_done(&i->arena);
    free(i->settings);
    free(i->endpoints);
    free(i->state);
    free(i);
    return NULL;
}

static void config_put_source(struct out *o, const struct model_endpoint *e)
{
    member_object(o, "source");
    member_text(o, "type", e->source_type);
    if (endpoint_has_source(e)) {
        member_text(o, "host", e->source_host);
        member_text(o, "path", e->source_path);
        member_object(o, "params");
        member_text(o, "query", e->query);
        member_count(o, "range", (uint64_t)e->range);
        member_count(o, "step", (uint64_t)e->step);
        out_puts(o, "}");
    }
    out_puts(o, "}");
}

int instance_put_config(const struct instance *i, size_t endpoint, struct buf *into)
{
    const struct model_endpoint *e = &i->endpoints[endpoint];
    struct out o = out_begin(into);
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/scoring", e->prefix);
    out_puts(&o, "{");
    member_text(&o, "name", e->name);
    member_text(&o, "description", e->description);
    config_put_source(&o, e);
    member_object(&o, "scoring");
    member_text(&o, "path", path);
    member_object(&o, "params");
    member_text(&o, "name", e->score_name);
    member_count(&o, "interval", (uint64_t)e->interval);
    out_puts(&o, "}}}");
    return out_end(&o);
}
