#include "exporter/base/clock.h"
#include "exporter/base/lock.h"

#include "exporter/base/loop.h"
#include "test/unit/base/last_line.h"

static void *waits_for_another_thread(void *arg)
{
    const struct lock *l = arg;

    return lock_is_held(l) ? arg : NULL;
}

/* Whether another thread sees itself as the holder. */
static bool another_holds(struct lock *l)
{
    pthread_t other;
    void *held;

    assert_int_equal(pthread_create(&other, NULL, waits_for_another_thread, l), 0);
    assert_int_equal(pthread_join(other, &held), 0);
    return held != NULL;
}

static void knows_its_holder(void **state)
{
    struct lock l = LOCK_INIT;

    (void)state;
    assert_false(lock_is_held(&l));
    lock_take(&l);
    assert_true(lock_is_held(&l));
    assert_false(another_holds(&l));
    lock_release(&l);
    assert_false(lock_is_held(&l));
    lock_done(&l);
}

struct gate {
    struct lock lock;
    pthread_cond_t changed;
    bool open;
};

static void *opens_the_gate(void *arg)
{
    struct gate *g = arg;

    lock_take(&g->lock);
    g->open = true;
    (void)pthread_cond_signal(&g->changed);
    lock_release(&g->lock);
    return NULL;
}

static void holds_it_again_after_waiting(void **state)
{
    struct gate g = {.changed = PTHREAD_COND_INITIALIZER};
    pthread_t other;

    (void)state;
    lock_init(&g.lock);
    lock_take(&g.lock);
    assert_int_equal(pthread_create(&other, NULL, opens_the_gate, &g), 0);
    while (!g.open)
        lock_wait(&g.lock, &g.changed);
    assert_true(lock_is_held(&g.lock));
    lock_release(&g.lock);
    assert_int_equal(pthread_join(other, NULL), 0);
    lock_done(&g.lock);
}

static void takes_twice(void)
{
    struct lock l = LOCK_INIT;

    lock_take(&l);
    lock_take(&l);
}

static void releases_what_it_does_not_hold(void)
{
    struct lock l = LOCK_INIT;

    lock_release(&l);
}

static void waits_without_the_lock(void)
{
    struct lock l = LOCK_INIT;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;

    lock_wait(&l, &never);
}

static void frees_a_lock_in_use(void)
{
    struct lock l = LOCK_INIT;

    lock_take(&l);
    lock_done(&l);
}

static void ends_the_program_on_misuse(void **state)
{
    static void (*const misuses[])(void) = {takes_twice, releases_what_it_does_not_hold,
                                            waits_without_the_lock, frees_a_lock_in_use};
    char line[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
        last_line_of(misuses[i], line, sizeof(line));
        assert_non_null(strstr(line, "dynamic-scoring: invariant failed: "));
    }
}

/* ---- The loop, whose data belongs to the thread that makes a turn ---- */

struct turn {
    struct loop *loop;
    struct timer timer;
};

static void *sets_the_timer(void *arg)
{
    struct turn *t = arg;

    loop_timer_set(t->loop, &t->timer, loop_now(t->loop));
    return NULL;
}

static void lets_another_thread_in(struct timer *timer)
{
    struct turn *t = (struct turn *)((char *)timer - offsetof(struct turn, timer));
    pthread_t other;

    (void)pthread_create(&other, NULL, sets_the_timer, t);
    (void)pthread_join(other, NULL);
}

static void uses_the_loop_from_another_thread(void)
{
    struct turn t = {.timer = {.fn = lets_another_thread_in}};

    if (loop_new(&t.loop, &clock_system) == 0) {
        loop_timer_set(t.loop, &t.timer, loop_now(t.loop));
        loop_turn(t.loop, 0);
    }
}

static void ends_the_program_if_another_thread_uses_the_loop(void **state)
{
    char line[1024];

    (void)state;
    last_line_of(uses_the_loop_from_another_thread, line, sizeof(line));
    assert_non_null(strstr(line, "invariant failed: loop_is_own(l)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_its_holder),
        cmocka_unit_test(holds_it_again_after_waiting),
        cmocka_unit_test(ends_the_program_on_misuse),
        cmocka_unit_test(ends_the_program_if_another_thread_uses_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
