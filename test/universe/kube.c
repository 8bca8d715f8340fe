/* Model API servers, as far as the product uses them: lists, watches with bookmarks and 410, optimistic
 * concurrency, preconditions, merge patches, status subresources, finalizers. Each call is judged by
 * fleet_check_ask(). What they store, and how much of it each of two knows, is etcd.c's. */
#include "exporter/base/alloc.h"
#include "test/universe/etcd.h"
#include "test/universe/fleet.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    RATE_PER_MINUTE = 400,
    /* A restore takes longer than the product takes an older version of what it has written for an event
     * that comes late (a minute), and than a leader leads without renewing. */
    RESTORE_MS = 65 * 1000,
    RESTORED_MS = 2 * RESTORE_MS, /* until what a restore has undone is done again */
    RESTORE_CHANGES = 5,          /* at least */
};

static struct server {
    enum { SERVER_OK, SERVER_AWAY, SERVER_503, SERVER_429, SERVER_SLOW, SERVER_TROUBLES } trouble;
    int64_t trouble_until, calm_since;
    bool is_restoring;
} servers[KUBE_SERVERS];

/* What a process has been shown, to see whether it is shown the past. */
static struct shown {
    const struct process *process;
    uint64_t version;
} shown[NODES][KUBE_SERVERS][PAST_KINDS];

static const char *name_of(const json_t *object)
{
    return stored_text(object, "metadata", "name");
}

static const char *namespace_of(const json_t *object)
{
    return stored_text(object, "metadata", "namespace");
}

/* ---- For the fleet ---- */

json_t *kube_object_at(int server, const char *resource, const char *namespace, const char *name)
{
    return view_lookup(etcd_view(server, API_FRESH), resource, namespace, name);
}

json_t *kube_nth(int server, const char *resource, size_t nth)
{
    const struct view *v = etcd_view(server, API_FRESH);

    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->objects[i].resource, resource) == 0 && nth-- == 0)
            return v->objects[i].json;
    return NULL;
}

void kube_put(int server, const char *resource, json_t *object)
{
    const json_t *before = kube_object_at(server, resource, namespace_of(object), name_of(object));
    json_t *after;
    const char *key;
    json_t *value;

    if (!before) {
        etcd_create(server, resource, object);
        return;
    }
    after = json_deep_copy(before);
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "metadata") != 0)
            (void)json_object_set(after, key, value);
    }
    json_decref(object);
    etcd_replace(server, resource, after);
}

void kube_delete(int server, const char *resource, const char *namespace, const char *name)
{
    json_t *object = kube_object_at(server, resource, namespace, name);

    if (object)
        etcd_delete(server, resource, object);
}

/* ---- Answers ---- */

static void answer_object(struct response *r, long status, const json_t *object)
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
    const json_t *before = kube_object_at(a->server, a->resource, a->namespace, a->name);
    json_auto_t *body = json_loadb(text.p, text.n, 0, NULL), *metadata = NULL;
    const char *version = stored_text(body, "metadata", "resourceVersion");
    json_t *after;

    check_secrets(text, "an object");
    if (!before) {
        answer_status(r, 404, "NotFound", a->name);
        return;
    }
    if (*version && strcmp(version, stored_text(before, "metadata", "resourceVersion")) != 0) {
        reached[REACHED_KUBE_409]++;
        answer_status(r, 409, "Conflict", a->name);
        return;
    }
    after = object_after(a, before, body);
    fleet_check_ask(a, before, after);
    metadata = json_incref(after);
    etcd_replace(a->server, a->resource, after);
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

        (void)snprintf(name, sizeof(name), "%s%llu", stored_text(body, "metadata", "generateName"),
                       (unsigned long long)etcd_version(a->server));
        (void)json_object_set_new(json_object_get(body, "metadata"), "name", json_string(name));
    }
    if (a->namespace[0])
        (void)json_object_set_new(json_object_get(body, "metadata"), "namespace", json_string(a->namespace));
    if (kube_object_at(a->server, a->resource, a->namespace, name_of(body))) {
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
    etcd_create(a->server, a->resource, body);
    answer_object(r, 201, body);
}

/* A process that asks is shown something older than before, or as old as an API server that lags. */
static void note_shown(const struct kube_ask *a, const struct view *v)
{
    struct shown *one = &shown[a->from->id][a->server][past_kind(a->from, a->resource)];

    if (v->version < etcd_version(a->server))
        reached_past(PAST_STALE, a->from, a->resource);
    if (one->process != a->from->process)
        *one = (struct shown){.process = a->from->process};
    if (v->version < one->version)
        reached_past(PAST_BACK, a->from, a->resource);
    one->version = v->version;
}

