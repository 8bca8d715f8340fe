/* Model API servers, as far as the product uses them: lists, watches with bookmarks and 410, optimistic
 * concurrency, merge patches, status subresources, finalizers. Each call is judged by fleet_check_ask(). */
#include "exporter/base/alloc.h"
#include "exporter/base/def.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MAX_OBJECTS = 512,
    MAX_WATCHES = 256,
    HISTORY = 256, /* changes that a watch can resume from */
    BOOKMARK_MS = 60 * 1000,
    RATE_PER_MINUTE = 400,
};

struct object {
    char resource[96];
    json_t *json;
};

struct change {
    uint64_t version;
    const char *type;
    char resource[96];
    json_t *json;
};

struct watch_stream {
    struct feed *feed;
    int server;
    char resource[96], namespace[64], fields[256], labels[256];
    bool silent;
    int64_t until, bookmark_at;
};

static struct {
    struct server {
        struct object objects[MAX_OBJECTS];
        size_t n;
        uint64_t version, oldest; /* oldest: the version before the first change that is still known */
        struct change history[HISTORY];
        enum { SERVER_OK, SERVER_AWAY, SERVER_503, SERVER_429, SERVER_SLOW, SERVER_TROUBLES } trouble;
        int64_t trouble_until, calm_since;
    } servers[KUBE_SERVERS];
    struct watch_stream watches[MAX_WATCHES];
    size_t n_watches;
} k;

static const char *text_of(const json_t *object, const char *a, const char *b)
{
    const json_t *v = json_object_get(object, a);

    return cstr(json_string_value(b ? json_object_get(v, b) : v));
}

static const char *name_of(const json_t *object)
{
    return text_of(object, "metadata", "name");
}

static const char *namespace_of(const json_t *object)
{
    return text_of(object, "metadata", "namespace");
}

/* ---- Watches ---- */

static bool matches_field(const json_t *object, const char *selector)
{
    if (strncmp(selector, "metadata.name=", 14) == 0)
        return strcmp(name_of(object), selector + 14) == 0;
    if (strncmp(selector, "metadata.namespace!=", 20) == 0)
        return strcmp(namespace_of(object), selector + 20) != 0;
    if (*selector)
        violated(ORACLE_MODEL, "a field selector that the model does not know: %s", selector);
    return true;
}

static bool matches_label(const json_t *object, const char *selector)
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

static bool watch_wants(const struct watch_stream *s, const char *resource, const json_t *object)
{
    return strcmp(s->resource, resource) == 0 &&
           (!s->namespace[0] || strcmp(s->namespace, namespace_of(object)) == 0) &&
           matches_field(object, s->fields) && matches_label(object, s->labels);
}

static void watch_bookmark(struct watch_stream *s)
{
    char version[32];
    json_auto_t *object = NULL;

    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)k.servers[s->server].version);
    object = json_pack("{s:{s:s}}", "metadata", "resourceVersion", version);
    watch_send(s, "BOOKMARK", object);
    s->bookmark_at = sim_now_ms + BOOKMARK_MS;
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

