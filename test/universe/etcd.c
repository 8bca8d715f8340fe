/* Owns the objects, their history, and the streams of events. A change is made in the store; the first API
 * server knows it at once, and the second, which may lag, later. A restore from a backup undoes changes.
 *
 * Looser than Kubernetes: its lists are read from the store unless they ask for less, and ours never do; here
 * those of an API server that lags may be old (lists_lag), as with a proxy that caches, or a store that is
 * not etcd. What never happens: a stream that leaves out a change, or two in another order. */
#include "test/universe/etcd.h"

#include "exporter/base/alloc.h"
#include "exporter/base/def.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_WATCHES = 256,
    BOOKMARK_MS = 60 * 1000,
    LATE_MS = 1000, /* an event that comes later than this is a view of the past */
    STEP_MS = 4000, /* at most this between two changes that an API server which lags gets */
    BUMP = 1000 * 1000,
};

enum change_type { ADDED, MODIFIED, DELETED };

struct change {
    enum change_type type;
    char resource[96];
    json_t *json, *before; /* before: NULL for one that is added */
    int64_t at;
};

static struct store {
    struct view views[API_SERVERS];
    uint64_t version, oldest; /* oldest: the version before the first change that is still known */
    uint64_t floor, before_restore;
    struct change history[HISTORY]; /* by version */
} stores[KUBE_SERVERS];

struct watch_stream {
    struct feed *feed;
    const struct sim_node *from;
    int server;
    enum api_server api;
    uint64_t since;
    char resource[96], namespace[64], fields[256], labels[256];
    bool silent;
    int64_t until, bookmark_at;
};

static struct watch_stream watches[MAX_WATCHES];
static size_t n_watches;
static uint64_t uids; /* given so far: unlike versions they never come again */

static const char *name_of(const json_t *object)
{
    return stored_text(object, "metadata", "name");
}

static const char *namespace_of(const json_t *object)
{
    return stored_text(object, "metadata", "namespace");
}

/* ---- Streams of events ---- */

bool matches_field(const json_t *object, const char *selector)
{
    if (strncmp(selector, "metadata.name=", 14) == 0)
        return strcmp(name_of(object), selector + 14) == 0;
    if (strncmp(selector, "metadata.namespace!=", 20) == 0)
        return strcmp(namespace_of(object), selector + 20) != 0;
    if (*selector)
        violated(ORACLE_MODEL, "a field selector that the model does not know: %s", selector);
    return true;
}

bool matches_label(const json_t *object, const char *selector)
{
    const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
    const char *equals = strchr(selector, '=');
    char key[160];

    if (!*selector)
        return true;
    if (!equals)
        violated(ORACLE_MODEL, "a label selector that the model does not know: %s", selector);
    (void)snprintf(key, sizeof(key), "%.*s", (int)(equals - selector), selector);
    return strcmp(cstr(json_string_value(json_object_get(labels, key))), equals + 1) == 0;
}

static char *event_text(const char *type, const json_t *object)
{
    CLEANUP(cleanup_free) char *text = json_dumps(object, JSON_COMPACT);

    return xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, text);
}

static void watch_put(struct watch_stream *s, const char *line)
{
    int64_t at = sim_now_ms + 1 + (int64_t)stream_below(&universe.network, 30);

    if (s->silent || s->feed->gone)
        return;
    if (at > s->feed->at)
        s->feed->at = at;
    feed_put(s->feed, str_of(line));
}

static void watch_send(struct watch_stream *s, const char *type, const json_t *object)
{
    CLEANUP(cleanup_free) char *line = event_text(type, object);

    watch_put(s, line);
}

static bool watch_wants(const struct watch_stream *s, const struct change *c)
{
    return strcmp(s->resource, c->resource) == 0 &&
           (!s->namespace[0] || strcmp(s->namespace, namespace_of(c->json)) == 0) &&
           matches_field(c->json, s->fields) && matches_label(c->json, s->labels);
}

