/* Owns what makes a controller's view one of the past: what Open Cluster Management's scheduler writes in two
 * parts, what its add-on manager, users and the optimizer delete and make anew between two looks, and what an
 * older agent or hub says. Judges whether the hub took any of these for more than they are.
 *
 * Three patterns, of Sieve (OSDI 2022), each counted for five kinds of what is looked at; see reached_past():
 *   stale    an answer or event of an API server that lags behind the store
 *   back     a list older than the one before, or a stream from a version of the future: a store restored
 *            from a backup, or an API server that lags after one that does not
 *   missed   an object deleted and made anew, a decision of which one half is written
 *
 * Written on the hub and the clusters directly, as others do it: no trouble of an API server keeps them. */
#include "exporter/base/def.h"
#include "test/universe/etcd.h"
#include "test/universe/fleet.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <stdio.h>

#define PLACEMENT       "chosen" /* of the scorer PLACED */
#define PLACEMENTS      "cluster.open-cluster-management.io/placements"
#define PLACEMENT_LABEL "cluster.open-cluster-management.io/placement"

enum {
    HALVES = 2,       /* PlacementDecisions of the Placement */
    NOWHERE = HALVES, /* the half of a cluster that is in none */
    DECISION_GRACE_MS =
        9000, /* what has left all decisions counts for ten seconds: less what a write takes */
    ADDON_GRACE_MS = 10 * 60 * 1000 - 5000,
    TURN_MS = 45 * 1000, /* at most this between two turns */
    /* After a change that is no view of the past, the hub may do as it says for so long, as its streams may
     * have ended, and the API server may be away. */
    SETTLED_MS = 60 * 1000,
    LEASE_MS = 20 * 1000,    /* in which a Lease is waited for, and a holder leads on */
    NOTICED_MS = 240 * 1000, /* 150 s without a bookmark, and a list with a back-off of up to a minute */
};

static struct {
    unsigned half[AGENTS];      /* of the decisions that a cluster is to be in */
    int64_t back_at[AGENTS];    /* in them: one that has left for more than a moment */
    int64_t decided_at[AGENTS]; /* in them since then; 0: in none */
    int64_t left_at[AGENTS];    /* in none since then */
    bool was_settled[AGENTS];   /* it had been in them for long when it left */
    int64_t second_at;          /* when the second half is written, which may be in between */
    int64_t placement_back_at, placement_made_at;
    int64_t addon_gone_at[AGENTS], addon_back_at[AGENTS];
    int64_t listed_at[AGENTS][SCORERS]; /* in the cluster's ConfigMap since then; 0: it is not */
    int64_t lease_deleted_at[KUBE_SERVERS];
    bool lease_was_new[KUBE_SERVERS]; /* the deleted one: not each standby must have seen its holder */
    int64_t next_turn;
} p;

/* ---- The registry ---- */

enum past_kind past_kind(const struct sim_node *from, const char *resource)
{
    if (strcmp(resource, LEASES) == 0)
        return PAST_LEASES;
    if (strcmp(resource, DECISIONS) == 0)
        return PAST_DECISIONS;
    if (strcmp(resource, ADDONS) == 0)
        return PAST_ADDONS;
    return from->id < universe.n_agents ? PAST_OF_AGENT : PAST_OF_HUB;
}

void reached_past(enum past_pattern pattern, const struct sim_node *from, const char *resource)
{
    reached[REACHED_PAST + pattern * PAST_KINDS + past_kind(from, resource)]++;
}

static void note_made_anew(enum past_kind kind)
{
    reached[REACHED_PAST + PAST_MISSED * PAST_KINDS + kind]++;
}

/* ---- The scheduler: a Placement, and its decisions in two objects ---- */

static const char *half_name(unsigned half)
{
    static const char *const names[HALVES] = {PLACEMENT "-decision-1", PLACEMENT "-decision-2"};

    return names[half];
}

static bool half_has(unsigned half, int cluster)
{
    const json_t *o = kube_object_at(HUB_SERVER, DECISIONS, HUB_NAMESPACE, half_name(half)), *one;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(o, "status"), "decisions"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "clusterName")), cluster_name(cluster)) == 0)
            return true;
    }
    return false;
}

