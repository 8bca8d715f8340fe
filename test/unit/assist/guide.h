/* The guide's example: two clusters with three policies each, two workloads, two scores. Labels follow from
 * names: "policy-enable-mig-3g-worker01" supplies 2 of device 3g.48gb. */
#pragma once

#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/snapshot.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/clock.h"

#include <assert.h>
#include <stdio.h>

#define GUIDE_CLUSTER(n)                                                                        \
    "{'name':'worker0" n "','availablePolicies':[{'name':'policy-enable-mig-2g-worker0" n "'}," \
    "{'name':'policy-enable-mig-3g-worker0" n "'},{'name':'policy-disable-mig-worker0" n "'}]}"
#define GUIDE_WITH(score, more)                                                 \
    "{'namespace':'default','clusters':[" GUIDE_CLUSTER("1") "," GUIDE_CLUSTER( \
        "2") "],"                                                               \
             "'targetWorkloads':[{'name':'mwrs-app01'},{'name':'mwrs-app02'}]," \
             "'preference':{'addonPlacementScore':'" score                      \
             "','scoreDimensionFormat':'${app};${device}'}" more "}"
#define GUIDE GUIDE_WITH("example-performance-score", "")

static const char guide_performance[] = "[{'name':'app01;2g.24gb','value':10},{'name':'app01;3g.48gb','value'"
                                        ":60},{'name':'app01;all','value':80},"
                                        "{'name':'app02;2g.24gb','value':15},{'name':'app02;3g.48gb','value':"
                                        "55},{'name':'app02;all','value':80}]";
static const char guide_power[] = "[{'name':'app01;2g.24gb','value':80},{'name':'app01;3g.48gb','value':30},{"
                                  "'name':'app01;all','value':20},"
                                  "{'name':'app02;2g.24gb','value':90},{'name':'app02;3g.48gb','value':55},{'"
                                  "name':'app02;all','value':10}]";

struct guide {
    json_t *request;
    struct snapshot *hub;
};

/* Quotes are single, as they have fewer backslashes. */
static inline json_t *guide_json(const char *text)
{
    static char copy[16384];
    json_t *o;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    o = json_loads(copy, 0, NULL);
    assert(o);
    return o;
}

/* The object is taken. */
static inline void guide_add(struct guide *g, enum kind kind, json_t *object)
{
    assert(object);
    snapshot_add(g->hub, kind, object);
    json_decref(object);
    snapshot_sort(g->hub, kind);
}

static inline void guide_add_policy(struct guide *g, const char *name)
{
    bool none = strstr(name, "disable"), three = strstr(name, "3g");

    guide_add(g, KIND_POLICIES,
              json_pack("{s:{s:s, s:s, s:{s:s, s:s, s:s}}}", "metadata", "namespace", "default", "name", name,
                        "labels", "resource-supply-kind", "gpu", "resource-supply-amount",
                        none    ? "1"
                        : three ? "2"
                                : "3",
                        "resource-supply-device",
                        none    ? "all"
                        : three ? "3g.48gb"
                                : "2g.24gb"));
}

static inline void guide_add_workload(struct guide *g, const char *name)
{
    const char *app = strncmp(name, "mwrs-", 5) == 0 ? name + 5 : name;

    guide_add(g, KIND_WORKLOADS,
              json_pack("{s:{s:s, s:s, s:{s:s, s:s, s:s}}, s:{s:[{s:s+}]}}", "metadata", "namespace",
                        "default", "name", name, "labels", "app", app, "resource-request-kind", "gpu",
                        "resource-request-amount", "2", "spec", "placementRefs", "name", app, "-placement"));
}

static inline void guide_add_cluster(struct guide *g, const char *name)
{
    guide_add(g, KIND_CLUSTERS,
              json_pack("{s:{s:s, s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata", "name", name, "labels",
                        "cluster-name", name, "status", "clusterClaims", "name", "policy-watcher-claim",
                        "value", "empty"));
}