/* Of a version that its API server has not reached, a stream tells nothing, not even that. */
static void watch_bookmark(struct watch_stream *s)
{
    uint64_t shown = stores[s->server].views[s->api].version;
    char version[32];
    json_auto_t *object = NULL;

    s->bookmark_at = sim_now_ms + BOOKMARK_MS;
    if (shown < s->since)
        return;
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)shown);
    object = json_pack("{s:{s:s}}", "metadata", "resourceVersion", version);
    watch_send(s, "BOOKMARK", object);
    reached[REACHED_BOOKMARK]++;
}

static void watch_expired(struct watch_stream *s)
{
    json_auto_t *status = json_pack("{s:s, s:i, s:s, s:s}", "kind", "Status", "code", 410, "reason",
                                    "Expired", "message", "too old resource version");

    watch_send(s, "ERROR", status);
    feed_end(s->feed);
    reached[REACHED_KUBE_410]++;
}

static const char *const type_words[] = {[ADDED] = "ADDED", [MODIFIED] = "MODIFIED", [DELETED] = "DELETED"};

/* What has changed since, as far as this API server knows. */
static void watch_catch_up(struct watch_stream *s)
{
    const struct store *store = &stores[s->server];

    for (uint64_t v = s->since + 1; v <= store->views[s->api].version; v++) {
        const struct change *c = &store->history[v % HISTORY];

        if (watch_wants(s, c))
            watch_send(s, type_words[c->type], c->json);
    }
}

void watch_open(const struct kube_ask *ask, enum api_server api, const char *fields, const char *labels,
                uint64_t since, int64_t seconds, struct response *r)
{
    const struct store *store = &stores[ask->server];
    struct watch_stream *s = &watches[n_watches++];

    if (n_watches == MAX_WATCHES)
        violated(ORACLE_MODEL, "more than %d watches", MAX_WATCHES);
    if (planted == PLANT_NEWEST_WATCH)
        since = store->version;
    *s = (struct watch_stream){.from = ask->from,
                               .server = ask->server,
                               .api = api,
                               .since = since,
                               .until = sim_now_ms + seconds * 1000,
                               .bookmark_at = sim_now_ms + BOOKMARK_MS,
                               .feed = xcalloc(1, sizeof(*s->feed))};
    memcpy(s->resource, ask->resource, sizeof(s->resource));
    memcpy(s->namespace, ask->namespace, sizeof(s->namespace));
    (void)snprintf(s->fields, sizeof(s->fields), "%s", fields);
    (void)snprintf(s->labels, sizeof(s->labels), "%s", labels);
    buf_init(&s->feed->text, 8 << 20);
    s->feed->at = sim_now_ms + r->delay_ms;
    r->feed = s->feed;
    r->status = 200;
    if (since < store->oldest)
        watch_expired(s);
    else
        watch_catch_up(s);
}

void watches_break(int server, bool silently)
{
    for (size_t i = 0; i < n_watches; i++) {
        struct watch_stream *s = &watches[i];

        if (s->server != server || s->feed->ended)
            continue;
        if (silently) {
            s->silent = true;
            reached[REACHED_KUBE_SILENT]++;
        } else {
            feed_end(s->feed);
            reached[REACHED_KUBE_CUT]++;
        }
    }
}

static void watches_tick(void)
{
    size_t n = 0;

    for (size_t i = 0; i < n_watches; i++) {
        struct watch_stream *s = &watches[i];

        if (s->feed->gone) {
            buf_done(&s->feed->text);
            free(s->feed);
            continue;
        }
        if (!s->feed->ended && sim_now_ms >= s->until && !s->silent)
            feed_end(s->feed);
        else if (!s->feed->ended && sim_now_ms >= s->bookmark_at)
            watch_bookmark(s);
        watches[n++] = *s;
    }
    n_watches = n;
}

/* ---- What API servers know of the store ---- */

const struct view *etcd_view(int server, enum api_server api)
{
    return &stores[server].views[api];
}

uint64_t etcd_version(int server)
{
    return stores[server].version;
}

static struct object *view_find(struct view *v, const char *resource, const char *namespace, const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->objects[i].resource, resource) == 0 && strcmp(name_of(v->objects[i].json), name) == 0 &&
            strcmp(namespace_of(v->objects[i].json), namespace) == 0)
            return &v->objects[i];
    return NULL;
}