/* After each write. */
static void note_decided(void)
{
    for (int i = 0; i < universe.n_clusters; i++) {
        bool is_decided = half_has(0, i) || half_has(1, i);

        if (is_decided && !p.decided_at[i])
            p.decided_at[i] = sim_now_ms;
        if (!is_decided && p.decided_at[i]) {
            p.was_settled[i] = sim_now_ms - p.decided_at[i] >= SETTLED_MS;
            p.decided_at[i] = 0;
            p.left_at[i] = sim_now_ms;
        }
    }
}

static void put_half(unsigned half)
{
    json_t *list = json_array();

    for (int i = 0; i < universe.n_clusters; i++)
        if (p.half[i] == half)
            (void)json_array_append_new(
                list, json_pack("{s:s, s:s}", "clusterName", cluster_name(i), "reason", ""));
    kube_put(HUB_SERVER, DECISIONS,
             json_pack("{s:s, s:{s:s, s:s, s:{s:s}}, s:{s:o}}", "kind", "PlacementDecision", "metadata",
                       "name", half_name(half), "namespace", HUB_NAMESPACE, "labels", PLACEMENT_LABEL,
                       PLACEMENT, "status", "decisions", list));
    note_decided();
}

/* The scheduler's, or the optimizer's when it applies a plan. */
static void put_placement(void)
{
    kube_put(HUB_SERVER, PLACEMENTS,
             json_pack("{s:s, s:{s:s, s:s}, s:{}}", "kind", "Placement", "metadata", "name", PLACEMENT,
                       "namespace", HUB_NAMESPACE, "spec"));
    p.placement_made_at = sim_now_ms;
}

static void put_decisions(void)
{
    put_placement();
    for (unsigned half = 0; half < HALVES; half++)
        put_half(half);
}

/* The first half loses the cluster, or gets it; the second is written in between one and eight seconds. */
static void decisions_split(int cluster)
{
    unsigned to = p.half[cluster] == 0 ? 1 : 0;

    if (p.half[cluster] == NOWHERE || p.second_at)
        return;
    p.half[cluster] = to;
    put_half(!to);
    p.second_at = sim_now_ms + 200 + (int64_t)stream_below(&universe.past, 7800);
    note_made_anew(PAST_DECISIONS);
    trace("c%d moves to the other PlacementDecision, written at %.1f", cluster, (double)p.second_at / 1000);
}

static void decision_made_anew(unsigned half)
{
    kube_delete(HUB_SERVER, DECISIONS, HUB_NAMESPACE, half_name(half));
    note_decided();
    p.second_at = sim_now_ms + (int64_t)stream_below(&universe.past, 6000);
    note_made_anew(PAST_DECISIONS);
    trace("%s is deleted until %.1f", half_name(half), (double)p.second_at / 1000);
}

static void decision_leaves(int cluster)
{
    if (p.half[cluster] == NOWHERE)
        return;
    p.half[cluster] = NOWHERE;
    put_decisions();
    p.back_at[cluster] = sim_now_ms + 15000 + (int64_t)stream_below(&universe.past, 90000);
    trace("c%d is not chosen until %.1f", cluster, (double)p.back_at[cluster] / 1000);
}

/* As the optimizer does it, which resets a plan and applies another: the decisions go with the Placement. */
static void placement_made_anew(void)
{
    kube_delete(HUB_SERVER, PLACEMENTS, HUB_NAMESPACE, PLACEMENT);
    for (unsigned half = 0; half < HALVES; half++)
        kube_delete(HUB_SERVER, DECISIONS, HUB_NAMESPACE, half_name(half));
    note_decided();
    p.placement_made_at = sim_now_ms;
    p.placement_back_at = sim_now_ms + (int64_t)stream_below(&universe.past, 5000);
    reached[REACHED_OPTIMIZER]++;
    trace("the optimizer makes the Placement anew at %.1f", (double)p.placement_back_at / 1000);
}

static void scheduler_tick(void)
{
    if (p.placement_back_at) {
        if (sim_now_ms < p.placement_back_at)
            return;
        p.placement_back_at = p.second_at = 0;
        put_decisions();
    }
    if (p.second_at && sim_now_ms >= p.second_at) {
        p.second_at = 0;
        put_half(0);
        put_half(1);
    }
    for (int i = 0; i < universe.n_clusters; i++)
        if (p.half[i] == NOWHERE && sim_now_ms >= p.back_at[i]) {
            p.half[i] = (unsigned)i % HALVES;
            put_half(p.half[i]);
        }
}