/* limit: of one object, the product asks only for the list's version. */
static void serve_list(const struct kube_ask *a, const struct view *v, const char *fields, const char *labels,
                       const char *limit, struct response *r)
{
    json_t *items = json_array();
    uint64_t shown_version = v->version;
    char version[32];
    json_auto_t *list = NULL;

    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->objects[i].resource, a->resource) == 0 &&
            (!a->namespace[0] || strcmp(namespace_of(v->objects[i].json), a->namespace) == 0) &&
            matches_field(v->objects[i].json, fields) && matches_label(v->objects[i].json, labels))
            (void)json_array_append(items, v->objects[i].json);
    if (planted == PLANT_FUTURE_WATCH && strcmp(limit, "1") == 0)
        shown_version = etcd_newest_version(a->server);
    (void)snprintf(version, sizeof(version), "%llu", (unsigned long long)shown_version);
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

/* Which of two API servers a connection leads to is chance. */
static enum api_server choose_server(void)
{
    return universe.has_two_servers && stream_chance(&universe.past, 500) ? API_LAGGING : API_FRESH;
}

static void serve_read(const struct kube_ask *a, const char *query, struct response *r)
{
    char fields[256], labels[256], watch[8], since[32], seconds[16], limit[8];
    enum api_server api = choose_server();
    const struct view *v = etcd_view(a->server, api);
    const json_t *object;

    query_get(query, "fieldSelector", fields, sizeof(fields));
    query_get(query, "labelSelector", labels, sizeof(labels));
    query_get(query, "watch", watch, sizeof(watch));
    query_get(query, "resourceVersion", since, sizeof(since));
    query_get(query, "timeoutSeconds", seconds, sizeof(seconds));
    query_get(query, "limit", limit, sizeof(limit));
    fleet_check_ask(a, NULL, NULL);
    if (watch[0]) {
        uint64_t from = strtoull(since, NULL, 10);

        if (from > v->version) {
            reached[REACHED_FUTURE_WATCH]++;
            reached_past(PAST_BACK, a->from, a->resource);
        }
        watch_open(a, api, fields, labels, from, strtoll(seconds, NULL, 10), r);
        return;
    }
    /* One object is read from the store, by a quorum of etcd. A Lease may be old all the same: nothing may
     * hang on that it is not. */
    if (api == API_LAGGING && (!v->lists_lag || (a->name[0] && strcmp(a->resource, LEASES) != 0)))
        v = etcd_view(a->server, API_FRESH);
    note_shown(a, v);
    if (!a->name[0]) {
        serve_list(a, v, fields, labels, limit, r);
        return;
    }
    object = view_lookup(v, a->resource, a->namespace, a->name);
    if (object)
        answer_object(r, 200, object);
    else
        answer_status(r, 404, "NotFound", a->name);
}

static bool meets_preconditions(const json_t *object, struct str options)
{
    json_auto_t *body = options.n ? json_loadb(options.p, options.n, 0, NULL) : NULL;
    const char *uid = stored_text(body, "preconditions", "uid");
    const char *version = stored_text(body, "preconditions", "resourceVersion");

    return (!*uid || strcmp(uid, stored_text(object, "metadata", "uid")) == 0) &&
           (!*version || strcmp(version, stored_text(object, "metadata", "resourceVersion")) == 0);
}

static void serve_delete(const struct kube_ask *a, struct str options, struct response *r)
{
    json_t *object = kube_object_at(a->server, a->resource, a->namespace, a->name);

    if (!object) {
        answer_status(r, 404, "NotFound", a->name);
        return;
    }
    if (!meets_preconditions(object, options)) {
        reached[REACHED_KUBE_409]++;
        answer_status(r, 409, "Conflict", a->name);
        return;
    }
    fleet_check_ask(a, object, NULL);
    answer_status(r, 200, "Success", a->name);
    etcd_delete(a->server, a->resource, object);
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
    if (serve_trouble(&servers[server], rq->authorization, r))
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
        serve_delete(&a, rq->body, r);
    else
        serve_write(&a, rq->accept, rq->body, r);
    trace("a%d %s %s %s/%s%s%s: %ld", from->id, rq->method, a.resource, a.namespace, a.name,
          a.subresource[0] ? "/" : "", a.subresource, r->status);
}