json_t *view_lookup(const struct view *v, const char *resource, const char *namespace, const char *name)
{
    const struct object *o = view_find((struct view *)v, resource, namespace, name);

    return o ? o->json : NULL;
}

/* json: NULL if it is gone. */
static void view_set(struct view *v, const char *resource, const json_t *like, json_t *json)
{
    struct object *o = view_find(v, resource, namespace_of(like), name_of(like));

    if (!json) {
        json_decref(o->json);
        *o = v->objects[--v->n];
        return;
    }
    if (!o) {
        if (v->n == MAX_OBJECTS)
            violated(ORACLE_MODEL, "more than %d objects", MAX_OBJECTS);
        o = &v->objects[v->n++];
        (void)snprintf(o->resource, sizeof(o->resource), "%s", resource);
        o->json = NULL;
    }
    json_decref(o->json);
    o->json = json_incref(json);
}

/* The API server gets the next change, and its streams tell of it. */
static void view_step(int server, enum api_server api)
{
    struct view *v = &stores[server].views[api];
    const struct change *c = &stores[server].history[++v->version % HISTORY];
    CLEANUP(cleanup_free) char *line = NULL;

    view_set(v, c->resource, c->json, c->type == DELETED ? NULL : c->json);
    for (size_t i = 0; i < n_watches; i++) {
        struct watch_stream *s = &watches[i];

        if (s->server != server || s->api != api || s->feed->ended || v->version <= s->since ||
            !watch_wants(s, c))
            continue;
        line = line ?: event_text(type_words[c->type], c->json);
        watch_put(s, line);
        if (sim_now_ms - c->at > LATE_MS)
            reached_past(PAST_STALE, s->from, c->resource);
    }
}

static void view_catch_up(int server, enum api_server api)
{
    while (stores[server].views[api].version < stores[server].version)
        view_step(server, api);
}

bool etcd_is_lagging(int server)
{
    return sim_now_ms < stores[server].views[API_LAGGING].lags_until;
}

bool etcd_lists_lagged(int server, int64_t ms)
{
    int64_t until = stores[server].views[API_LAGGING].lists_lagged_until;

    return until && sim_now_ms < until + ms;
}

/* ---- The store ---- */

static void etcd_note(int server, enum change_type type, const char *resource, json_t *object)
{
    struct store *s = &stores[server];
    char version[32];
    struct change *c;

    s->version++;
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)s->version);
    (void)json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string(version));
    c = &s->history[s->version % HISTORY];
    json_decref(c->json);
    json_decref(c->before);
    *c = (struct change){.type = type, .json = object, .at = sim_now_ms};
    (void)snprintf(c->resource, sizeof(c->resource), "%s", resource);
    c->before =
        json_incref(view_lookup(&s->views[API_FRESH], resource, namespace_of(object), name_of(object)));
    if (s->version > HISTORY && s->oldest < s->version - HISTORY)
        s->oldest = s->version - HISTORY;
    view_step(server, API_FRESH);
    if (!universe.has_two_servers)
        return;
    if (!etcd_is_lagging(server))
        view_catch_up(server, API_LAGGING);
    else if (s->views[API_LAGGING].version <= s->version - HISTORY + 1 && s->version >= HISTORY)
        view_step(server, API_LAGGING); /* as its next change is about to be forgotten */
}

void etcd_create(int server, const char *resource, json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata");
    char uid[32];

    (void)snprintf(uid, sizeof(uid), "u%d-%llu", server, (unsigned long long)++uids);
    (void)json_object_set_new(metadata, "uid", json_string(uid));
    (void)json_object_set_new(metadata, "creationTimestamp", json_string("2026-01-01T01:00:00Z"));
    (void)json_object_set_new(metadata, "generation", json_integer(1));
    etcd_note(server, ADDED, resource, object);
}

static void etcd_remove(int server, const char *resource, const json_t *object)
{
    etcd_note(server, DELETED, resource, json_deep_copy(object));
}

