/* A replica of the agent that begins to lead, and knows its ConfigMap by a stream that has died; and a
 * ConfigMap that comes while the file is invalid. */
#include "controller/agent_kube.h"
#include "exporter/agent/agent.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
#define LISTS  "/api/v1/namespaces/ns/configmaps?" /* and streams of the one with the summaries */
#define SCORES "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/c1/addonplacementscores"
#define X                                                            \
    "[{\\\"scoreName\\\":\\\"x\\\",\\\"sourceType\\\":\\\"None\\\"," \
    "\\\"scoringEndpoint\\\":\\\"http://127.0.0.1:1/\\\"}]"

struct world {
    struct fake_kube *f;
    struct agent_options options;
    struct agent_kube_options kube_options;
    struct agent *agent;
    struct agent_kube *kube;
};

static void push(struct world *w, const char *path, int status, const char *body)
{
    fake_push(w->f->server, (struct fake_answer){.status = status,
                                                 .body = body,
                                                 .headers = "Content-Type: application/json\r\n",
                                                 .only_path = path});
}

static void push_list(struct world *w, const char *path, const char *version, const char *items)
{
    push(w, path, 200,
         fake_kube_text(w->f, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[%s]}",
                        version, items));
}

static void push_silent_stream(struct world *w, const char *path)
{
    static const char nothing[] = "                                        ";

    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG_LATE, .body = nothing, .only_path = path});
}

static const char *configmap(struct world *w, const char *version, const char *summaries)
{
    return fake_kube_text(w->f,
                          "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"dynamic-scoring-config\","
                          "\"resourceVersion\":\"%s\"},\"data\":{\"summaries\":\"%s\"}}",
                          version, summaries);
}

static void push_lease(struct world *w, const char *holder, const char *version)
{
    push(w, LEASES, 200,
         fake_kube_text(w->f,
                        "{\"metadata\":{\"name\":\"dynamic-scoring-agent\",\"resourceVersion\":\"%s\"},"
                        "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15}}",
                        version, holder));
}

static size_t count_asked(struct world *w, const char *what)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++)
        n += strncmp(fake_kube_asked(w->f, i), what, strlen(what)) == 0;
    return n;
}

static void wait_asked(struct world *w, const char *what, size_t n)
{
    for (unsigned i = 0; i < 4000 && count_asked(w, what) < n; i++)
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    assert_int_equal(count_asked(w, what), n);
}

static bool leads(const struct world *w)
{
    return agent_state(w->agent)->leading;
}

/* A standby whose ConfigMap has no scorer. */
static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    w->options.cluster_name = "c1";
    w->kube_options = (struct agent_kube_options){.cluster_name = "c1", .leader_elect = true};
    w->kube_options.hub_kubeconfig = w->kube_options.managed_kubeconfig =
        fake_kube_text(w->f, "%s/kubeconfig", w->f->dir);
    assert_int_equal(agent_new(&w->agent, w->f->loop, &w->options), 0);
    w->kube = agent_kube_new(w->agent, &w->kube_options, false);
    assert_int_equal(agent_kube_start(w->kube), 0);
    push_lease(w, "other", "1");
    push_list(w, LISTS, "10", configmap(w, "5", "[]"));
    push_silent_stream(w, LISTS);
    fake_kube_requests(w->f, 3);
    fake_kube_idle(w->f);
    assert_false(leads(w));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->kube = agent_kube_free(w->kube);
    (void)agent_free(w->agent);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

/* The other has released the Lease, and left the scores of x. */
static void take_over(struct world *w)
{
    push_list(w, SCORES, "20",
              "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"x\",\"resourceVersion\":\"19\",\"labels\":{"
              "\"dynamic-scoring.open-cluster-management.io/managed-by\":\"agent\"},\"annotations\":{"
              "\"dynamic-scoring.open-cluster-management.io/owner\":\"ns/dynamic-scoring\"}}}");
    push_silent_stream(w, SCORES);
    push(w, SCORES, 200, "{}");
    push_lease(w, "", "2");
    push_lease(w, "this", "3");
    fake_kube_advance(w->f, 1500);
    wait_asked(w, "GET " SCORES, 2); /* a list, then the stream */
    assert_true(leads(w));
}

static void keeps_the_scores_of_a_scorer_that_it_has_missed(void **state)
{
    struct world *w = *state;

    push_list(w, LISTS, "12", configmap(w, "11", X));
    push_silent_stream(w, LISTS);
    take_over(w);
    for (unsigned i = 0; i < 400 && agent_state(w->agent)->n_scorers == 0; i++)
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    fake_kube_idle(w->f);
    assert_int_equal(count_asked(w, "DELETE"), 0);
    assert_int_equal(agent_state(w->agent)->n_scorers, 1);
}

static void deletes_the_scores_of_a_scorer_that_is_gone(void **state)
{
    struct world *w = *state;

    push_list(w, LISTS, "12", configmap(w, "5", "[]"));
    push_silent_stream(w, LISTS);
    take_over(w);
    wait_asked(w, "DELETE " SCORES "/x", 1);
}

/* The right to read it was taken away: the last configuration stays. */
static void acts_on_what_it_knows_where_it_may_not_list(void **state)
{
    struct world *w = *state;

    push(w, LISTS, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}");
    take_over(w);
    wait_asked(w, "DELETE " SCORES "/x", 1);
}

