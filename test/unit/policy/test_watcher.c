/* The policy watcher on a scripted API server: what it writes, and when it writes nothing. */
#include "controller/kube/json.h"
#include "controller/kube/reach.h"
#include "controller/policy/watcher.h"
#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/metric_value.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define POLICIES "/apis/policy.open-cluster-management.io/v1/namespaces/c1/policies"
#define CLAIMS   "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims"
#define ONE      CLAIMS "?fieldSelector=metadata.name%3Dclaim&"
#define DATE     "Date: Sat, 21 Nov 2026 06:10:00 GMT\r\n"

enum { SIX_TEN_S = 1795241400, STABLE_MS = 120000 };

struct world {
    struct fake_kube *f;
    struct metrics *metrics;
    struct policy_watcher *watcher;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    w->f->clock.wall.ms = SIX_TEN_S * 1000LL;
    w->metrics = metrics_new(METRIC_OWNER_LOOP);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    w->watcher = policy_watcher_free(w->watcher);
    (void)metrics_free(w->metrics);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

/* A Policy that has been so since this time of the minute and second. */
static const char *policy(struct world *w, const char *compliant, const char *since, const char *version)
{
    return fake_kube_text(
        w->f,
        "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"p\",\"uid\":\"u\",\"resourceVersion\":\"%s\","
        "\"creationTimestamp\":\"2026-11-21T06:00:00Z\"},\"status\":{\"compliant\":\"%s\",\"details\":[{"
        "\"history\":[{\"lastTimestamp\":\"2026-11-21T06:%sZ\",\"message\":\"%s; x\"}]}]}}",
        version, compliant, since, compliant);
}

/* The claim as the watcher wrote it at 06:05, or another. */
static const char *claim(struct world *w, const char *value, bool own, const char *version)
{
    return fake_kube_text(w->f,
                          "{\"metadata\":{\"name\":\"claim\",\"resourceVersion\":\"%s\",\"managedFields\":[{"
                          "\"manager\":\"%s\",\"time\":\"2026-11-21T06:05:00Z\",\"fieldsV1\":{\"f:spec\":{"
                          "\"f:value\":{}}}}]},\"spec\":{\"value\":\"%s\"}}",
                          version, own ? "dynamic-scoring-policy-watcher" : "kubectl-edit", value);
}

static void push(struct world *w, const char *path, int status, const char *headers, const char *body)
{
    fake_push(w->f->server,
              (struct fake_answer){.status = status, .headers = headers, .body = body, .only_path = path});
}

static void push_list_of(struct world *w, const char *path, const char *version, const char *items)
{
    push(w, path, 200, DATE,
         fake_kube_text(w->f, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[%s]}", version, items));
}

static void push_list(struct world *w, const char *path, const char *items)
{
    push_list_of(w, path, "10", items);
}

static void push_watch(struct world *w, const char *path, enum fake_mode mode, const char *events)
{
    const char *body =
        fake_kube_text(w->f, "%s%*s", events, mode == FAKE_PLAIN ? 0 : (int)strlen(events), "");

    fake_push(w->f->server, (struct fake_answer){.mode = mode, .body = body, .only_path = path});
}

static void start(struct world *w, int64_t stable_ms)
{
    const struct policy_watcher_options o = {.kube = w->f->kube,
                                             .metrics = w->metrics,
                                             .namespace = "c1",
                                             .claim = "claim",
                                             .stable_ms = stable_ms};

    w->watcher = policy_watcher_new(&o);
}

/* Both kinds are listed and then watched in silence. */
static void begin(struct world *w, const char *policies, const char *claims, int64_t stable_ms)
{
    push_list(w, POLICIES "?limit", policies);
    push_list(w, ONE "limit", claims);
    push_watch(w, POLICIES "?watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    push_watch(w, ONE "watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    start(w, stable_ms);
}

static void push_written(struct world *w, const char *value, const char *version)
{
    push(w, CLAIMS "?fieldManager", 201, NULL, claim(w, value, true, version));
    push(w, CLAIMS "/claim", 200, NULL, claim(w, value, true, version));
}

/* The value of the nth write; NULL without. */
static const char *written(struct world *w, size_t n)
{
    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        const struct fake_request *rq = fake_request(w->f->server, i);
        json_auto_t *o = NULL;

        if (strcmp(rq->method, "GET") == 0 || n-- > 0)
            continue;
        assert_int_equal(kube_json_parse(&o, (struct str){rq->body, rq->body_len}, NULL), 0);
        return fake_kube_text(w->f, "%s %s", rq->method, kube_str(o, "spec", "value", NULL));
    }
    return NULL;
}

static void assert_writes(struct world *w, size_t n, const char *want)
{
    for (int i = 0; !written(w, n) && i < 50; i++)
        fake_kube_idle(w->f);
    assert_non_null(written(w, n));
    assert_string_equal(written(w, n), want);
    fake_kube_idle(w->f);
}

static void assert_writes_nothing_more(struct world *w, size_t n)
{
    fake_kube_idle(w->f);
    assert_null(written(w, n));
}

static bool is_ready(struct world *w)
{
    BUF_AUTO(why, 4096);

    return policy_watcher_ready(w->watcher, &why);
}

static void makes_the_claim(void **state)
{
    struct world *w = *state;

    push_written(w, "empty", "12");
    begin(w, "", "", STABLE_MS);
    assert_false(is_ready(w));
    assert_writes(w, 0, "POST empty");
    assert_true(is_ready(w));
    assert_writes_nothing_more(w, 1);
    assert_true(metric_value(w->metrics, "dynamic_scoring_policy_claim{value=\"empty\"}") == 1);
}

/* The watch may show the new claim before the API server's answer is read. */
static void counts_what_it_sent(void **state)
{
    struct world *w = *state;
    const char *event = fake_kube_event(w->f, "ADDED", claim(w, "empty", true, "12"));

    push_list(w, POLICIES "?limit", "");
    push_list(w, ONE "limit", "");
    push_watch(w, POLICIES "?watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    fake_push(w->f->server, (struct fake_answer){.body = event, .delay_ms = 100, .only_path = ONE "watch"});
    fake_push(w->f->server, (struct fake_answer){.status = 201,
                                                 .body = claim(w, "empty", true, "12"),
                                                 .delay_ms = 600,
                                                 .only_path = CLAIMS "?fieldManager"});
    start(w, STABLE_MS);
    assert_writes(w, 0, "POST empty");
    for (int i = 0;
         i < 100 &&
         metric_value(w->metrics,
                      "dynamic_scoring_policy_claim_writes_total{operation=\"create\",result=\"ok\"}") < 1;
         i++)
        fake_kube_idle(w->f);
    assert_true(
        metric_value(w->metrics,
                     "dynamic_scoring_policy_claim_writes_total{operation=\"create\",result=\"ok\"}") == 1);
}

static void writes_only_a_change(void **state)
{
    struct world *w = *state;

    begin(w, policy(w, "Pending", "09:00", "5"), claim(w, "noncompliant", false, "6"), STABLE_MS);
    fake_kube_requests(w->f, 4);
    assert_writes_nothing_more(w, 0);
}

static void counts_the_stable_time_from_the_objects(void **state)
{
    struct world *w = *state;

    push_written(w, "noncompliant", "12");
    begin(w, policy(w, "Compliant", "08:30", "5"), claim(w, "empty", true, "6"), STABLE_MS);
    assert_writes(w, 0, "PATCH noncompliant");
    push(w, CLAIMS "/claim", 200, NULL, claim(w, "compliant", true, "13"));
    push_list_of(w, POLICIES "?limit", "20", policy(w, "Compliant", "08:30", "5"));
    push_watch(w, POLICIES "?watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "21"));
    /* A jump of the clock while it waits does not shorten the time. */
    w->f->clock.wall.ms += 3600 * 1000;
    fake_kube_advance(w->f, 30000);
    assert_writes_nothing_more(w, 1);
    fake_kube_advance(w->f, 1001);
    assert_writes(w, 1, "PATCH compliant");
}

/* The stream has died without a sign, or this process has stood still. */
static void becomes_compliant_by_a_new_list_alone(void **state)
{
    struct world *w = *state;

    push_written(w, "noncompliant", "12");
    begin(w, policy(w, "Compliant", "08:30", "5"), claim(w, "empty", true, "6"), STABLE_MS);
    assert_writes(w, 0, "PATCH noncompliant");
    push_list_of(w, POLICIES "?limit", "20", policy(w, "NonCompliant", "10:10", "19"));
    push_watch(w, POLICIES "?watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "21"));
    push(w, CLAIMS "/claim", 200, NULL, claim(w, "compliant", true, "13"));
    fake_kube_advance(w->f, 31001);
    fake_kube_settle(w->f);
    assert_writes_nothing_more(w, 1);
}

static void keeps_a_compliant_claim_over_a_restart(void **state)
{
    struct world *w = *state;

    /* The clock says nothing: the claim was written after the policy became compliant. */
    w->f->clock.wall.ms = 1000;
    begin(w, policy(w, "Compliant", "04:00", "5"), claim(w, "compliant", true, "6"), STABLE_MS);
    fake_kube_requests(w->f, 4);
    assert_writes_nothing_more(w, 0);
}

static void does_not_believe_a_claim_of_others(void **state)
{
    struct world *w = *state;

    push_written(w, "noncompliant", "12");
    begin(w, policy(w, "Compliant", "09:30", "5"), claim(w, "compliant", false, "6"), STABLE_MS);
    assert_writes(w, 0, "PATCH noncompliant");
}

static void writes_noncompliant_at_once(void **state)
{
    struct world *w = *state;

    push_list(w, POLICIES "?limit", policy(w, "Compliant", "01:00", "5"));
    push_list(w, ONE "limit", claim(w, "compliant", true, "6"));
    push_watch(w, ONE "watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    push_watch(w, POLICIES "?watch", FAKE_HANG_LATE,
               fake_kube_event(w->f, "MODIFIED", policy(w, "NonCompliant", "09:59", "12")));
    push_written(w, "noncompliant", "14");
    start(w, STABLE_MS);
    assert_writes(w, 0, "PATCH noncompliant");
}

static void says_empty_without_the_kind(void **state)
{
    struct world *w = *state;

    push(w, POLICIES "?limit", 404, NULL, "404 page not found\n");
    push_list(w, ONE "limit", claim(w, "compliant", true, "6"));
    push_watch(w, ONE "watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    push_written(w, "empty", "12");
    start(w, STABLE_MS);
    assert_writes(w, 0, "PATCH empty");
    assert_true(is_ready(w));
}

static const char forbidden[] =
    "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no rights\"}";

static void takes_back_a_compliant_claim_without_news(void **state)
{
    struct world *w = *state;

    fake_aside(w->f->server, (struct fake_answer){.status = 403, .body = forbidden, .only_path = POLICIES});
    push_list(w, ONE "limit", claim(w, "compliant", true, "6"));
    push_watch(w, ONE "watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    push_written(w, "noncompliant", "12");
    start(w, STABLE_MS);
    fake_kube_requests(w->f, 2);
    for (int s = 0; s < STABLE_MS / 1000 - 5; s += 5) {
        fake_kube_advance(w->f, 5000);
        assert_null(written(w, 0));
    }
    fake_kube_advance(w->f, 6000);
    assert_writes(w, 0, "PATCH noncompliant");
    assert_false(is_ready(w));
}

static void leaves_the_claim_while_the_server_is_away(void **state)
{
    struct world *w = *state;

    fake_kube_health(w->f, "/readyz", (struct fake_answer){.status = 503});
    fake_kube_health(w->f, "/version", (struct fake_answer){.status = 503});
    fake_aside(w->f->server, (struct fake_answer){.status = 503, .only_path = POLICIES});
    push_list(w, ONE "limit", claim(w, "compliant", true, "6"));
    push_watch(w, ONE "watch", FAKE_HANG_LATE, fake_kube_bookmark(w->f, "11"));
    start(w, STABLE_MS);
    for (int i = 0; !kube_is_unreachable(w->f->kube) && i < 300; i++) {
        fake_kube_advance(w->f, 100);
        fake_kube_idle(w->f);
    }
    assert_true(kube_is_unreachable(w->f->kube));
    for (int s = 0; s < 600; s += 10)
        fake_kube_advance(w->f, 10000);
    assert_writes_nothing_more(w, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(makes_the_claim),
        TEST(counts_what_it_sent),
        TEST(writes_only_a_change),
        TEST(counts_the_stable_time_from_the_objects),
        TEST(becomes_compliant_by_a_new_list_alone),
        TEST(keeps_a_compliant_claim_over_a_restart),
        TEST(does_not_believe_a_claim_of_others),
        TEST(writes_noncompliant_at_once),
        TEST(says_empty_without_the_kind),
        TEST(takes_back_a_compliant_claim_without_news),
        TEST(leaves_the_claim_while_the_server_is_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
