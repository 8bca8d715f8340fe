/* Owns the memory of a model: names are the request's and the hub's objects', numbers the arena's. Built by
 * plan_request.c and preference.c on the worker of the request, and only read after that. */
#include "controller/assist/model.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/strset.h"

enum { ARENA_BYTES = 64 << 10 };

void *model_alloc(struct fleet_model *m, size_t n, size_t size)
{
    return memset(arena_alloc(&m->arena, (n + 1) * size), 0, (n + 1) * size);
}

struct fleet_model *model_new(const json_t *request, const char *namespace, const struct snapshot *hub)
{
    struct fleet_model *m = xcalloc(1, sizeof(*m));

    m->request = request;
    m->hub = hub;
    m->namespace = namespace;
    m->basis = json_object();
    m->missing = json_array();
    m->arena.chunk_bytes = ARENA_BYTES;
    return m;
}

struct fleet_model *model_free(struct fleet_model *m)
{
    if (!m)
        return NULL;
    strset_done(&m->apps);
    strset_done(&m->kinds);
    strset_done(&m->cluster_names);
    strset_done(&m->workload_names);
    strset_done(&m->placements);
    json_decref(m->missing);
    json_decref(m->basis);
    arena_done(&m->arena);
    free(m);
    return NULL;
}
