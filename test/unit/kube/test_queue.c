/* The work queue, on a clock moved by hand. */
#include "controller/kube/queue.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct world {
    struct clock clock;
    mono_ms now;
    struct loop *loop;
    struct kube_queue *queue;
    char worked[1000]; /* keys of one letter */
    int64_t at[1000];
    size_t n;
    bool end_at_once;
};

static mono_ms mono(const struct clock *c)
{
    return CONTAINER_OF(c, struct world, clock)->now;
}

static unix_ms wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){0};
}

static void work(void *arg, const char *key)
{
    struct world *w = arg;

    assert_int_equal(strlen(key), 1);
    w->worked[w->n] = *key;
    w->at[w->n++] = w->now.ms;
    if (w->end_at_once)
        kube_queue_done(w->queue, key, true, -1);
}

static void pass(struct world *w, int64_t ms)
{
    w->now.ms += ms;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(loop_turn(w->loop, 0), 0);
}

/* In steps, so that what is due in between runs in time. */
static void pass_slowly(struct world *w, int64_t ms)
{
    for (; ms > 0; ms -= 100)
        pass(w, 100);
}

static struct world *world_new(struct kube_queue_options o)
{
    struct world *w = calloc(1, sizeof(*w));

    w->clock = (struct clock){mono, wall};
    w->now.ms = 5000;
    assert_int_equal(loop_new(&w->loop, &w->clock), 0);
    o.work = work;
    o.arg = w;
    w->queue = kube_queue_new(w->loop, &o);
    return w;
}

static void world_free(struct world *w)
{
    (void)kube_queue_free(w->queue);
    (void)loop_free(w->loop);
    free(w);
}

static void add(struct world *w, const char *key)
{
    kube_queue_add(w->queue, key);
}

static void expect(struct world *w, const char *keys)
{
    assert_int_equal(w->n, strlen(keys));
    assert_memory_equal(w->worked, keys, w->n);
}

static void works_on_a_key_once_however_often_it_is_added(void **state)
{
    struct world *w = world_new((struct kube_queue_options){0});

    (void)state;
    add(w, "a");
    add(w, "a");
    add(w, "b");
    expect(w, "");
    pass(w, 0);
    expect(w, "ab");
    assert_int_equal(kube_queue_length(w->queue), 2);
    add(w, "a");
    add(w, "a");
    pass(w, 1000);
    expect(w, "ab");
    kube_queue_done(w->queue, "a", true, -1);
    kube_queue_done(w->queue, "b", true, -1);
    pass(w, 0);
    expect(w, "aba");
    kube_queue_done(w->queue, "a", true, -1);
    kube_queue_done(w->queue, "a", true, -1);
    kube_queue_done(w->queue, "nobody", false, -1);
    pass(w, 1000);
    expect(w, "aba");
    assert_int_equal(kube_queue_length(w->queue), 0);
    world_free(w);
}

static void backs_off_each_failing_key_alone(void **state)
{
    struct world *w = world_new((struct kube_queue_options){.min_retry_ms = 1000, .max_retry_ms = 8000});
    int64_t before = 0;

    (void)state;
    add(w, "a");
    pass(w, 0);
    for (unsigned i = 1; i <= 8; i++) {
        int64_t most = 1000 << (i < 4 ? i - 1 : 3);
        before = w->now.ms;
        kube_queue_done(w->queue, "a", false, -1);
        /* New wishes do not defeat the back-off; other keys do not wait. */
        add(w, "a");
        add(w, "b");
        pass(w, 0);
        assert_int_equal(w->worked[w->n - 1], 'b');
        kube_queue_done(w->queue, "b", true, -1);
        pass_slowly(w, most + 100);
        assert_int_equal(w->worked[w->n - 1], 'a');
        assert_in_range(w->at[w->n - 1] - before, most / 2, most + 100);
    }
    kube_queue_done(w->queue, "a", true, -1);
    assert_int_equal(kube_queue_length(w->queue), 0);
    world_free(w);
}

static void waits_for_retry_after(void **state)
{
    struct world *w = world_new((struct kube_queue_options){0});

    (void)state;
    add(w, "a");
    pass(w, 0);
    kube_queue_done(w->queue, "a", false, 20000);
    pass_slowly(w, 19900);
    expect(w, "a");
    pass_slowly(w, 5200);
    expect(w, "aa");
    world_free(w);
}

