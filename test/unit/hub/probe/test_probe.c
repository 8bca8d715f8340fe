/* The schedule of a probe, its verdicts, and what a change resets. */
#include "controller/hub/probe/probe_reason.h"
#include "controller/hub/probe/probe_status.h"
#include "controller/hub/rules/spec.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/probe/probe_world.h"

static const struct fake_answer bad = {.status = 503, .body = "warming up"};

static void probes_health_and_config_from_the_start(void **state)
{
    struct world *w = *state;
    const struct probe_status *s = status(w);

    set(w);
    fake_kube_advance(w->f, 100000);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->api), 0);
    assert_int_equal(s->health, HEALTH_UNKNOWN);
    probe_start(w->p);
    probe_start(w->p);
    probe_once(w);
    assert_int_equal(fake_requests(w->api), 2);
    assert_int_equal(w->n[PROBE_HEALTH], 1);
    assert_int_equal(w->n[PROBE_CONFIG], 1);
    assert_int_equal(s->health, HEALTH_ACTIVE);
    assert_part(&s->probe, true, "Healthy", "/healthz: HTTP 200 OK");
    assert_part(&s->config, true, "Synced", "/config: HTTP 200 OK");
    assert_int_equal(s->probe.at_ms, w->f->clock.wall.ms);
    assert_true(s->probe.seconds > 0);
    assert_string_equal(synced_name(w), "a");
    assert_pause(w, INTERVAL_MS);
}

static void asks_for_health_alone_in_none_mode(void **state)
{
    struct world *w = *state;

    w->spec.mode = SYNC_NONE;
    begin(w);
    assert_int_equal(fake_requests(w->api), 1);
    assert_string_equal(fake_request(w->api, 0)->target, "/healthz");
    assert_int_equal(w->n[PROBE_CONFIG], 0);
    assert_false(status(w)->config.asked);
    assert_string_equal(synced_name(w), "(nothing)");
}

static void asks_for_the_configuration_alone_where_the_hub_does_not_check(void **state)
{
    struct world *w = *state;

    w->spec.health_check = HEALTH_CHECK_AGENTS;
    push(w, "/config", bad);
    begin(w);
    assert_int_equal(fake_requests(w->api), 1);
    assert_string_equal(fake_request(w->api, 0)->target, "/config");
    assert_pause(w, 1000);
    probe_once(w);
    assert_true(pause_of(w) > 1100);
    probe_once(w);
    assert_pause(w, INTERVAL_MS);
    assert_string_equal(synced_name(w), "a");
    assert_int_equal(w->n[PROBE_HEALTH], 0);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
}

static void asks_for_nothing_where_nothing_is_needed(void **state)
{
    struct world *w = *state;

    w->spec.health_check = HEALTH_CHECK_NONE;
    w->spec.mode = SYNC_NONE;
    set(w);
    probe_start(w->p);
    for (unsigned i = 0; i < 5; i++)
        fake_kube_advance(w->f, INTERVAL_MS);
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->api), 0);
    assert_int_equal(status(w)->next_ms, 0);
    w->spec.mode = SYNC_FULL;
    set(w);
    probe_once(w);
    assert_int_equal(fake_requests(w->api), 1);
    assert_string_equal(synced_name(w), "a");
}

/* The health in the status is what agents report. */
static void resumes_no_health_that_it_did_not_probe(void **state)
{
    struct world *w = *state;

    probe_resume(w->p, HEALTH_INACTIVE, &(struct api_config){0}, false);
    w->spec.health_check = HEALTH_CHECK_AGENTS;
    set(w);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
    probe_resume(w->p, HEALTH_INACTIVE, &(struct api_config){0}, false);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
}

