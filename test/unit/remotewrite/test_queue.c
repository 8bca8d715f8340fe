#include "remotewrite/format.h"
#include "remotewrite/queue.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { MINUTE = 60 * 1000 };
static const int64_t START = 1760000000000;

static void put(struct queue *q, const char *lane, int64_t at, size_t bytes)
{
    struct record_head h = {
        .kind = RECORD_SAMPLES, .samples = 10, .first_ms = at, .last_ms = at, .lane = str_of(lane)};
    char *payload = malloc(bytes + 1);

    assert_non_null(payload);
    memset(payload, 'p', bytes);
    (void)snprintf(payload, bytes, "%s %lld", lane, (long long)at);
    queue_expire(q, at);
    queue_append(q, &h, payload, bytes);
}

/* Takes the next record, which must be this one, and delivers it. */
static void expect(struct queue *q, const char *lane, int64_t at)
{
    struct record *r = queue_pick(q, at);
    char want[64];
    struct str payload;

    if (!r)
        fail_msg("nothing, expected %s", lane);
    assert_int_equal(queue_payload(q, r, &payload), 0);
    (void)snprintf(want, sizeof(want), "%s %lld", lane, (long long)at);
    assert_string_equal(payload.p, want);
    assert_int_equal(r->head.last_ms, at);
    queue_finish(q, r);
}

static struct queue_stats stats_of(const struct queue *q)
{
    return queue_stats(q);
}

/* Its spool is not open yet. */
static struct queue *closed_queue(const char *dir, size_t segment, uint64_t max, enum rw_full_policy policy,
                                  int64_t age)
{
    struct queue_options o = {.dir = dir,
                              .segment_bytes = segment,
                              .max_bytes = max,
                              .policy = policy,
                              .age_limit_ms = age,
                              .memory_bytes = 1000};

    return queue_new(&o);
}

static struct queue *queue_of(const char *dir, size_t segment, uint64_t max, enum rw_full_policy policy,
                              int64_t age)
{
    struct queue *q = closed_queue(dir, segment, max, policy, age);

    assert_int_equal(queue_open(q, (mono_ms){1}), dir != NULL);
    return q;
}

static void serves_fresh_lanes_first_and_each_in_order(void **state)
{
    struct queue *q = queue_of(NULL, 0, 1 << 20, RW_DROP_OLDEST, 0);

    (void)state;
    for (int i = 0; i < 6; i++)
        put(q, "old", START + i, 40);
    put(q, "a", START, 40);
    put(q, "b", START, 40);
    expect(q, "a", START);
    expect(q, "b", START);
    for (int i = 0; i < 2; i++)
        expect(q, "old", START + i);
    /* A fresh lane goes before the backlog, but not always. */
    for (int i = 0; i < 3; i++)
        put(q, "a", START + 10 + i, 40);
    int64_t next_old = START + 2, next_a = START + 10;
    while (stats_of(q).records) {
        struct record *r = queue_pick(q, START);
        int64_t *next = strncmp(r->payload, "old", 3) == 0 ? &next_old : &next_a;

        assert_int_equal(r->head.last_ms, (*next)++);
        queue_finish(q, r);
    }
    assert_null(queue_pick(q, START));
    assert_int_equal(stats_of(q).samples, 0);
    assert_int_equal(stats_of(q).memory, 0);
    (void)queue_free(q);
}

static void picks_a_record_again_after_put_back(void **state)
{
    struct queue *q = queue_of(NULL, 0, 1 << 20, RW_DROP_OLDEST, 0);
    struct record *r;

    (void)state;
    put(q, "a", START, 40);
    r = queue_pick(q, START);
    queue_put_back(q);
    assert_ptr_equal(queue_pick(q, START), r);
    queue_put_back(q);
    expect(q, "a", START);
    (void)queue_free(q);
}

