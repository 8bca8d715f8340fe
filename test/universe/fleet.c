/* Owns what Open Cluster Management and its users do on the API servers, and what must hold there: who may
 * write what, one leader, scores that are as young as validUntil says, and a hub that all agree with. */
#include "test/universe/fleet.h"
#include "controller/hub/hub.h"
#include "controller/hub/observed/object.h"
#include "controller/hub/pages/web.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/lease.h"
#include "controller/kube/server_clock.h"
#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/hash.h"
#include "exporter/http/http.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/site.h"
#include "test/universe/etcd.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FALLBACK = -77,
    STALE_INTERVALS = 3,
    CLOCK_ERROR_MS = 150 * 1000,
    /* What is left of it, as an offset changes by more than 5 s only, and Date has whole seconds. */
    CLOCK_REST_MS = KUBE_CLOCK_STEP_MS + 1000,
    CALM_MS = 120 * 1000, /* in which an agent gets to write */
};

static struct {
    bool wants[SCORERS], has_config, has_cluster[AGENTS];
    struct work_agent {
        int64_t next;
        bool applied; /* it has applied a ManifestWork, and would delete what was in it */
    } works[AGENTS];
    int64_t back_at[AGENTS], config_back_at, api_down_until;
    int64_t scorer_at[SCORERS], cluster_at[AGENTS], config_at; /* when someone last changed it */
    int64_t apply_at; /* when users apply again what a restore has undone; 0: nothing to */
    int64_t old_report_until[AGENTS], old_list_until[AGENTS];
    char leaders[16][KUBE_IDENTITY_BYTES], held_by[KUBE_SERVERS][KUBE_IDENTITY_BYTES];
    struct {
        int node;
        unsigned life;
    } led_by[16];
    size_t n_leaders;
    uint64_t seed;
} f;

static const char *string_of(const json_t *o, const char *a, const char *b)
{
    return cstr(json_string_value(json_object_get(json_object_get(o, a), b)));
}

const char *cluster_name(int i)
{
    static const char *const names[] = {"c0", "c1", "c2", "c3", "c4"};

    return names[i];
}

const char *scorer_name(unsigned i)
{
    static const char *const names[] = {"s0", "s1", "s2"};

    return names[i];
}

/* ---- What users apply ---- */

static void put_scorer(unsigned i)
{
    json_t *source =
        json_pack("{s:s, s:s, s:s, s:{s:s, s:i, s:i}}", "type", "Prometheus", "host", "http://prometheus",
                  "path", "/api/v1/query_range", "params", "query", "up", "range", 3600, "step", 60);
    json_t *spec =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:{s:s, s:s, s:{s:s, s:i}}}", "description", "",
                  "configURL", i == 0 ? "http://score/s0/config" : "http://score/none", "configSyncMode",
                  i == 0 ? "Full" : "None", "scoreDestination", "AddOnPlacementScore", "scoreDimensionFormat",
                  "${node}", "source", source, "scoring", "host", "http://score", "path", "/scoring",
                  "params", "name", scorer_name(i), "interval", (int)universe.interval_s);

    if (i == WITH_FALLBACK)
        (void)json_object_set_new(spec, "fallbackScore", json_integer(FALLBACK));
    if (i == PLACED && universe.has_placements)
        (void)json_object_set_new(spec, "placements", json_pack("[s]", "chosen"));
    kube_put(HUB_SERVER, SCORERS_OF_HUB,
             json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion", HUB_API, "kind", "DynamicScorer",
                       "metadata", "name", scorer_name(i), "namespace", HUB_NAMESPACE, "spec", spec));
    f.wants[i] = true;
    f.scorer_at[i] = sim_now_ms;
}

static void put_config(void)
{
    kube_put(HUB_SERVER, CONFIGS_OF_HUB,
             json_pack("{s:s, s:s, s:{s:s, s:s}, s:{}}", "apiVersion", HUB_API, "kind",
                       "DynamicScoringConfig", "metadata", "name", HUB_CONFIG, "namespace", HUB_NAMESPACE,
                       "spec"));
    f.has_config = true;
    f.config_at = sim_now_ms;
}

