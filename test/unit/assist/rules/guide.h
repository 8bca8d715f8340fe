/* The guide's example: two clusters with three policies each, two workloads, two scores. Labels follow from
 * names: "policy-enable-mig-3g-worker01" supplies 2 of device 3g.48gb. */
#ifndef DS_TEST_ASSIST_GUIDE_H
#define DS_TEST_ASSIST_GUIDE_H

#include "controller/assist/rules/model.h"
#include "controller/assist/rules/request.h"
#include "controller/optimize/problem.h"

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

static const struct score_item guide_performance[] = {
    {{"app01;2g.24gb", 13}, 10}, {{"app01;3g.48gb", 13}, 60}, {{"app01;all", 9}, 80},
    {{"app02;2g.24gb", 13}, 15}, {{"app02;3g.48gb", 13}, 55}, {{"app02;all", 9}, 80},
};
static const struct score_item guide_power[] = {
    {{"app01;2g.24gb", 13}, 80}, {{"app01;3g.48gb", 13}, 30}, {{"app01;all", 9}, 20},
    {{"app02;2g.24gb", 13}, 90}, {{"app02;3g.48gb", 13}, 55}, {{"app02;all", 9}, 10},
};

struct guide {
    struct plan_request *request;
    struct inputs in;
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

static inline json_t *guide_policy(const char *name)
{
    bool none = strstr(name, "disable"), three = strstr(name, "3g");

    return json_pack("{s:{s:s, s:{s:s, s:s, s:s}}}", "metadata", "name", name, "labels",
                     "resource-supply-kind", "gpu", "resource-supply-amount",
                     none    ? "1"
                     : three ? "2"
                             : "3",
                     "resource-supply-device",
                     none    ? "all"
                     : three ? "3g.48gb"
                             : "2g.24gb");
}

static inline json_t *guide_workload(const char *name)
{
    const char *app = strncmp(name, "mwrs-", 5) == 0 ? name + 5 : name;

    return json_pack("{s:{s:s, s:{s:s, s:s, s:s}}, s:{s:[{s:s+}]}}", "metadata", "name", name, "labels",
                     "app", app, "resource-request-kind", "gpu", "resource-request-amount", "2", "spec",
                     "placementRefs", "name", app, "-placement");
}

static inline struct input_score guide_score(const char *name)
{
    if (strcmp(name, "example-performance-score") == 0)
        return (struct input_score){true, false, guide_performance, ARRAY_SIZE(guide_performance)};
    if (strcmp(name, "example-powerconsumption-score") == 0)
        return (struct input_score){true, false, guide_power, ARRAY_SIZE(guide_power)};
    return (struct input_score){0};
}

/* Everything that the request names, but for scores of other names. */
static inline struct guide guide_new(const char *request)
{
    struct guide g = {0};
    struct objection ob = {0};
    json_auto_t *json = guide_json(request);
    const struct plan_request *rq;

    if (request_read(&g.request, json, &ob) < 0) {
        (void)fprintf(stderr, "%s\n", ob.detail);
        abort();
    }
    rq = g.in.request = g.request;
    g.in.clusters = calloc(rq->n_clusters, sizeof(json_t *));
    g.in.policies = calloc(rq->n_policies + 1, sizeof(json_t *));
    g.in.workloads = calloc(rq->n_workloads, sizeof(json_t *));
    g.in.placements = calloc(rq->n_workloads, sizeof(json_t *));
    g.in.scores = calloc(rq->n_clusters * rq->n_scores, sizeof(*g.in.scores));
    g.in.decisions = calloc(8, sizeof(json_t *));
    g.in.generated = calloc(8, sizeof(json_t *));
    for (size_t c = 0; c < rq->n_clusters; c++) {
        const struct request_cluster *one = &rq->clusters[c];

        g.in.clusters[c] = json_pack("{s:{s:s, s:{s:s}}, s:{s:[{s:s, s:s}]}}", "metadata", "name", one->name,
                                     "labels", "cluster-name", one->name, "status", "clusterClaims", "name",
                                     "policy-watcher-claim", "value", "empty");
        for (size_t i = 0; i < one->policies.n; i++)
            g.in.policies[one->first_policy + i] = guide_policy(one->policies.names[i]);
        for (size_t i = 0; i < rq->n_scores; i++)
            g.in.scores[c * rq->n_scores + i] = guide_score(rq->scores[i].name);
    }
    for (size_t i = 0; i < rq->n_workloads; i++)
        g.in.workloads[i] = guide_workload(rq->workloads[i].name);
    return g;
}

/* The workload's replica runs on the cluster. */
static inline void guide_runs(struct guide *g, const char *placement, const char *cluster)
{
    g->in.decisions[g->in.n_decisions++] =
        json_pack("{s:{s:s, s:{s:s}}, s:{s:[{s:s}]}}", "metadata", "name", "d", "labels", PLACEMENT_LABEL,
                  placement, "status", "decisions", "clusterName", cluster);
}

static inline void guide_label(json_t *object, const char *key, const char *value)
{
    json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");

    if (value)
        (void)json_object_set_new(labels, key, json_string(value));
    else
        (void)json_object_del(labels, key);
}

static inline void guide_done(struct guide *g)
{
    const struct plan_request *rq = g->request;

    for (size_t c = 0; c < rq->n_clusters; c++)
        json_decref(g->in.clusters[c]);
    for (size_t i = 0; i < rq->n_policies; i++)
        json_decref(g->in.policies[i]);
    for (size_t i = 0; i < rq->n_workloads; i++) {
        json_decref(g->in.workloads[i]);
        json_decref(g->in.placements[i]);
    }
    for (size_t i = 0; i < 8; i++) {
        json_decref(g->in.decisions[i]);
        json_decref(g->in.generated[i]);
    }
    free(g->in.clusters);
    free(g->in.policies);
    free(g->in.workloads);
    free(g->in.placements);
    free(g->in.scores);
    free(g->in.decisions);
    free(g->in.generated);
    (void)request_free(g->request);
}

/* A solution: workload w goes to site places[w] with the setting of that index; UINT32_MAX: nowhere. */
static inline struct solution guide_solution(const struct model *m, const uint32_t *sites,
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

#endif