static void scheduler_turn(void)
{
    int cluster = (int)stream_below(&universe.past, (uint64_t)universe.n_clusters);
    uint64_t what = stream_below(&universe.past, 1000);

    if (p.placement_back_at)
        return;
    if (what < 500)
        decisions_split(cluster);
    else if (what < 750)
        decision_made_anew((unsigned)cluster % HALVES);
    else if (what < 900)
        decision_leaves(cluster);
    else
        placement_made_anew();
}

/* ---- The add-on manager ---- */

void past_put_addon(int cluster)
{
    kube_put(HUB_SERVER, ADDONS,
             json_pack("{s:s, s:s, s:{s:s, s:s}, s:{}, s:{s:[{s:s, s:s, s:s}]}}", "apiVersion",
                       "addon.open-cluster-management.io/v1alpha1", "kind", "ManagedClusterAddOn", "metadata",
                       "name", ADDON_NAME, "namespace", cluster_name(cluster), "spec", "status", "conditions",
                       "type", "Available", "status", "True", "reason", "Told"));
    p.addon_gone_at[cluster] = p.addon_back_at[cluster] = 0;
}

/* Made anew at once, after a while, or so late that the agent counts as gone. */
static void addon_made_anew(int cluster)
{
    uint64_t what = stream_below(&universe.past, 1000);
    int64_t gone_ms = what < 450   ? 0
                      : what < 950 ? (int64_t)stream_below(&universe.past, 120000)
                                   : ADDON_GRACE_MS + (int64_t)stream_below(&universe.past, 120000);

    if (p.addon_gone_at[cluster])
        return;
    kube_delete(HUB_SERVER, ADDONS, cluster_name(cluster), ADDON_NAME);
    p.addon_gone_at[cluster] = sim_now_ms;
    p.addon_back_at[cluster] = sim_now_ms + gone_ms;
    note_made_anew(PAST_ADDONS);
    trace("c%d loses its add-on until %.1f", cluster, (double)p.addon_back_at[cluster] / 1000);
    if (gone_ms == 0)
        past_put_addon(cluster);
}

static void addons_tick(void)
{
    for (int i = 0; i < universe.n_clusters; i++)
        if (p.addon_gone_at[i] && sim_now_ms >= p.addon_back_at[i])
            past_put_addon(i);
}

bool past_lacks_addon(int cluster)
{
    return p.addon_gone_at[cluster] && sim_now_ms - p.addon_gone_at[cluster] >= ADDON_GRACE_MS;
}

/* ---- What others delete and make anew ---- */

/* A process that starts just then has never seen who held the Lease: it creates it at once, as the first of
 * all processes must, and two lead for as long as the holder has renewed it. So it is where the Lease is
 * deleted soon after it was made, and a standby has seen none for all that time. */
bool past_lease_was_unknown(int server)
{
    int64_t at = p.lease_deleted_at[server];

    if (!at || sim_now_ms - at > LEASE_MS)
        return false;
    if (p.lease_was_new[server])
        return true;
    for (int i = 0; i < universe.n_nodes; i++)
        if (fleet_elects(&universe.nodes[i]) && universe.nodes[i].since > at - LEASE_MS)
            return true;
    return false;
}

/* Whether one of the hub's processes, or of the agents, has begun to lead in the Lease's last duration. */
static bool has_new_leader(bool is_hub)
{
    for (int i = 0; i < universe.n_nodes; i++) {
        const struct sim_node *n = &universe.nodes[i];

        if (fleet_elects(n) && (i >= universe.n_agents) == is_hub && n->leads_since &&
            sim_now_ms - n->leads_since < LEASE_MS)
            return true;
    }
    return false;
}