static void put_cluster(int i)
{
    const char *name = cluster_name(i);

    kube_put(HUB_SERVER, MANAGED_CLUSTERS,
             json_pack("{s:s, s:s, s:{s:s}, s:{s:b}}", "apiVersion", "cluster.open-cluster-management.io/v1",
                       "kind", "ManagedCluster", "metadata", "name", name, "spec", "hubAcceptsClient", 1));
    past_put_addon(i);
    f.has_cluster[i] = true;
    f.cluster_at[i] = sim_now_ms;
}

static json_t *foreign_object(const char *kind, const char *namespace, const char *name)
{
    return json_pack("{s:s, s:{s:s, s:s, s:{s:s}}, s:{s:[{s:s, s:i}]}}", "kind", kind, "metadata", "name",
                     name, "namespace", namespace, "labels", "app.kubernetes.io/managed-by", "another",
                     "status", "scores", "name", "x", "value", 3);
}

/* The clocks of a cluster are wrong all the time, by less than OCM minds; what they write on the hub is right
 * all the same. */
int64_t fleet_clock_error_ms(const struct sim_node *n)
{
    uint64_t h = hash_chain_u64(f.seed, (uint64_t)n->cluster);

    return h % 4 == 0 ? 0 : (int64_t)(h % (2 * CLOCK_ERROR_MS)) - CLOCK_ERROR_MS;
}

void fleet_set_up(uint64_t seed)
{
    f.seed = seed;
    put_config();
    for (unsigned i = 0; i < universe.n_scorers; i++)
        put_scorer(i);
    for (int i = 0; i < universe.n_clusters; i++) {
        put_cluster(i);
        f.works[i].next = 1000;
    }
    kube_put(HUB_SERVER, SCORES, foreign_object("AddOnPlacementScore", "c0", scorer_name(FOREIGN)));
    kube_put(HUB_SERVER, WORKS, foreign_object("ManifestWork", "c0", "another"));
    kube_put(0, CONFIGMAPS, foreign_object("ConfigMap", AGENT_NAMESPACE, "another"));
    past_set_up();
    for (int i = 0; i < KUBE_SERVERS; i++)
        etcd_set_floor(i); /* what others have made stays through a restore */
}

bool fleet_is_foreign(const json_t *object)
{
    return strcmp(string_of(json_object_get(object, "metadata"), "labels", "app.kubernetes.io/managed-by"),
                  "another") == 0;
}

bool fleet_make_scorer_anew(unsigned scorer)
{
    if (!f.wants[scorer])
        return false;
    kube_delete(HUB_SERVER, SCORERS_OF_HUB, HUB_NAMESPACE, scorer_name(scorer));
    put_scorer(scorer);
    trace("scorer s%u is made anew", scorer);
    return true;
}

bool fleet_make_cluster_anew(int cluster)
{
    if (!f.has_cluster[cluster])
        return false;
    kube_delete(HUB_SERVER, MANAGED_CLUSTERS, "", cluster_name(cluster));
    put_cluster(cluster);
    trace("cluster c%d is made anew", cluster);
    return true;
}

bool fleet_is_settled(int cluster, unsigned scorer, int64_t ms)
{
    int64_t at = sim_now_ms - ms;

    return f.wants[scorer] && f.has_config && f.has_cluster[cluster] &&
           f.scorer_at[scorer] < sim_now_ms - 4 * ms && f.config_at < at && f.cluster_at[cluster] < at &&
           f.api_down_until + 3 * ms < sim_now_ms && !f.apply_at;
}

/* What users do once they see that a restore has undone their work. */
static void apply_again(void)
{
    for (unsigned i = 0; i < universe.n_scorers; i++)
        if (f.wants[i])
            put_scorer(i);
        else
            kube_delete(HUB_SERVER, SCORERS_OF_HUB, HUB_NAMESPACE, scorer_name(i));
    for (int i = 0; i < universe.n_clusters; i++)
        if (f.has_cluster[i])
            put_cluster(i);
        else
            kube_delete(HUB_SERVER, MANAGED_CLUSTERS, "", cluster_name(i));
    if (f.has_config)
        put_config();
    else
        kube_delete(HUB_SERVER, CONFIGS_OF_HUB, HUB_NAMESPACE, HUB_CONFIG);
    past_restored();
    f.apply_at = 0;
    trace("users apply again what a restore has undone");
}

