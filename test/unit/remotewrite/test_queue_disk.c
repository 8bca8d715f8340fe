/* The oracle of a failing disk: each record is sent, waits, or is dropped and counted, whichever call
 * fails. */
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "remotewrite/folder.h"
#include "remotewrite/format.h"
#include "remotewrite/queue.h"
#include "test/disk_faults.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORDS = 40, SAMPLES = 10, SEGMENT = 700, TICK_MS = 2 * 60 * 1000 };
static const int64_t START = 1760000000000;

/* A queue whose records have the timestamps START + 0, 1, ...; those of odd numbers are in lane "b". */
struct world {
    char *dir;
    struct queue *queue;
    mono_ms now;        /* each tick is later than any back-off */
    uint64_t max_bytes; /* 0: enough */
    int64_t appended;
    unsigned sent[RECORDS]; /* how often */
    int64_t newest[2];      /* sent of each lane */
    bool went_back;         /* a record was sent after a newer one of its lane */
    uint64_t dropped;       /* by queues that are closed */
};

static void world_open(struct world *w)
{
    struct queue_options o = {.dir = w->dir,
                              .segment_bytes = SEGMENT,
                              .max_bytes = w->max_bytes ? w->max_bytes : 1 << 20,
                              .memory_bytes = 150};

    w->queue = queue_new(&o);
    (void)queue_open(w->queue, w->now);
}

static bool is_open(const struct world *w)
{
    return queue_stats(w->queue).has_spool;
}

static uint64_t dropped(const struct queue *q)
{
    struct queue_stats s;
    uint64_t n = 0;

    s = queue_stats(q);
    for (unsigned i = 0; i < DROPS; i++)
        n += s.dropped[i];
    return n;
}

/* As kill -9 would. */
static void world_kill(struct world *w)
{
    w->dropped += dropped(w->queue);
    w->queue = queue_free(w->queue);
}

static void world_append(struct world *w, unsigned n)
{
    for (; n; n--, w->appended++) {
        struct record_head h = {.kind = RECORD_SAMPLES,
                                .samples = SAMPLES,
                                .first_ms = START + w->appended,
                                .last_ms = START + w->appended,
                                .lane = w->appended % 2 ? STR("b") : STR("a")};
        char *payload = calloc(1, 100);

        assert_non_null(payload);
        (void)snprintf(payload, 100, "%lld", (long long)w->appended);
        queue_append(w->queue, &h, payload, 100);
    }
    queue_sync(w->queue);
}

/* False if there is nothing to send now. */
static bool world_send(struct world *w)
{
    struct record *r = queue_pick(w->queue, START);
    struct str payload;
    int error;

    if (!r)
        return false;
    error = queue_payload(w->queue, r, &payload);
    if (error == -ESTALE)
        return true;
    if (error == 0) {
        int64_t n = r->head.last_ms - START;

        assert_int_equal(atoll(payload.p), n);
        w->sent[n]++;
        w->went_back |= n < w->newest[n % 2];
        w->newest[n % 2] = n;
    } else {
        assert_int_equal(error, -EBADMSG);
    }
    queue_count_drop(w->queue, DROP_DAMAGED, error ? r->head.samples : 0);
    queue_finish(w->queue, r);
    queue_save_position(w->queue);
    return true;
}

/* What the endpoint does every second. False if the folder was removed. */
static bool world_tick(struct world *w)
{
    bool stays;

    w->now = mono_add(w->now, TICK_MS);
    stays = queue_watch(w->queue, w->now);
    (void)queue_open(w->queue, w->now);
    queue_sync_position(w->queue);
    return stays;
}

static void world_drain(struct world *w)
{
    (void)world_tick(w);
    while (world_send(w))
        ;
}

static void world_begin(struct world *w)
{
    *w = (struct world){.dir = rw_folder()};
    world_open(w);
    world_append(w, 14);
    for (unsigned i = 0; i < 5; i++)
        assert_true(world_send(w));
    world_kill(w);
}

static void world_end(struct world *w)
{
    world_kill(w);
    rw_folder_done(w->dir);
}