/* A stream of what changed since a version. */
static void watch_open(const struct kube_ask *ask, const char *fields, const char *labels, uint64_t since,
                       int64_t seconds, struct response *r)
{
    struct server *server = &k.servers[ask->server];
    struct watch_stream *s = &k.watches[k.n_watches++];

    if (k.n_watches == MAX_WATCHES)
        violated(ORACLE_MODEL, "more than %d watches", MAX_WATCHES);
    *s = (struct watch_stream){.server = ask->server,
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
    if (planted == PLANT_NEWEST_WATCH)
        since = server->version;
    if (since < server->oldest) {
        watch_expired(s);
        return;
    }
    for (uint64_t v = since + 1; v <= server->version; v++) {
        const struct change *c = &server->history[v % HISTORY];

        if (watch_wants(s, c->resource, c->json))
            watch_send(s, c->type, c->json);
    }
}

void kube_tick(void)
{
    size_t n = 0;

    for (size_t i = 0; i < k.n_watches; i++) {
        struct watch_stream *s = &k.watches[i];

        if (s->feed->gone) {
            buf_done(&s->feed->text);
            free(s->feed);
            continue;
        }
        if (!s->feed->ended && sim_now_ms >= s->until && !s->silent)
            feed_end(s->feed);
        else if (!s->feed->ended && sim_now_ms >= s->bookmark_at)
            watch_bookmark(s);
        k.watches[n++] = *s;
    }
    k.n_watches = n;
    for (int i = 0; i < KUBE_SERVERS; i++)
        if (k.servers[i].trouble && sim_now_ms >= k.servers[i].trouble_until) {
            k.servers[i].trouble = SERVER_OK;
            k.servers[i].calm_since = sim_now_ms;
        }
}

/* ---- The store ---- */

static struct object *store_lookup(struct server *s, const char *resource, const char *namespace,
                                   const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->objects[i].resource, resource) == 0 && strcmp(name_of(s->objects[i].json), name) == 0 &&
            strcmp(namespace_of(s->objects[i].json), namespace) == 0)
            return &s->objects[i];
    return NULL;
}

/* An object that is stored does not change any more: the history has the same one. */
static void store_note(int server, const char *type, const char *resource, json_t *object)
{
    CLEANUP(cleanup_free) char *line = NULL;
    struct server *s = &k.servers[server];
    char version[32];
    struct change *c;

    s->version++;
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)s->version);
    (void)json_object_set_new(json_object_get(object, "metadata"), "resourceVersion", json_string(version));
    c = &s->history[s->version % HISTORY];
    json_decref(c->json);
    *c = (struct change){.version = s->version, .type = type, .json = json_incref(object)};
    (void)snprintf(c->resource, sizeof(c->resource), "%s", resource);
    if (s->version > HISTORY && s->oldest < s->version - HISTORY)
        s->oldest = s->version - HISTORY;
    for (size_t i = 0; i < k.n_watches; i++)
        if (k.watches[i].server == server && !k.watches[i].feed->ended &&
            watch_wants(&k.watches[i], resource, object)) {
            line = line ?: event_text(type, object);
            watch_put(&k.watches[i], line);
        }
}

static void store_remove(int server, struct object *o)
{
    struct server *s = &k.servers[server];
    struct object gone = *o;
    json_auto_t *last = json_deep_copy(gone.json);

    *o = s->objects[--s->n];
    store_note(server, "DELETED", gone.resource, last);
    json_decref(gone.json);
}

static void store_create(int server, const char *resource, json_t *object)
{
    struct server *s = &k.servers[server];
    json_t *metadata = json_object_get(object, "metadata");
    char uid[32];

    if (s->n == MAX_OBJECTS)
        violated(ORACLE_MODEL, "more than %d objects", MAX_OBJECTS);
    (void)snprintf(uid, sizeof(uid), "u%d-%llu", server, (unsigned long long)s->version);
    (void)json_object_set_new(metadata, "uid", json_string(uid));
    (void)json_object_set_new(metadata, "creationTimestamp", json_string("2026-01-01T01:00:00Z"));
    (void)json_object_set_new(metadata, "generation", json_integer(1));
    (void)snprintf(s->objects[s->n].resource, sizeof(s->objects[0].resource), "%s", resource);
    s->objects[s->n++].json = object;
    store_note(server, "ADDED", resource, object);
}