void fleet_restored(int server)
{
    if (server != HUB_SERVER)
        past_note_configmap(server);
    if (server == HUB_SERVER)
        f.apply_at = sim_now_ms + 1 + (int64_t)stream_below(&universe.past, 60000);
}

/* ---- Tokens ---- */

static void token_print(const struct sim_node *n, unsigned nth, char ret[64])
{
    (void)snprintf(ret, 64, KUBE_TOKEN "%llx-a%d-%u", (unsigned long long)f.seed, n->id, nth);
}

static void write_kubeconfig(struct sim_node *n, const char *path, const char *host)
{
    char token[64], text[600];

    token_print(n, n->kube_token, token);
    (void)snprintf(text, sizeof(text),
                   "{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"current-context\":\"x\",\"contexts\":["
                   "{\"name\":\"x\",\"context\":{\"cluster\":\"x\",\"user\":\"x\"}}],\"clusters\":["
                   "{\"name\":\"x\",\"cluster\":{\"server\":\"http://%s\"}}],\"users\":["
                   "{\"name\":\"x\",\"user\":{\"token\":\"%s\"}}]}",
                   host, token);
    disk_put(n->process ? n->process->disk : n->disk, path, text);
}

void fleet_write_kubeconfigs(struct sim_node *n)
{
    char own[16];

    (void)snprintf(own, sizeof(own), "cluster%d", n->cluster);
    write_kubeconfig(n, "/u/hub.kubeconfig", "hub");
    write_kubeconfig(n, "/u/own.kubeconfig", own);
}

void fleet_rotate(struct sim_node *n)
{
    n->kube_token++;
    n->old_token_until = sim_now_ms + (int64_t)stream_below(&universe.faults, 60000);
    fleet_write_kubeconfigs(n);
    trace("a%d has a new token; the old one ends at %.1f", n->id, (double)n->old_token_until / 1000);
}

bool fleet_knows_token(struct sim_node *n, const char *authorization)
{
    char token[64];
    unsigned nth = n->kube_token;

    if (strncmp(authorization, "Bearer ", 7) != 0)
        violated(ORACLE_FLEET, "a%d sent no token to an API server", n->id);
    for (;; nth--) {
        token_print(n, nth, token);
        if (strcmp(authorization + 7, token) == 0)
            break;
        if (nth == 0)
            violated(ORACLE_FLEET, "a%d sent a token that is not its own: %s", n->id, authorization);
    }
    return nth == n->kube_token || (nth + 1 == n->kube_token && sim_now_ms < n->old_token_until);
}

/* ---- What a node may do ---- */

static bool is_write(const struct kube_ask *a)
{
    return strcmp(a->method, "GET") != 0;
}

static _Noreturn void not_allowed(const struct kube_ask *a)
{
    violated(ORACLE_FLEET, "a%d may not %s %s %s/%s on server %d", a->from->id, a->method, a->resource,
             a->namespace, a->name, a->server);
}

