/* Large answers are worked on in the shares of many turns, and in turn: none of them holds up the loop or a
 * small answer. */
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"
#include "test/unit/http/http_world.h"

enum { BOMBS = 20, BOMB_BYTES = 8 << 20 };

static char *zeros;

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

#define TURNS(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TURNS(unpacks_in_shares_of_turns),
        TURNS(reads_plain_bodies_in_shares_of_turns),
        TURNS(reads_redirects_in_shares_of_turns),
        TURNS(waits_for_memory_while_it_unpacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