/* The API server takes the Lease, and no list yet. */
static void deletes_nothing_until_it_knows(void **state)
{
    struct world *w = *state;

    push(w, LISTS, 503, "{\"kind\":\"Status\",\"code\":503}");
    take_over(w);
    fake_kube_idle(w->f);
    fake_kube_idle(w->f);
    assert_int_equal(count_asked(w, "DELETE"), 0);
}

/* Its own Lease is renewed from now on. */
static void renew(struct world *w)
{
    const char *holder = "";
    char identity[128];

    for (size_t i = 0; i < fake_requests(w->f->server); i++)
        if (strstr(fake_request(w->f->server, i)->body, "holderIdentity"))
            holder = strstr(fake_request(w->f->server, i)->body, "holderIdentity");
    assert_int_equal(sscanf(holder, "holderIdentity\":\"%127[^\"]", identity), 1);
    fake_aside(w->f->server, (struct fake_answer){
                                 .body = fake_kube_text(w->f,
                                                        "{\"metadata\":{\"name\":\"dynamic-scoring-agent\","
                                                        "\"resourceVersion\":\"4\"},\"spec\":{"
                                                        "\"holderIdentity\":\"%s\","
                                                        "\"leaseDurationSeconds\":15}}",
                                                        identity),
                                 .only_path = LEASES});
}

/* 2.5 s, in which the Lease is renewed. */
static void pass_renewal(struct world *w)
{
    size_t before = fake_asides(w->f->server);

    fake_kube_advance(w->f, 2500);
    for (unsigned i = 0; i < 400 && fake_asides(w->f->server) == before; i++)
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    fake_kube_settle(w->f);
}

/* Lists of ConfigMaps alone fail: scores that nobody writes would expire. */
static void acts_on_what_it_knows_after_a_minute(void **state)
{
    struct world *w = *state;

    push(w, LISTS, 503, "{\"kind\":\"Status\",\"code\":503}");
    take_over(w);
    renew(w);
    for (unsigned i = 0; i < 23; i++)
        pass_renewal(w);
    assert_int_equal(count_asked(w, "DELETE"), 0);
    push(w, SCORES "/x", 200, "{}");
    for (unsigned i = 0; i < 2; i++)
        pass_renewal(w);
    assert_true(leads(w));
    assert_int_equal(count_asked(w, "DELETE " SCORES "/x"), 1);
}

/* A single agent whose ConfigMap is not there yet, and whose file is invalid by the time that it comes. */
static int set_up_without_configmap(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    const char *scorer;

    w->f = fake_kube_new();
    fake_kube_file(w->f, "agent.yaml", "clusterName: c1\n");
    w->options.config_file = fake_kube_text(w->f, "%s/agent.yaml", w->f->dir);
    w->kube_options.cluster_name = "c1";
    w->kube_options.hub_kubeconfig = w->kube_options.managed_kubeconfig =
        fake_kube_text(w->f, "%s/kubeconfig", w->f->dir);
    assert_int_equal(agent_new(&w->agent, w->f->loop, &w->options), 0);
    w->kube = agent_kube_new(w->agent, &w->kube_options, false);
    assert_int_equal(agent_kube_start(w->kube), 0);
    scorer = fake_kube_text(w->f,
                            "[{\\\"scoreName\\\":\\\"x\\\",\\\"sourceType\\\":\\\"None\\\","
                            "\\\"scoreDestination\\\":\\\"AddOnPlacementScore\\\","
                            "\\\"scoringEndpoint\\\":\\\"http://127.0.0.1:%u/score\\\"}]",
                            fake_port(w->f->server));
    push_list(w, LISTS, "10", "");
    fake_push(w->f->server,
              (struct fake_answer){.body = fake_kube_event(w->f, "ADDED", configmap(w, "11", scorer)),
                                   .only_path = LISTS,
                                   .held = true});
    push_list(w, SCORES, "20", "");
    push_silent_stream(w, SCORES);
    *state = w;
    return 0;
}

static void writes_scores_of_a_configmap_that_has_waited_for_the_file(void **state)
{
    struct world *w = *state;

    push(w, "/score", 200, "{\"results\":[{\"metric\":{\"node\":\"n\"},\"score\":1}]}");
    wait_asked(w, "GET " LISTS, 2); /* the list that has none, then the stream */
    fake_kube_file(w->f, "agent.yaml", "clusterName: [\n");
    fake_release(w->f->server);
    for (unsigned i = 0; i < 400 && agent_state(w->agent)->reload.ok; i++)
        assert_int_equal(loop_turn(w->f->loop, 5), 0);
    assert_int_equal(agent_state(w->agent)->n_scorers, 0);
    fake_kube_file(w->f, "agent.yaml", "clusterName: c1\n");
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_int_equal(agent_state(w->agent)->n_scorers, 1);
    fake_kube_advance(w->f, 2000);
    wait_asked(w, "POST " SCORES, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keeps_the_scores_of_a_scorer_that_it_has_missed),
        TEST(deletes_the_scores_of_a_scorer_that_is_gone),
        TEST(acts_on_what_it_knows_where_it_may_not_list),
        TEST(deletes_nothing_until_it_knows),
        TEST(acts_on_what_it_knows_after_a_minute),
        cmocka_unit_test_setup_teardown(writes_scores_of_a_configmap_that_has_waited_for_the_file,
                                        set_up_without_configmap, tear_down),
    };

    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