void etcd_replace(int server, const char *resource, json_t *object)
{
    const json_t *before =
        view_lookup(&stores[server].views[API_FRESH], resource, namespace_of(object), name_of(object));
    json_t *metadata = json_object_get(object, "metadata");
    bool is_held = json_array_size(json_object_get(metadata, "finalizers")) > 0;

    if (json_equal(before, object)) {
        json_decref(object);
        return;
    }
    if (json_object_get(metadata, "deletionTimestamp") && !is_held) {
        etcd_remove(server, resource, object);
        json_decref(object);
        return;
    }
    if (!json_equal(json_object_get(before, "spec"), json_object_get(object, "spec")))
        (void)json_object_set_new(
            metadata, "generation",
            json_integer(json_integer_value(json_object_get(metadata, "generation")) + 1));
    etcd_note(server, MODIFIED, resource, object);
}

void etcd_delete(int server, const char *resource, json_t *object)
{
    json_t *after;

    if (json_array_size(json_object_get(json_object_get(object, "metadata"), "finalizers")) == 0) {
        etcd_remove(server, resource, object);
        return;
    }
    after = json_deep_copy(object);
    (void)json_object_set_new(json_object_get(after, "metadata"), "deletionTimestamp",
                              json_string("2026-01-01T01:00:00Z"));
    etcd_replace(server, resource, after);
}

/* ---- The past ---- */

void etcd_set_floor(int server)
{
    stores[server].floor = stores[server].version;
}

void etcd_lag(int server, int64_t until, bool lists_lag)
{
    struct view *v = &stores[server].views[API_LAGGING];

    v->lags_until = until;
    v->lists_lag = lists_lag;
    if (lists_lag)
        v->lists_lagged_until = until;
    v->next_step = sim_now_ms + (int64_t)stream_below(&universe.past, STEP_MS);
}

void etcd_forget_history(int server)
{
    stores[server].oldest = stores[server].version;
}

static void etcd_undo(struct store *s, const struct change *c)
{
    view_set(&s->views[API_FRESH], c->resource, c->json, c->before);
}

static void view_copy(struct view *to, const struct view *from)
{
    for (size_t i = 0; i < from->n; i++)
        (void)json_incref(from->objects[i].json);
    for (size_t i = 0; i < to->n; i++)
        json_decref(to->objects[i].json);
    memcpy(to->objects, from->objects, from->n * sizeof(from->objects[0]));
    to->n = from->n;
    to->version = from->version;
}

uint64_t etcd_undoable(int server)
{
    const struct store *s = &stores[server];

    return s->version - (s->floor > s->oldest ? s->floor : s->oldest);
}

void etcd_restore(int server, uint64_t changes, enum restore how)
{
    struct store *s = &stores[server];
    uint64_t to = s->version - changes;

    for (uint64_t v = s->version; v > to; v--)
        etcd_undo(s, &s->history[v % HISTORY]);
    s->before_restore = s->version;
    s->version = to;
    if (how == RESTORE_BUMPED) {
        s->before_restore = 0;
        s->version = s->oldest = s->floor = to + BUMP;
    }
    s->views[API_FRESH].version = s->version;
    view_copy(&s->views[API_LAGGING], &s->views[API_FRESH]);
}

bool etcd_has_passed_restore(int server)
{
    return stores[server].version >= stores[server].before_restore;
}

uint64_t etcd_newest_version(int server)
{
    const struct store *s = &stores[server];

    return s->before_restore > s->version ? s->before_restore : s->version;
}

/* An API server that lags gets one change after the other, so that it shows states that others never see
 * for long. */
void etcd_tick(void)
{
    for (int i = 0; i < KUBE_SERVERS && universe.has_two_servers; i++) {
        struct view *v = &stores[i].views[API_LAGGING];

        if (!etcd_is_lagging(i)) {
            view_catch_up(i, API_LAGGING);
        } else if (sim_now_ms >= v->next_step && v->version < stores[i].version) {
            view_step(i, API_LAGGING);
            v->next_step = sim_now_ms + (int64_t)stream_below(&universe.past, STEP_MS);
        }
    }
    watches_tick();
}