/* As the chart's Roles have it. */
static bool is_allowed(const struct kube_ask *a, const char *name)
{
    bool is_agent = a->from->id < universe.n_agents, writes = is_write(a);
    bool is_event = strcmp(a->resource, "events.k8s.io/events") == 0;

    if (is_agent && a->server == HUB_SERVER)
        return strcmp(a->resource, SCORES) == 0 && strcmp(a->namespace, cluster_name(a->from->cluster)) == 0;
    if (is_agent)
        return a->server == a->from->cluster && strcmp(a->namespace, AGENT_NAMESPACE) == 0 &&
               (!writes || (strcmp(a->resource, CONFIGMAPS) == 0 && strcmp(name, WORK_STATUS) == 0) ||
                (strcmp(a->resource, LEASES) == 0 && fleet_elects(a->from)));
    if (a->server != HUB_SERVER)
        return false;
    if (!writes || is_event || strcmp(a->resource, LEASES) == 0)
        return true;
    if (strcmp(a->resource, WORKS) == 0)
        return strcmp(name, WORK_NAME) == 0;
    if (strcmp(a->resource, SCORES) == 0) /* of an agent that is no more */
        return strcmp(a->method, "DELETE") == 0 && past_lacks_addon(a->namespace[1] - '0');
    return strcmp(a->resource, SCORERS_OF_HUB) == 0 || strcmp(a->resource, CONFIGS_OF_HUB) == 0;
}

bool fleet_elects(const struct sim_node *n)
{
    return n->id >= universe.n_agents || (universe.has_replicas && n->cluster == 0);
}

/* Who writes its name into the Lease is known by it from then on. */
static void check_lease(const struct kube_ask *a, const json_t *before, const json_t *after)
{
    struct sim_node *n = &universe.nodes[a->from->id];
    const char *holder = string_of(after, "spec", "holderIdentity");

    (void)snprintf(f.held_by[a->server], sizeof(f.held_by[0]), "%s", holder);
    if (*holder && strcmp(holder, string_of(before, "spec", "holderIdentity")) != 0) {
        if (f.n_leaders == ARRAY_SIZE(f.leaders))
            f.n_leaders = 0;
        (void)snprintf(f.leaders[f.n_leaders], sizeof(f.leaders[0]), "%s", holder);
        f.led_by[f.n_leaders].node = n->id;
        f.led_by[f.n_leaders++].life = n->life;
        n->leads_since = sim_now_ms;
        trace("a%d leads", n->id);
        reached[n->id < universe.n_agents ? REACHED_REPLICA : REACHED_NEW_LEADER]++;
    }
}

static int lease_server(const struct sim_node *n)
{
    return n->id < universe.n_agents ? n->cluster : HUB_SERVER;
}

/* Of a Lease that someone has deleted, the last one, which may lead on until it expires. */
static const char *lease_holder(const struct sim_node *n)
{
    const json_t *lease = kube_nth(lease_server(n), LEASES, 0);

    return lease ? string_of(lease, "spec", "holderIdentity") : f.held_by[lease_server(n)];
}

/* From a backup, with the holder of then, which nobody can see yet: who led leads for what it has renewed. */
static bool lease_is_restored(const struct sim_node *n)
{
    return kube_is_restoring(lease_server(n));
}

bool fleet_leads(const struct sim_node *n)
{
    const char *holder = lease_holder(n);

    for (size_t i = 0; i < ARRAY_SIZE(f.leaders); i++)
        if (*holder && strcmp(f.leaders[i], holder) == 0 && f.led_by[i].node == n->id &&
            f.led_by[i].life == n->life)
            return true;
    return false;
}

static int64_t valid_until_ms(const json_t *object)
{
    const char *text = string_of(object, "status", "validUntil");

    return *text ? kube_time_parse(text).ms - SIM_BEGAN_MS : 0;
}

static bool is_fallback(const json_t *object)
{
    const json_t *list = json_object_get(json_object_get(object, "status"), "scores"), *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        if (json_integer_value(json_object_get(item, "value")) != FALLBACK)
            return false;
    }
    return true;
}

/* No item is older than validUntil allows. */
static void check_scores(const struct kube_ask *a, const json_t *object)
{
    const json_t *list = json_object_get(json_object_get(object, "status"), "scores"), *item;
    int64_t until = valid_until_ms(object),
            most = (int64_t)STALE_INTERVALS * universe.interval_s * 1000 + LOOP_MS + CLOCK_REST_MS;
    size_t i;

    reached[REACHED_PLACED]++;
    if (is_fallback(object) && json_array_size(list))
        reached[REACHED_FALLBACK]++;
    json_array_foreach(list, i, item)
    {
        json_int_t value = json_integer_value(json_object_get(item, "value"));

        if (value == FALLBACK && strcmp(a->name, scorer_name(WITH_FALLBACK)) == 0)
            continue;
        if (value < 0 || value >= universe.n_scores || until - universe.score_at[value] > most)
            violated(ORACLE_FLEET, "a%d gives %s a validUntil %lld ms after its score %lld was made",
                     a->from->id, a->name, (long long)(until - universe.score_at[value]), (long long)value);
    }
}

