/* Timers run by a clock that the test moves; nothing here sleeps to prove a schedule. */
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static int64_t fake_now;

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){__atomic_load_n(&fake_now, __ATOMIC_RELAXED)};
}

static unix_ms fake_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){fake_now + 1000000};
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = fake_wall};

/* What ran, in order: one letter each. */
static char ran[256];
static size_t n_ran;

struct item {
    struct timer timer;
    struct watch watch;
    struct post post;
    char letter;
    struct loop *loop;
    void (*then)(struct item *);
    struct item *other;
    int64_t delay;
};

static void note(struct item *i)
{
    if (n_ran + 1 < sizeof(ran)) {
        ran[n_ran++] = i->letter;
        ran[n_ran] = '\0';
    }
    if (i->then)
        i->then(i);
}

static void on_timer(struct timer *t)
{
    note(CONTAINER_OF(t, struct item, timer));
}

static void on_watch(struct watch *w)
{
    note(CONTAINER_OF(w, struct item, watch));
}

static void on_post(struct post *p)
{
    note(CONTAINER_OF(p, struct item, post));
}

static struct item item(struct loop *l, char letter)
{
    return (struct item){.letter = letter,
                         .loop = l,
                         .timer = {.fn = on_timer},
                         .watch = {.fn = on_watch, .fd = -1},
                         .post = {.fn = on_post}};
}

static void set(struct item *i, int64_t at)
{
    loop_timer_set(i->loop, &i->timer, (mono_ms){at});
}

/* One turn at a time; what ran must be `want`. */
static void turn_by(struct loop *l, int64_t ms, const char *want)
{
    fake_now += ms;
    n_ran = 0;
    ran[0] = '\0';
    assert_int_equal(loop_turn(l, 0), 0);
    assert_string_equal(ran, want);
}

static void turn_at(struct loop *l, int64_t at, const char *want)
{
    turn_by(l, at - fake_now, want);
    assert_int_equal(loop_now(l).ms, at);
}

static int setup(void **state)
{
    fake_now = 1000;
    return loop_new((struct loop **)state, &fake_clock);
}

static int teardown(void **state)
{
    *state = loop_free(*state);
    return 0;
}

static void stamps_one_time_a_turn(void **state)
{
    struct loop *l = *state;

    fake_now = 5000;
    assert_int_equal(loop_now(l).ms, 1000);
    assert_int_equal(loop_wall(l).ms, 1005000);
    assert_int_equal(loop_turn(l, 0), 0);
    assert_int_equal(loop_now(l).ms, 5000);
}

static void runs_timers_when_due_and_in_order(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a'), b = item(l, 'b'), c = item(l, 'c'), d = item(l, 'd');

    set(&c, 3000);
    set(&a, 1001);
    set(&d, 3000);
    set(&b, 2000);
    turn_at(l, 1000, "");
    turn_at(l, 1001, "a");
    turn_at(l, 1999, "");
    turn_at(l, 2999, "b");
    turn_at(l, 3000, "cd"); /* of one time: as they were set */
    turn_at(l, 9000, "");
}

static void moves_and_clears(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a'), b = item(l, 'b'), c = item(l, 'c');

    loop_timer_clear(l, &a.timer); /* never set */
    set(&a, 2000);
    set(&b, 3000);
    set(&c, 4000);
    set(&a, 5000);
    set(&c, 2500);
    loop_timer_clear(l, &b.timer);
    loop_timer_clear(l, &b.timer);
    assert_int_equal(b.timer.place, 0);
    turn_at(l, 2400, "");
    turn_at(l, 4500, "c");
    turn_at(l, 5000, "a");
    assert_int_equal(a.timer.place, 0);
    set(&b, 5001); /* may be set again */
    turn_at(l, 5001, "b");
}

static void again_at_once(struct item *i)
{
    set(i, fake_now - 500);
}

/* A timer that sets itself again for the past takes one run a turn, and no turn from another. */
static void turn_ends_and_none_starves(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a'), b = item(l, 'b'), c = item(l, 'c'), far = item(l, 'f');

    a.then = c.then = again_at_once;
    set(&a, 1001);
    set(&b, 1002);
    set(&c, 1003);
    set(&far, 9000);
    turn_at(l, 2000, "abc");
    turn_at(l, 2000, "ac");
    set(&b, 2001);
    turn_at(l, 2001, "acb");
    loop_timer_clear(l, &a.timer);
    loop_timer_clear(l, &c.timer);
    loop_timer_clear(l, &far.timer);
}