/* The records that the segments hold. */
static void read_segments(const struct world *w, bool *confirmed)
{
    for (unsigned number = 1; number < 100; number++) {
        char path[256];
        BUF_AUTO(bytes, 1 << 20);
        struct segment_reader r;
        struct segment_item item;
        enum segment_found what;

        (void)snprintf(path, sizeof(path), "%s/%012u.seg", w->dir, number);
        if (file_read(path, &bytes) < 0)
            continue;
        r = (struct segment_reader){.bytes = buf_str(&bytes)};
        while ((what = segment_next(&r, &item)) != SEGMENT_END)
            if (what == SEGMENT_RECORD)
                confirmed[item.head.last_ms - START] = true;
    }
}

/* A life with failures, its end by kill -9, and one without. False if no call failed. */
static bool live(struct world *w, bool save, bool *confirmed, uint64_t *ret_unsaved, uint64_t *ret_unrecorded)
{
    bool failed;
    struct queue_stats s;

    world_open(w);
    for (unsigned i = 0; i < 3; i++) {
        world_append(w, 3);
        (void)world_send(w);
        (void)world_send(w);
        (void)world_tick(w);
    }
    world_append(w, 2);
    s = queue_stats(w->queue);
    *ret_unsaved = s.unsaved;
    *ret_unrecorded = 0;
    failed = disk_has_failed();
    disk_fail_at(0, 0, 0);
    read_segments(w, confirmed);
    /* The positions of every other life are stored. */
    if (save)
        queue_sync_position(w->queue);
    for (int64_t i = 0; i < w->appended && !save; i++)
        *ret_unrecorded += w->sent[i] ? SAMPLES : 0;
    world_kill(w);
    world_open(w);
    assert_true(is_open(w));
    world_append(w, 2);
    world_drain(w);
    return failed;
}

static void check(const struct world *w, const bool *confirmed, uint64_t unsaved, uint64_t unrecorded)
{
    uint64_t all_dropped = w->dropped + dropped(w->queue), lost = 0;
    struct queue_stats s;

    s = queue_stats(w->queue);
    assert_int_equal(s.records, 0);
    for (int64_t i = 0; i < w->appended; i++) {
        lost += w->sent[i] ? 0 : SAMPLES;
        if (w->sent[i] == 0 && confirmed[i])
            fail_msg("record %d was confirmed and is lost", (int)i);
    }
    /* What was not confirmed may be there nevertheless; what was sent may be found torn, if the disk took
     * neither the rest of it nor the position. */
    assert_in_range(lost, all_dropped > unrecorded ? all_dropped - unrecorded : 0, all_dropped + unsaved);
}

static void counts_each_sample_whichever_call_fails(void **state)
{
    static const int errors[] = {EIO, ENOSPC, EMFILE, EACCES};
    static const long spans[] = {1, 4, LONG_MAX};
    (void)state;
    for (size_t e = 0; e < ARRAY_SIZE(errors); e++)
        for (size_t span = 0; span < ARRAY_SIZE(spans); span++)
            for (long nth = 1;; nth++) {
                bool confirmed[RECORDS] = {0}, failed;
                uint64_t unsaved, unrecorded;
                struct world w;

                world_begin(&w);
                disk_fail_at(nth, spans[span], errors[e]);
                failed = live(&w, nth % 2, confirmed, &unsaved, &unrecorded);
                check(&w, confirmed, unsaved, unrecorded);
                world_end(&w);
                if (!failed)
                    break;
            }
}

/* No file may become longer than this. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The positions grow by a lane, of which the disk takes only a part, however often they are written. */
static void keeps_a_position_while_the_disk_stays_full(void **state)
{
    struct world w;
    struct record_head h = {
        .kind = RECORD_SAMPLES, .samples = 1, .first_ms = START, .last_ms = START, .lane = STR("new lane")};
    struct record *r;

    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    world_begin(&w);
    world_open(&w);
    assert_true(world_send(&w));
    assert_true(world_send(&w));
    assert_true(world_tick(&w));
    limit_files(70);                                /* the positions of two lanes take 62 bytes */
    queue_append(w.queue, &h, calloc(1, 100), 100); /* in memory */
    r = queue_pick(w.queue, START);                 /* fresh, so it goes first */
    assert_true(str_eq(r->lane->name, h.lane));
    queue_finish(w.queue, r);
    for (unsigned i = 0; i < 4; i++)
        assert_true(world_tick(&w));
    assert_true(queue_stats(w.queue).disk_error < 0);
    world_kill(&w);
    limit_files(RLIM_INFINITY);
    world_open(&w);
    world_drain(&w);
    for (unsigned i = 0; i < (unsigned)w.appended; i++)
        assert_int_equal(w.sent[i], 1);
    world_end(&w);
}