/* Takes the reference. A write that changes nothing makes no new version. */
static void store_replace(int server, struct object *o, json_t *object)
{
    json_t *metadata = json_object_get(object, "metadata"),
           *finalizers = json_object_get(metadata, "finalizers");

    if (json_equal(o->json, object)) {
        json_decref(object);
        return;
    }
    if (!json_equal(json_object_get(o->json, "spec"), json_object_get(object, "spec")))
        (void)json_object_set_new(
            metadata, "generation",
            json_integer(json_integer_value(json_object_get(metadata, "generation")) + 1));
    json_decref(o->json);
    o->json = object;
    if (json_object_get(metadata, "deletionTimestamp") && json_array_size(finalizers) == 0)
        store_remove(server, o);
    else
        store_note(server, "MODIFIED", o->resource, object);
}

static void store_delete(int server, struct object *o)
{
    json_t *after;

    if (json_array_size(json_object_get(json_object_get(o->json, "metadata"), "finalizers")) == 0) {
        store_remove(server, o);
        return;
    }
    after = json_deep_copy(o->json);
    (void)json_object_set_new(json_object_get(after, "metadata"), "deletionTimestamp",
                              json_string("2026-01-01T01:00:00Z"));
    store_replace(server, o, after);
}

json_t *kube_object_at(int server, const char *resource, const char *namespace, const char *name)
{
    struct object *o = store_lookup(&k.servers[server], resource, namespace, name);

    return o ? o->json : NULL;
}

json_t *kube_nth(int server, const char *resource, size_t nth)
{
    for (size_t i = 0; i < k.servers[server].n; i++)
        if (strcmp(k.servers[server].objects[i].resource, resource) == 0 && nth-- == 0)
            return k.servers[server].objects[i].json;
    return NULL;
}

void kube_put(int server, const char *resource, json_t *object)
{
    struct object *o = store_lookup(&k.servers[server], resource, namespace_of(object), name_of(object));
    json_t *after;
    const char *key;
    json_t *value;

    if (!o) {
        store_create(server, resource, object);
        return;
    }
    after = json_deep_copy(o->json);
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "metadata") != 0)
            (void)json_object_set(after, key, value);
    }
    json_decref(object);
    store_replace(server, o, after);
}

void kube_delete(int server, const char *resource, const char *namespace, const char *name)
{
    struct object *o = store_lookup(&k.servers[server], resource, namespace, name);

    if (o)
        store_delete(server, o);
}

/* ---- Answers ---- */

static void answer_object(struct response *r, long status, json_t *object)
{
    r->status = status;
    r->body = json_dumps(object, JSON_COMPACT);
    r->body_n = strlen(r->body);
}

static void answer_status(struct response *r, int code, const char *reason, const char *name)
{
    json_auto_t *status =
        json_pack("{s:s, s:s, s:s, s:i, s:s, s:{s:s*}}", "kind", "Status", "status", "Failure", "reason",
                  reason, "code", code, "message", reason, "details", "name", name);

    answer_object(r, code, status);
}

/* RFC 7386 */
static void merge(json_t *into, json_t *patch)
{
    const char *key;
    json_t *value;

    json_object_foreach(patch, key, value)
    {
        json_t *before = json_object_get(into, key);

        if (json_is_null(value)) {
            (void)json_object_del(into, key);
        } else if (json_is_object(value)) {
            if (!json_is_object(before)) {
                before = json_object();
                (void)json_object_set_new(into, key, before);
            }
            merge(before, value);
        } else {
            (void)json_object_set(into, key, value);
        }
    }
}

static bool has_status(const struct kube_ask *a)
{
    return strstr(a->resource, "open-cluster-management") != NULL;
}

