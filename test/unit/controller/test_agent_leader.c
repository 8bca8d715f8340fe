/* What an agent does as the leader, as a standby, and without an election. */
#include "controller/agent_leader.c"
#include "controller/agent_leader.h"
#include "controller/agent_report.c"
#include "exporter/agent/agent.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/oom.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct world {
    struct fake_kube *f;
    struct agent_options options;
    struct agent *agent;
    struct agent_leader *leader;
    unsigned stopped;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->f = fake_kube_new();
    w->options.cluster_name = "c1";
    fake_default(w->f->server, (struct fake_answer){.body = "{}"});
    assert_int_equal(agent_new(&w->agent, w->f->loop, &w->options), 0);
    assert_int_equal(agent_apply_text(w->agent, "test", STR("[]"), NULL), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    (void)agent_leader_free(w->leader);
    (void)agent_free(w->agent);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static int start(struct world *w, bool elect)
{
    const struct agent_leader_options o = {.agent = w->agent,
                                           .hub = w->f->kube,
                                           .cluster = w->f->kube,
                                           .cluster_name = "c1",
                                           .namespace = "ns",
                                           .addon_name = "My_AddOn",
                                           .owner = "ns/My_AddOn",
                                           .elect = elect};

    return agent_leader_new(&w->leader, &o);
}

static void advance(struct world *w, int64_t ms)
{
    fake_kube_advance(w->f, ms);
    fake_kube_settle(w->f);
}

static void wait_leading(struct world *w, bool leading)
{
    for (unsigned i = 0; i < 40 && agent_state(w->agent)->leading != leading; i++)
        advance(w, 500);
    assert_true(agent_state(w->agent)->leading == leading);
}

static unsigned number_asked(struct world *w, const char *what)
{
    unsigned n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++)
        n += strstr(fake_kube_asked(w->f, i), what) != NULL;
    return n;
}

static void on_stopped(void *arg)
{
    ((struct world *)arg)->stopped++;
}

static void works_while_it_leads(void **state)
{
    struct world *w = *state;
    struct agent_election e;
    unsigned lists, reports;

    assert_int_equal(start(w, true), 0);
    assert_false(agent_state(w->agent)->leading);
    agent_leader_touch(w->leader);
    agent_leader_sync(w->leader);
    wait_leading(w, true);
    assert_int_equal(number_asked(w, "/leases/my-addon-agent") > 0, 1);
    assert_true(agent_leader_election(w->leader, &e) && e.leading && !e.error);
    agent_leader_touch(w->leader);
    for (unsigned i = 0; i < 10 && number_asked(w, "PATCH") == 0; i++)
        advance(w, 500);
    assert_true(number_asked(w, "PATCH") && number_asked(w, "addonplacementscores"));
    /* The API server is away for longer than the Lease may be believed in. */
    fake_default(w->f->server, (struct fake_answer){.status = 500});
    wait_leading(w, false);
    assert_true(agent_leader_election(w->leader, &e) && !e.leading && e.error);
    lists = number_asked(w, "addonplacementscores");
    reports = number_asked(w, "PATCH");
    agent_leader_touch(w->leader);
    agent_leader_sync(w->leader);
    for (unsigned i = 0; i < 30; i++)
        advance(w, 1000);
    assert_int_equal(number_asked(w, "addonplacementscores"), lists);
    assert_int_equal(number_asked(w, "PATCH"), reports);
    fake_default(w->f->server, (struct fake_answer){.body = "{}"});
    wait_leading(w, true);
    agent_leader_stop(w->leader, on_stopped, w);
    assert_false(agent_state(w->agent)->leading);
    fake_kube_turn(w->f, &w->stopped, 1);
}

static void leads_without_an_election(void **state)
{
    struct world *w = *state;
    struct agent_election e;

    assert_int_equal(start(w, false), 0);
    assert_true(agent_state(w->agent)->leading);
    assert_false(agent_leader_election(w->leader, &e));
    agent_leader_stop(w->leader, on_stopped, w);
    assert_int_equal(w->stopped, 1);
    assert_int_equal(number_asked(w, "lease"), 0);
}

static void survives_each_failed_allocation(void **state)
{
    struct world *w = *state;

    for (unsigned elect = 0; elect < 2; elect++) {
        FOR_EACH_ALLOCATION_FAILURE(n)
        {
            int r = start(w, elect);

            assert_true(r == 0 || (r == -ENOMEM && oom_happened()));
            if (r == 0 && elect) { /* as the Lease calls it */
                leader_on_change(w->leader, true);
                leader_on_change(w->leader, false);
            }
            w->leader = r == 0 ? agent_leader_free(w->leader) : NULL;
            agent_set_leading(w->agent, true);
        }
    }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(works_while_it_leads),
        CASE(leads_without_an_election),
        CASE(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
