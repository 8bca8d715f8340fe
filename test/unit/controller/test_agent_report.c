/* The agent's report: when it is written, and when it is not. The agent is a stand-in. */
#include "controller/agent_report.c"
#include "controller/agent_report.h"
#include "controller/kube/reach.h"
#include "controller/placement/placement.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/loop.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/out.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct scorer {
    struct summary summary;
    struct scorer_status status;
    enum scorer_state state;
};

const struct summary *scorer_summary(const struct scorer *s)
{
    return &s->summary;
}

const struct scorer_status *scorer_status(const struct scorer *s)
{
    return &s->status;
}

enum scorer_state scorer_state(const struct scorer *s)
{
    return s->state;
}

struct placement {
    const char *trouble, *hub_trouble;
};

const char *placement_trouble(const struct placement *p, const struct scorer *s)
{
    (void)s;
    return p->trouble;
}

const char *placement_hub_trouble(const struct placement *p)
{
    return p->hub_trouble;
}

struct world {
    struct fake_kube *f;
    struct agent_state agent;
    struct placement placement;
    struct scorer scorer, *scorers[1];
    struct agent_report *report;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->f = fake_kube_new();
    w->scorers[0] = &w->scorer;
    w->agent = (struct agent_state){.reload.ok = true, .scorers = w->scorers, .n_scorers = 1};
    w->scorer.summary.score_name = (char *)(uintptr_t) "cpu";
    w->scorer.summary.interval_ms = 1000;
    w->scorer.state = SCORER_OK;
    w->placement.trouble = "";
    fake_default(w->f->server, (struct fake_answer){.body = "{}"});
    w->report = agent_report_new(&(const struct agent_report_options){
        .agent = &w->agent,
        .cluster = w->f->kube,
        .hub = w->f->kube,
        .placement = &w->placement,
        .namespace = "ns",
    });
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    (void)agent_report_free(w->report);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

/* Of a long text the middle is left out: "cannot patch ..." is its end. */
static void keeps_the_end_of_a_long_error(void **state)
{
    struct world *w = *state;
    struct scorer_status *st = &w->scorer.status;
    char *text;

    *st = (struct scorer_status){
        .rounds = 1, .stage = STAGE_SCORING, .error = ROUND_HTTP_5XX, .url = "http://api:8000/scoring"};
    memset(st->reason, 'x', sizeof(st->reason) - 5);
    (void)strcpy(st->reason + sizeof(st->reason) - 5, " end");
    text = report_text(w->report, false);
    assert_non_null(strstr(text, "\"scoring failed, http://api:8000/scoring: xxx"));
    assert_non_null(strstr(text, "xxx...xxx"));
    assert_non_null(strstr(text, "x end\""));
    assert_true(strlen(text) < 540);
    free(text);
}

/* What the agent itself lacks says nothing about the scoring API. */
static void says_at_which_stage_a_round_failed(void **state)
{
    static const struct {
        enum round_error error;
        enum round_stage stage;
        const char *member;
    } cases[] = {
        {ROUND_CONNECT, STAGE_SCORING, "\"failedStage\":\"scoring\""},
        {ROUND_TIMEOUT, STAGE_SCORING, "\"failedStage\":\"scoring\""},
        {ROUND_HTTP_5XX, STAGE_SOURCE, "\"failedStage\":\"source\""},
        {ROUND_OK, STAGE_SCORING, NULL},
        {ROUND_MEMORY, STAGE_SCORING, NULL},
        {ROUND_SECRET, STAGE_SCORING, NULL},
        {ROUND_SERIES, STAGE_SCORING, NULL},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *text;

        w->scorer.status =
            (struct scorer_status){.rounds = 1, .stage = cases[i].stage, .error = cases[i].error};
        text = report_text(w->report, false);
        assert_non_null(strstr(text, cases[i].member ? cases[i].member : "scoreName"));
        assert_int_equal(strstr(text, "failedStage") != NULL, cases[i].member != NULL);
        free(text);
    }
}

/* A round each second, as a quick scorer has it: all of them went well. */
static void run(struct world *w, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        fake_kube_advance(w->f, 1000);
        w->scorer.status.succeeded_ms = w->f->clock.wall.ms;
        agent_report_touch(w->report);
        /* The answer takes real time, which must not become seconds of the fake clock. */
        do
            assert_int_equal(loop_turn(w->f->loop, 1), 0);
        while (w->report->object.call);
    }
    fake_kube_idle(w->f);
}