static void lease_deleted(int cluster)
{
    bool is_hub = cluster != 0 || !universe.has_replicas;
    int server = is_hub ? HUB_SERVER : 0;
    const json_t *lease = kube_nth(server, LEASES, 0);

    if (!lease)
        return;
    trace("the Lease of server %d is deleted", server);
    note_made_anew(PAST_LEASES);
    p.lease_was_new[server] = has_new_leader(is_hub);
    p.lease_deleted_at[server] = sim_now_ms;
    kube_delete(server, LEASES,
                json_string_value(json_object_get(json_object_get(lease, "metadata"), "namespace")),
                json_string_value(json_object_get(json_object_get(lease, "metadata"), "name")));
}

static void scores_deleted(int cluster, unsigned scorer)
{
    const json_t *o = kube_object_at(HUB_SERVER, SCORES, cluster_name(cluster), scorer_name(scorer));

    if (!o || fleet_is_foreign(o))
        return;
    kube_delete(HUB_SERVER, SCORES, cluster_name(cluster), scorer_name(scorer));
    note_made_anew(PAST_OF_AGENT);
    trace("the scores of s%u on c%d are deleted", scorer, cluster);
}

static void made_anew_turn(void)
{
    int cluster = (int)stream_below(&universe.past, (uint64_t)universe.n_clusters);
    unsigned scorer = (unsigned)stream_below(&universe.past, universe.n_scorers);

    switch (stream_below(&universe.past, 7)) {
    case 0:
        lease_deleted(cluster);
        break;
    case 1:
        scores_deleted(cluster, scorer);
        break;
    case 2:
        kube_delete(cluster, CONFIGMAPS, AGENT_NAMESPACE, WORK_CONFIGMAP);
        past_note_configmap(cluster);
        if (stream_chance(&universe.past, 500))
            fleet_apply_work(cluster);
        note_made_anew(PAST_OF_AGENT);
        trace("the ConfigMap of c%d is deleted", cluster);
        break;
    case 3:
        kube_delete(cluster, CONFIGMAPS, AGENT_NAMESPACE, WORK_STATUS);
        note_made_anew(PAST_OF_AGENT);
        trace("the report of c%d is deleted", cluster);
        break;
    case 4:
        kube_delete(HUB_SERVER, WORKS, cluster_name(cluster), WORK_NAME);
        note_made_anew(PAST_OF_HUB);
        trace("the ManifestWork of c%d is deleted", cluster);
        break;
    case 5:
        if (fleet_make_scorer_anew(scorer))
            note_made_anew(PAST_OF_HUB);
        break;
    case 6:
        if (fleet_make_cluster_anew(cluster))
            note_made_anew(PAST_OF_HUB);
        break;
    }
}

/* ---- What hub and agents may make of it ---- */

/* Whether the ConfigMap's lists have the scorer, suspended or not. */
static bool configmap_has(const json_t *configmap, unsigned scorer)
{
    static const char *const keys[] = {"summaries", "suspended"};
    const json_t *data = json_object_get(configmap, "data");
    char name[32];

    (void)snprintf(name, sizeof(name), "\"scoreName\":\"%s\"", scorer_name(scorer));
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strstr(cstr(json_string_value(json_object_get(data, keys[i]))), name))
            return true;
    return false;
}

static bool work_has(const json_t *work, unsigned scorer)
{
    const json_t *list =
        json_object_get(json_object_get(json_object_get(work, "spec"), "workload"), "manifests");

    return configmap_has(json_array_get(list, 0), scorer);
}

void past_note_configmap(int cluster)
{
    const json_t *o = kube_object_at(cluster, CONFIGMAPS, AGENT_NAMESPACE, WORK_CONFIGMAP);

    for (unsigned s = 0; s < universe.n_scorers; s++)
        if (!configmap_has(o, s))
            p.listed_at[cluster][s] = 0;
        else if (!p.listed_at[cluster][s])
            p.listed_at[cluster][s] = sim_now_ms;
}

/* Whether the agent could see for so long what its own API server has. */
static bool sees_its_cluster(const struct sim_node *a, int64_t ms)
{
    int64_t at = sim_now_ms - ms;

    return kube_calm_since(a->cluster) < at && a->partition_until < at && a->process->stands_until < at &&
           a->since < at && !etcd_lists_lagged(a->cluster, ms);
}

/* An agent deletes no scores of a scorer that its ConfigMap has had for long. So long that it has noticed a
 * stream that died without a sign, for which it waits for more than two bookmarks: a scorer that it does not
 * know of has no scores to lose until then. */