/* The scorer is distributed, and stays so until the hub has a verdict. */
static void takes_over_the_health_check(void **state)
{
    struct world *w = *state;

    w->spec.health_check = HEALTH_CHECK_NONE;
    begin(w);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
    for (unsigned i = 0; i < 3; i++)
        push(w, "/healthz", bad);
    w->spec.health_check = HEALTH_CHECK_HUB;
    set(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    for (unsigned n = 1; n <= 3; n++) {
        probe_once(w);
        assert_int_equal(status(w)->health, n < 3 ? HEALTH_ACTIVE : HEALTH_INACTIVE);
    }
    w->spec.health_check = HEALTH_CHECK_AGENTS;
    set(w);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
    assert_false(status(w)->probe.asked);
}

/* Where /healthz says nothing about the API, health follows configURL, which answers 200. */
static void judges_answers(void **state)
{
    static const struct {
        struct fake_answer healthz;
        const char *reason; /* NULL: configURL's, or that the server responds */
    } cases[] = {
        {{.status = 200}, "Healthy"},
        {{.status = 204}, "Healthy"},
        {{.status = 304}, "HTTPStatus"},
        {{.status = 400}, "HTTPStatus"},
        {{.status = 401}, NULL},
        {{.status = 402}, "HTTPStatus"},
        {{.status = 403}, NULL},
        {{.status = 404}, NULL},
        {{.status = 405}, NULL},
        {{.status = 406}, "HTTPStatus"},
        {{.status = 422}, "HTTPStatus"},
        {{.status = 429}, "HTTPStatus"},
        {{.status = 500}, "HTTPStatus"},
        {{.status = 501}, NULL},
        {{.status = 503}, "HTTPStatus"},
        {{.mode = FAKE_CLOSE}, "Broken"},
        {{.status = 302, .location = "http://elsewhere.test/"}, "Redirected"},
    };
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        push(w, "/healthz", cases[i].healthz);
        probe_once(w);
        assert_string_equal(probe_reason_word(status(w)->probe.reason), cases[i].reason ?: "Healthy");
        assert_int_equal(status(w)->probe.ok, !cases[i].reason || i < 2);
    }
}

/* Inactive after three consecutive failures, Active after two successes. */
static void changes_the_verdict_at_the_thresholds(void **state)
{
    static const struct {
        bool good;
        enum probe_health want;
        int64_t pause;
    } steps[] = {
        {true, HEALTH_ACTIVE, INTERVAL_MS},    {false, HEALTH_ACTIVE, INTERVAL_MS},
        {false, HEALTH_ACTIVE, INTERVAL_MS},   {true, HEALTH_ACTIVE, INTERVAL_MS},
        {false, HEALTH_ACTIVE, INTERVAL_MS},   {false, HEALTH_ACTIVE, INTERVAL_MS},
        {false, HEALTH_INACTIVE, INTERVAL_MS}, {false, HEALTH_INACTIVE, INTERVAL_MS},
        {true, HEALTH_INACTIVE, 1000},         {false, HEALTH_INACTIVE, INTERVAL_MS},
        {true, HEALTH_INACTIVE, 1000},         {true, HEALTH_ACTIVE, INTERVAL_MS},
        {false, HEALTH_ACTIVE, INTERVAL_MS},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        if (!steps[i].good)
            push(w, "/healthz", bad);
        if (i == 0)
            begin(w);
        else
            probe_once(w);
        assert_int_equal(status(w)->health, steps[i].want);
        assert_int_equal(status(w)->probe.ok, steps[i].good);
        assert_pause(w, steps[i].pause);
    }
}