/* A receiver that is away for an hour, a round a minute, and room for twenty rounds. */
static void holds_an_hour_of_outage(void **state)
{
    static const enum rw_full_policy policies[] = {RW_DROP_OLDEST, RW_DROP_NEWEST};

    (void)state;
    for (size_t with_disk = 0; with_disk < 2; with_disk++)
        for (size_t p = 0; p < 2; p++) {
            char *dir = rw_folder();
            struct queue *q;
            struct queue_stats s;
            uint64_t kept = 0;
            int64_t last = 0;

            q = queue_of(with_disk ? dir : NULL, 2500, 20 * 1049, policies[p], 0);
            for (int i = 0; i < 60; i++) {
                put(q, "a", START + i * MINUTE, 1000);
                queue_sync(q);
                s = stats_of(q);
                assert_true(s.memory <= 20 * 1049);
                assert_true(!with_disk || s.spool.bytes <= 20 * 1049);
                assert_true(!with_disk || s.memory <= 2000);
                assert_int_equal(s.samples + s.dropped[p ? DROP_FULL_NEWEST : DROP_FULL_OLDEST],
                                 10 * (i + 1));
            }
            while (stats_of(q).records) {
                struct record *r = queue_pick(q, START);

                assert_true(r->head.last_ms > last);
                if (kept == 0 && policies[p] == RW_DROP_NEWEST)
                    assert_int_equal(r->head.last_ms, START);
                last = r->head.last_ms;
                queue_finish(q, r);
                kept++;
            }
            assert_in_range(kept, 16, 20);
            assert_int_equal(last == START + 59 * MINUTE, policies[p] == RW_DROP_OLDEST);
            (void)queue_free(q);
            rw_folder_done(dir);
        }
}

static void drops_no_other_for_a_record_that_never_fits(void **state)
{
    (void)state;
    for (size_t with_disk = 0; with_disk < 2; with_disk++) {
        char *dir = rw_folder();
        struct queue *q = queue_of(with_disk ? dir : NULL, 2500, 10000, RW_DROP_OLDEST, 0);

        put(q, "a", START, 1000);
        put(q, "b", START, 20000);
        queue_sync(q);
        assert_int_equal(stats_of(q).dropped[DROP_FULL_OLDEST], 10);
        expect(q, "a", START);
        assert_int_equal(stats_of(q).records, 0);
        (void)queue_free(q);
        rw_folder_done(dir);
    }
}

static void drops_records_over_the_age_limit(void **state)
{
    struct queue *q = queue_of(NULL, 0, 1 << 20, RW_DROP_OLDEST, 10 * MINUTE);

    (void)state;
    for (int i = 0; i < 60; i++) {
        put(q, "a", START + i * MINUTE, 100);
        assert_true(stats_of(q).records <= 11);
    }
    assert_int_equal(stats_of(q).dropped[DROP_TOO_OLD], 10 * (60 - stats_of(q).records));
    assert_null(queue_pick(q, START + 80 * MINUTE));
    assert_int_equal(stats_of(q).dropped[DROP_TOO_OLD], 600);
    (void)queue_free(q);
}

static void never_drops_the_picked_record(void **state)
{
    char *dir = rw_folder();
    struct queue *q;
    struct record *r;
    struct str payload;

    (void)state;
    q = queue_of(dir, 2500, 10000, RW_DROP_OLDEST, MINUTE);
    put(q, "a", START, 1000);
    r = queue_pick(q, START);
    for (int i = 1; i < 100; i++) {
        put(q, "a", START + i * 100 * MINUTE, 1000);
        queue_sync(q);
    }
    /* Behind it, the age limit holds. */
    assert_int_equal(stats_of(q).records, 2);
    assert_int_equal(queue_payload(q, r, &payload), 0);
    assert_true(str_starts(payload, STR("a 1760000000000")));
    queue_finish(q, r);
    (void)queue_free(q);
    rw_folder_done(dir);
}

static void resumes_after_a_restart(void **state)
{
    char *dir = rw_folder();
    struct queue *q;

    (void)state;
    for (int run = 0; run < 5; run++) {
        q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
        if (run == 0)
            for (int i = 0; i < 25; i++)
                put(q, "a", START + i, 500);
        queue_sync(q);
        assert_int_equal(stats_of(q).records, 25 - run * 5);
        assert_int_equal(queue_last_ms(q, STR("a")), START + 24);
        for (int i = 0; i < 5; i++) {
            expect(q, "a", START + run * 5 + i);
            if (i % 2)
                queue_sync_position(q);
            else
                queue_save_position(q);
        }
        /* No orderly end: what kill -9 would leave. */
        (void)queue_free(q);
    }
    q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    assert_int_equal(stats_of(q).records, 0);
    assert_int_equal(stats_of(q).spool.bytes, 0);
    /* Numbers go on, so that old positions never hide new records. */
    put(q, "a", START + 100, 500);
    queue_sync(q);
    (void)queue_free(q);
    q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    expect(q, "a", START + 100);
    (void)queue_free(q);
    rw_folder_done(dir);
}

