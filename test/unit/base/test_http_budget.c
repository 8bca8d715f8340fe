/* The budget for the bodies of all answers: of 1 MiB in these tests. */
#include "exporter/base/buf.h"
#include "test/unit/base/http_world.h"

enum { BUDGET = 1 << 20, KIB = 1 << 10 };

static char zeros[2 << 20];

static int setup(void **state)
{
    struct env *e = world_new(fake_new(), fake_new());

    http_set_budget(e->http, BUDGET);
    *state = e;
    return 0;
}

static uint64_t used(const struct env *e)
{
    uint64_t used_now, max;

    http_budget(e->http, &used_now, &max);
    assert_int_equal(max, BUDGET);
    assert_true(used_now <= BUDGET);
    return used_now;
}

/* Starts a call for a body of n bytes; of mode FAKE_HANG_LATE, half of it arrives. */
static struct http_call *ask(struct env *e, enum fake_mode mode, size_t n, struct http_share *share,
                             struct got *g)
{
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct http_call *c;

    rq.max_answer = 8 << 20;
    rq.share = share;
    *g = (struct got){0};
    fake_push(e->server, (struct fake_answer){.mode = mode, .body = zeros, .body_len = n});
    assert_int_equal(http_start(&c, e->http, &rq, on_done, g), 0);
    return c;
}

/* A whole call; the share keeps what it took. */
static void fill(struct env *e, size_t n, struct http_share *share)
{
    struct got g;

    (void)ask(e, FAKE_PLAIN, n, share, &g);
    turn_until(e, &g.times, 1);
    assert_ok(&g, 200);
    assert_int_equal(g.body.n, n);
    buf_done(&g.body);
}

static void turn_until_requested(struct env *e, size_t n)
{
    int64_t end = now() + PATIENCE_MS;

    while (fake_requests(e->server) < n && now() < end)
        assert_int_equal(loop_turn(e->loop, 10), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(loop_turn(e->loop, 5), 0);
}

static void assert_over(const struct got *g, const char *why)
{
    assert_failed(g, HTTP_MEMORY);
    assert_non_null(strstr(g->a.reason, "over limits.memory (1 MiB): "));
    assert_non_null(strstr(g->a.reason, why));
}

static void refuses_a_body_larger_than_the_budget(void **state)
{
    struct env *e = *state;
    struct got g;

    (void)ask(e, FAKE_PLAIN, 2 << 20, NULL, &g);
    turn_until(e, &g.times, 1);
    assert_over(&g, "the response does not fit, with 0 bytes of responses in memory");
    (void)ask(e, FAKE_GZIP, 2 << 20, NULL, &g);
    turn_until(e, &g.times, 1);
    assert_over(&g, "the response does not fit");
    assert_int_equal(used(e), 0);
}

static void counts_no_small_bodies(void **state)
{
    struct env *e = *state;
    struct http_share all = {0}, small = {0};

    fill(e, BUDGET, &all);
    assert_int_equal(used(e), BUDGET - 64 * KIB);
    fill(e, 64 * KIB, &small);
    assert_int_equal(used(e), BUDGET - 64 * KIB);
    http_share_done(&small);
    http_share_done(&all);
    assert_int_equal(used(e), 0);
}

static void waits_for_room(void **state)
{
    struct env *e = *state;
    struct http_share first = {0};
    struct got g;

    fill(e, 800 * KIB, &first);
    (void)ask(e, FAKE_PLAIN, 800 * KIB, NULL, &g);
    turn_until_requested(e, 2);
    assert_int_equal(g.times, 0);
    http_share_done(&first);
    turn_until(e, &g.times, 1);
    assert_ok(&g, 200);
    assert_int_equal(g.body.n, 800 * KIB);
    assert_int_equal(used(e), 0);
    buf_done(&g.body);
}

static void waits_until_the_deadline(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct http_share first = {0};
    struct got g;

    fill(e, 800 * KIB, &first);
    fake_push(e->server, (struct fake_answer){.body = zeros, .body_len = 800 * KIB});
    rq.timeout_ms = 300;
    call(e, &rq, &g);
    assert_over(&g, "other responses left no room until the deadline");
    http_share_done(&first);
}

/* A large response that does not end keeps no other from its part. */
static void ends_the_largest_for_one_within_its_part(void **state)
{
    struct env *e = *state;
    struct got large, other;

    (void)ask(e, FAKE_HANG_LATE, 1000 * KIB, NULL, &large);
    turn_until_requested(e, 1);
    assert_int_equal(used(e), 936 * KIB);
    (void)ask(e, FAKE_PLAIN, 400 * KIB, NULL, &other);
    turn_until(e, &other.times, 1);
    assert_ok(&other, 200);
    assert_int_equal(other.body.n, 400 * KIB);
    buf_done(&other.body);
    assert_int_equal(large.times, 1);
    assert_over(&large, "other responses are waiting, with 1024000 bytes of responses in memory");
    assert_int_equal(used(e), 0);
}

/* Each of them holds what the other waits for. */
static void ends_the_youngest_if_all_wait(void **state)
{
    struct env *e = *state;
    struct http_share old = {0}, young = {0};
    struct got a, b;

    fill(e, 500 * KIB, &old);
    fill(e, 500 * KIB, &young);
    (void)ask(e, FAKE_PLAIN, 400 * KIB, &old, &a);
    turn_until_requested(e, 3);
    (void)ask(e, FAKE_PLAIN, 400 * KIB, &young, &b);
    turn_until(e, &b.times, 1);
    assert_over(&b, "other responses are waiting");
    assert_int_equal(a.times, 0);
    http_share_done(&young);
    turn_until(e, &a.times, 1);
    assert_ok(&a, 200);
    buf_done(&a.body);
    http_share_done(&old);
    assert_int_equal(used(e), 0);
}

static void gives_back_what_a_cancelled_call_held(void **state)
{
    struct env *e = *state;
    struct http_call *c;
    struct got g;

    c = ask(e, FAKE_HANG_LATE, 800 * KIB, NULL, &g);
    turn_until_requested(e, 1);
    assert_int_equal(used(e), 736 * KIB);
    (void)http_cancel(c);
    assert_int_equal(used(e), 0);
}

static void follows_the_memory_of_the_process(void **state)
{
    struct env *e = *state;
    uint64_t used_now, max;

    http_set_budget(e->http, 0);
    http_budget(e->http, &used_now, &max);
    assert_true(max >= 64 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(refuses_a_body_larger_than_the_budget),
        CASE(counts_no_small_bodies),
        CASE(waits_for_room),
        CASE(waits_until_the_deadline),
        CASE(ends_the_largest_for_one_within_its_part),
        CASE(ends_the_youngest_if_all_wait),
        CASE(gives_back_what_a_cancelled_call_held),
        CASE(follows_the_memory_of_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