void fleet_check_ask(const struct kube_ask *a, const json_t *before, const json_t *after)
{
    const char *name = a->name[0] ? a->name : string_of(after, "metadata", "name");

    if (!is_allowed(a, name))
        not_allowed(a);
    if (!is_write(a))
        return;
    if (before && fleet_is_foreign(before))
        violated(ORACLE_FLEET, "a%d touches %s %s/%s of another owner", a->from->id, a->resource,
                 a->namespace, name);
    if (strcmp(a->resource, LEASES) == 0)
        check_lease(a, before, after);
    else if (fleet_elects(a->from) && !fleet_leads(a->from) && !lease_is_restored(a->from) &&
             !past_lease_was_unknown(lease_server(a->from)) &&
             strcmp(a->resource, "events.k8s.io/events") != 0)
        violated(ORACLE_FLEET, "a%d writes %s %s/%s, but %s leads", a->from->id, a->resource, a->namespace,
                 name, lease_holder(a->from));
    else if (strcmp(a->resource, SCORES) == 0 && strcmp(a->subresource, "status") == 0)
        check_scores(a, after);
    else if (strcmp(a->resource, WORKS) == 0 && before)
        past_check_work(a->namespace, before, after);
    else if (strcmp(a->resource, SCORES) == 0 && !after && a->from->id < universe.n_agents)
        past_check_scores_deleted(a->from, name);
}

/* ---- Work agents ---- */

static json_t *applied_condition(const json_t *work)
{
    return json_pack("[{s:s, s:s, s:s, s:s, s:O}]", "type", "Applied", "status", "True", "reason", "Told",
                     "lastTransitionTime", "2026-01-01T01:00:00Z", "observedGeneration",
                     json_object_get(json_object_get(work, "metadata"), "generation"));
}

/* The report as an agent of the version before wrote it: it named no features. NULL for none. */
static char *older_report(const char *text)
{
    json_auto_t *report = json_loads(text, 0, NULL);

    if (json_object_del(report, "features") < 0)
        return NULL;
    reached[REACHED_OLD_AGENT]++;
    return json_dumps(report, JSON_COMPACT);
}

/* The ConfigMap as a hub of the version before wrote it: it knew no suspended scorers and no adjustments. */
static json_t *older_list(json_t *manifest)
{
    json_t *data = json_object_get(manifest, "data");

    (void)json_object_del(data, "suspended");
    (void)json_object_del(data, "adjustments");
    reached[REACHED_OLD_HUB]++;
    return manifest;
}

void fleet_speak_old_words(void)
{
    int cluster = (int)stream_below(&universe.past, (uint64_t)universe.n_clusters);
    bool is_agent = stream_chance(&universe.past, 500);
    int64_t until = sim_now_ms + (int64_t)stream_below(&universe.past, 240000);

    if (is_agent)
        f.old_report_until[cluster] = until;
    else
        f.old_list_until[cluster] = until;
    trace("the %s of c%d is an older one until %.1f", is_agent ? "agent" : "hub's list", cluster,
          (double)until / 1000);
}