/* The second asks for the folder, which whoever has it sees; whoever opens it next is asked by nobody. */
static void refuses_a_second_process(void **state)
{
    char *dir = rw_folder();
    struct queue *first = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    struct queue *second = closed_queue(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);

    (void)state;
    assert_false(queue_is_wanted(first));
    assert_false(queue_open(second, (mono_ms){1}));
    assert_int_equal(stats_of(second).spool_error, -EBUSY);
    assert_true(queue_is_wanted(first));
    assert_false(queue_is_wanted(second));
    queue_close(first);
    assert_false(queue_open(second, (mono_ms){2})); /* too early */
    assert_true(queue_open(second, (mono_ms){2 * MINUTE}));
    assert_int_equal(stats_of(second).spool_error, 0);
    assert_false(queue_is_wanted(second));
    (void)queue_free(first);
    (void)queue_free(second);
    rw_folder_done(dir);
}

/* A standby neither asks for the folder nor misses it, and opens it as soon as it is free. */
static void a_standby_asks_for_nothing(void **state)
{
    char *dir = rw_folder();
    struct queue *leader = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    struct queue *standby =
        queue_new(&(struct queue_options){.dir = dir, .max_bytes = 1 << 20, .is_standby = true});

    (void)state;
    assert_false(queue_open(standby, (mono_ms){1}));
    assert_int_equal(stats_of(standby).spool_error, 0);
    assert_false(queue_is_wanted(leader));
    (void)queue_free(leader);
    assert_true(queue_open(standby, (mono_ms){1}));
    (void)queue_free(standby);
    rw_folder_done(dir);
}

/* A byte of the first segment goes bad while the records are on disk only. */
static void loses_one_record_to_damage(void **state)
{
    char *dir = rw_folder(), path[128];
    struct queue *q;
    unsigned good = 0, bad = 0;
    int fd;

    (void)state;
    q = queue_of(dir, 1 << 20, 1 << 20, RW_DROP_OLDEST, 0);
    for (int i = 0; i < 10; i++) {
        put(q, "a", START + i, 500);
        queue_sync(q);
    }
    (void)snprintf(path, sizeof(path), "%s/000000000001.seg", dir);
    fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "X", 1, 3000), 1);
    assert_int_equal(close(fd), 0);
    while (stats_of(q).records) {
        struct record *r = queue_pick(q, START);
        struct str payload;
        int error = queue_payload(q, r, &payload);

        assert_true(error == 0 || error == -EBADMSG);
        good += error == 0;
        bad += error != 0;
        queue_count_drop(q, DROP_DAMAGED, error ? r->head.samples : 0);
        queue_finish(q, r);
    }
    assert_int_equal(good, 9);
    assert_int_equal(bad, 1);
    assert_int_equal(stats_of(q).dropped[DROP_DAMAGED], 10);
    (void)queue_free(q);
    rw_folder_done(dir);
}

/* A record for each lane, on disk if there is a spool. */
static void put_each(struct queue *q, const char *lanes, int64_t at)
{
    for (; *lanes; lanes++)
        put(q, (char[2]){*lanes, '\0'}, at, 40);
    queue_sync(q);
}

/* Picks a record, with all others that may travel with it. */
static struct record *pick_all(struct queue *q, size_t others)
{
    struct record *r = queue_pick(q, START), *more[8];
    struct str payload;

    assert_int_equal(queue_payload(q, r, &payload), 0);
    assert_int_equal(queue_pick_more(q, 1000, more, 8), others);
    for (size_t i = 0; i < others; i++) {
        assert_int_equal(queue_payload(q, more[i], &payload), 0);
        queue_take_along(q, more[i]);
    }
    return r;
}

/* Older records of two lanes, and none of the third, are in the spool. */
static struct record *open_in_flight(struct queue **ret, const char *dir)
{
    struct record *r;