/* The object after a patch or an update of the whole or of its status. */
static json_t *object_after(const struct kube_ask *a, const json_t *before, json_t *body)
{
    json_t *after = json_deep_copy(before), *status = json_object_get(before, "status");
    json_t *own = json_deep_copy(json_object_get(before, "metadata"));

    if (strcmp(a->method, "PATCH") == 0) {
        merge(after, body);
    } else {
        (void)json_object_clear(after);
        (void)json_object_update(after, body);
    }
    if (a->subresource[0]) {
        json_t *whole = json_deep_copy(before);

        (void)json_object_set(whole, "status", json_object_get(after, "status"));
        json_decref(after);
        after = whole;
    } else if (has_status(a)) {
        if (status)
            (void)json_object_set(after, "status", status);
        else
            (void)json_object_del(after, "status");
    }
    /* What the server alone sets. */
    for (const char *const *f = (const char *const[]){"uid", "creationTimestamp", "generation",
                                                      "resourceVersion", "deletionTimestamp", NULL};
         *f; f++) {
        json_t *value = json_object_get(own, *f);

        if (value)
            (void)json_object_set(json_object_get(after, "metadata"), *f, value);
        else
            (void)json_object_del(json_object_get(after, "metadata"), *f);
    }
    json_decref(own);
    return after;
}

static void serve_write(const struct kube_ask *a, const char *accept, struct str text, struct response *r)
{
    struct object *o = store_lookup(&k.servers[a->server], a->resource, a->namespace, a->name);
    json_auto_t *body = json_loadb(text.p, text.n, 0, NULL), *metadata = NULL;
    const char *version = text_of(body, "metadata", "resourceVersion");
    json_t *after;

    check_secrets(text, "an object");
    if (!o) {
        answer_status(r, 404, "NotFound", a->name);
        return;
    }
    if (*version && strcmp(version, text_of(o->json, "metadata", "resourceVersion")) != 0) {
        reached[REACHED_KUBE_409]++;
        answer_status(r, 409, "Conflict", a->name);
        return;
    }
    after = object_after(a, o->json, body);
    fleet_check_ask(a, o->json, after);
    metadata = json_incref(after);
    store_replace(a->server, o, after);
    if (strstr(accept, "PartialObjectMetadata")) {
        json_auto_t *part = json_pack("{s:s, s:O}", "kind", "PartialObjectMetadata", "metadata",
                                      json_object_get(metadata, "metadata"));

        answer_object(r, 200, part);
    } else {
        answer_object(r, 200, metadata);
    }
}

static void serve_create(const struct kube_ask *a, struct str text, struct response *r)
{
    json_t *body = json_loadb(text.p, text.n, 0, NULL);

    check_secrets(text, "an object");
    if (!*name_of(body)) { /* generateName, of an Event */
        char name[64];

        (void)snprintf(name, sizeof(name), "%s%llu", text_of(body, "metadata", "generateName"),
                       (unsigned long long)k.servers[a->server].version);
        (void)json_object_set_new(json_object_get(body, "metadata"), "name", json_string(name));
    }
    if (a->namespace[0])
        (void)json_object_set_new(json_object_get(body, "metadata"), "namespace", json_string(a->namespace));
    if (store_lookup(&k.servers[a->server], a->resource, a->namespace, name_of(body))) {
        reached[REACHED_KUBE_409]++;
        answer_status(r, 409, "AlreadyExists", name_of(body));
        json_decref(body);
        return;
    }
    if (has_status(a))
        (void)json_object_del(body, "status");
    fleet_check_ask(a, NULL, body);
    if (strstr(a->resource, "/events")) { /* nobody reads them */
        answer_object(r, 201, body);
        json_decref(body);
        return;
    }
    store_create(a->server, a->resource, body);
    answer_object(r, 201, body);
}

static void serve_list(const struct kube_ask *a, const char *fields, const char *labels, struct response *r)
{
    const struct server *s = &k.servers[a->server];
    json_t *items = json_array();
    char version[32];
    json_auto_t *list = NULL;

    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->objects[i].resource, a->resource) == 0 &&
            (!a->namespace[0] || strcmp(namespace_of(s->objects[i].json), a->namespace) == 0) &&
            matches_field(s->objects[i].json, fields) && matches_label(s->objects[i].json, labels))
            (void)json_array_append(items, s->objects[i].json);
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)s->version);
    list = json_pack("{s:s, s:{s:s}, s:o}", "kind", "List", "metadata", "resourceVersion", version, "items",
                     items);
    answer_object(r, 200, list);
}