static void work_agent_report(int i, const json_t *work)
{
    const char *text =
        string_of(kube_object_at(i, CONFIGMAPS, AGENT_NAMESPACE, WORK_STATUS), "data", "status");
    CLEANUP(cleanup_free) char *older = sim_now_ms < f.old_report_until[i] ? older_report(text) : NULL;
    const char *report = older ?: text;
    json_t *values = *report ? json_pack("[{s:s, s:{s:s, s:s}}]", "name", "status", "fieldValue", "type",
                                         "String", "string", report)
                             : json_array();
    json_t *manifests =
        json_pack("[{s:{s:s, s:s}, s:o}, {s:{s:s, s:s}, s:{s:o}}]", "resourceMeta", "kind", "ConfigMap",
                  "name", WORK_CONFIGMAP, "conditions", applied_condition(work), "resourceMeta", "kind",
                  "ConfigMap", "name", WORK_STATUS, "statusFeedback", "values", values);

    kube_put(HUB_SERVER, WORKS,
             json_pack("{s:{s:s, s:s}, s:{s:o, s:{s:o}}}", "metadata", "name", WORK_NAME, "namespace",
                       cluster_name(i), "status", "conditions", applied_condition(work), "resourceStatus",
                       "manifests", manifests));
}

static void work_agent_look(int i)
{
    const json_t *work = kube_object_at(HUB_SERVER, WORKS, cluster_name(i), WORK_NAME);
    json_t *manifest = json_array_get(
        json_object_get(json_object_get(json_object_get(work, "spec"), "workload"), "manifests"), 0);

    if (manifest) {
        json_t *copy = json_deep_copy(manifest);

        kube_put(i, CONFIGMAPS, sim_now_ms < f.old_list_until[i] ? older_list(copy) : copy);
        past_note_configmap(i);
        f.works[i].applied = true;
        work_agent_report(i, work);
    } else if (f.works[i].applied) {
        kube_delete(i, CONFIGMAPS, AGENT_NAMESPACE, WORK_CONFIGMAP);
        past_note_configmap(i);
        f.works[i].applied = false;
    }
}

void fleet_apply_work(int cluster)
{
    work_agent_look(cluster);
}

/* ---- Time ---- */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A fallback where one is promised: an agent that could has replaced scores that have expired. */
static void look_at_fallback(const struct sim_node *a)
{
    const json_t *o =
        kube_object_at(HUB_SERVER, SCORES, cluster_name(a->cluster), scorer_name(WITH_FALLBACK));
    int64_t until = valid_until_ms(o);
    int64_t calm = later(later(a->partition_until, later(a->since, a->leads_since)),
                         later(kube_calm_since(HUB_SERVER), kube_calm_since(a->cluster)));

    calm = a->process ? later(calm, a->process->stands_until) : calm;
    if (!o || !until || !a->process || a->process->dead || !a->agent || calm > sim_now_ms - CALM_MS ||
        until > sim_now_ms - CALM_MS || is_fallback(o))
        return;
    for (size_t s = 0; s < agent_state(a->agent)->n_scorers; s++)
        if (strcmp(agent_state(a->agent)->scorers[s]->summary.name, scorer_name(WITH_FALLBACK)) == 0)
            violated(ORACLE_FLEET, "a%d: the scores of %s ended %lld ms ago, and there is no fallback", a->id,
                     scorer_name(WITH_FALLBACK), (long long)(sim_now_ms - until));
}

void fleet_tick(void)
{
    past_tick();
    if (f.apply_at && sim_now_ms >= f.apply_at)
        apply_again();
    for (int i = 0; i < universe.n_clusters; i++) {
        if (sim_now_ms < f.works[i].next)
            continue;
        f.works[i].next =
            sim_now_ms + 1000 + (int64_t)stream_below(&universe.network, universe.healed ? 5000 : 20000);
        work_agent_look(i);
        if (!f.has_cluster[i] && sim_now_ms >= f.back_at[i])
            put_cluster(i);
        /* Not the one that ends, which may be from a backup. */
        if (sim_now_ms >= f.config_back_at &&
            !kube_object_at(HUB_SERVER, CONFIGS_OF_HUB, HUB_NAMESPACE, HUB_CONFIG))
            put_config();
        for (int n = 0; n < universe.n_agents; n++)
            if (universe.nodes[n].cluster == i)
                look_at_fallback(&universe.nodes[n]);
    }
}