    *ret = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    put_each(*ret, "ab", START);
    (void)queue_free(*ret);
    *ret = closed_queue(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    put_each(*ret, "abc", START + 10);
    put_each(*ret, "c", START + 20);
    r = pick_all(*ret, 2);
    assert_true(queue_open(*ret, (mono_ms){1}));
    assert_int_equal(stats_of(*ret).records, 6);
    assert_int_equal(queue_in_flight(*ret), 3);
    return r;
}

static void repeats_nothing_in_flight_when_the_spool_opens(void **state)
{
    char *dir = rw_folder();
    struct queue *q;
    struct record *r = open_in_flight(&q, dir);

    (void)state;
    queue_finish(q, r);
    assert_int_equal(stats_of(q).records, 3);
    queue_sync_position(q);
    (void)queue_free(q);
    /* Nor after a restart. */
    q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    assert_int_equal(stats_of(q).records, 3);
    while ((r = queue_pick(q, START))) {
        assert_int_equal(r->head.last_ms, *r->head.lane.p == 'c' ? START + 20 : START);
        queue_finish(q, r);
    }
    (void)queue_free(q);
    rw_folder_done(dir);
}

static void sorts_in_what_was_in_flight_when_the_spool_opened(void **state)
{
    static const bool both[] = {true, false};

    (void)state;
    for (size_t alone = 0; alone < ARRAY_SIZE(both); alone++) {
        char *dir = rw_folder();
        struct queue *q;
        struct record *r = open_in_flight(&q, dir);
        int64_t last[3] = {0};

        if (both[alone]) {
            queue_send_alone(q);
            queue_finish(q, r);
        } else {
            queue_put_back(q);
        }
        assert_int_equal(stats_of(q).records, both[alone] ? 5 : 6);
        while ((r = queue_pick(q, START))) {
            int64_t *of_lane = &last[r->head.lane.p[0] - 'a'];

            assert_true(r->head.last_ms > *of_lane);
            *of_lane = r->head.last_ms;
            queue_finish(q, r);
        }
        assert_int_equal(last[0], both[alone] ? START : START + 10);
        assert_int_equal(last[1], START + 10);
        assert_int_equal(last[2], START + 20);
        (void)queue_free(q);
        rw_folder_done(dir);
    }
}

static void never_drops_a_companion(void **state)
{
    char *dir = rw_folder();
    struct queue *q;
    struct record *r;

    (void)state;
    q = queue_of(dir, 2500, 10000, RW_DROP_OLDEST, MINUTE);
    put_each(q, "ab", START);
    r = pick_all(q, 1);
    for (int i = 1; i < 100; i++) {
        put(q, "b", START + i * 100 * MINUTE, 1000);
        queue_sync(q);
    }
    assert_int_equal(stats_of(q).records, 3);
    queue_finish(q, r);
    assert_int_equal(stats_of(q).dropped[DROP_TOO_OLD] + stats_of(q).dropped[DROP_FULL_OLDEST], 98 * 10);
    expect(q, "b", START + 99 * 100 * MINUTE);
    (void)queue_free(q);
    rw_folder_done(dir);
}

/* The timestamp from which a lane goes on, now and after a restart at any point. */
static void goes_on_from_the_last_timestamp_not_the_highest(void **state)
{
    enum { DAY = 24 * 60 * MINUTE, LANES = 5 };
    static const struct {
        const char *lane;
        int64_t at[3], last;
    } lanes[LANES] = {
        {"a", {0, 1000, 2000}, 2000},   {"b", {DAY, 0, 1000}, 1000}, /* the clock began in the future */
        {"c", {0, DAY, 1000}, 1000},                                 /* and was there for one round */
        {"d", {0, 0, DAY}, DAY},                                     /* and still is */
        {"e", {0, 30000, 2000}, 30000}, /* a correction; the intake would not append it */
    };

    (void)state;
    for (int delivered = 0; delivered <= 3; delivered++) {
        char *dir = rw_folder();
        struct queue *q;
        struct record *r;

        q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < LANES; k++)
                put(q, lanes[k].lane, START + lanes[k].at[i], 40);
        queue_sync(q);
        for (int i = 0; i < delivered * LANES && (r = queue_pick(q, START)); i++)
            queue_finish(q, r);
        queue_sync_position(q);
        for (int restarts = 0; restarts < 3; restarts++) {
            for (int k = 0; k < LANES; k++)
                assert_int_equal(queue_last_ms(q, str_of(lanes[k].lane)), START + lanes[k].last);
            (void)queue_free(q);
            q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
        }
        (void)queue_free(q);
        rw_folder_done(dir);
    }
}

