/* What a new configuration does to scorers at work, and what a bad one does not. */
#include "exporter/agent/agent.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/metric/series.h"
#include "exporter/metric/sink.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ONE_SCORE "{\"results\":[{\"metric\":{\"node\":\"n1\"},\"score\":1.5}]}"

struct world {
    char file[64];
    struct fake_server *api;
    struct loop *loop;
    struct agent *agent;
    struct agent_options options;
    struct sink watcher;
    char withdrawn[256]; /* score names, each with a space */
    size_t published;
};

static void on_publish(struct sink *s, struct batch *b)
{
    (void)b;
    CONTAINER_OF(s, struct world, watcher)->published++;
}

static void on_withdraw(struct sink *s, const char *score_name, unix_ms at)
{
    char *to = CONTAINER_OF(s, struct world, watcher)->withdrawn;

    (void)at;
    (void)snprintf(to + strlen(to), 256 - strlen(to), "%s ", score_name);
}

static const struct sink_ops watcher_ops = {
    .name = "watcher", .publish = on_publish, .withdraw = on_withdraw};

static void write_file(const struct world *w, const char *text)
{
    FILE *f = fopen(w->file, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* A configuration of scorers "NAME/PATH", ended by NULL. */
static void write_scorers(struct world *w, const char *cluster, const char *const *scorers)
{
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(buf_printf(&b, "{\"clusterName\":\"%s\",\"summaries\":[", cluster), 0);
    for (size_t i = 0; scorers[i]; i++) {
        int n = (int)strcspn(scorers[i], "/");
        assert_int_equal(
            buf_printf(
                &b,
                "%s{\"name\":\"x\",\"scoreName\":\"%.*s\",\"sourceType\":\"None\",\"scoringEndpoint\":\"%s\","
                "\"scoringInterval\":600}",
                i ? "," : "", n, scorers[i], fake_url(w->api, scorers[i] + n)),
            0);
    }
    assert_int_equal(buf_put(&b, "]}", sizeof("]}")), 0);
    write_file(w, b.p);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    int fd;

    (void)snprintf(w->file, sizeof(w->file), "/tmp/test-agent-XXXXXX");
    fd = mkstemp(w->file);
    assert_true(fd >= 0 && close(fd) == 0);
    w->api = fake_new();
    fake_default(w->api, (struct fake_answer){.body = ONE_SCORE});
    w->options.config_file = w->file;
    w->watcher.ops = &watcher_ops;
    assert_int_equal(loop_new(&w->loop, &clock_system), 0);
    assert_int_equal(agent_new(&w->agent, w->loop, &w->options), 0);
    assert_int_equal(agent_add_sink(w->agent, &w->watcher), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    (void)agent_free(w->agent);
    (void)loop_free(w->loop);
    (void)fake_free(w->api);
    (void)unlink(w->file);
    free(w);
    return 0;
}

static void reload(struct world *w, const char *const *scorers)
{
    write_scorers(w, "c1", scorers);
    assert_int_equal(agent_reload(w->agent, NULL), 0);
}

static void turn_until_published(struct world *w, size_t n)
{
    for (int i = 0; i < 5000 && w->published < n; i++)
        assert_int_equal(loop_turn(w->loop, 5), 0);
    assert_int_equal(w->published, n);
}

static bool on_page(struct world *w, const char *what)
{
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(page_print(agent_state(w->agent)->page, &b), 0);
    return memmem(b.p, b.n, what, strlen(what)) != NULL;
}

static void keeps_the_rounds_of_unchanged_scorers(void **state)
{
    struct world *w = *state;

    reload(w, (const char *const[]){"a/a", "b/b", NULL});
    turn_until_published(w, 2);
    reload(w, (const char *const[]){"b/b", "a/a", NULL}); /* another order is no change */
    for (int i = 0; i < 20; i++)
        assert_int_equal(loop_turn(w->loop, 1), 0);
    assert_int_equal(fake_requests(w->api), 2);
    assert_string_equal(w->withdrawn, "");
}

static void restarts_a_changed_scorer_at_once(void **state)
{
    struct world *w = *state;

    reload(w, (const char *const[]){"a/a", "b/b", NULL});
    turn_until_published(w, 2);
    reload(w, (const char *const[]){"a/other", "b/b", NULL});
    assert_true(on_page(w, "ds_score_name=\"a\""));
    turn_until_published(w, 3);
    assert_int_equal(fake_requests(w->api), 3);
    assert_string_equal(fake_request(w->api, 2)->target, "/other");
}

static void leaves_nothing_of_a_removed_scorer(void **state)
{
    struct world *w = *state;

    reload(w, (const char *const[]){"a/a", "b/b", NULL});
    turn_until_published(w, 2);
    reload(w, (const char *const[]){"b/b", NULL});
    assert_string_equal(w->withdrawn, "a ");
    assert_false(on_page(w, "ds_score_name=\"a\""));
    assert_true(on_page(w, "ds_score_name=\"b\""));
    assert_int_equal(agent_state(w->agent)->n_scorers, 1);
}

static void restarts_all_scorers_under_another_cluster_name(void **state)
{
    struct world *w = *state;

    reload(w, (const char *const[]){"a/a", NULL});
    turn_until_published(w, 1);
    write_scorers(w, "c2", (const char *const[]){"a/a", NULL});
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_false(on_page(w, "ds_cluster=\"c1\""));
    turn_until_published(w, 2);
    assert_true(on_page(w, "ds_cluster=\"c2\""));
    agent_render_own(w->agent);
    assert_true(on_page(w, "dynamic_scoring_leader{ds_cluster=\"c2\"} 1"));
    assert_false(on_page(w, "ds_cluster=\"c1\""));
    assert_string_equal(w->withdrawn, "a ");
}

static void rejects_an_invalid_file_with_the_reason(void **state)
{
    static const char *const bad[] = {"", "{", "[{\"name\":\"x\"}]", "clusterName: c1\nsummaries: 5\n",
                                      "nonsense: [1,"};
    struct world *w = *state;

    reload(w, (const char *const[]){"a/a", NULL});
    turn_until_published(w, 1);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        BUF_AUTO(why, 1 << 20);
        write_file(w, bad[i]);
        assert_int_equal(agent_reload(w->agent, &why), -EINVAL);
        assert_true(why.n > 0);
        assert_false(agent_state(w->agent)->reload.ok);
        assert_non_null(agent_state(w->agent)->reload.problems);
        assert_true(metric_get(agent_state(w->agent)->metrics, METRIC_CONFIG_OK, LV_NONE) == 0);
        assert_int_equal(agent_state(w->agent)->n_scorers, 1);
    }
    assert_int_equal(unlink(w->file), 0);
    assert_int_equal(agent_reload(w->agent, NULL), -EINVAL);
    assert_true(on_page(w, "ds_score_name=\"a\""));
    reload(w, (const char *const[]){"a/a", NULL});
    assert_true(agent_state(w->agent)->reload.ok);
    assert_true(metric_get(agent_state(w->agent)->metrics, METRIC_CONFIG_OK, LV_NONE) == 1);
    assert_int_equal(fake_requests(w->api), 1);
}

static void prefers_flags_to_the_file(void **state)
{
    struct world *w = *state;

    w->options.cluster_name = "flagged";
    w->options.listen[0] = "127.0.0.1:0";
    w->options.n_listen = 1;
    reload(w, (const char *const[]){NULL});
    assert_string_equal(agent_state(w->agent)->config->cluster_name, "flagged");
    assert_int_equal(agent_state(w->agent)->config->n_listen, 1);
    assert_string_equal(agent_state(w->agent)->config->listen[0], "127.0.0.1:0");
}

static void requires_a_cluster_name(void **state)
{
    struct world *w = *state;
    BUF_AUTO(why, 1 << 20);

    write_file(w, "[]");
    assert_int_equal(agent_reload(w->agent, &why), -EINVAL);
    assert_non_null(memmem(why.p, why.n, "--cluster-name", 14));
    assert_null(agent_state(w->agent)->config);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(keeps_the_rounds_of_unchanged_scorers),
        T(restarts_a_changed_scorer_at_once),
        T(leaves_nothing_of_a_removed_scorer),
        T(restarts_all_scorers_under_another_cluster_name),
        T(rejects_an_invalid_file_with_the_reason),
        T(prefers_flags_to_the_file),
        T(requires_a_cluster_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