static void starts_at_the_earliest_time_asked_for(void **state)
{
    struct world *w = world_new((struct kube_queue_options){0});

    (void)state;
    kube_queue_add_after(w->queue, "a", 60000);
    kube_queue_add_after(w->queue, "b", 60000);
    kube_queue_add_after(w->queue, "a", 30000);
    kube_queue_add_after(w->queue, "a", 90000);
    pass(w, 29999);
    expect(w, "");
    add(w, "b");
    pass(w, 1);
    expect(w, "ba");
    /* Wanted again, some time after the work under way. */
    kube_queue_add_after(w->queue, "a", 5000);
    kube_queue_add_after(w->queue, "a", 7000);
    kube_queue_done(w->queue, "a", true, -1);
    pass(w, 4999);
    expect(w, "ba");
    pass(w, 1);
    expect(w, "baa");
    world_free(w);
}

static void limits_active_keys(void **state)
{
    struct world *w = world_new((struct kube_queue_options){.max_active = 2});

    (void)state;
    add(w, "a");
    add(w, "b");
    add(w, "c");
    pass(w, 0);
    expect(w, "ab");
    kube_queue_done(w->queue, "b", true, -1);
    pass(w, 0);
    expect(w, "abc");
    world_free(w);
}

static void limits_starts_per_second(void **state)
{
    struct world *w = world_new((struct kube_queue_options){.per_second = 2, .burst = 3});

    (void)state;
    w->end_at_once = true;
    for (char key[2] = "a"; *key < 'h'; ++*key)
        add(w, key);
    pass(w, 0);
    expect(w, "abc");
    pass(w, 499);
    expect(w, "abc");
    pass(w, 2);
    expect(w, "abcd");
    pass_slowly(w, 2000);
    expect(w, "abcdefg");
    /* Unused tokens do not pile up. */
    pass(w, 1000000);
    for (char key[2] = "a"; *key < 'h'; ++*key)
        add(w, key);
    pass(w, 0);
    expect(w, "abcdefgabc");
    world_free(w);
}

static void starts_urgent_keys_first(void **state)
{
    struct world *w = world_new((struct kube_queue_options){.max_active = 1});

    (void)state;
    w->end_at_once = true;
    for (char key[2] = "a"; *key < 'e'; ++*key)
        add(w, key);
    kube_queue_add_urgent(w->queue, "c");
    kube_queue_add_urgent(w->queue, "x");
    add(w, "c"); /* stays urgent */
    pass(w, 0);
    expect(w, "xcabd");
    world_free(w);
}

static void forgets_waiting_and_active_keys(void **state)
{
    struct world *w = world_new((struct kube_queue_options){.max_active = 1});

    (void)state;
    add(w, "a");
    add(w, "b");
    add(w, "c");
    pass(w, 0);
    kube_queue_forget(w->queue, "b");
    add(w, "a");
    kube_queue_forget(w->queue, "a");
    kube_queue_forget(w->queue, "x");
    kube_queue_done(w->queue, "a", false, -1);
    pass(w, 0);
    expect(w, "ac");
    /* Forgotten, then wanted again. */
    kube_queue_forget(w->queue, "c");
    add(w, "c");
    kube_queue_done(w->queue, "c", true, -1);
    pass(w, 0);
    expect(w, "acc");
    world_free(w);
}

static void holds_thousands_of_keys(void **state)
{
    struct world *w = world_new((struct kube_queue_options){.max_active = 10000, .burst = 1});
    char key[32];

    (void)state;
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        kube_queue_add_after(w->queue, key, 1000);
    }
    assert_int_equal(kube_queue_length(w->queue), 5000);
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key-%d", i);
        kube_queue_forget(w->queue, key);
    }
    assert_int_equal(kube_queue_length(w->queue), 0);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(works_on_a_key_once_however_often_it_is_added),
        cmocka_unit_test(backs_off_each_failing_key_alone),
        cmocka_unit_test(waits_for_retry_after),
        cmocka_unit_test(starts_at_the_earliest_time_asked_for),
        cmocka_unit_test(limits_active_keys),
        cmocka_unit_test(limits_starts_per_second),
        cmocka_unit_test(starts_urgent_keys_first),
        cmocka_unit_test(forgets_waiting_and_active_keys),
        cmocka_unit_test(holds_thousands_of_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
