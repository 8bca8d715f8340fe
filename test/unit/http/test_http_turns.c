/* Large answers are worked on in the shares of many turns, and in turn: none of them holds up the loop or a
 * small answer. Calls that wait for their peers cost turns nothing. */
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "test/unit/http/http_world.h"

#include <poll.h>

enum { BOMBS = 20, BOMB_BYTES = 8 << 20 };

static char *zeros;

/* Times that this thread has asked the kernel about sockets while it is not NULL. */
static __thread unsigned *polls;

/* Takes the place of the C library's, for libcurl too. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
    int (*real)(struct pollfd *, nfds_t, int);

    *(void **)&real = dlsym(RTLD_NEXT, "poll");
    if (polls)
        *polls += (unsigned)n;
    return real(fds, n, ms);
}

static int setup(void **state)
{
    zeros = calloc(1, BOMB_BYTES);
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static int teardown_all(void **state)
{
    int r = teardown(state);

    free(zeros);
    return r;
}

static unsigned ended;

struct order {
    struct got got;
    unsigned place; /* from 1, in which the calls ended */
};

static void on_end(void *arg, struct http_response *a)
{
    struct order *o = arg;

    on_done(&o->got, a);
    o->place = ++ended;
}

static void begin(struct env *e, const char *url, struct order *o)
{
    struct http_request rq = rq_of(url);
    struct http_call *c;

    rq.max_answer = BOMB_BYTES;
    *o = (struct order){0};
    assert_int_equal(http_start(&c, e->http, &rq, on_end, o), 0);
}

/* All answers of `other` are bombs; the one of `server` is small, and asked for after them. */
static void run_bombs(struct env *e, struct fake_answer bomb)
{
    struct order bombs[BOMBS], good;

    ended = 0;
    bomb.body = zeros;
    bomb.body_len = BOMB_BYTES;
    fake_default(e->other, bomb);
    for (size_t i = 0; i < BOMBS; i++)
        begin(e, fake_url(e->other, "/bomb"), &bombs[i]);
    begin(e, fake_url(e->server, "/"), &good);
    turn_until(e, &ended, BOMBS + 1);

    assert_true(loop_most_bytes(e->loop) > 0);
    assert_true(loop_most_bytes(e->loop) <= LOOP_TURN_BYTES);
    assert_ok(&good.got, 200);
    assert_body(&good.got, "{}");
    assert_true(good.place <= BOMBS);
    for (size_t i = 0; i < BOMBS; i++) {
        assert_ok(&bombs[i].got, 200);
        assert_int_equal(bombs[i].got.body.n, BOMB_BYTES);
        assert_memory_equal(bombs[i].got.body.p, zeros, BOMB_BYTES);
        buf_done(&bombs[i].got.body);
    }
}

static void unpacks_in_shares_of_turns(void **state)
{
    run_bombs(*state, (struct fake_answer){.mode = FAKE_GZIP});
}

static void reads_plain_bodies_in_shares_of_turns(void **state)
{
    run_bombs(*state, (struct fake_answer){.mode = FAKE_PLAIN});
}

/* A redirect's body is not kept, but read. */
static void reads_redirects_in_shares_of_turns(void **state)
{
    struct env *e = *state;
    struct order got;

    ended = 0;
    fake_push(e->server, (struct fake_answer){
                             .status = 307, .location = "/next", .body = zeros, .body_len = BOMB_BYTES - 2});
    begin(e, fake_url(e->server, "/"), &got);
    turn_until(e, &ended, 1);
    assert_ok(&got.got, 200);
    assert_body(&got.got, "{}");
    assert_true(loop_most_bytes(e->loop) >= LOOP_TURN_BYTES / 8);
    assert_true(loop_most_bytes(e->loop) <= LOOP_TURN_BYTES);
}

/* Together the answers do not fit into the budget: an encoded one waits for memory between two steps of its
 * decoder. */
static void waits_for_memory_while_it_unpacks(void **state)
{
    struct env *e = *state;
    struct order got[4];
    size_t ok = 0;

    ended = 0;
    http_set_budget(e->http, 2 * BOMB_BYTES);
    fake_default(e->other,
                 (struct fake_answer){.mode = FAKE_GZIP, .body = zeros, .body_len = BOMB_BYTES - 1});
    for (size_t i = 0; i < ARRAY_SIZE(got); i++)
        begin(e, fake_url(e->other, "/"), &got[i]);
    turn_until(e, &ended, ARRAY_SIZE(got));
    assert_true(loop_most_bytes(e->loop) <= LOOP_TURN_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(got); i++) {
        if (got[i].got.a.error == HTTP_OK)
            assert_int_equal(got[i].got.body.n, BOMB_BYTES - 1);
        else
            assert_int_equal(got[i].got.a.error, HTTP_MEMORY);
        ok += got[i].got.a.error == HTTP_OK;
        buf_done(&got[i].got.body);
    }
    assert_true(ok >= 1); /* whichever connection came first */
}

/* libcurl looks at a call's socket when it is ready, and at its deadlines when they come. */
static void turns_do_not_look_at_calls_that_wait(void **state)
{
    enum { CALLS = 20, MANY_TURNS = 100 };
    struct env *e = *state;
    struct order waiting[CALLS], good;
    size_t hanging = fake_hanging();
    unsigned looks = 0;

    ended = 0;
    fake_default(e->other, (struct fake_answer){.mode = FAKE_HANG});
    for (size_t i = 0; i < CALLS; i++)
        begin(e, fake_url(e->other, "/"), &waiting[i]);
    while (fake_hanging() < hanging + CALLS)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    polls = &looks;
    for (size_t i = 0; i < MANY_TURNS; i++)
        assert_int_equal(loop_turn(e->loop, 0), 0);
    polls = NULL;
    assert_true(looks < MANY_TURNS); /* a few: how far a call was when the peer had read it is not known */

    begin(e, fake_url(e->server, "/"), &good);
    turn_until(e, &ended, 1);
    assert_ok(&good.got, 200);
    buf_done(&good.got.body);
}

/* All are ready at once, more than one turn serves. */
static void serves_many_calls_that_are_ready_together(void **state)
{
    enum { CALLS = 300 };
    struct env *e = *state;
    struct order *got = calloc(CALLS, sizeof(*got));
    const char *url = fake_url(e->other, "/");

    ended = 0;
    fake_default(e->other, (struct fake_answer){.held = true});
    for (size_t i = 0; i < CALLS; i++)
        begin(e, url, &got[i]);
    while (fake_requests(e->other) < CALLS)
        assert_int_equal(loop_turn(e->loop, 50), 0);
    for (size_t i = 0; i < CALLS; i++)
        fake_release(e->other);
    turn_until(e, &ended, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_ok(&got[i].got, 200);
        buf_done(&got[i].got.body);
    }
    free(got);
}

#define TURNS(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TURNS(unpacks_in_shares_of_turns),           TURNS(reads_plain_bodies_in_shares_of_turns),
        TURNS(reads_redirects_in_shares_of_turns),   TURNS(waits_for_memory_while_it_unpacks),
        TURNS(turns_do_not_look_at_calls_that_wait), TURNS(serves_many_calls_that_are_ready_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