void past_check_scores_deleted(const struct sim_node *from, const char *name)
{
    unsigned scorer = (unsigned)(name[1] - '0');
    int64_t at = p.listed_at[from->cluster][scorer];

    if (at && sim_now_ms - at >= NOTICED_MS && sees_its_cluster(from, NOTICED_MS))
        violated(ORACLE_FLEET, "a%d deletes the scores of s%u, which its ConfigMap has had for %lld ms",
                 from->id, scorer, (long long)(sim_now_ms - at));
}

/* A cluster that has left all decisions counts for ten seconds more, and what a dead or a late stream shows
 * is not enough to end that. Looser where the hub rightly acts at once: on who changes scorers and
 * Placements, and on an API whose health is unknown. Where even lists are old, nothing that it sees tells it
 * better; and a cluster that leaves for the second time within a minute may have left each time that the hub
 * looked. */
static void check_withdrawn(int cluster, const json_t *before, const json_t *after)
{
    bool counts = p.decided_at[cluster] ||
                  (p.was_settled[cluster] && sim_now_ms - p.left_at[cluster] < DECISION_GRACE_MS);

    if (!universe.has_placements || !counts || !work_has(before, PLACED) || work_has(after, PLACED) ||
        !fleet_is_settled(cluster, PLACED, SETTLED_MS) || sim_now_ms - p.placement_made_at < SETTLED_MS ||
        p.placement_back_at || etcd_lists_lagged(HUB_SERVER, SETTLED_MS))
        return;
    violated(ORACLE_FLEET, "c%d loses s%u, although it is in the decisions %s", cluster, PLACED,
             p.decided_at[cluster] ? "now" : "of a moment ago");
}

/* A cluster whose add-on has been gone for less than ten minutes keeps its ManifestWork. As loose as above,
 * for the same reasons. */
static void check_deleted(int cluster)
{
    if (past_lacks_addon(cluster) || !fleet_is_settled(cluster, PLACED, SETTLED_MS) ||
        etcd_lists_lagged(HUB_SERVER, SETTLED_MS))
        return;
    violated(ORACLE_FLEET, "c%d loses its ManifestWork, although its add-on %s", cluster,
             p.addon_gone_at[cluster] ? "has gone just now" : "is there");
}

void past_check_work(const char *namespace, const json_t *before, const json_t *after)
{
    int cluster = namespace[1] - '0';

    if (after)
        check_withdrawn(cluster, before, after);
    else
        check_deleted(cluster);
}

/* ---- Time ---- */

void past_set_up(void)
{
    for (int i = 0; i < universe.n_clusters; i++)
        p.half[i] = (unsigned)i % HALVES;
    if (universe.has_placements)
        put_decisions();
    p.next_turn = TURN_MS;
}

static void past_turn(void)
{
    uint64_t what = stream_below(&universe.past, 1000);

    if (what < 300)
        kube_past_turn();
    else if (what < 550 && universe.has_placements)
        scheduler_turn();
    else if (what < 700)
        addon_made_anew((int)stream_below(&universe.past, (uint64_t)universe.n_clusters));
    else if (what < 800)
        fleet_speak_old_words();
    else
        made_anew_turn();
}

void past_tick(void)
{
    if (universe.has_placements)
        scheduler_tick();
    addons_tick();
    if (universe.healed || sim_now_ms < p.next_turn)
        return;
    p.next_turn = sim_now_ms + (int64_t)stream_below(&universe.past, TURN_MS);
    past_turn();
}

/* Whatever the store had then is written as it is to be. */
void past_restored(void)
{
    for (int i = 0; i < universe.n_clusters; i++)
        if (p.addon_gone_at[i])
            kube_delete(HUB_SERVER, ADDONS, cluster_name(i), ADDON_NAME);
    p.second_at = 0;
    if (universe.has_placements && !p.placement_back_at)
        put_decisions();
    note_decided();
}

void past_heal(void)
{
    for (int i = 0; i < universe.n_clusters; i++) {
        p.back_at[i] = 0;
        if (p.addon_gone_at[i])
            past_put_addon(i);
    }
    if (p.placement_back_at)
        p.placement_back_at = sim_now_ms;
    if (p.second_at)
        p.second_at = sim_now_ms;
}