static void clear_other(struct item *i)
{
    loop_timer_clear(i->loop, &i->other->timer);
}

static void set_other(struct item *i)
{
    set(i->other, fake_now + i->delay);
}

static void callbacks_may_clear_and_set_others(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a'), b = item(l, 'b'), c = item(l, 'c'), d = item(l, 'd');

    a.then = clear_other;
    a.other = &b;
    c.then = set_other;
    c.other = &d;
    c.delay = 10;
    set(&a, 1001);
    set(&b, 1001);
    set(&c, 1001);
    set(&d, 1001);
    turn_at(l, 1001, "ac"); /* b is cleared, d moved on */
    turn_at(l, 1011, "d");
}

static uint64_t random_u64(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

enum { MODEL_TIMERS = 40 };

static struct item many[MODEL_TIMERS];
static int64_t model_at[MODEL_TIMERS]; /* 0: not set */
static uint64_t model_order[MODEL_TIMERS], model_orders;

/* The timer that must run next: earliest first, then as they were set. */
static int model_first(void)
{
    int first = -1;

    for (int i = 0; i < MODEL_TIMERS; i++)
        if (model_at[i] && model_at[i] <= fake_now &&
            (first < 0 || model_at[i] < model_at[first] ||
             (model_at[i] == model_at[first] && model_order[i] < model_order[first])))
            first = i;
    return first;
}

static void check_with_model(struct item *i)
{
    int first = model_first();

    assert_ptr_equal(i, &many[first]);
    model_at[first] = 0;
}

static void one_step(struct loop *l)
{
    size_t k = random_u64() % MODEL_TIMERS;

    switch (random_u64() % 4) {
    case 0:
    case 1:
        model_at[k] = fake_now + 1 + (int64_t)(random_u64() % 50);
        model_order[k] = model_orders++;
        set(&many[k], model_at[k]);
        break;
    case 2:
        model_at[k] = 0;
        loop_timer_clear(l, &many[k].timer);
        break;
    default:
        fake_now += (int64_t)(random_u64() % 20);
        assert_int_equal(loop_turn(l, 0), 0);
        assert_int_equal(model_first(), -1); /* all that were due ran */
    }
    assert_int_equal(many[k].timer.place != 0, model_at[k] != 0);
}

static void behaves_like_a_list_of_times(void **state)
{
    struct loop *l = *state;

    for (size_t i = 0; i < MODEL_TIMERS; i++) {
        many[i] = item(l, 'm');
        many[i].then = check_with_model;
    }
    for (int i = 0; i < 20000; i++)
        one_step(l);
}

static void make_pipe(int fds[2])
{
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
}

static void watches_descriptors(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a');
    int fds[2];
    char c;

    make_pipe(fds);
    a.watch.fd = fds[0];
    turn_at(l, 1001, "");
    assert_int_equal(loop_watch(l, &a.watch), 0);
    turn_at(l, 1002, "a");
    turn_at(l, 1003, "a"); /* still readable */
    assert_int_equal(read(fds[0], &c, 1), 1);
    turn_at(l, 1004, "");
    assert_int_equal(write(fds[1], "x", 1), 1);
    loop_unwatch(l);
    turn_at(l, 1005, "");
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void post_again(struct item *i)
{
    if (i->delay-- > 0)
        loop_post(i->loop, &i->post);
}

static void runs_posts_in_order(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a'), b = item(l, 'b'), c = item(l, 'c');

    loop_post(l, &b.post);
    loop_post(l, &a.post);
    loop_post(l, &c.post);
    a.then = post_again;
    a.delay = 2;
    turn_at(l, 1000, "bac");
    turn_at(l, 1000, "a"); /* what a post posts waits for the next turn */
    turn_at(l, 1000, "a");
    turn_at(l, 1000, "");
}

static void free_item(struct item *i)
{
    free(i);
}

static void post_may_free_itself(void **state)
{
    struct loop *l = *state;

    for (char c = 'a'; c < 'd'; c++) {
        struct item *i = malloc(sizeof(*i));
        assert_non_null(i);
        *i = item(l, c);
        i->then = free_item;
        loop_post(l, &i->post);
    }
    turn_at(l, 1000, "abc");
}

static void stop(struct item *i)
{
    loop_stop(i->loop);
}

static void *post_one(void *arg)
{
    struct item *i = arg;

    loop_post(i->loop, &i->post);
    return NULL;
}

/* The loop waits for a minute at a time: only the post can end it sooner. */
static void post_from_a_thread_wakes_the_loop(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a');
    pthread_t thread;
    int64_t began = clock_system.mono(&clock_system).ms;

    a.then = stop;
    assert_int_equal(pthread_create(&thread, NULL, post_one, &a), 0);
    assert_int_equal(loop_run(l), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(clock_system.mono(&clock_system).ms - began < 30000);
}

enum { POSTERS = 4, POSTS = 2000 };

struct poster {
    struct loop *loop;
    struct numbered {
        struct post post;
        struct poster *poster;
        size_t number;
    } posts[POSTS];
    size_t next;
};

static size_t posts_run;

static void check_number(struct post *p)
{
    struct numbered *n = CONTAINER_OF(p, struct numbered, post);

    assert_int_equal(n->number, n->poster->next++);
    if (++posts_run == POSTERS * POSTS)
        loop_stop(n->poster->loop);
}

static void *post_many(void *arg)
{
    struct poster *p = arg;

    for (size_t i = 0; i < POSTS; i++) {
        p->posts[i] = (struct numbered){.post = {.fn = check_number}, .poster = p, .number = i};
        loop_post(p->loop, &p->posts[i].post);
    }
    return NULL;
}

static void threads_post_without_loss_or_disorder(void **state)
{
    static struct poster posters[POSTERS];
    pthread_t threads[POSTERS];

    posts_run = 0;
    for (size_t i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.loop = *state};
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
    }
    assert_int_equal(loop_run(*state), 0);
    for (size_t i = 0; i < POSTERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(posts_run, POSTERS * POSTS);
}

static void a_timer_ends_the_wait(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a');
    int64_t began = clock_system.mono(&clock_system).ms;

    set(&a, fake_now + 5);
    assert_int_equal(loop_turn(l, 60000), 0);
    set(&a, fake_now - 5);
    assert_int_equal(loop_turn(l, 60000), 0);
    assert_int_equal(a.timer.place, 0);
    assert_true(clock_system.mono(&clock_system).ms - began < 30000);
}

/* Suspend and resume: time has passed that the wait did not see. */
static void *sleep_for_an_hour(void *arg)
{
    (void)arg;
    (void)__atomic_add_fetch(&fake_now, 3600000, __ATOMIC_RELAXED);
    return NULL;
}

static void runs_what_is_due_after_suspend(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a');
    pthread_t thread;
    int64_t began = clock_system.mono(&clock_system).ms;

    a.then = stop;
    set(&a, fake_now + 3600000);
    assert_int_equal(pthread_create(&thread, NULL, sleep_for_an_hour, NULL), 0);
    assert_int_equal(loop_run(l), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(clock_system.mono(&clock_system).ms - began < 30000);
}

static void time_goes_on_when_the_clock_goes_back(void **state)
{
    struct loop *l = *state;
    struct item a = item(l, 'a'), b = item(l, 'b');
    mono_ms began = loop_now(l);

    set(&a, fake_now + 1000);
    turn_by(l, 400, "");
    turn_by(l, -86400000, "");
    assert_int_equal(mono_diff(began, loop_now(l)), 400);
    turn_by(l, 599, "");
    turn_by(l, 1, "a");
    set(&b, loop_now(l).ms + 10);
    turn_by(l, -1, "");
    turn_by(l, 10, "b");
}

/* Other threads could not wake such a loop. */
static void is_not_made_without_descriptors(void **state)
{
    struct rlimit was, none;
    struct loop *l = NULL;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(loop_new(&l, &fake_clock), -EMFILE);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_null(l);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stamps_one_time_a_turn),
        TEST(runs_timers_when_due_and_in_order),
        TEST(moves_and_clears),
        TEST(turn_ends_and_none_starves),
        TEST(callbacks_may_clear_and_set_others),
        TEST(behaves_like_a_list_of_times),
        TEST(watches_descriptors),
        TEST(runs_posts_in_order),
        TEST(post_may_free_itself),
        TEST(post_from_a_thread_wakes_the_loop),
        TEST(threads_post_without_loss_or_disorder),
        TEST(a_timer_ends_the_wait),
        TEST(runs_what_is_due_after_suspend),
        TEST(time_goes_on_when_the_clock_goes_back),
        cmocka_unit_test(is_not_made_without_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