/* ---- Troubles ---- */

static int choose_store(struct stream *s)
{
    return stream_chance(s, 600) ? HUB_SERVER : (int)stream_below(s, (uint64_t)universe.n_clusters);
}

bool kube_must_be_seen(void)
{
    for (int i = 0; i < KUBE_SERVERS; i++)
        if (servers[i].is_restoring || !etcd_has_passed_restore(i))
            return true;
    return false;
}

void kube_turn(void)
{
    int server = choose_store(&universe.faults);
    struct server *s = &servers[server];
    uint64_t what = stream_below(&universe.faults, 1000);

    if (what < 500 && kube_must_be_seen())
        return;
    if (what < 500) {
        s->trouble = 1 + (unsigned)stream_below(&universe.faults, SERVER_TROUBLES - 1);
        s->trouble_until = sim_now_ms + (int64_t)stream_below(&universe.faults, 240000);
        trace("API server %d has trouble %u until %.1f", server, (unsigned)s->trouble,
              (double)s->trouble_until / 1000);
        return;
    }
    if (what < 650) {
        etcd_forget_history(server);
        trace("API server %d forgets its history", server);
    }
    watches_break(server, what >= 850 && !universe.healed);
}

static void kube_lag(void)
{
    int server = choose_store(&universe.past);
    int64_t until = sim_now_ms + (int64_t)stream_below(&universe.past, 90000);
    bool lists_lag = stream_chance(&universe.past, 300);

    if (!universe.has_two_servers)
        return;
    etcd_lag(server, until, lists_lag);
    trace("one of the API servers %d lags until %.1f%s", server, (double)until / 1000,
          lists_lag ? ", and so do its lists" : "");
}

/* For a while nobody stands still, or is refused by the server: by the version, it can be seen that the store
 * went back only until it has given as many as before. Who was cut off lists the objects afterwards. */
static void kube_restore(void)
{
    int server = choose_store(&universe.past);
    struct server *s = &servers[server];
    uint64_t changes = RESTORE_CHANGES + stream_below(&universe.past, HISTORY - RESTORE_CHANGES);
    enum restore how = stream_chance(&universe.past, 500) ? RESTORE_PLAIN : RESTORE_BUMPED;

    if (changes > etcd_undoable(server))
        changes = etcd_undoable(server);
    if (sim_now_ms > FAULTS_MS - RESTORED_MS || changes < RESTORE_CHANGES || s->is_restoring ||
        !etcd_has_passed_restore(server))
        return;
    etcd_restore(server, changes, how);
    s->trouble = SERVER_AWAY;
    s->trouble_until = sim_now_ms + RESTORE_MS + (int64_t)stream_below(&universe.past, 30000);
    s->is_restoring = true;
    watches_break(server, stream_chance(&universe.past, 200));
    for (int i = 0; i < universe.n_nodes; i++)
        node_wake(&universe.nodes[i]);
    reached[how == RESTORE_PLAIN ? REACHED_RESTORED : REACHED_RESTORED_BUMPED]++;
    trace("the store of API server %d goes back by %llu changes%s, and is away until %.1f", server,
          (unsigned long long)changes, how == RESTORE_BUMPED ? ", with new versions" : "",
          (double)s->trouble_until / 1000);
}

void kube_past_turn(void)
{
    if (stream_chance(&universe.past, 500))
        kube_lag();
    else
        kube_restore();
}

bool kube_is_restoring(int server)
{
    return servers[server].is_restoring;
}

void kube_tick(void)
{
    etcd_tick();
    for (int i = 0; i < KUBE_SERVERS; i++) {
        struct server *s = &servers[i];

        if (!s->trouble || sim_now_ms < s->trouble_until)
            continue;
        if (s->is_restoring)
            fleet_restored(i);
        s->is_restoring = false;
        s->trouble = SERVER_OK;
        s->calm_since = sim_now_ms;
    }
}

void kube_heal(void)
{
    for (int i = 0; i < KUBE_SERVERS; i++) {
        if (servers[i].is_restoring)
            violated(ORACLE_MODEL, "the end of all faults comes in the middle of a restore");
        servers[i].trouble = SERVER_OK;
        servers[i].calm_since = sim_now_ms;
        etcd_lag(i, 0, false);
    }
}

int64_t kube_calm_since(int server)
{
    return servers[server].trouble ? INT64_MAX : servers[server].calm_since;
}