void fleet_turn(void)
{
    uint64_t what = stream_below(&universe.faults, 1000);
    unsigned scorer = (unsigned)stream_below(&universe.faults, universe.n_scorers);
    int cluster = (int)stream_below(&universe.faults, (uint64_t)universe.n_clusters);

    if (what < 200) {
        f.api_down_until = sim_now_ms + (int64_t)stream_below(&universe.faults, 300000);
        trace("scoring APIs fail until %.1f, as the hub sees them", (double)f.api_down_until / 1000);
    } else if (what < 700) {
        if (f.wants[scorer])
            kube_delete(HUB_SERVER, SCORERS_OF_HUB, HUB_NAMESPACE, scorer_name(scorer));
        f.wants[scorer] = !f.wants[scorer];
        f.scorer_at[scorer] = sim_now_ms;
        if (f.wants[scorer])
            put_scorer(scorer);
        else
            reached[REACHED_REMOVED]++;
        trace("scorer s%u is %s", scorer, f.wants[scorer] ? "applied" : "deleted");
    } else if (what < 850) {
        kube_delete(HUB_SERVER, MANAGED_CLUSTERS, "", cluster_name(cluster));
        f.has_cluster[cluster] = false;
        f.cluster_at[cluster] = sim_now_ms;
        f.back_at[cluster] = sim_now_ms + (int64_t)stream_below(&universe.faults, 300000);
        reached[REACHED_CLUSTER_GONE]++;
        trace("cluster c%d leaves", cluster);
    } else {
        kube_delete(HUB_SERVER, CONFIGS_OF_HUB, HUB_NAMESPACE, HUB_CONFIG);
        f.has_config = false;
        f.config_at = sim_now_ms;
        f.config_back_at = sim_now_ms + (int64_t)stream_below(&universe.faults, 200000);
        reached[REACHED_CONFIG_GONE]++;
        trace("the configuration is deleted");
    }
}

void fleet_heal(void)
{
    if (!f.wants[0])
        put_scorer(0);
    for (int i = 0; i < universe.n_clusters; i++)
        f.back_at[i] = 0;
    f.config_back_at = f.api_down_until = 0;
    for (int i = 0; i < universe.n_clusters; i++)
        f.old_report_until[i] = f.old_list_until[i] = 0;
    if (f.apply_at)
        f.apply_at = sim_now_ms;
    past_heal();
}

bool fleet_serve_api(const struct request *rq, struct response *r)
{
    CLEANUP(cleanup_free) char *text = NULL;

    if (strcmp(rq->method, "GET") != 0)
        return false;
    if (sim_now_ms < f.api_down_until) {
        respond(r, 500, "overloaded", REACHED_BAD_ANSWER);
        return true;
    }
    text = xasprintf("{\"name\":\"s0\",\"description\":\"\",\"source\":{\"type\":\"Prometheus\",\"host\":"
                     "\"http://prometheus\",\"path\":\"/api/v1/query_range\",\"params\":{\"query\":\"up\","
                     "\"range\":3600,\"step\":60}},\"scoring\":{\"path\":\"/scoring\",\"params\":{\"name\":"
                     "\"s0\",\"interval\":%u}}}",
                     universe.interval_s);
    r->status = 200;
    r->body = strstr(rq->url, "/config") ? TAKE_PTR(text) : xstrdup("ok");
    r->body_n = strlen(r->body);
    return true;
}

/* ---- The controller, as controller/cmd_controller.c has it ---- */