/* ---- Requests ---- */

/* The value of a parameter, unescaped; "" without it. */
static void query_get(const char *query, const char *name, char *ret, size_t size)
{
    size_t n = 0;

    for (const char *p = query; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL) {
        if (strncmp(p, name, strlen(name)) != 0 || p[strlen(name)] != '=')
            continue;
        for (p += strlen(name) + 1; *p && *p != '&' && n + 1 < size; p++)
            if (*p == '%') {
                ret[n++] = (char)strtol((char[]){p[1], p[2], '\0'}, NULL, 16);
                p += 2;
            } else {
                ret[n++] = *p;
            }
        break;
    }
    ret[n] = '\0';
}

/* /api/v1/namespaces/NS/PLURAL/NAME/SUBRESOURCE and /apis/GROUP/VERSION/...; all but the plural may lack. */
static void ask_parse(struct kube_ask *a, const char *path, size_t n)
{
    char copy[1024], *save = NULL, *part[10] = {NULL}, *p;
    size_t i = 0, at = 0;

    (void)snprintf(copy, sizeof(copy), "%.*s", (int)n, path);
    for (p = strtok_r(copy, "/", &save); p && i < 9; p = strtok_r(NULL, "/", &save))
        part[i++] = p;
    if (i < 3)
        violated(ORACLE_MODEL, "a path that the model does not know: %s", path);
    at = strcmp(part[0], "api") == 0 ? 2 : 3;
    if (strcmp(part[at], "namespaces") == 0 && part[at + 1]) {
        (void)snprintf(a->namespace, sizeof(a->namespace), "%s", part[at + 1]);
        at += 2;
    }
    (void)snprintf(a->resource, sizeof(a->resource), "%s/%s", strcmp(part[0], "api") == 0 ? "v1" : part[1],
                   cstr(part[at]));
    (void)snprintf(a->name, sizeof(a->name), "%s", cstr(part[at + 1]));
    (void)snprintf(a->subresource, sizeof(a->subresource), "%s", part[at + 1] ? cstr(part[at + 2]) : "");
}

static void serve_read(const struct kube_ask *a, const char *query, struct response *r)
{
    char fields[256], labels[256], watch[8], since[32], seconds[16];
    struct object *o;

    query_get(query, "fieldSelector", fields, sizeof(fields));
    query_get(query, "labelSelector", labels, sizeof(labels));
    query_get(query, "watch", watch, sizeof(watch));
    query_get(query, "resourceVersion", since, sizeof(since));
    query_get(query, "timeoutSeconds", seconds, sizeof(seconds));
    fleet_check_ask(a, NULL, NULL);
    if (watch[0]) {
        watch_open(a, fields, labels, strtoull(since, NULL, 10), strtoll(seconds, NULL, 10), r);
    } else if (a->name[0]) {
        o = store_lookup(&k.servers[a->server], a->resource, a->namespace, a->name);
        if (o)
            answer_object(r, 200, o->json);
        else
            answer_status(r, 404, "NotFound", a->name);
    } else {
        serve_list(a, fields, labels, r);
    }
}

static void serve_delete(const struct kube_ask *a, struct response *r)
{
    struct object *o = store_lookup(&k.servers[a->server], a->resource, a->namespace, a->name);

    if (!o) {
        answer_status(r, 404, "NotFound", a->name);
        return;
    }
    fleet_check_ask(a, o->json, NULL);
    answer_status(r, 200, "Success", a->name);
    store_delete(a->server, o);
}

