/* The configuration of an agent that has two halves: a file, and the lists of a ConfigMap. */
#include "exporter/agent/agent.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CONFIGMAP "ns/list"
#define LIST_OF(name) \
    "[{\"scoreName\":\"" name "\",\"sourceType\":\"None\",\"scoringEndpoint\":\"http://127.0.0.1:1/\"}]"

static const char valid[] = "clusterName: c1\n", invalid[] = "clusterName: [\n";

struct world {
    char file[64];
    struct loop *loop;
    struct agent_options options;
    struct agent *agent;
};

static void write_config(const struct world *w, const char *text)
{
    FILE *f = fopen(w->file, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    (void)snprintf(w->file, sizeof(w->file), "/tmp/ds-agent-%d.yaml", (int)getpid());
    write_config(w, valid);
    w->options = (struct agent_options){.config_file = w->file};
    assert_int_equal(loop_new(&w->loop, &clock_system), 0);
    assert_int_equal(agent_new(&w->agent, w->loop, &w->options), 0);
    assert_int_equal(agent_apply_no_summaries(w->agent), 0);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    (void)agent_free(w->agent);
    (void)loop_free(w->loop);
    (void)unlink(w->file);
    free(w);
    return 0;
}

static bool apply_list(const struct world *w, const char *list)
{
    return agent_apply_configmap(w->agent, CONFIGMAP, str_of(list), STR("")) == 0;
}

static void assert_scorer(const struct world *w, const char *name)
{
    const struct agent_state *a = agent_state(w->agent);

    assert_int_equal(a->n_scorers, 1);
    assert_string_equal(a->scorers[0]->summary.score_name, name);
    assert_string_equal(a->configmap, CONFIGMAP);
}

static const struct reload_status *status_of(const struct world *w)
{
    return &agent_state(w->agent)->reload;
}

/* The hub does not send it again. */
static void applies_with_a_valid_file_what_was_rejected_because_of_an_invalid_one(void **state)
{
    const struct world *w = *state;

    assert_true(apply_list(w, LIST_OF("one")));
    write_config(w, invalid);
    assert_false(apply_list(w, LIST_OF("two")));
    assert_scorer(w, "one");
    assert_false(status_of(w)->ok);
    assert_true(agent_reload(w->agent, NULL) < 0);
    assert_scorer(w, "one");
    write_config(w, valid);
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_scorer(w, "two");
    assert_true(status_of(w)->ok);
    assert_null(status_of(w)->problems);
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_scorer(w, "two");
}

static void applies_the_newest_of_those_that_wait(void **state)
{
    const struct world *w = *state;

    write_config(w, invalid);
    assert_false(apply_list(w, LIST_OF("one")));
    assert_false(apply_list(w, LIST_OF("two")));
    write_config(w, valid);
    assert_true(apply_list(w, LIST_OF("three")));
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_scorer(w, "three");
    write_config(w, invalid);
    assert_false(apply_list(w, LIST_OF("four")));
    assert_false(apply_list(w, "[nonsense"));
    write_config(w, valid);
    assert_int_equal(agent_reload(w->agent, NULL), 0);
    assert_scorer(w, "three");
    assert_false(status_of(w)->ok);
}

/* A file that is applied says nothing of it. */
static void says_that_a_configmap_is_rejected_until_there_is_another(void **state)
{
    const struct world *w = *state;
    BUF_AUTO(why, 1 << 16);

    assert_true(apply_list(w, LIST_OF("one")));
    assert_false(apply_list(w, "[{\"scoreName\": 7}]"));
    assert_false(status_of(w)->ok);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(agent_reload(w->agent, &why), 0);
        assert_int_equal(why.n, 0);
        assert_scorer(w, "one");
        assert_false(status_of(w)->ok);
        assert_non_null(strstr(status_of(w)->problems, "scoreName"));
    }
    assert_true(apply_list(w, LIST_OF("two")));
    assert_scorer(w, "two");
    assert_true(status_of(w)->ok);
    assert_null(status_of(w)->problems);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(applies_with_a_valid_file_what_was_rejected_because_of_an_invalid_one),
        TEST(applies_the_newest_of_those_that_wait),
        TEST(says_that_a_configmap_is_rejected_until_there_is_another),
    };

    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
