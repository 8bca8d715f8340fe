/* How little power an application would draw on a device: from what DCGM measures on GPUs, by node and by
 * pod. A score is near 100 where the power that the pods of an application drew at most, together with
 * what the cluster's nodes are expected to draw, stays below a threshold. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/json.h"
#include "exporter/base/problems.h"
#include "exporter/models/model.h"
#include "exporter/models/power_config.h"
#include "exporter/models/power_line.h"
#include "exporter/models/power_nodes.h"
#include "exporter/models/request.h"
#include "exporter/models/results.h"
#include "exporter/models/score_table.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { METRIC_MAX = 64 << 10, MEMBERS_MAX = 128 };

struct power {
    double alpha, threshold, offset;
    struct power_config config;
    struct score_table performance;
};

#define POWER_FIELD(name) offsetof(struct power, name)

static const struct setting power_settings[] = {
    {"alpha", "X", "Steepness of the power score around the threshold", SETTING_NUMBER, POWER_FIELD(alpha),
     "1", NULL, -1e6, 1e6},
    {"threshold", "X", "Watts of a cluster that score halfway between the offset and 100", SETTING_NUMBER,
     POWER_FIELD(threshold), "200", NULL, -1e300, 1e300},
    {"offset", "X", "Lowest power score, and that of an application without data", SETTING_NUMBER,
     POWER_FIELD(offset), "10", NULL, -100, 100},
    {.name = NULL},
};

enum { POWER_ENDPOINT, PERFORMANCE_ENDPOINT, POWER_ENDPOINTS };

static const struct model_endpoint power_endpoints[POWER_ENDPOINTS] = {
    {.prefix = "/power",
     .name = "ai-workload-power-scorer",
     .description = "A power consumption score for AI workloads",
     .source_type = "Prometheus",
     .source_host = "https://thanos-querier.openshift-monitoring.svc:9091",
     .source_path = "/api/v1/query_range",
     .query = "sum(DCGM_FI_DEV_POWER_USAGE) by (GPU_I_ID, GPU_I_PROFILE, exported_pod, Hostname)",
     .range = 3600,
     .step = 60,
     .score_name = "ai_workload_power_score",
     .interval = 30,
     .has_reset = true},
    {.prefix = "/performance",
     .name = "ai-workload-perf-scorer",
     .description = "A performance score for AI workloads",
     .source_type = "Prometheus",
     .source_host = "https://thanos-querier.openshift-monitoring.svc:9091",
     .source_path = "/api/v1/query_range",
     .query = "sum(irate(vllm:generation_tokens_total[1m])) by (pod)",
     .range = 3600,
     .step = 60,
     .score_name = "ai_workload_perf_score",
     .interval = 30},
};

/* Used without a configuration file. */
static const char power_example[] = "{\"applications\":["
                                    "{\"name\":\"app01\",\"device_candidates\":[\"all\",\"3g.48gb\",\"2g."
                                    "24gb\"],\"pod_alias\":[\"app01*\",\"*-app01-*\"]},"
                                    "{\"name\":\"app02\",\"device_candidates\":[\"all\",\"3g.48gb\",\"2g."
                                    "24gb\"],\"pod_alias\":[\"app02*\",\"*-app02-*\"]}],"
                                    "\"static_score\":{\"performance\":["
                                    "{\"metric\":{\"app\":\"app01\",\"device\":\"all\"},\"score\":80},"
                                    "{\"metric\":{\"app\":\"app02\",\"device\":\"all\"},\"score\":80},"
                                    "{\"metric\":{\"app\":\"app01\",\"device\":\"3g.48gb\"},\"score\":60},"
                                    "{\"metric\":{\"app\":\"app02\",\"device\":\"3g.48gb\"},\"score\":55},"
                                    "{\"metric\":{\"app\":\"app01\",\"device\":\"2g.24gb\"},\"score\":10},"
                                    "{\"metric\":{\"app\":\"app02\",\"device\":\"2g.24gb\"},\"score\":15}]}}";

static const char *const power_file_keys[] = {"applications", "static_score", NULL};