static inline void guide_add_score(struct guide *g, const char *cluster, const char *name, const char *items)
{
    guide_add(g, KIND_SCORES,
              json_pack("{s:{s:s, s:s}, s:{s:o}}", "metadata", "namespace", cluster, "name", name, "status",
                        "scores", guide_json(items)));
}

/* Everything that the request names, and the guide's scores. */
static inline struct guide guide_new(const char *request)
{
    struct guide g = {.request = guide_json(request), .hub = snapshot_new((unix_ms){1})};
    const json_t *one, *policy;
    size_t i, j;

    json_array_foreach(json_object_get(g.request, "clusters"), i, one)
    {
        const char *cluster = json_string_value(json_object_get(one, "name"));

        guide_add_cluster(&g, cluster);
        guide_add_score(&g, cluster, "example-performance-score", guide_performance);
        guide_add_score(&g, cluster, "example-powerconsumption-score", guide_power);
        json_array_foreach(json_object_get(one, "availablePolicies"), j, policy)
        {
            guide_add_policy(&g, json_string_value(json_object_get(policy, "name")));
        }
    }
    json_array_foreach(json_object_get(g.request, "targetWorkloads"), i, one)
    {
        guide_add_workload(&g, json_string_value(json_object_get(one, "name")));
    }
    guide_add(&g, KIND_SET_BINDINGS, json_pack("{s:{s:s}}", "metadata", "namespace", "default"));
    return g;
}

/* A json_t, or struct score of KIND_SCORES, whose cluster is to be said. */
static inline void *guide_get(const struct guide *g, enum kind kind, const char *cluster, const char *name)
{
    void *found = snapshot_get(g->hub, kind,
                               kind == KIND_CLUSTERS ? ""
                               : kind == KIND_SCORES ? cluster
                                                     : "default",
                               name);

    assert(found);
    return found;
}

static inline void guide_remove(struct guide *g, enum kind kind, const char *name)
{
    struct snapshot_list *list = &g->hub->lists[kind];

    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->slots[i].name, name) == 0) {
            json_decref(list->slots[i].value);
            memmove(&list->slots[i], &list->slots[i + 1], (--list->n - i) * sizeof(*list->slots));
        }
}

/* The workload's replica runs on the cluster. */
static inline void guide_runs(struct guide *g, const char *placement, const char *cluster)
{
    guide_add(g, KIND_DECISIONS,
              json_pack("{s:{s:s, s:s, s:{s:s}}, s:{s:[{s:s}]}}", "metadata", "namespace", "default", "name",
                        "d", "labels", PLACEMENT_LABEL, placement, "status", "decisions", "clusterName",
                        cluster));
}

/* NULL: removes it. */
static inline void guide_label(const struct guide *g, enum kind kind, const char *name, const char *key,
                               const char *value)
{
    json_t *labels = json_object_get(json_object_get(guide_get(g, kind, NULL, name), "metadata"), "labels");

    if (value)
        (void)json_object_set_new(labels, key, json_string(value));
    else
        (void)json_object_del(labels, key);
}

static inline void guide_done(struct guide *g)
{
    json_decref(g->request);
    g->hub = snapshot_free(g->hub);
}

/* A solution: workload w goes to site places[w] with the setting of that index; UINT32_MAX: nowhere. */
static inline struct solution guide_solution(const struct fleet_model *m, const uint32_t *sites,
                                             const uint32_t *settings)
{
    struct solution s = {.setting = malloc((m->problem.n_sites + 1) * sizeof(uint32_t)),
                         .placed = malloc((m->problem.n_workloads + 1) * sizeof(struct problem_pair)),
                         .engine = "test"};

    for (size_t i = 0; i < m->problem.n_sites; i++)
        s.setting[i] = NO_SETTING;
    for (uint32_t w = 0; w < m->problem.n_workloads; w++) {
        if (sites[w] == UINT32_MAX)
            continue;
        s.setting[sites[w]] = settings[w];
        s.placed[s.n_placed++] = (struct problem_pair){w, sites[w]};
        s.objective += problem_score(&m->problem, settings[w], w);
    }
    s.bound = s.objective;
    return s;
}
