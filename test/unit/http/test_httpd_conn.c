/* The table of connections, without threads: what is shut down, when, and in which order. */
#include "exporter/base/lock.h"
#include "exporter/http/httpd_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { PEERS = 32, MAX = 16, MEBIBYTE = 1 << 20 };

struct env {
    struct httpd h;
    struct conn conns[PEERS];
    int theirs[PEERS];
    uint64_t held, version, page;
    unsigned cut;
};

static uint64_t held(void *arg, uint64_t *ret_version, uint64_t *ret_bytes)
{
    struct env *e = arg;

    *ret_version = e->version;
    *ret_bytes = e->page;
    return e->held;
}

static int setup(void **state)
{
    struct env *e = calloc(1, sizeof(*e));

    e->h.options = (struct httpd_options){
        .max_connections = MAX, .idle_seconds = 120, .old_bytes = held, .served_arg = e};
    lock_init(&e->h.lock);
    httpd_conns_init(&e->h);
    for (size_t i = 0; i < PEERS; i++)
        e->conns[i].fd = e->theirs[i] = -1;
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct env *e = *state;

    for (size_t i = 0; i < PEERS; i++) {
        cleanup_close(&e->conns[i].fd);
        cleanup_close(&e->theirs[i]);
    }
    lock_done(&e->h.lock);
    free(e);
    return 0;
}

/* It is in its state for so long. */
static void since(struct env *e, struct conn *c, int64_t seconds)
{
    struct conn *at;

    c->since.ms -= seconds * 1000;
    TAILQ_REMOVE(&e->h.conns, c, entry);
    TAILQ_FOREACH (at, &e->h.conns, entry)
        if (c->since.ms < at->since.ms) {
            TAILQ_INSERT_BEFORE(at, c, entry);
            return;
        }
    TAILQ_INSERT_TAIL(&e->h.conns, c, entry);
}

/* Peer i connects and is in this state for so long. */
static struct conn *peer(struct env *e, size_t i, enum conn_state state, int64_t seconds)
{
    struct conn *c = &e->conns[i];
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    c->fd = pair[0];
    e->theirs[i] = pair[1];
    e->cut += httpd_conn_add(&e->h, c);
    httpd_conn_set(&e->h, c, state);
    since(e, c, seconds);
    return c;
}

/* Peer i is sent a body of so many MiB. */
static void reader(struct env *e, size_t i, int64_t seconds, uint64_t mebibytes, uint64_t version)
{
    struct conn *c = peer(e, i, CONN_HANDLING, 0);

    assert_true(httpd_conn_answer(&e->h, c, mebibytes * MEBIBYTE, version));
    since(e, c, seconds);
}

static bool is_shut(const struct env *e, size_t i)
{
    char c;

    return recv(e->theirs[i], &c, 1, MSG_DONTWAIT) == 0;
}

static void sweep(struct env *e, unsigned cut)
{
    assert_int_equal(httpd_conns_sweep(&e->h), cut);
}