static char *file_path(const struct world *w, const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    return path;
}

static bool is_there(const struct world *w, const char *name)
{
    struct stat st;

    return lstat(file_path(w, name), &st) == 0;
}

/* A file that cannot be opened (ELOOP), even by root. */
static void block(const struct world *w, const char *name)
{
    char to[256];

    (void)snprintf(to, sizeof(to), "%s", file_path(w, "blocked"));
    assert_int_equal(rename(file_path(w, name), to), 0);
    assert_int_equal(symlink(name, file_path(w, name)), 0);
}

static void unblock(const struct world *w, const char *name)
{
    char from[256];

    (void)snprintf(from, sizeof(from), "%s", file_path(w, "blocked"));
    assert_int_equal(rename(from, file_path(w, name)), 0);
}

static void flip(const struct world *w, const char *name, off_t at)
{
    int fd = open(file_path(w, name), O_RDWR);
    char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

static struct spool_stats spool_of(const struct world *w)
{
    return queue_stats(w->queue).spool;
}

/* Newer records are sent from memory or wait behind it; each is sent once, whatever restarts. */
static void waits_for_a_segment_that_cannot_be_read(void **state)
{
    struct world w;

    (void)state;
    for (unsigned kills = 0; kills < 4; kills++) {
        world_begin(&w);
        block(&w, "000000000003.seg");
        world_open(&w);
        assert_false(is_open(&w));
        assert_int_equal(queue_stats(w.queue).spool_error, -ELOOP);
        assert_int_equal(queue_stats(w.queue).records, 0);
        assert_int_equal(spool_of(&w).unread.n, 1);
        assert_non_null(strstr(spool_of(&w).error, "/000000000003.seg: Too many levels of symbolic links"));
        world_append(&w, 4);
        (void)world_tick(&w);
        assert_true(world_send(&w));
        unblock(&w, "000000000003.seg");
        (void)world_tick(&w);
        assert_true(is_open(&w));
        assert_int_equal(spool_of(&w).unread.n, 0);
        if (kills & 1) {
            assert_true(world_send(&w));
            world_kill(&w);
            world_open(&w);
        }
        if (kills & 2)
            world_append(&w, 3);
        world_drain(&w);
        for (int64_t i = 0; i < w.appended; i++)
            assert_int_equal(w.sent[i], 1);
        assert_int_equal(w.dropped + dropped(w.queue), 0);
        world_end(&w);
    }
}

static void leaves_a_spool_that_fails_while_it_is_sent(void **state)
{
    struct world w;

    (void)state;
    world_begin(&w);
    world_open(&w);
    disk_fail_at(1, 2, EIO);
    assert_true(world_send(&w));
    disk_fail_at(0, 0, 0);
    assert_true(is_open(&w)); /* until the next tick, but not used */
    assert_int_equal(queue_stats(w.queue).records, 0);
    world_append(&w, 2);
    assert_true(world_send(&w));
    assert_true(queue_watch(w.queue, w.now));
    assert_false(is_open(&w));
    assert_int_equal(queue_stats(w.queue).spool_error, -EIO);
    world_drain(&w);
    assert_true(is_open(&w));
    for (int64_t i = 0; i < w.appended; i++)
        assert_int_equal(w.sent[i], 1);
    world_end(&w);
}

static void sets_a_segment_of_another_version_aside(void **state)
{
    struct world w;
    int fd;

    (void)state;
    world_begin(&w);
    fd = open(file_path(&w, "000000000009.seg"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "DSRWSEG7 from the future", 24), 24);
    assert_int_equal(close(fd), 0);
    world_open(&w);
    assert_true(is_there(&w, "000000000009.seg.unknown"));
    assert_false(is_there(&w, "000000000009.seg"));
    assert_int_equal(spool_of(&w).unknown.n, 1);
    assert_int_equal(spool_of(&w).unknown.bytes, 24);
    world_drain(&w);
    world_kill(&w);
    world_open(&w);
    assert_int_equal(spool_of(&w).unknown.n, 1);
    world_append(&w, 1);
    assert_true(is_there(&w, "000000000010.seg"));
    assert_int_equal(unlink(file_path(&w, "000000000009.seg.unknown")), 0);
    (void)world_tick(&w);
    assert_int_equal(spool_of(&w).unknown.n, 0);
    world_end(&w);
}

static void sets_a_damaged_segment_aside_and_counts_its_samples(void **state)
{
    struct world w;

    (void)state;
    world_begin(&w);
    flip(&w, "000000000003.seg", 8 + RECORD_HEAD + 20);
    world_open(&w);
    assert_int_equal(dropped(w.queue), SAMPLES);
    assert_int_equal(spool_of(&w).damaged_places, 1);
    assert_true(is_there(&w, "000000000003.seg"));
    world_drain(&w);
    assert_true(is_there(&w, "000000000003.seg.damaged"));
    assert_false(is_there(&w, "000000000003.seg"));
    (void)world_tick(&w);
    assert_int_equal(spool_of(&w).damaged.n, 1);
    assert_int_equal(dropped(w.queue), SAMPLES);
    for (int64_t i = 0, lost = 0; i < w.appended; i++) {
        lost += w.sent[i] == 0;
        assert_true(lost <= 1 && w.sent[i] <= 1);
    }
    world_end(&w);
}

/* A payload's samples are counted exactly, those of a damaged head as far as it can be read. In either case
 * the bytes are counted, and the file is kept. Byte 7 is the version. */
static void counts_what_each_flipped_byte_costs(void **state)
{
    enum { RECORD = RECORD_HEAD + 1 + 100, FILE_SIZE = 8 + 4 * RECORD };

    (void)state;
    for (off_t at = 0; at < FILE_SIZE; at += at == 6 ? 2 : at % 8 == 7 ? 3 : 1) {
        struct world w;
        uint64_t lost = 0;

        world_begin(&w);
        flip(&w, "000000000003.seg", at);
        world_open(&w);
        world_drain(&w);
        for (int64_t i = 0; i < w.appended; i++)
            lost += w.sent[i] ? 0 : SAMPLES;
        assert_in_range(lost, at < 8 ? 0 : SAMPLES, at < 8 ? 0 : SAMPLES);
        if (at < 8 || (at - 8) % RECORD > RECORD_HEAD)
            assert_int_equal(dropped(w.queue), lost);
        assert_true(spool_of(&w).damaged_bytes + spool_of(&w).torn_bytes >= (at < 8 ? 8 : RECORD));
        assert_true(spool_of(&w).torn_bytes || is_there(&w, "000000000003.seg.damaged"));
        world_end(&w);
    }
}

/* At most the bytes of four segments, which leave half of the limit to new samples. */
static void keeps_the_newest_segments_set_aside(void **state)
{
    struct world w;
    char name[40];

    (void)state;
    world_begin(&w);
    for (unsigned i = 20; i < 40; i++) {
        int fd;

        (void)snprintf(name, sizeof(name), "%012u.seg", i);
        fd = open(file_path(&w, name), O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(fd, "DSRWSEG9", 8), 8);
        assert_int_equal(ftruncate(fd, SEGMENT), 0);
        assert_int_equal(close(fd), 0);
    }
    world_open(&w);
    assert_int_equal(spool_of(&w).unknown.n, 4);
    assert_true(is_there(&w, "000000000039.seg.unknown") && is_there(&w, "000000000036.seg.unknown"));
    assert_false(is_there(&w, "000000000035.seg.unknown"));
    w.max_bytes = 2 * (spool_of(&w).bytes - spool_of(&w).unknown.bytes + SEGMENT);
    world_kill(&w);
    world_open(&w);
    world_append(&w, 4);
    assert_int_equal(dropped(w.queue), 0);
    world_end(&w);
}

static void keeps_what_it_can_when_the_folder_is_removed(void **state)
{
    struct world w;
    struct queue_stats s;
    char command[300];
    uint64_t lost;

    (void)state;
    world_begin(&w);
    world_open(&w);
    world_append(&w, 4);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", w.dir);
    assert_true(queue_watch(w.queue, w.now));
    assert_int_equal(system(command), 0);
    assert_false(queue_watch(w.queue, w.now));
    lost = dropped(w.queue);
    assert_true(lost > 0);
    s = queue_stats(w.queue);
    assert_false(s.has_spool);
    assert_int_equal(s.spool_error, -ENOENT);
    assert_int_equal(s.samples, s.unsaved);
    assert_int_equal(s.samples + lost + 5 * SAMPLES, 18 * SAMPLES);
    assert_true(queue_open(w.queue, w.now)); /* at once */
    s = queue_stats(w.queue);
    assert_int_equal(s.unsaved, 0);
    world_append(&w, 2);
    world_kill(&w);
    world_open(&w);
    world_drain(&w);
    assert_int_equal(w.sent[18] + w.sent[19], 2);
    world_end(&w);
}

/* Those on disk are counted when they are to be sent; what is written after the removal is not lost. */
static void counts_samples_whose_files_were_removed(void **state)
{
    struct world w;
    uint64_t lost;

    (void)state;
    world_begin(&w);
    world_open(&w);
    world_append(&w, 4);
    for (unsigned i = 1; i < 9; i++) {
        char name[40];

        (void)snprintf(name, sizeof(name), "%012u.seg", i);
        (void)unlink(file_path(&w, name));
    }
    world_append(&w, 2);
    (void)world_tick(&w);
    world_drain(&w);
    lost = dropped(w.queue);
    assert_true(lost > 0);
    world_append(&w, 2);
    world_kill(&w);
    world_open(&w);
    world_drain(&w);
    assert_int_equal(w.dropped, lost);
    for (int64_t i = 0; i < w.appended; i++)
        lost -= w.sent[i] ? 0 : SAMPLES;
    assert_int_equal(lost, 0);
    world_end(&w);
}

/* Once all of a scorer's records are sent, no segment has its last timestamp any more. */
static void knows_the_last_time_of_segments_that_are_gone(void **state)
{
    struct world w = {.dir = rw_folder()};
    struct record *r;

    (void)state;
    world_open(&w);
    world_append(&w, 8);
    while ((r = queue_pick(w.queue, START)))
        queue_finish(w.queue, r);
    assert_int_equal(queue_stats(w.queue).spool.bytes, 0);
    world_kill(&w);
    world_open(&w);
    assert_int_equal(queue_last_ms(w.queue, STR("a")), START + 6);
    assert_int_equal(queue_last_ms(w.queue, STR("b")), START + 7);
    world_end(&w);
}

static const char *const position_files[] = {"position.a", "position.b", "position.c"};

/* The content of each; nothing where one is missing. */
static void read_positions(const struct world *w, struct buf into[ARRAY_SIZE(position_files)])
{
    for (size_t i = 0; i < ARRAY_SIZE(position_files); i++) {
        buf_init(&into[i], 1 << 20);
        if (is_there(w, position_files[i]))
            assert_int_equal(file_read(file_path(w, position_files[i]), &into[i]), 0);
    }
}

/* Flips a byte of those that are not as they were. */
static void tear_positions(const struct world *w, struct buf was[ARRAY_SIZE(position_files)])
{
    struct buf now[ARRAY_SIZE(position_files)];

    read_positions(w, now);
    for (size_t i = 0; i < ARRAY_SIZE(position_files); i++) {
        if (!str_eq(buf_str(&now[i]), buf_str(&was[i])))
            flip(w, position_files[i], 0);
        buf_done(&now[i]);
        buf_done(&was[i]);
    }
}

/* What was written since the positions were synced may be anything then. A start syncs those that it finds,
 * as after kill -9 they may not have been. */
static void knows_what_was_sent_after_a_power_cut(void **state)
{
    (void)state;
    for (unsigned killed = 0; killed < 2; killed++) {
        struct world w = {.dir = rw_folder()};
        struct buf synced[ARRAY_SIZE(position_files)];
        unsigned before[RECORDS];

        world_open(&w);
        world_append(&w, 10);
        for (unsigned i = 0; i < 5; i++)
            assert_true(world_send(&w));
        if (killed) {
            world_kill(&w);
            world_open(&w);
        } else {
            (void)world_tick(&w);
        }
        read_positions(&w, synced);
        memcpy(before, w.sent, sizeof(before));
        assert_true(world_send(&w));
        assert_true(world_send(&w));
        world_kill(&w);
        tear_positions(&w, synced);
        world_open(&w);
        world_drain(&w);
        for (int64_t i = 0; i < w.appended; i++)
            assert_in_range(w.sent[i], 1, before[i] ? 1 : 2);
        world_end(&w);
    }
}

/* Samples taken before the spool could be opened go behind those that it holds, except the one in flight,
 * unless a stop ends its flight. */
static void takes_over_a_spool_that_opens_later(void **state)
{
    struct world w;
    struct record *first;

    (void)state;
    for (unsigned picked = 0; picked < 3; picked++) {
        world_begin(&w);
        disk_fail_at(1, LONG_MAX, EMFILE);
        world_open(&w);
        assert_false(is_open(&w));
        world_append(&w, 4);
        first = picked ? queue_pick(w.queue, START) : NULL;
        disk_fail_at(0, 0, 0);
        (void)world_tick(&w);
        assert_true(is_open(&w));
        if (picked == 2) {
            queue_put_back(w.queue);
            (void)world_tick(&w);
        } else if (picked) {
            struct str payload;

            assert_int_equal(queue_payload(w.queue, first, &payload), 0);
            w.sent[atoll(payload.p)]++;
            queue_finish(w.queue, first);
            queue_save_position(w.queue);
        }
        world_kill(&w);
        world_open(&w);
        world_drain(&w);
        if (w.went_back)
            fail_msg("picked %u: a record went after a newer one", picked);
        for (int64_t i = 0; i < w.appended; i++)
            assert_int_equal(w.sent[i], 1);
        world_end(&w);
    }
}

/* Its files may not be there after a power cut until it was synced. */
static void syncs_a_folder_again_after_a_failure(void **state)
{
    char *dir = rw_folder();
    struct folder f;

    (void)state;
    folder_init(&f, dir);
    assert_int_equal(folder_open(&f), 0);
    f.is_unsynced = true;
    for (unsigned i = 0; i < 2; i++) {
        disk_fail_at(1, 1, EIO);
        assert_int_equal(folder_sync(&f), -EIO);
    }
    disk_fail_at(0, 0, 0);
    assert_int_equal(folder_sync(&f), 0);
    assert_false(f.is_unsynced);
    folder_done(&f);
    rw_folder_done(dir);
}

static void makes_room_where_all_was_sent(void **state)
{
    struct world w = {.dir = rw_folder(), .max_bytes = 300};

    (void)state;
    world_open(&w);
    for (unsigned i = 0; i < 3; i++) {
        world_append(&w, 1);
        assert_true(world_send(&w));
    }
    assert_int_equal(dropped(w.queue), 0);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_room_where_all_was_sent),
        cmocka_unit_test(knows_the_last_time_of_segments_that_are_gone),
        cmocka_unit_test(knows_what_was_sent_after_a_power_cut),
        cmocka_unit_test(syncs_a_folder_again_after_a_failure),
        cmocka_unit_test(keeps_a_position_while_the_disk_stays_full),
        cmocka_unit_test(waits_for_a_segment_that_cannot_be_read),
        cmocka_unit_test(leaves_a_spool_that_fails_while_it_is_sent),
        cmocka_unit_test(sets_a_segment_of_another_version_aside),
        cmocka_unit_test(sets_a_damaged_segment_aside_and_counts_its_samples),
        cmocka_unit_test(counts_what_each_flipped_byte_costs),
        cmocka_unit_test(keeps_the_newest_segments_set_aside),
        cmocka_unit_test(keeps_what_it_can_when_the_folder_is_removed),
        cmocka_unit_test(counts_samples_whose_files_were_removed),
        cmocka_unit_test(takes_over_a_spool_that_opens_later),
        cmocka_unit_test(counts_each_sample_whichever_call_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