void *controller_main(void *arg)
{
    struct sim_node *n = arg;
    struct process *p = n->process;
    struct hub_options o = {
        .namespace = HUB_NAMESPACE,
        .agent_namespace = AGENT_NAMESPACE,
        .addon_name = ADDON_NAME,
        .probe = {.interval_ms = 30000, .timeout_ms = 10000, .unhealthy_after = 3, .healthy_after = 2},
        .leader_elect = true,
        .api_qps = 200,
        .api_burst = 400};
    struct site_options pages = {.listen = (const char *const[]){":8080"}, .n_listen = 1};
    char identity[KUBE_IDENTITY_BYTES], *why;

    if (loop_new(&p->loop, &clock_system) < 0)
        violated(ORACLE_MODEL, "no loop");
    kube_lease_make_identity(identity);
    o.identity = identity;
    o.loop = p->loop;
    o.http = http_new(p->loop, "dynamic-scoring/universe");
    o.kube = kube_new(p->loop, o.http, "hub", "/u/hub.kubeconfig");
    o.metrics = metrics_new(METRIC_OWNER_LOOP);
    n->hub = hub_new(&o);
    pages.access.loop = p->loop;
    pages.access.metrics = o.metrics;
    if (hub_web_start(&n->site, n->hub, &pages, &why) < 0)
        violated(ORACLE_PAGES, "a%d serves no pages: %s", n->id, why);
    node_poll(n);
    if (!p->dead)
        (void)loop_run(p->loop);
    n->site = site_stop(n->site, 0);
    n->hub = hub_free(n->hub);
    loop_timer_clear(p->loop, &n->poll);
    o.kube = kube_free(o.kube);
    o.http = http_free(o.http);
    o.metrics = metrics_free(o.metrics);
    p->loop = loop_free(p->loop);
    return NULL;
}

/* ---- The end ---- */

unsigned fleet_scorers(const struct sim_node *a)
{
    unsigned bits = 0;

    if (!universe.has_kube)
        return a->scorers;
    for (unsigned i = 0; i < universe.n_scorers; i++)
        bits |= f.wants[i] ? 1u << i : 0;
    return bits;
}

static void check_work(int i, const json_t *configmap, const char *where)
{
    json_auto_t *list = json_loads(string_of(configmap, "data", "summaries"), 0, NULL);
    unsigned bits = 0;
    size_t n;
    json_t *item;

    json_array_foreach(list, n, item)
    {
        const char *name = cstr(json_string_value(json_object_get(item, "scoreName")));

        bits |= name[0] == 's' ? 1u << (name[1] - '0') : 1u << 31;
    }
    if (bits != fleet_scorers(&universe.nodes[i]))
        violated(ORACLE_FLEET, "c%d: %s has scorers %x instead of %x", i, where, bits,
                 fleet_scorers(&universe.nodes[i]));
}

static void check_placed(int i)
{
    for (unsigned s = 0; s < universe.n_scorers; s++) {
        const json_t *o = kube_object_at(HUB_SERVER, SCORES, cluster_name(i), scorer_name(s));

        if (i == 0 && s == FOREIGN)
            continue;
        if (f.wants[s] && (!o || valid_until_ms(o) < sim_now_ms || is_fallback(o)))
            violated(ORACLE_FLEET, "c%d: there is no valid score of s%u", i, s);
        if (!f.wants[s] && o)
            violated(ORACLE_FLEET, "c%d: the scores of s%u are still there", i, s);
    }
}

static void check_status(unsigned s)
{
    const json_t *o = kube_object_at(HUB_SERVER, SCORERS_OF_HUB, HUB_NAMESPACE, scorer_name(s)), *c;
    const json_t *list = json_object_get(json_object_get(o, "status"), "conditions");
    size_t i;

    json_array_foreach(list, i, c)
    {
        if (strcmp(cstr(json_string_value(json_object_get(c, "type"))), "Ready") == 0 &&
            (s == FOREIGN || strcmp(cstr(json_string_value(json_object_get(c, "status"))), "True") == 0))
            return;
    }
    violated(ORACLE_FLEET, "the DynamicScorer s%u is not Ready", s);
}

void fleet_check_end(void)
{
    for (int i = 0; i < universe.n_clusters; i++) {
        const json_t *work = kube_object_at(HUB_SERVER, WORKS, cluster_name(i), WORK_NAME);

        check_work(
            i,
            json_array_get(
                json_object_get(json_object_get(json_object_get(work, "spec"), "workload"), "manifests"), 0),
            "its ManifestWork");
        check_work(i, kube_object_at(i, CONFIGMAPS, AGENT_NAMESPACE, WORK_CONFIGMAP), "its ConfigMap");
        check_placed(i);
    }
    for (unsigned s = 0; s < universe.n_scorers; s++)
        if (f.wants[s])
            check_status(s);
}
