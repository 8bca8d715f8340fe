/* The endpoints of an agent through reloads, while one of them has a request at a receiver that does not
 * answer, and what they send between rounds. The agent is this file's: it has one scorer with one batch. */
#include "exporter/agent/agent.h"
#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "remotewrite/sink.h"
#include "test/fakes/fake_server.h"
#include "test/unit/remotewrite/rw.h"

#include <jansson.h>
#include <stdlib.h>

enum { TURNS = 20 * 1000, TURN_MS = 10, SERIES = 5 };

struct agent {
    struct agent_state state;
    struct sink *sink;
    struct batch *batch;
};

const struct agent_state *agent_state(const struct agent *a)
{
    return &a->state;
}

bool agent_leads(const struct agent *a)
{
    return a->state.leading;
}

void agent_add_sink(struct agent *a, struct sink *s)
{
    a->sink = s;
}

void agent_touch(struct agent *a)
{
    (void)a;
}

struct batch *agent_next_batch(const struct agent *a, size_t *at)
{
    return a->state.leading && (*at)++ == 0 ? a->batch : NULL;
}

/* One agent with a folder of its own. */
struct world {
    struct agent agent;
    struct rw_sink *sink;
    char *dir;
    struct fake_server *hanging, *other, *never;
};

static struct world *world_new(struct loop *loop, bool leading)
{
    struct world *w = xcalloc(1, sizeof(*w));

    w->agent.state.loop = loop;
    w->agent.state.leading = leading;
    w->agent.state.metrics = metrics_new(METRIC_OWNER_LOOP);
    w->agent.batch = rw_batch("a", SERIES, loop_wall(loop).ms);
    w->sink = rw_sink_new(&w->agent);
    w->dir = rw_folder();
    w->hanging = fake_new();
    w->other = fake_new();
    w->never = fake_new();
    fake_default(w->hanging, (struct fake_answer){.mode = FAKE_HANG});
    fake_default(w->other, (struct fake_answer){.status = 204, .body = ""});
    return w;
}

static void world_free(struct world *w)
{
    w->sink = rw_sink_stop(w->sink, 0);
    (void)fake_free(w->hanging);
    (void)fake_free(w->other);
    (void)fake_free(w->never);
    (void)batch_unref(w->agent.batch);
    (void)metrics_free(w->agent.state.metrics);
    rw_folder_done(w->dir);
    free(w);
}

/* The endpoint "hub" at this receiver, or no endpoint (NULL). */
static void apply(struct world *w, struct fake_server *to)
{
    struct rw_config c = {0};
    char yaml[512];

    if (to) {
        (void)snprintf(yaml, sizeof(yaml),
                       "[{url: '%s', name: hub, metadata_config: {send: false}, queue_config: {min_backoff: "
                       "10ms, max_backoff: 50ms}}]",
                       fake_url(to, "/w"));
        c.list[c.n++] = rw_endpoint(yaml);
    }
    rw_sink_apply(w->sink, &c, w->dir);
    if (to)
        (void)rw_endpoint_config_unref(c.list[0]);
}

static json_t *shown(struct world *w)
{
    BUF_AUTO(text, 1 << 20);
    json_t *list;

    buf_puts(&text, "[");
    rw_sink_json(w->sink, &text);
    buf_puts(&text, "]");
    assert_int_equal(buf_failed(&text), 0);
    list = json_loadb(text.p, text.n, 0, NULL);
    assert_non_null(list);
    return list;
}

static const char *word(const json_t *list, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_array_get(list, i), key)) ?: "";
}

static bool is_ending(struct world *w)
{
    json_auto_t *list = shown(w);

    return json_array_size(list) == 1 && strcmp(word(list, 0, "state"), "ending") == 0;
}

/* The only endpoint has sent so many samples, and nothing waits. */
static bool has_sent(struct world *w, json_int_t samples)
{
    json_auto_t *list = shown(w);
    const json_t *one = json_array_get(list, 0);

    return json_array_size(list) == 1 && json_integer_value(json_object_get(one, "samplesSent")) == samples &&
           json_integer_value(json_object_get(one, "samplesPending")) == 0;
}

/* The request hangs at its receiver. */
static void wait_request(struct loop *loop, struct world *w)
{
    for (int i = 0; fake_requests(w->hanging) == 0; i++) {
        assert_true(i < TURNS);
        assert_int_equal(loop_turn(loop, TURN_MS), 0);
    }
}

/* The reloads that come while the endpoint is ending, and the receiver of its successor. */
enum place { NOWHERE, HANGING, OTHER, NEVER, PLACES };
static const struct {
    const char *what;
    enum place reloads[3];
    size_t n;
    enum place then;
} rows[] = {
    {"another place", {OTHER}, 1, OTHER},
    {"two other places", {NEVER, OTHER}, 2, OTHER},
    {"removed", {NOWHERE}, 1, NOWHERE},
    {"removed, and added again", {NOWHERE, OTHER}, 2, OTHER},
    {"another place, and removed", {NEVER, NOWHERE}, 2, NOWHERE},
    {"another place, and back", {NEVER, HANGING}, 2, HANGING},
    {"the same twice", {OTHER, OTHER}, 2, OTHER},
    {"removed, added again and removed", {NOWHERE, NEVER, NOWHERE}, 3, NOWHERE},
};

static bool has_arrived(struct world *w, enum place then)
{
    json_auto_t *list = shown(w);

    if (then == NOWHERE)
        return json_array_size(list) == 0;
    if (then == HANGING)
        return json_array_size(list) == 1 && strcmp(word(list, 0, "state"), "ending") != 0 &&
               fake_requests(w->hanging) == 2;
    /* What the first has left, its markers, and what is current. */
    return has_sent(w, 3 * SERIES);
}