static void writes_mere_times_every_five_minutes(void **state)
{
    struct world *w = *state;

    run(w, 5);
    assert_int_equal(fake_requests(w->f->server), 1);
    run(w, 290);
    assert_int_equal(fake_requests(w->f->server), 1);
    run(w, 15);
    assert_int_equal(fake_requests(w->f->server), 2);
    assert_non_null(strstr(fake_request(w->f->server, 1)->body, "lastSuccess\\\":\\\"2026-11-21T06:28:"));
}

static void writes_a_new_state_soon(void **state)
{
    struct world *w = *state;

    run(w, 5);
    w->scorer.state = SCORER_FAILING;
    w->scorer.status.rounds = 1;
    w->scorer.status.error = ROUND_CONNECT;
    (void)snprintf(w->scorer.status.reason, sizeof(w->scorer.status.reason), "no answer");
    run(w, 3);
    assert_int_equal(fake_requests(w->f->server), 2);
    assert_non_null(strstr(fake_request(w->f->server, 1)->body, "no answer"));
    w->agent.reload.ok = false;
    run(w, 3);
    assert_int_equal(fake_requests(w->f->server), 3);
}

static const char *last_report(const struct world *w)
{
    return fake_request(w->f->server, fake_requests(w->f->server) - 1)->body;
}

/* A server that refuses is there: that is reported at once. */
static void reports_what_the_hub_refuses(void **state)
{
    struct world *w = *state;

    run(w, 3);
    w->placement.trouble = "addonplacementscores is forbidden";
    run(w, 3);
    assert_int_equal(fake_requests(w->f->server), 2);
    assert_non_null(strstr(last_report(w), "is forbidden"));
}

/* The reach of the client is tested elsewhere. */
static void lose_hub(struct world *w)
{
    struct kube_reach *reach = kube_reach(w->f->kube);

    reach->away_at = loop_now(w->f->loop);
    w->placement.trouble = w->placement.hub_trouble = "Connection refused";
}

static void reports_a_short_absence_of_the_hub_never(void **state)
{
    struct world *w = *state;

    run(w, 3);
    lose_hub(w);
    run(w, 50);
    w->placement.trouble = "";
    w->placement.hub_trouble = NULL;
    run(w, 30);
    assert_int_equal(fake_requests(w->f->server), 1);
}

static void reports_an_absence_of_a_minute(void **state)
{
    struct world *w = *state;

    run(w, 3);
    lose_hub(w);
    run(w, 58);
    assert_int_equal(fake_requests(w->f->server), 1);
    run(w, 4);
    assert_int_equal(fake_requests(w->f->server), 2);
    assert_non_null(strstr(last_report(w), "placementError"));
    assert_non_null(strstr(last_report(w), "hubError"));
}

static void allows_an_absence_of_one_interval(void **state)
{
    struct world *w = *state;

    w->scorer.summary.interval_ms = 100000;
    run(w, 3);
    lose_hub(w);
    w->placement.hub_trouble = NULL;
    run(w, 98);
    assert_int_equal(fake_requests(w->f->server), 1);
    run(w, 4);
    assert_int_equal(fake_requests(w->f->server), 2);
}

/* Of a scorer whose next round is far away. */
static void reports_in_time_without_a_round(void **state)
{
    struct world *w = *state;

    lose_hub(w);
    run(w, 3);
    assert_int_equal(fake_requests(w->f->server), 1);
    for (unsigned i = 0; i < 62; i++) {
        fake_kube_advance(w->f, 1000);
        do
            assert_int_equal(loop_turn(w->f->loop, 1), 0);
        while (w->report->object.call);
    }
    assert_int_equal(fake_requests(w->f->server), 2);
    assert_non_null(strstr(last_report(w), "placementError"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writes_mere_times_every_five_minutes, setup, teardown),
        cmocka_unit_test_setup_teardown(writes_a_new_state_soon, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_the_end_of_a_long_error, setup, teardown),
        cmocka_unit_test_setup_teardown(says_at_which_stage_a_round_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_what_the_hub_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_a_short_absence_of_the_hub_never, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_an_absence_of_a_minute, setup, teardown),
        cmocka_unit_test_setup_teardown(allows_an_absence_of_one_interval, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_in_time_without_a_round, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
