/* Summaries from elsewhere than the file, as a watched ConfigMap brings them, and what the agent tells about
 * them. */
#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/metric/page.h"
#include "exporter/metric/sink.h"
#include "exporter/score/error.h"
#include "exporter/score/secrets.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct world {
    struct fake_server *api;
    struct loop *loop;
    struct agent *agent;
    struct agent_options options;
    struct sink sink;
    struct secrets secrets;
    const char *token;
    size_t applied, rounds;
};

static void on_applied(struct sink *s, struct scorer *const *scorers, size_t n)
{
    struct world *w = CONTAINER_OF(s, struct world, sink);

    assert_ptr_equal(scorers, agent_state(w->agent)->scorers);
    assert_int_equal(n, agent_state(w->agent)->n_scorers);
    w->applied++;
}

static void on_round(struct sink *s, const struct scorer *scorer)
{
    (void)scorer;
    CONTAINER_OF(s, struct world, sink)->rounds++;
}

static const struct sink_ops sink_ops = {.name = "test", .round = on_round, .applied = on_applied};

static int read_token(struct secrets *s, const char *name, const char *key, struct buf *into,
                      const char **ret_why)
{
    const struct world *w = CONTAINER_OF(s, struct world, secrets);

    (void)name;
    (void)ret_why;
    return w->token && strcmp(key, "k") == 0 ? buf_puts(into, w->token) : -ENOENT;
}

static int look_at_secret(struct secrets *s, const char *name, const char *token_key,
                          struct secret_state *ret, const char **ret_why)
{
    const struct world *w = CONTAINER_OF(s, struct world, secrets);

    (void)name;
    (void)token_key;
    (void)ret_why;
    *ret = (struct secret_state){.is_unsettled = true};
    return w->token ? 0 : -ENOENT;
}

static void set_hooks(struct world *w, struct secrets *secrets)
{
    const struct agent_hooks hooks = {.arg = w, .secrets = secrets};

    agent_set_hooks(w->agent, &hooks);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->api = fake_new();
    fake_default(w->api, (struct fake_answer){.body = "{\"results\":[{\"metric\":{},\"score\":1.5}]}"});
    w->options.cluster_name = "c1";
    w->secrets.read = read_token;
    w->secrets.look = look_at_secret;
    assert_int_equal(loop_new(&w->loop, &clock_system), 0);
    assert_int_equal(agent_new(&w->agent, w->loop, &w->options), 0);
    w->sink.ops = &sink_ops;
    assert_int_equal(agent_add_sink(w->agent, &w->sink), 0);
    set_hooks(w, NULL);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    (void)agent_free(w->agent);
    secrets_forget(&w->secrets);
    (void)loop_free(w->loop);
    (void)fake_free(w->api);
    free(w);
    return 0;
}

/* A list of scorers with these names, one letter each. */
static int apply(struct world *w, const char *names, const char *more, struct buf *why)
{
    BUF_AUTO(text, 1 << 16);

    assert_int_equal(buf_putc(&text, '['), 0);
    for (size_t i = 0; names[i]; i++)
        assert_int_equal(
            buf_printf(&text,
                       "%s{\"scoreName\":\"%c\",\"sourceType\":\"None\",\"scoringEndpoint\":\"%s\","
                       "\"scoringInterval\":600%s}",
                       i ? "," : "", names[i], fake_url(w->api, "/"), more),
            0);
    assert_int_equal(buf_putc(&text, ']'), 0);
    return agent_apply_text(w->agent, "configmap ns/name", buf_str(&text), why);
}

static void assert_scorers(const struct world *w, const char *names)
{
    assert_int_equal(agent_state(w->agent)->n_scorers, strlen(names));
    for (size_t i = 0; names[i]; i++)
        assert_int_equal(scorer_summary(agent_state(w->agent)->scorers[i])->score_name[0], names[i]);
}

static void turn_until(const struct world *w, const size_t *count, size_t want)
{
    for (int i = 0; i < 2000 && *count < want; i++)
        assert_int_equal(loop_turn(w->loop, 10), 0);
    assert_true(*count >= want);
}

static void applies_and_replaces_summaries(void **state)
{
    struct world *w = *state;
    const struct scorer *b;

    assert_int_equal(apply(w, "", "", NULL), 0);
    assert_scorers(w, "");
    assert_string_equal(agent_state(w->agent)->config->cluster_name, "c1");
    assert_int_equal(agent_state(w->agent)->config->n_listen, 1);
    assert_int_equal(apply(w, "ab", "", NULL), 0);
    assert_scorers(w, "ab");
    b = agent_state(w->agent)->scorers[1];
    assert_int_equal(apply(w, "bc", "", NULL), 0);
    assert_scorers(w, "bc");
    assert_ptr_equal(agent_state(w->agent)->scorers[0], b); /* it went on */
    assert_int_equal(w->applied, 3);
    assert_string_equal(agent_state(w->agent)->config_origin, "configmap ns/name");
    turn_until(w, &w->rounds, 2);
    assert_int_equal(agent_apply_text(w->agent, "configmap ns/name", STR(" null\n"), NULL), 0);
    assert_scorers(w, "");
}