/* True if the server answers nothing else. */
static bool serve_trouble(struct server *s, const char *authorization, struct response *r)
{
    if (s->trouble == SERVER_AWAY) {
        r->refused = true;
        reached[REACHED_KUBE_AWAY]++;
    } else if (s->trouble == SERVER_503) {
        respond(r, 503, authorization, REACHED_KUBE_AWAY); /* which must not be shown */
    } else if (s->trouble == SERVER_429 && stream_chance(&universe.network, 500)) {
        r->retry_after_s = 1 + (int64_t)stream_below(&universe.network, 20);
        respond(r, 429, "too many requests", REACHED_KUBE_429);
    } else {
        if (s->trouble == SERVER_SLOW)
            r->delay_ms += (int64_t)stream_below(&universe.network, 12000);
        return false;
    }
    return true;
}

void kube_serve(int server, const struct request *rq, struct sim_node *from, struct response *r)
{
    struct kube_ask a = {.from = from, .server = server, .method = rq->method};
    const char *path = strchr(strstr(rq->url, "//") + 2, '/'), *query = strchr(path, '?');
    size_t n = query ? (size_t)(query - path) : strlen(path);

    if (sim_now_ms / 60000 != from->kube_minute)
        from->kube_requests = 0;
    from->kube_minute = sim_now_ms / 60000;
    if (++from->kube_requests > RATE_PER_MINUTE)
        violated(ORACLE_FLEET, "a%d sent more than %d requests a minute to API servers", from->id,
                 RATE_PER_MINUTE);
    if (serve_trouble(&k.servers[server], rq->authorization, r))
        return;
    if (!fleet_knows_token(from, rq->authorization)) {
        reached[REACHED_KUBE_401]++;
        answer_status(r, 401, "Unauthorized", NULL);
        return;
    }
    if (strncmp(path, "/readyz", 7) == 0 || strncmp(path, "/version", 8) == 0) {
        r->status = 200;
        r->body = xstrdup("ok");
        r->body_n = 2;
        return;
    }
    ask_parse(&a, path, n);
    if (strcmp(rq->method, "GET") == 0) {
        serve_read(&a, query ? query + 1 : "", r);
        return;
    }
    if (strcmp(rq->method, "POST") == 0)
        serve_create(&a, rq->body, r);
    else if (strcmp(rq->method, "DELETE") == 0)
        serve_delete(&a, r);
    else
        serve_write(&a, rq->accept, rq->body, r);
    trace("a%d %s %s %s/%s%s%s: %ld", from->id, rq->method, a.resource, a.namespace, a.name,
          a.subresource[0] ? "/" : "", a.subresource, r->status);
}

/* ---- Troubles ---- */

void kube_turn(void)
{
    int server = stream_chance(&universe.faults, 600)
                     ? HUB_SERVER
                     : (int)stream_below(&universe.faults, (uint64_t)universe.n_clusters);
    struct server *s = &k.servers[server];
    uint64_t what = stream_below(&universe.faults, 1000);

    if (what < 500) {
        s->trouble = 1 + (unsigned)stream_below(&universe.faults, SERVER_TROUBLES - 1);
        s->trouble_until = sim_now_ms + (int64_t)stream_below(&universe.faults, 240000);
        trace("API server %d has trouble %u until %.1f", server, (unsigned)s->trouble,
              (double)s->trouble_until / 1000);
    } else if (what < 650) {
        s->oldest = s->version;
        trace("API server %d forgets its history", server);
    }
    for (size_t i = 0; i < k.n_watches; i++) {
        struct watch_stream *stream = &k.watches[i];

        if (stream->server != server || stream->feed->ended || what < 500)
            continue;
        if (what < 850 || universe.healed) {
            feed_end(stream->feed);
            reached[REACHED_KUBE_CUT]++;
        } else {
            stream->silent = true;
            reached[REACHED_KUBE_SILENT]++;
        }
    }
}

void kube_heal(void)
{
    for (int i = 0; i < KUBE_SERVERS; i++) {
        k.servers[i].trouble = SERVER_OK;
        k.servers[i].calm_since = sim_now_ms;
    }
}

int64_t kube_calm_since(int server)
{
    return k.servers[server].trouble ? INT64_MAX : k.servers[server].calm_since;
}