/* The threshold of failures is the same, and one success does not suffice then. */
static void calls_an_api_inactive_that_never_answered(void **state)
{
    struct world *w = *state;

    for (unsigned i = 0; i < 3; i++)
        push(w, "/healthz", bad);
    begin(w);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
    assert_int_equal(status(w)->probe.failures, 1);
    probe_once(w);
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
    probe_once(w);
    assert_int_equal(status(w)->health, HEALTH_INACTIVE);
    assert_int_equal(status(w)->probe.failures, 3);
    probe_once(w);
    assert_int_equal(status(w)->health, HEALTH_INACTIVE);
    assert_int_equal(status(w)->probe.failures, 0);
    probe_once(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
}

static void calls_an_api_active_after_its_first_success(void **state)
{
    struct world *w = *state;

    push(w, "/healthz", bad);
    begin(w);
    probe_once(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
}

/* 1, 2, 4, ... seconds, never more than the interval. */
static void backs_off_while_health_is_unknown(void **state)
{
    static const int64_t want[] = {1000, 2000, 4000, 8000, 16000, INTERVAL_MS, INTERVAL_MS, INTERVAL_MS};
    struct world *w = *state;

    w->spec.mode = SYNC_NONE;
    w->settings.unhealthy_after = 100;
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        push(w, "/healthz", bad);
        if (i == 0)
            begin(w);
        else
            probe_once(w);
        assert_pause(w, want[i]);
    }
    assert_int_equal(status(w)->health, HEALTH_UNKNOWN);
    w->settings.interval_ms = 500;
    push(w, "/healthz", bad);
    probe_once(w);
    assert_pause(w, 500);
}

/* Health keeps its own pace, so that its threshold is also a duration. */
static void retries_the_configuration_before_health_is_due(void **state)
{
    struct world *w = *state;
    int64_t begun, failed_at[3];

    fake_default(w->api, (struct fake_answer){.status = 503, .close = true});
    probe_resume(w->p, HEALTH_ACTIVE, &(struct api_config){0}, false);
    begin(w);
    begun = w->f->clock.mono.ms;
    assert_pause(w, 1000);
    for (unsigned i = 0; i < 3; i++) {
        while (w->n[PROBE_HEALTH] < i + 1)
            probe_once(w);
        failed_at[i] = w->f->clock.mono.ms - begun;
        assert_int_equal(status(w)->health, i < 2 ? HEALTH_ACTIVE : HEALTH_INACTIVE);
    }
    assert_int_equal(failed_at[0], 0);
    assert_in_range(failed_at[1], INTERVAL_MS * 9 / 10, INTERVAL_MS * 11 / 10);
    assert_in_range(failed_at[2], INTERVAL_MS * 18 / 10, INTERVAL_MS * 22 / 10);
    assert_in_range(w->n[PROBE_CONFIG], 7, 9);
}

/* The next probe is then due with health. */
static void returns_to_the_interval_once_the_configuration_is_good(void **state)
{
    struct world *w = *state;

    begin(w);
    push(w, "/config", bad);
    probe_once(w);
    assert_pause(w, 1000);
    assert_int_equal(w->n[PROBE_HEALTH], 2);
    probe_once(w);
    assert_int_equal(w->n[PROBE_HEALTH], 2);
    assert_true(status(w)->config.ok);
    assert_in_range(pause_of(w), INTERVAL_MS * 9 / 10 - 1100, INTERVAL_MS * 11 / 10 - 900);
    probe_once(w);
    assert_int_equal(w->n[PROBE_HEALTH], 3);
    assert_int_equal(w->n[PROBE_CONFIG], 4);
}

static void spreads_probes_by_a_tenth(void **state)
{
    struct world *w = *state;
    int64_t least = INTERVAL_MS * 2, most = 0;

    w->spec.mode = SYNC_NONE;
    begin(w);
    for (unsigned i = 0; i < 40; i++) {
        probe_once(w);
        least = pause_of(w) < least ? pause_of(w) : least;
        most = pause_of(w) > most ? pause_of(w) : most;
        assert_pause(w, INTERVAL_MS);
    }
    assert_true(most - least > INTERVAL_MS / 20);
}

static void resumes_from_a_status(void **state)
{
    struct world *w = *state;
    json_t *o = json_pack("{s:s}", "name", "kept");
    struct api_config synced = {.owner = o, .name = json_string_value(json_object_get(o, "name"))};

    probe_resume(w->p, HEALTH_ACTIVE, &synced, false);
    assert_null(synced.owner);
    push(w, "/healthz", bad);
    push(w, "/config", bad);
    set(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    begin(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    assert_string_equal(synced_name(w), "kept");
    probe_once(w);
    assert_string_equal(synced_name(w), "a");
    probe_resume(w->p, HEALTH_INACTIVE, &(struct api_config){0}, false);
    assert_int_equal(status(w)->health, HEALTH_INACTIVE);
}

static void drops_the_configuration_in_none_mode(void **state)
{
    struct world *w = *state;
    struct api_config synced = {.owner = json_object()};

    begin(w);
    assert_string_equal(synced_name(w), "a");
    w->spec.mode = SYNC_NONE;
    set(w);
    assert_string_equal(synced_name(w), "(nothing)");
    assert_false(status(w)->config.asked);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    probe_resume(w->p, HEALTH_ACTIVE, &synced, false);
    assert_string_equal(synced_name(w), "(nothing)");
    w->spec.mode = SYNC_FULL;
    set(w);
    probe_once(w);
    assert_string_equal(synced_name(w), "a");
}

static void probes_at_once_after_a_change(void **state)
{
    struct world *w = *state;

    begin(w);
    w->spec.own.n_sources = 1;
    w->spec.own.sources[0].host = "https://prom.example:9090";
    w->spec.own.sources[0].auth = (struct auth){.token = {"s", "k"}, .hosts = {"https://prom.example:9090"}};
    set(w);
    assert_int_equal(pause_of(w), 0);
    probe_once(w);
    assert_part(&status(w)->config, true, "Synced", "");
    w->spec.own.scoring.host = "https://elsewhere.example";
    set(w);
    assert_int_equal(pause_of(w), 0);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
}

/* Until then probes keep the pace of an unknown API. */
static void keeps_the_verdict_until_another_api_has_one(void **state)
{
    struct world *w = *state;

    begin(w);
    push(w, "/healthz", (struct fake_answer){.mode = FAKE_HANG});
    push(w, "/other", (struct fake_answer){.mode = FAKE_HANG});
    w->spec.config_url = fake_url(w->api, "/other");
    set(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    assert_false(status(w)->probe.asked || status(w)->config.asked);
    assert_string_equal(synced_name(w), "a");
    assert_int_equal(pause_of(w), 0);
    while (fake_requests(w->api) < 4)
        fake_kube_idle(w->f);
    assert_int_equal(status(w)->next_ms, 0);
    /* A second change abandons the probe in flight. */
    push(w, "/third", (struct fake_answer){.body = GOOD_CONFIG("third")});
    w->spec.config_url = fake_url(w->api, "/third");
    set(w);
    probe_once(w);
    assert_int_equal(w->n[PROBE_HEALTH], 2);
    assert_int_equal(w->n[PROBE_CONFIG], 2);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    assert_string_equal(synced_name(w), "third");
}

static void gives_another_api_as_long_as_the_last_one(void **state)
{
    struct world *w = *state;

    begin(w);
    w->spec.config_url = fake_url(w->api, "/other");
    set(w);
    for (unsigned n = 1; n <= 3; n++) {
        push(w, "/healthz", (struct fake_answer){.status = 503});
        push(w, "/other", (struct fake_answer){.body = GOOD_CONFIG("b")});
        probe_once(w);
        assert_int_equal(status(w)->health, n < 3 ? HEALTH_ACTIVE : HEALTH_INACTIVE);
        assert_true(pause_of(w) > 3000); /* no sooner than an outage */
    }
}

static void cancels_requests_when_stopped(void **state)
{
    struct world *w = *state;

    push(w, "/healthz", (struct fake_answer){.delay_ms = 500});
    push(w, "/config", (struct fake_answer){.delay_ms = 500, .body = GOOD_CONFIG("b")});
    set(w);
    probe_start(w->p);
    while (fake_requests(w->api) < 2)
        assert_int_equal(loop_turn(w->f->loop, 1), 0);
    probe_stop(w->p);
    assert_int_equal(status(w)->next_ms, 0);
    for (unsigned i = 0; i < 35; i++) { /* longer than the answers are delayed */
        fake_kube_advance(w->f, INTERVAL_MS);
        assert_int_equal(usleep(20000), 0);
    }
    assert_int_equal(w->n[PROBE_HEALTH] + w->n[PROBE_CONFIG], 0);
    assert_int_equal(fake_requests(w->api), 2);
    set(w);
    probe_start(w->p);
    probe_once(w);
    assert_string_equal(synced_name(w), "a");
}

static void waits_for_a_spec_when_started_early(void **state)
{
    struct world *w = *state;

    probe_start(w->p);
    fake_kube_advance(w->f, 1000);
    assert_int_equal(w->n[PROBE_HEALTH], 0);
    set(w);
    probe_once(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
}

static void probes_others_while_one_hangs(void **state)
{
    struct world *w = *state;
    struct fake_server *hung = fake_new();
    struct probe *many[50] = {0};
    unsigned active = 0;

    fake_default(hung, (struct fake_answer){.mode = FAKE_HANG});
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        w->spec.config_url = fake_url(i == 20 ? hung : w->api, "/config");
        many[i] = probe_new(&w->env);
        probe_set(many[i], &w->spec);
        probe_start(many[i]);
    }
    fake_kube_turn(w->f, &w->n[PROBE_HEALTH], 49);
    fake_kube_turn(w->f, &w->n[PROBE_CONFIG], 49);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        active += probe_status(many[i])->health == HEALTH_ACTIVE;
        assert_int_equal(probe_status(many[i])->next_ms == 0, i == 20);
        many[i] = probe_free(many[i]);
    }
    assert_int_equal(active, 49);
    assert_int_equal(w->n[PROBE_HEALTH], 49);
    (void)fake_free(hung);
}

/* A new leader probes at the interval, not at once. */
static void keeps_the_verdict_of_the_previous_leader(void **state)
{
    struct world *w = *state;
    struct api_config none = {0};

    set(w);
    probe_resume(w->p, HEALTH_ACTIVE, &none, false);
    w->spec.config_url = fake_url(w->api, "/other");
    set(w);
    probe_resume(w->p, HEALTH_ACTIVE, &none, false);
    push(w, "/healthz", (struct fake_answer){.status = 503});
    push(w, "/other", (struct fake_answer){.body = GOOD_CONFIG("b")});
    begin(w);
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    assert_pause(w, w->settings.interval_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(probes_health_and_config_from_the_start),
        CASE(keeps_the_verdict_of_the_previous_leader),
        CASE(asks_for_health_alone_in_none_mode),
        CASE(asks_for_the_configuration_alone_where_the_hub_does_not_check),
        CASE(asks_for_nothing_where_nothing_is_needed),
        CASE(resumes_no_health_that_it_did_not_probe),
        CASE(takes_over_the_health_check),
        CASE(judges_answers),
        CASE(changes_the_verdict_at_the_thresholds),
        CASE(calls_an_api_inactive_that_never_answered),
        CASE(calls_an_api_active_after_its_first_success),
        CASE(backs_off_while_health_is_unknown),
        CASE(retries_the_configuration_before_health_is_due),
        CASE(returns_to_the_interval_once_the_configuration_is_good),
        CASE(spreads_probes_by_a_tenth),
        CASE(resumes_from_a_status),
        CASE(drops_the_configuration_in_none_mode),
        CASE(probes_at_once_after_a_change),
        CASE(keeps_the_verdict_until_another_api_has_one),
        CASE(gives_another_api_as_long_as_the_last_one),
        CASE(cancels_requests_when_stopped),
        CASE(waits_for_a_spec_when_started_early),
        CASE(probes_others_while_one_hangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