static void rejects_an_invalid_text_with_the_reason(void **state)
{
    static const char *const bad[] = {"", "[", "{}]", "\"x\"", "[{\"scoreName\":\"a\"}]"};
    struct world *w = *state;

    assert_int_equal(apply(w, "a", "", NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        BUF_AUTO(why, 4096);

        assert_int_equal(agent_apply_text(w->agent, "configmap ns/name", str_of(bad[i]), &why), -EINVAL);
        assert_int_equal(strncmp(why.p, "configmap ns/name:", 18), 0);
        assert_false(agent_state(w->agent)->reload.ok);
        assert_scorers(w, "a");
    }
    assert_int_equal(w->applied, 1);
    /* What a newer hub writes is no reason to stop. */
    assert_int_equal(apply(w, "a", ",\"newField\":1", NULL), 0);
    assert_true(agent_state(w->agent)->reload.ok);
}

static void keeps_the_text_over_a_reload(void **state)
{
    struct world *w = *state;

    assert_int_equal(apply(w, "ab", "", NULL), 0);
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_scorers(w, "ab");
    assert_int_equal(w->applied, 2);
}

static void wakes_a_scorer_whose_token_appears(void **state)
{
    struct world *w = *state;

    set_hooks(w, &w->secrets);
    assert_int_equal(
        apply(w, "a", ",\"scoringEndpointAuthName\":\"n\",\"scoringEndpointAuthKey\":\"k\"", NULL), 0);
    turn_until(w, &w->rounds, 1);
    assert_int_equal(scorer_status(agent_state(w->agent)->scorers[0])->error, ROUND_SECRET);
    assert_int_equal(fake_requests(w->api), 0);
    w->token = "t0ken";
    scorer_wake(agent_state(w->agent)->scorers[0]);
    turn_until(w, &w->rounds, 2);
    assert_int_equal(scorer_status(agent_state(w->agent)->scorers[0])->error, ROUND_OK);
    assert_non_null(strstr(fake_request(w->api, 0)->headers, "Bearer t0ken"));
    scorer_wake(agent_state(w->agent)->scorers[0]); /* nothing was refused */
    for (int i = 0; i < 20; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    assert_int_equal(w->rounds, 2);
}

static bool page_has(const struct world *w, const char *text)
{
    BUF_AUTO(page, 1 << 20);

    agent_touch(w->agent);
    assert_int_equal(page_print(agent_state(w->agent)->page, &page), 0);
    assert_int_equal(buf_putc(&page, '\0'), 0);
    return strstr(page.p, text);
}

static void stands_by_with_its_configuration_alone(void **state)
{
    struct world *w = *state;

    agent_set_leading(w->agent, false);
    assert_false(agent_leads(w->agent));
    assert_int_equal(apply(w, "ab", "", NULL), 0);
    assert_scorers(w, "");
    assert_int_equal(agent_state(w->agent)->config->summaries.n, 2);
    assert_true(page_has(w, "dynamic_scoring_leader{ds_cluster=\"c1\"} 0\n"));
    assert_int_equal(agent_apply_text(w->agent, "configmap ns/name", STR("["), NULL), -EINVAL);
    assert_false(agent_state(w->agent)->reload.ok);
    assert_int_equal(w->applied, 1);
    agent_set_leading(w->agent, true);
    assert_true(agent_leads(w->agent));
    assert_int_equal(w->applied, 2);
    assert_scorers(w, "ab");
    turn_until(w, &w->rounds, 2);
    assert_true(page_has(w, "ds_score_name=\"b\""));
    agent_set_leading(w->agent, false);
    assert_scorers(w, "");
    assert_int_equal(w->applied, 3);
    assert_false(page_has(w, "score_name=\""));
    /* What comes meanwhile counts when it leads again. */
    assert_int_equal(apply(w, "abcdef", "", NULL), 0);
    agent_set_leading(w->agent, true);
    assert_scorers(w, "abcdef");
}

static bool no_longer_leads(void *arg, struct agent_election *ret)
{
    (void)arg;
    *ret = (struct agent_election){.leading = false};
    return true;
}

/* The Lease may have expired, but the timer that says so has not run yet. */
static void leads_no_longer_than_its_lease(void **state)
{
    struct world *w = *state;
    const struct agent_hooks hooks = {.election = no_longer_leads};

    assert_true(agent_leads(w->agent));
    agent_set_hooks(w->agent, &hooks);
    assert_true(agent_state(w->agent)->leading);
    assert_false(agent_leads(w->agent));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(applies_and_replaces_summaries),         TEST(rejects_an_invalid_text_with_the_reason),
        TEST(keeps_the_text_over_a_reload),           TEST(wakes_a_scorer_whose_token_appears),
        TEST(stands_by_with_its_configuration_alone), TEST(leads_no_longer_than_its_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
