/* The spool of an endpoint under a clock that is moved by hand. */
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "remotewrite/endpoint_internal.h"
#include "remotewrite/queue.h"
#include "remotewrite/segment.h"
#include "remotewrite/spool.h"
#include "test/disk_faults.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <limits.h>

enum { SECOND = 1000, HOUR = 3600 * 1000 };

static int64_t now_ms;

static mono_ms mono_by_hand(const struct clock *c)
{
    (void)c;
    return (mono_ms){now_ms};
}

static unix_ms wall_by_hand(const struct clock *c)
{
    (void)c;
    return (unix_ms){1760000000000 + now_ms};
}

static const struct clock by_hand = {mono_by_hand, wall_by_hand};

static void begin(struct endpoint *e)
{
    now_ms = SECOND;
    *e = (struct endpoint){.config = rw_endpoint("[{url: 'http://h/', name: hub}]"), .dir = rw_folder()};
    assert_int_equal(pthread_mutex_init(&e->lock, NULL), 0);
    assert_int_equal(loop_new(&e->loop, &by_hand), 0);
    log_setup(LOG_LEVEL_ERROR + 1, LOG_FORMAT_LOGFMT);
}

static void end(struct endpoint *e)
{
    endpoint_spool_close(e);
    (void)loop_free(e->loop);
    (void)pthread_mutex_destroy(&e->lock);
    (void)rw_endpoint_config_unref(e->config);
    rw_folder_done(e->dir);
}

static void put(struct endpoint *e, unsigned n)
{
    for (; n; n--) {
        struct record_head h = {
            .kind = RECORD_SAMPLES, .samples = 10, .first_ms = now_ms, .last_ms = now_ms, .lane = STR("a")};
        char *payload = calloc(1, 100);

        assert_non_null(payload);
        assert_int_equal(queue_append(e->queue, &h, payload, 100, now_ms), 0);
        queue_sync(e->queue);
    }
}

static struct queue_stats stats_of(const struct endpoint *e)
{
    struct queue_stats s;

    queue_stats(e->queue, &s);
    return s;
}

/* A tick; the loop takes the time at each turn. */
static void tick_after(struct endpoint *e, int64_t ms)
{
    now_ms += ms;
    assert_int_equal(loop_turn(e->loop, 0), 0);
    endpoint_spool_tick(e);
}

static void opens_a_spool_when_the_other_process_ends(void **state)
{
    struct endpoint e;
    struct spool *other;

    (void)state;
    begin(&e);
    assert_int_equal(spool_new(&other, e.dir, 4000), 0);
    assert_int_equal(endpoint_spool_open(&e), 0);
    assert_null(e.spool);
    assert_int_equal(e.spool_error, -EBUSY);
    put(&e, 3);
    for (unsigned i = 0; i < 600; i++)
        tick_after(&e, SECOND);
    /* 1, 2, 4, ... 60 s, each up to half shorter. */
    assert_in_range(e.spool_failures, 12, 30);
    (void)spool_free(other);
    /* After a suspend, at once. */
    tick_after(&e, HOUR);
    assert_non_null(e.spool);
    assert_int_equal(e.spool_error, 0);
    assert_int_equal(stats_of(&e).samples, 30);
    assert_int_equal(stats_of(&e).unsaved, 0);
    end(&e);
}

static void writes_what_waits_once_the_disk_takes_it(void **state)
{
    struct endpoint e;

    (void)state;
    begin(&e);
    assert_int_equal(endpoint_spool_open(&e), 0);
    disk_fail_at(1, LONG_MAX, ENOSPC);
    put(&e, 3);
    for (unsigned i = 0; i < 100; i++)
        tick_after(&e, SECOND);
    assert_int_equal(stats_of(&e).unsaved, 30);
    assert_int_equal(stats_of(&e).disk_error, -ENOSPC);
    assert_in_range(e.spool_failures, 5, 15);
    disk_fail_at(0, 0, 0);
    for (unsigned i = 0; i < 61; i++)
        tick_after(&e, SECOND);
    assert_int_equal(stats_of(&e).unsaved, 0);
    assert_int_equal(stats_of(&e).disk_error, 0);
    assert_int_equal(e.spool_failures, 0);
    end(&e);
}

static void counts_what_was_not_stored_at_the_end(void **state)
{
    struct endpoint e;

    (void)state;
    begin(&e);
    assert_int_equal(endpoint_spool_open(&e), 0);
    put(&e, 2);
    disk_fail_at(1, LONG_MAX, EIO);
    put(&e, 3);
    endpoint_spool_close(&e);
    assert_int_equal(e.state.queue.dropped[DROP_UNSAVED], 30);
    disk_fail_at(0, 0, 0);
    assert_int_equal(endpoint_spool_open(&e), 0);
    assert_int_equal(stats_of(&e).samples, 20);
    end(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_a_spool_when_the_other_process_ends),
        cmocka_unit_test(writes_what_waits_once_the_disk_takes_it),
        cmocka_unit_test(counts_what_was_not_stored_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