static void closes_what_is_over_its_deadline(void **state)
{
    static const struct {
        enum conn_state state;
        int64_t seconds;
        bool shut;
    } cases[] = {
        {CONN_READING, 9, false}, {CONN_READING, 10, true},    {CONN_IDLE, 119, false},
        {CONN_IDLE, 120, true},   {CONN_HANDLING, 999, false},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        (void)peer(e, i, cases[i].state, cases[i].seconds);
    for (int again = 0; again < 2; again++) {
        sweep(e, 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
            assert_int_equal(is_shut(e, i), cases[i].shut);
    }
    assert_int_equal(e->h.closing, 2);
}

static void lets_those_who_waited_longest_make_room(void **state)
{
    struct env *e = *state;

    for (size_t i = 0; i < MAX; i++)
        (void)peer(e, i, i % 2 ? CONN_IDLE : CONN_READING, i == 5 ? 8 : i == 8 ? 7 : 1);
    sweep(e, 0);
    (void)peer(e, MAX, CONN_READING, 0);
    (void)peer(e, MAX + 1, CONN_READING, 0);
    sweep(e, 0);
    for (size_t i = 0; i < MAX + 2; i++)
        assert_int_equal(is_shut(e, i), i == 5 || i == 8);
}

static void lets_slow_readers_make_room_if_no_one_waits(void **state)
{
    struct env *e = *state;

    for (size_t i = 0; i < MAX; i++)
        reader(e, i, i == 3 ? 11 : i == 4 ? 10 : 9, 0, 0);
    for (size_t i = MAX; i < PEERS; i++)
        (void)peer(e, i, CONN_HANDLING, 0);
    assert_int_equal(e->cut, 2);
    sweep(e, 0);
    for (size_t i = 0; i < MAX; i++)
        assert_int_equal(is_shut(e, i), i == 3 || i == 4);
    httpd_conn_remove(&e->h, &e->conns[3]);
    sweep(e, 0);
}

static void cuts_the_oldest_readers_over_the_ceiling(void **state)
{
    struct env *e = *state;

    e->version = 9;
    e->held = 50u * MEBIBYTE;  /* 18 over the ceiling */
    reader(e, 0, 100, 200, 9); /* the current version costs nothing */
    reader(e, 1, 90, 10, 3);
    reader(e, 2, 40, 10, 4);
    reader(e, 3, 80, 10, 3); /* shares it with the oldest */
    reader(e, 4, 30, 10, 5);
    reader(e, 5, 1, 10, 2); /* not given time yet */
    sweep(e, 3);
    for (size_t i = 0; i <= 5; i++)
        assert_int_equal(is_shut(e, i), i == 1 || i == 2 || i == 3);
    e->held = 32u * MEBIBYTE;
    sweep(e, 0);
    e->held = 100u * MEBIBYTE; /* a larger page may hold as much again */
    e->page = 100u * MEBIBYTE;
    sweep(e, 0);
}

static void cuts_those_who_read_their_own_body(void **state)
{
    struct env *e = *state;

    reader(e, 0, 20, 20, 0);
    reader(e, 1, 30, 20, 0);
    sweep(e, 1);
    assert_false(is_shut(e, 0));
    assert_true(is_shut(e, 1));
    sweep(e, 0); /* what is being closed counts no more */
}

static void keeps_room_for_small_responses(void **state)
{
    struct env *e = *state;

    for (size_t i = 0; i < MAX * 3 / 4; i++)
        reader(e, i, 0, 1, 1);
    (void)peer(e, MAX, CONN_HANDLING, 0);
    assert_false(httpd_conn_answer(&e->h, &e->conns[MAX], MEBIBYTE, 1));
    assert_true(httpd_conn_answer(&e->h, &e->conns[MAX], 1000, 1));
}

static void bounds_the_bodies_of_all_responses(void **state)
{
    struct env *e = *state;

    reader(e, 0, 0, 100, 0); /* one may be as large as it is */
    (void)peer(e, 1, CONN_HANDLING, 0);
    assert_false(httpd_conn_answer(&e->h, &e->conns[1], MEBIBYTE, 0));
    assert_true(httpd_conn_answer(&e->h, &e->conns[1], MEBIBYTE, 7));
    httpd_conn_remove(&e->h, &e->conns[0]);
    (void)peer(e, 2, CONN_HANDLING, 0);
    assert_true(httpd_conn_answer(&e->h, &e->conns[2], MEBIBYTE, 0));
    (void)peer(e, 3, CONN_HANDLING, 0);
    assert_false(httpd_conn_answer(&e->h, &e->conns[3], 64u * MEBIBYTE, 0));
    httpd_conn_set(&e->h, &e->conns[2], CONN_IDLE);
    assert_true(httpd_conn_answer(&e->h, &e->conns[3], 64u * MEBIBYTE, 0));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(closes_what_is_over_its_deadline),
        CASE(lets_those_who_waited_longest_make_room),
        CASE(lets_slow_readers_make_room_if_no_one_waits),
        CASE(cuts_the_oldest_readers_over_the_ceiling),
        CASE(cuts_those_who_read_their_own_body),
        CASE(keeps_room_for_small_responses),
        CASE(bounds_the_bodies_of_all_responses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