/* The lanes in use are those whose names begin with this. */
static bool begins_with(void *arg, struct str lane)
{
    return *lane.p == *(const char *)arg;
}

static void reopen(struct queue **q, const char *dir)
{
    (void)queue_free(*q);
    *q = queue_of(dir, 1 << 20, 64 << 20, RW_DROP_OLDEST, 0);
}

static mono_ms mono_now = {1};

/* An hour passes, at whose end the wall clock shows this. `used`: the lanes that are in use. */
static void forget_idle(struct queue *q, int64_t wall_ms, const char *used)
{
    char first[] = {*used, '\0'};

    queue_forget_lanes(q, mono_now, wall_ms, begins_with, first);
    mono_now = mono_add(mono_now, 61 * MINUTE);
    queue_forget_lanes(q, mono_now, wall_ms, begins_with, first);
}

static void repeats_nothing_of_many_lanes_after_a_restart(void **state)
{
    enum { LANES = 14000 };
    char *dir = rw_folder(), name[16];
    struct queue *q = NULL;
    struct record *r;

    (void)state;
    reopen(&q, dir);
    for (int i = 0; i < LANES; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        put(q, name, START, 40);
    }
    queue_sync(q);
    while ((r = queue_pick(q, START)))
        queue_finish(q, r);
    queue_sync_position(q);
    reopen(&q, dir);
    assert_int_equal(stats_of(q).records, 0);
    assert_int_equal(stats_of(q).lanes, LANES);
    /* An hour later they are forgotten, and the next start sends nothing again. */
    forget_idle(q, START + 61 * MINUTE, "x");
    assert_int_equal(stats_of(q).lanes, 0);
    queue_sync_position(q);
    reopen(&q, dir);
    assert_int_equal(stats_of(q).lanes + stats_of(q).records, 0);
    (void)queue_free(q);
    rw_folder_done(dir);
}

/* Order is needed again once the clock is corrected. */
static void forgets_no_lane_by_a_clock_that_is_ahead(void **state)
{
    char *dir = rw_folder();
    struct queue *q = NULL;

    (void)state;
    reopen(&q, dir);
    put_each(q, "a", START);
    expect(q, "a", START);
    for (int minute = 0; minute < 3; minute++) {
        mono_now = mono_add(mono_now, MINUTE);
        queue_forget_lanes(q, mono_now, START + 24 * 60 * MINUTE, begins_with, (char[]){"x"});
    }
    assert_int_equal(queue_last_ms(q, STR("a")), START);
    (void)queue_free(q);
    rw_folder_done(dir);
}

static void forgets_a_lane_only_when_nothing_needs_it(void **state)
{
    char *dir = rw_folder();
    struct queue *q = NULL;
    int64_t later = START + 61 * MINUTE;

    (void)state;
    reopen(&q, dir);
    put_each(q, "ab", START);
    expect(q, "a", START);
    expect(q, "b", START);
    queue_sync_position(q);
    /* Too early, */
    forget_idle(q, START + 59 * MINUTE, "x");
    assert_int_equal(stats_of(q).lanes, 2);
    /* in use, waiting or held by a segment that another lane needs, */
    put_each(q, "c", START);
    forget_idle(q, later, "a");
    assert_int_equal(stats_of(q).lanes, 3);
    queue_sync_position(q);
    reopen(&q, dir);
    forget_idle(q, later, "a");
    assert_int_equal(stats_of(q).lanes, 3);
    assert_int_equal(stats_of(q).records, 1);
    /* or of the future, to which the clock may come. */
    expect(q, "c", START);
    put_each(q, "d", later + MINUTE);
    expect(q, "d", later + MINUTE);
    forget_idle(q, later, "a");
    assert_int_equal(stats_of(q).lanes, 2);
    assert_int_equal(queue_last_ms(q, STR("a")), START);
    assert_int_equal(queue_last_ms(q, STR("b")), INT64_MIN);
    assert_int_equal(queue_last_ms(q, STR("d")), later + MINUTE);
    /* What is forgotten begins again. */
    put_each(q, "b", later);
    expect(q, "b", later);
    queue_sync_position(q);
    reopen(&q, dir);
    assert_int_equal(stats_of(q).records, 0);
    assert_int_equal(queue_last_ms(q, STR("b")), later);
    (void)queue_free(q);
    rw_folder_done(dir);
}

