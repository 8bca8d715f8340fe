/* What the writer says of its own writes and of those that undo them. */
#include "controller/kube/answer.h"
#include "controller/kube/fight.h"
#include "controller/kube/json.h"
#include "controller/kube/queue.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "controller/kube/writer.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND };

struct world {
    struct fake_kube *f;
    struct kube_writer writer;
    struct kube_object object;
    struct kube_goal goal;
    int64_t wait_ms; /* after the last write */
    unsigned counted, done, fights;
    bool writes; /* else a turn ends without a write */
};

static void on_done(struct kube_object *o, struct kube_answer *a)
{
    struct world *w = CONTAINER_OF(o, struct world, object);

    w->done++;
    w->wait_ms = o->wait_ms;
    if (a->verdict == KUBE_OK)
        kube_object_end(o, true, -1);
    else
        kube_object_fail(o, a);
}

static void work(void *arg, const char *key)
{
    struct world *w = arg;
    const struct kube_request rq = {.method = KUBE_MERGE_PATCH,
                                    .resource = &kube_configmaps,
                                    .namespace = "ns",
                                    .name = key,
                                    .body_text = {STR("{}")}};

    if (!w->writes) {
        w->done++;
        kube_object_end(&w->object, true, -1);
        return;
    }
    kube_object_call(&w->object, KUBE_WRITE_PATCH, &rq, w->goal, on_done);
}

static void count(void *arg, enum kube_operation operation, const struct kube_answer *a)
{
    struct world *w = arg;

    (void)a;
    assert_string_equal(kube_operation_word(operation), "patch");
    w->counted++;
}