static void power_read_file(void *state, const struct node *root, struct problems *p)
{
    static const char *const keys[] = {"performance", NULL};
    const struct node *applications = node_given(root, "applications");
    const struct node *scores = node_given(root, "static_score");
    const struct node *performance = scores ? node_given(scores, "performance") : NULL;
    struct power *m = state;

    if (applications)
        power_config_read(&m->config, applications, p);
    if (scores)
        node_only_keys(scores, keys, PROBLEM_ERROR, p);
    if (performance)
        score_table_read(&m->performance, performance, p);
}

/* Without applications of the user's, those of the example. */
static int power_open(void *state, const struct model_env *env, char **ret_why)
{
    CLEANUP(problems_done) struct problems problems = {0};
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    struct power *m = state;
    int r;

    (void)env, (void)ret_why;
    if (m->config.n_pairs || m->performance.n)
        return 0;
    r = problems_init(&problems, "example") ?: doc_parse(&doc, str_of(power_example), &problems);
    if (r < 0)
        return r;
    power_read_file(m, doc_root(doc), &problems);
    return problems.out_of_memory ? -ENOMEM : 0;
}

static void power_close(void *state)
{
    struct power *m = state;

    power_config_done(&m->config);
    score_table_done(&m->performance);
}

static int power_read(struct power_nodes *nodes, struct scoring *s)
{
    struct input_series series;
    enum left_out why;
    int r;

    while (request_next(&s->request, &series)) {
        why = LEFT_OUTS;
        r = power_nodes_add(nodes, &series, &why);
        if (r == -E2BIG) {
            (void)snprintf(s->why, sizeof(s->why), "more than %d nodes", POWER_MAX_NODES);
            return -EINVAL;
        }
        if (r < 0)
            return r;
        if (why != LEFT_OUTS)
            s->left_out[why]++;
    }
    return 0;
}

/* `estimate`: the power of the pods at most, together with that of the nodes; NAN without data. */
static double power_score_of(const struct power *m, double estimate)
{
    double low = 1 - 1 / (1 + exp(-m->alpha * (estimate - m->threshold)));

    return isnan(low) ? m->offset : low * (100 - m->offset) + m->offset;
}

static int power_add_result(const struct power *m, const struct power_pair *pair, double estimate,
                            struct scoring *s)
{
    BUF_AUTO(metric, METRIC_MAX);
    char text[NUM_MAX], members[MEMBERS_MAX];
    struct result result = {.score = power_score_of(m, estimate)};
    int r = buf_puts(&metric, "{\"app\":") ?: buf_put_json(&metric, str_of(pair->app))
            ?: buf_puts(&metric, ",\"device\":") ?: buf_put_json(&metric, str_of(pair->device))
            ?: buf_putc(&metric, '}');

    if (r < 0)
        return r;
    result.metric = buf_str(&metric);
    if (isfinite(estimate))
        result.members = (struct str){members, (size_t)snprintf(members, sizeof(members), "\"estimate\":%.*s",
                                                                (int)num_put_double(text, estimate), text)};
    results_add(&s->results, &result);
    return 0;
}

static int power_score(const void *state, struct scoring *s)
{
    const struct power *m = state;
    CLEANUP(power_nodes_done) struct power_nodes nodes = {.config = &m->config};
    double base = 0, highest;
    int r;

    if (s->endpoint == PERFORMANCE_ENDPOINT) {
        score_table_write(&m->performance, &s->results);
        return 0;
    }
    r = power_read(&nodes, s);
    if (r == 0)
        r = power_nodes_base(&nodes, s, &base);
    if (r == -ERANGE) {
        (void)snprintf(s->why, sizeof(s->why), "the samples of a node span more than %d minutes",
                       POWER_MAX_MINUTES);
        return -EINVAL;
    }
    for (size_t i = 0; r == 0 && i < m->config.n_pairs; i++) {
        r = power_nodes_highest(&nodes, i, &highest);
        if (r == 0)
            r = power_add_result(m, &m->config.pairs[i], highest + base, s);
    }
    return r;
}

/* There are no models to forget: each call fits anew. */
static void power_reset(void *state)
{
    (void)state;
}

const struct model model_power = {
    .name = "power",
    .help = "How little power applications would draw on GPUs, and fixed scores of their performance.",
    .endpoints = power_endpoints,
    .n_endpoints = POWER_ENDPOINTS,
    .settings = power_settings,
    .file_keys = power_file_keys,
    .size = sizeof(struct power),
    .read_file = power_read_file,
    .open = power_open,
    .close = power_close,
    .score = power_score,
    .reset = power_reset,
};