static void starts_the_latest_configuration_once_its_predecessor_has_ended(void **state)
{
    struct world *worlds[ARRAY_SIZE(rows)];
    struct loop *loop;

    (void)state;
    assert_int_equal(loop_new(&loop, &clock_system), 0);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        worlds[i] = world_new(loop, true);
        apply(worlds[i], worlds[i]->hanging);
        wait_request(loop, worlds[i]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct world *w = worlds[i];

        for (size_t k = 0; k < rows[i].n; k++) {
            struct fake_server *const at[PLACES] = {NULL, w->hanging, w->other, w->never};

            apply(w, at[rows[i].reloads[k]]);
            if (!is_ending(w))
                fail_msg("%s: the reload has waited", rows[i].what);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (int turns = 0; !has_arrived(worlds[i], rows[i].then); turns++) {
            if (turns == TURNS)
                fail_msg("%s: no successor", rows[i].what);
            assert_int_equal(loop_turn(loop, TURN_MS), 0);
        }
        assert_int_equal(fake_connections(worlds[i]->never), 0);
        world_free(worlds[i]);
    }
    (void)loop_free(loop);
}

/* It has drained when the agent begins to lead: its successor gets what is current, and goes on with the
 * series. The folder is the same. */
static void starts_anew_when_a_standby_begins_to_lead(void **state)
{
    struct loop *loop;
    struct world *w;

    (void)state;
    assert_int_equal(loop_new(&loop, &clock_system), 0);
    w = world_new(loop, true);
    apply(w, w->other);
    for (int i = 0; !has_sent(w, SERIES); i++) {
        assert_true(i < TURNS);
        assert_int_equal(loop_turn(loop, TURN_MS), 0);
    }
    for (int round = 0; round < 20; round++) {
        w->agent.state.leading = false;
        apply(w, w->other);
        for (int turns = round % 4; turns > 0; turns--) /* in every phase of its end */
            assert_int_equal(loop_turn(loop, 1), 0);
        w->agent.state.leading = true;
        apply(w, w->other);
    }
    for (int i = 0; !has_sent(w, SERIES); i++) {
        assert_true(i < TURNS);
        assert_int_equal(loop_turn(loop, TURN_MS), 0);
    }
    world_free(w);
    (void)loop_free(loop);
}

/* A standby starts none for what is current, and one for what an earlier run may have left, which ends. */
static void a_standby_has_no_endpoint_for_long(void **state)
{
    struct loop *loop;
    struct world *w;

    (void)state;
    assert_int_equal(loop_new(&loop, &clock_system), 0);
    w = world_new(loop, false);
    apply(w, w->never);
    for (int i = 0; !has_arrived(w, NOWHERE); i++) {
        assert_true(i < TURNS);
        assert_int_equal(loop_turn(loop, TURN_MS), 0);
    }
    assert_int_equal(fake_connections(w->never), 0);
    world_free(w);
    (void)loop_free(loop);
}

/* The agent's clock, which a test puts ahead; the endpoints' threads have the system's. */
static int64_t ahead_ms;

static mono_ms ahead_mono(const struct clock *c)
{
    (void)c;
    return mono_add(clock_system.mono(&clock_system), ahead_ms);
}

static unix_ms ahead_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){clock_system.wall(&clock_system).ms + ahead_ms};
}

static const struct clock clock_ahead = {.mono = ahead_mono, .wall = ahead_wall};

static void wait_sent(struct loop *loop, struct world *w, json_int_t samples)
{
    for (int i = 0; !has_sent(w, samples); i++) {
        assert_true(i < TURNS);
        assert_int_equal(loop_turn(loop, TURN_MS), 0);
    }
}

/* Those of the last request. */
static int64_t last_timestamp(struct world *w)
{
    const struct fake_request *last = fake_request(w->other, fake_requests(w->other) - 1);
    Rw__V1__WriteRequest *rq = rw_decode((struct str){last->body, last->body_len});
    int64_t at = rq->timeseries[0]->samples[0]->timestamp;

    assert_int_equal(rq->n_timeseries, SERIES);
    rw__v1__write_request__free_unpacked(rq, NULL);
    return at;
}

/* A scorer's interval may be longer than the five minutes for which TSDBs show a series after its last
 * sample. */
static void sends_scores_again_before_they_seem_gone(void **state)
{
    static const int64_t due_ms[] = {4 * 60 * 1000, 8 * 60 * 1000, 12 * 60 * 1000};
    enum { NEAR_MS = 20 * 1000 }; /* more than the time between two ticks */
    struct loop *loop;
    struct world *w;

    (void)state;
    assert_int_equal(loop_new(&loop, &clock_ahead), 0);
    w = world_new(loop, true);
    apply(w, w->other);
    wait_sent(loop, w, SERIES);
    for (size_t i = 0; i < ARRAY_SIZE(due_ms); i++) {
        ahead_ms = due_ms[i] - NEAR_MS;
        for (int turns = 0; turns < 3; turns++)
            assert_int_equal(loop_turn(loop, TURN_MS), 0);
        ahead_ms = due_ms[i] + NEAR_MS;
        wait_sent(loop, w, (json_int_t)(i + 2) * SERIES);
        assert_true(last_timestamp(w) >= w->agent.batch->at.ms + due_ms[i]);
    }
    ahead_ms = 0;
    world_free(w);
    (void)loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_the_latest_configuration_once_its_predecessor_has_ended),
        cmocka_unit_test(starts_anew_when_a_standby_begins_to_lead),
        cmocka_unit_test(a_standby_has_no_endpoint_for_long),
        cmocka_unit_test(sends_scores_again_before_they_seem_gone),
    };

    (void)unsetenv("http_proxy");
    (void)unsetenv("HTTP_PROXY");
    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