static void on_fight(void *arg, struct kube_object *o)
{
    struct world *w = arg;

    assert_ptr_equal(o, &w->object);
    w->fights++;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct kube_queue_options q = {.work = work, .arg = w, .max_retry_ms = MINUTE};

    w->f = fake_kube_new();
    q.kube = w->f->kube;
    w->writer = (struct kube_writer){.kube = w->f->kube,
                                     .manager = "me",
                                     .kind = "ConfigMap",
                                     .detail = "configmap",
                                     .count = count,
                                     .on_fight = on_fight,
                                     .arg = w};
    w->writer.queue = kube_queue_new(w->f->loop, &q);
    kube_object_init(&w->object, &w->writer, "a");
    w->writes = true;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    kube_object_done(&w->object);
    w->writer.queue = kube_queue_free(w->writer.queue);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static void push(struct world *w, int status, const char *version)
{
    fake_push(w->f->server,
              (struct fake_answer){
                  .status = status,
                  .body = fake_kube_text(w->f, "{\"metadata\":{\"resourceVersion\":\"%s\"}}", version)});
}

/* Writes that state, once back-offs are over. */
static void write_state(struct world *w, uint64_t to, const char *version)
{
    unsigned done = w->done;

    w->goal = (struct kube_goal){KUBE_GOAL_STATE, to};
    push(w, 200, version);
    kube_queue_add(w->writer.queue, "a");
    fake_kube_turn(w->f, &w->done, done + 1);
    assert_string_equal(w->object.version, version);
}

static enum kube_seen see(struct world *w, const char *version)
{
    json_auto_t *o = NULL;
    const char *text = fake_kube_object(w->f, "ns", "a", version);

    assert_int_equal(kube_json_parse(&o, str_of(text), NULL), 0);
    return kube_object_see(&w->object, o);
}

static void counts_a_repeated_write_as_undone(void **state)
{
    struct world *w = *state;

    write_state(w, 7, "10");
    assert_int_equal(w->wait_ms, -1);
    fake_kube_advance(w->f, MINUTE);
    write_state(w, 7, "12");
    assert_in_range(w->wait_ms, 1, SECOND);
    assert_int_equal(w->object.undone, 1);
    assert_int_equal(w->object.failures, 1);
    push(w, 200, "14");
    w->goal.hash = 8;
    fake_kube_advance(w->f, MINUTE);
    fake_kube_turn(w->f, &w->done, 3);
    assert_int_equal(w->object.undone, 0);
    assert_int_equal(w->object.failures, 0);
    assert_int_equal(w->counted, 3);
    assert_string_equal(fake_kube_asked(w->f, 0), "PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=me");
}

/* Writes with this goal, and returns how often in a row others have undone a write. */
static unsigned write_with(struct world *w, enum kube_goal_kind kind)
{
    unsigned n = w->done;

    push(w, 200, fake_kube_text(w->f, "%u", n + 10));
    w->goal = (struct kube_goal){kind, 0};
    fake_kube_advance(w->f, MINUTE);
    kube_queue_add(w->writer.queue, "a");
    fake_kube_turn(w->f, &w->done, n + 1);
    return w->object.undone;
}

static void knows_by_its_goal_whether_a_write_was_undone(void **state)
{
    struct world *w = *state;

    assert_int_equal(write_with(w, KUBE_GOAL_AGAIN), 0); /* there was none before */
    assert_int_equal(write_with(w, KUBE_GOAL_AGAIN), 1);
    assert_int_equal(write_with(w, KUBE_GOAL_NEW), 0);
    assert_int_equal(write_with(w, KUBE_GOAL_REPAIR), 0);
    assert_int_equal(write_with(w, KUBE_GOAL_REPAIR), 1);
    assert_int_equal(write_with(w, KUBE_GOAL_NONE), 1); /* tells nothing */
    assert_int_equal(write_with(w, KUBE_GOAL_NEW), 0);
    assert_int_equal(write_with(w, KUBE_GOAL_AGAIN), 1);
}

static void forgets_after_ten_minutes(void **state)
{
    struct world *w = *state;

    write_state(w, 7, "10");
    fake_kube_advance(w->f, 10 * MINUTE);
    write_state(w, 7, "12");
    assert_int_equal(w->object.undone, 0);
}

static void waits_longer_each_time_up_to_a_minute(void **state)
{
    struct world *w = *state;

    write_state(w, 7, "10");
    write_state(w, 7, "11");
    assert_in_range(w->wait_ms, 1, SECOND);
    for (unsigned i = 2; i <= 15; i++) {
        assert_in_range(w->wait_ms, 1, MINUTE + MINUTE / 2);
        push(w, 200, "12");
        fake_kube_advance(w->f, MINUTE + MINUTE / 2);
        fake_kube_turn(w->f, &w->done, i + 1);
        assert_int_equal(w->object.undone, i);
    }
    assert_in_range(w->wait_ms, MINUTE / 2, MINUTE + MINUTE / 2);
}

static void tells_its_own_version_from_older_and_newer_ones(void **state)
{
    struct world *w = *state;
    json_auto_t *newer = json_pack("{s:{s:s}}", "metadata", "resourceVersion", "11");

    assert_int_equal(see(w, "9"), KUBE_SEEN_NEW);
    write_state(w, 7, "10");
    assert_int_equal(see(w, "9"), KUBE_SEEN_OLD);
    assert_int_equal(see(w, "10"), KUBE_SEEN_OWN);
    assert_int_equal(see(w, "11"), KUBE_SEEN_NEW);
    assert_false(kube_object_is_overtaken(&w->object));
    kube_object_watched(&w->object, newer);
    assert_true(kube_object_is_overtaken(&w->object));
    fake_kube_advance(w->f, MINUTE); /* a restore from a backup */
    assert_int_equal(see(w, "9"), KUBE_SEEN_NEW);
}

static void says_why_it_is_not_written(void **state)
{
    struct world *w = *state;

    w->goal = (struct kube_goal){KUBE_GOAL_STATE, 7};
    fake_kube_status(w->f, 403, "Forbidden", "no");
    kube_queue_add(w->writer.queue, "a");
    fake_kube_turn(w->f, &w->done, 1);
    assert_non_null(strstr(w->object.last_error, "no"));
    assert_int_equal(w->object.failures, 1);
    assert_int_equal(w->object.written.kind, KUBE_GOAL_NONE);
}

/* The object as the watch shows it, changed by that manager in that second. */
static void show_change(struct world *w, const char *version, const char *manager, const char *time)
{
    json_auto_t *o = json_pack("{s:{s:s, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s, s:s}]}}", "metadata",
                               "resourceVersion", version, "managedFields", "manager", manager, "time", time,
                               "manager", "me", "time", "2026-11-21T06:23:01Z", "manager", "work", "time",
                               "2026-11-21T07:00:00Z", "subresource", "status");

    assert_non_null(o);
    kube_object_watched(&w->object, o);
}

/* Writes the state again after that time. */
static void write_again(struct world *w, const char *version, int64_t ms)
{
    unsigned done = w->done;

    push(w, 200, version);
    kube_queue_add(w->writer.queue, "a");
    fake_kube_advance(w->f, ms);
    fake_kube_turn(w->f, &w->done, done + 1);
    assert_string_equal(w->object.version, version);
}

/* Writes that state so often that it is a fight, with others in between. */
static void fight(struct world *w, const char *time)
{
    write_state(w, 7, "10");
    for (unsigned i = 1; i <= 3; i++) {
        show_change(w, fake_kube_text(w->f, "%u", 10 + 2 * i - 1), "rival", time);
        write_again(w, fake_kube_text(w->f, "%u", 10 + 2 * i), 4 * SECOND);
    }
}

static void says_once_that_another_undoes_its_writes(void **state)
{
    struct world *w = *state;
    CLEANUP(cleanup_free) char *text = NULL;

    fight(w, "2026-11-21T06:23:01Z"); /* the second of our own write */
    assert_true(w->object.fight.is_on);
    assert_int_equal(w->fights, 1);
    text = kube_fight_text(&w->object.fight, "ConfigMap ns/a");
    assert_string_equal(text, "another writer (field manager rival) keeps undoing what this one writes to "
                              "ConfigMap ns/a: stop it from managing this object");
    write_again(w, "20", MINUTE);
    assert_int_equal(w->fights, 1);
}

/* Another state ends the back-off, not the fight. */
static void a_fight_ends_when_a_write_stands(void **state)
{
    struct world *w = *state;

    fight(w, "2026-11-21T06:23:02Z");
    w->goal.hash = 8;
    write_again(w, "20", 5 * SECOND);
    assert_int_equal(w->object.undone, 0);
    assert_true(w->object.fight.is_on);
    w->writes = false; /* it is as it should be */
    w->done = 0;
    kube_queue_add(w->writer.queue, "a");
    fake_kube_turn(w->f, &w->done, 1);
    assert_int_equal(kube_queue_length(w->writer.queue), 0);
    fake_kube_advance(w->f, MINUTE);
    fake_kube_turn(w->f, &w->fights, 2);
    assert_false(w->object.fight.is_on);
}

/* Every two minutes counts, too: it is over after four. */
static void a_slow_fight_lasts_longer(void **state)
{
    struct world *w = *state;

    write_state(w, 7, "10");
    for (unsigned i = 1; i <= 3; i++) {
        write_again(w, fake_kube_text(w->f, "%u", 10 + i), 2 * MINUTE);
    }
    assert_int_equal(w->fights, 1);
    assert_in_range(kube_fight_settle_ms(&w->object.fight), 4 * MINUTE, 5 * MINUTE);
}

/* A rival who only removes fields leaves no trace in them. */
static void does_not_guess_the_other_writer(void **state)
{
    struct world *w = *state;
    CLEANUP(cleanup_free) char *text = NULL;

    fight(w, "2026-11-21T06:23:00Z"); /* before our own write */
    assert_int_equal(w->object.fight.rival, RIVAL_UNKNOWN);
    text = kube_fight_text(&w->object.fight, "ConfigMap ns/a");
    assert_non_null(strstr(text, "managedFields do not name it"));
    show_change(w, "30", "rival", "2026-11-21T06:23:05Z"); /* later it does leave one */
    assert_int_equal(w->object.fight.rival, RIVAL_NAMED);
    assert_int_equal(w->fights, 2);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(counts_a_repeated_write_as_undone),
        CASE(knows_by_its_goal_whether_a_write_was_undone),
        CASE(forgets_after_ten_minutes),
        CASE(waits_longer_each_time_up_to_a_minute),
        CASE(tells_its_own_version_from_older_and_newer_ones),
        CASE(says_why_it_is_not_written),
        CASE(says_once_that_another_undoes_its_writes),
        CASE(a_fight_ends_when_a_write_stands),
        CASE(a_slow_fight_lasts_longer),
        CASE(does_not_guess_the_other_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