/* Receivers may refuse samples of the future, and compare with those before. */
static void goes_on_from_what_was_before_the_clock_was_ahead(void **state)
{
    enum { DAY = 24 * 60 * MINUTE };
    struct queue *q = queue_of(NULL, 0, 1 << 20, RW_DROP_OLDEST, 0);

    (void)state;
    assert_int_equal(queue_next_ms(q, STR("a"), START), START);
    put(q, "a", START, 40);
    assert_int_equal(queue_next_ms(q, STR("a"), START - 5000), START + 1);
    put(q, "a", START + DAY, 40);
    assert_int_equal(queue_next_ms(q, STR("a"), START + DAY - 5000), START + DAY + 1);
    assert_int_equal(queue_next_ms(q, STR("a"), START + 5000), START + 5000);
    assert_int_equal(queue_next_ms(q, STR("a"), START - 5000), START + 1);
    put(q, "a", START + 1, 40);
    assert_int_equal(queue_next_ms(q, STR("a"), START - 5000), START + 2);
    (void)queue_free(q);
}

/* What came before the spool could be opened is later than what is in it. */
static void goes_on_from_memory_when_the_spool_opens(void **state)
{
    static const int64_t cases[][3] = {
        /* in the spool, then in memory, the last */
        {0, 5000, 5000},
        {5000, 0, 5000},
        {24LL * 60 * MINUTE, 1000, 1000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *dir = rw_folder();
        struct queue *q;

        q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
        put(q, "a", START + cases[i][0], 40);
        queue_sync(q);
        (void)queue_free(q);
        q = closed_queue(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
        put(q, "a", START + cases[i][1], 40);
        assert_true(queue_open(q, (mono_ms){1}));
        assert_int_equal(queue_last_ms(q, STR("a")), START + cases[i][2]);
        assert_int_equal(queue_newest_ms(q), START + cases[i][1]);
        (void)queue_free(q);
        rw_folder_done(dir);
    }
}

/* The clock was corrected while the process was away. */
static void goes_on_from_what_was_before_in_the_next_process(void **state)
{
    enum { DAY = 24 * 60 * MINUTE };
    char *dir = rw_folder();
    struct queue *q;

    (void)state;
    q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    put(q, "a", START, 40);
    put(q, "a", START + DAY, 40);
    queue_sync(q);
    (void)queue_free(q);
    q = queue_of(dir, 4000, 1 << 20, RW_DROP_OLDEST, 0);
    assert_int_equal(queue_next_ms(q, STR("a"), START - 5000), START + 1);
    assert_int_equal(queue_next_ms(q, STR("a"), START + 5000), START + 5000);
    (void)queue_free(q);
    rw_folder_done(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_fresh_lanes_first_and_each_in_order),
        cmocka_unit_test(picks_a_record_again_after_put_back),
        cmocka_unit_test(holds_an_hour_of_outage),
        cmocka_unit_test(drops_no_other_for_a_record_that_never_fits),
        cmocka_unit_test(drops_records_over_the_age_limit),
        cmocka_unit_test(never_drops_the_picked_record),
        cmocka_unit_test(resumes_after_a_restart),
        cmocka_unit_test(refuses_a_second_process),
        cmocka_unit_test(a_standby_asks_for_nothing),
        cmocka_unit_test(loses_one_record_to_damage),
        cmocka_unit_test(repeats_nothing_in_flight_when_the_spool_opens),
        cmocka_unit_test(sorts_in_what_was_in_flight_when_the_spool_opened),
        cmocka_unit_test(never_drops_a_companion),
        cmocka_unit_test(goes_on_from_the_last_timestamp_not_the_highest),
        cmocka_unit_test(repeats_nothing_of_many_lanes_after_a_restart),
        cmocka_unit_test(forgets_no_lane_by_a_clock_that_is_ahead),
        cmocka_unit_test(forgets_a_lane_only_when_nothing_needs_it),
        cmocka_unit_test(goes_on_from_what_was_before_the_clock_was_ahead),
        cmocka_unit_test(goes_on_from_what_was_before_in_the_next_process),
        cmocka_unit_test(goes_on_from_memory_when_the_spool_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
