#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/digest.h"
#include "exporter/web/auth_queue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct auth_peer peer_of(const char *address)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
        return auth_peer_of((struct sockaddr *)&four);
    assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
    return auth_peer_of((struct sockaddr *)&six);
}

static struct auth_job *job(const char *name, const char *peer, const char *user)
{
    struct auth_job *j = calloc(1, sizeof(*j));

    (void)snprintf(j->digest, sizeof(j->digest), "%s", name);
    j->known = user;
    (void)snprintf(j->hash, sizeof(j->hash), "%s", user ? user : "alice");
    j->peer = peer_of(peer);
    return j;
}

/* Frees the job unless it was taken. */
static int push(struct auth_queue *q, const char *name, const char *peer, const char *user)
{
    struct auth_job *j = job(name, peer, user), *displaced = NULL;
    int r = auth_queue_push(q, j, &displaced);

    if (r < 0)
        (void)auth_job_free(j);
    (void)auth_job_free(displaced);
    return r;
}

static void expect(struct auth_queue *q, const char *name)
{
    struct auth_job *j = auth_queue_pop(q);

    assert_string_equal(j ? j->digest : "none", name);
    (void)auth_job_free(j);
}

static void tells_clients_apart(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"::ffff:10.0.0.1", "10.0.0.1", true},
        {"2001:db8::1", "2001:db8::2", true},
        {"2001:db8::1", "2001:db8:0:1::1", false},
        {"::1", "0.0.0.0", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct auth_peer a = peer_of(cases[i].a), b = peer_of(cases[i].b);
        assert_int_equal(memcmp(&a, &b, sizeof(a)) == 0, cases[i].same);
    }
}

static void takes_known_users_first(void **state)
{
    struct auth_queue q;

    (void)state;
    auth_queue_init(&q);
    assert_int_equal(push(&q, "1", "10.0.0.1", NULL), 0);
    assert_int_equal(push(&q, "2", "10.0.0.2", "alice"), 0);
    assert_int_equal(push(&q, "3", "10.0.0.1", "bob"), 0);
    assert_int_equal(push(&q, "4", "10.0.0.3", NULL), 0);
    assert_non_null(auth_queue_find(&q, "3"));
    assert_null(auth_queue_find(&q, "5"));
    expect(&q, "2");
    expect(&q, "3");
    expect(&q, "1");
    expect(&q, "4");
    expect(&q, "none");
    auth_queue_done(&q);
}

/* The scraper's own address may be that of the flood, as behind one NAT. */
static void gives_each_client_and_user_a_share(void **state)
{
    struct auth_queue q;

    (void)state;
    auth_queue_init(&q);
    for (int i = 0; i < AUTH_QUEUE_SHARE; i++) {
        assert_int_equal(push(&q, "made-up", "10.0.0.1", NULL), 0);
        assert_int_equal(push(&q, "alice", "10.0.0.1", "alice"), 0);
    }
    assert_int_equal(push(&q, "x", "10.0.0.1", NULL), -EAGAIN);
    assert_int_equal(push(&q, "x", "10.0.0.1", "alice"), -EAGAIN);
    assert_int_equal(push(&q, "bob", "10.0.0.1", "bob"), 0);
    assert_int_equal(push(&q, "alice", "10.0.0.2", "alice"), 0);
    expect(&q, "alice");
    assert_int_equal(push(&q, "again", "10.0.0.1", "alice"), 0);
    auth_queue_done(&q);
    assert_int_equal(q.n, 0);
}

static void displaces_unknown_users_when_it_is_full(void **state)
{
    struct auth_queue q;
    char peer[32], name[16];

    (void)state;
    auth_queue_init(&q);
    for (int i = 0; i < AUTH_QUEUE_MAX; i++) {
        (void)snprintf(peer, sizeof(peer), "10.0.1.%d", i);
        (void)snprintf(name, sizeof(name), "%d", i);
        assert_int_equal(push(&q, name, peer, i % 2 ? "alice" : NULL), 0);
    }
    assert_int_equal(push(&q, "x", "10.0.0.1", NULL), -EBUSY);
    for (int i = 0; i < AUTH_QUEUE_MAX / 2; i++) {
        (void)snprintf(peer, sizeof(peer), "10.0.2.%d", i);
        assert_int_equal(push(&q, "y", peer, "alice"), 0);
        assert_int_equal(q.n, AUTH_QUEUE_MAX);
        assert_int_equal(auth_queue_find(&q, "0") != NULL, i < AUTH_QUEUE_MAX / 2 - 1);
    }
    assert_int_equal(push(&q, "x", "10.0.0.1", "alice"), -EBUSY);
    auth_queue_done(&q);
}

/* ---- Results ---- */

static const char *digest_of(unsigned i)
{
    static char text[DIGEST_TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "%064u", i);
    return text;
}

static void put(struct auth_cache *c, unsigned i, int64_t at, bool good)
{
    auth_cache_put(c, digest_of(i), (mono_ms){at}, good);
}

/* 'g', 'b', or '-' if it is not known. */
static char get(struct auth_cache *c, unsigned i, int64_t at)
{
    bool good;

    return !auth_cache_get(c, digest_of(i), (mono_ms){at}, &good) ? '-' : good ? 'g' : 'b';
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct auth_cache));
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void keeps_good_results_and_forgets_bad_ones_soon(void **state)
{
    struct auth_cache *c = *state;

    put(c, 1, 1000, true);
    put(c, 2, 1000, false);
    assert_int_equal(get(c, 1, 1000), 'g');
    assert_int_equal(get(c, 2, 1000 + AUTH_CACHE_BAD_MS - 1), 'b');
    assert_int_equal(get(c, 2, 1000 + AUTH_CACHE_BAD_MS), '-');
    assert_int_equal(get(c, 1, 1000000000), 'g');
    assert_int_equal(get(c, 3, 1000), '-');
}

static void keeps_good_results_through_a_flood_of_bad_ones(void **state)
{
    struct auth_cache *c = *state;

    put(c, 1, 1, true);
    for (unsigned i = 2; i < 10000; i++)
        put(c, i, i, false);
    assert_int_equal(get(c, 1, 10000), 'g');
    assert_int_equal(get(c, 9999, 10000), 'b');
    assert_int_equal(get(c, 9999 - AUTH_CACHE_BAD, 10000), '-');
}

static void forgets_the_good_result_that_was_used_least_recently(void **state)
{
    struct auth_cache *c = *state;

    for (unsigned i = 1; i <= AUTH_CACHE_GOOD; i++)
        put(c, i, i, true);
    assert_int_equal(get(c, 1, 1000), 'g');
    put(c, 1, 1001, true); /* not a second time */
    put(c, 1000, 1002, true);
    assert_int_equal(get(c, 1, 1003), 'g');
    assert_int_equal(get(c, 2, 1003), '-');
    assert_int_equal(get(c, 3, 1003), 'g');
    assert_int_equal(get(c, 1000, 1003), 'g');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_clients_apart),
        cmocka_unit_test(takes_known_users_first),
        cmocka_unit_test(gives_each_client_and_user_a_share),
        cmocka_unit_test(displaces_unknown_users_when_it_is_full),
        cmocka_unit_test_setup_teardown(keeps_good_results_and_forgets_bad_ones_soon, setup, teardown),
        cmocka_unit_test_setup_teardown(keeps_good_results_through_a_flood_of_bad_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(forgets_the_good_result_that_was_used_least_recently, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
