/* A page of a list and the events of a stream become trees in the shares of many turns, so that none of them
 * holds up the loop, however much an API server sends at once. */
#include "controller/kube/resource.h"
#include "controller/kube/tree.h"
#include "controller/kube/watch.h"
#include "exporter/base/buf.h"
#include "test/fakes/fake_server.h"
#include "test/unit/kube/watch_world.h"

enum {
    OBJECTS = 14000, /* together nearly 16 MiB, the ceiling of a page */
    EVENTS = 4000,
    PAD_BYTES = 1000,
    /* An object is in memory for as long as it is told, so this is what a turn makes trees of. */
    MOST_IN_A_TURN = LOOP_TURN_BYTES / 2,
    LONG_EVENT_VALUES = 100 * 1000,
};

/* What a turn was told, and the order in which objects came. */
struct heard {
    struct told *t;
    unsigned n, turns;    /* objects told, and turns in which some were */
    uint64_t turn;        /* of the last one */
    size_t bytes, most;   /* in this turn, and in any */
    unsigned n_bad_order; /* objects that did not come after the one before */
    unsigned synced, deleted, errors, n_values;
};

static void hear_set(void *arg, json_t *object)
{
    struct heard *h = arg;
    uint64_t turn = loop_turns(h->t->f->loop);

    if (turn != h->turn || h->turns == 0) {
        h->turn = turn;
        h->bytes = 0;
        h->turns++;
    }
    h->n_bad_order += (unsigned)atoi(kube_name(object) + 1) != h->n;
    h->n++;
    h->n_values += (unsigned)json_array_size(kube_list(object, "values", NULL));
    h->bytes += PAD_BYTES;
    h->most = size_max(h->most, h->bytes);
}

static void hear_synced(void *arg)
{
    struct heard *h = arg;

    h->synced++;
}

static void hear_delete(void *arg, const char *namespace, const char *name)
{
    struct heard *h = arg;

    (void)namespace, (void)name;
    h->deleted++;
}

static void hear_error(void *arg, const char *error)
{
    struct heard *h = arg;

    (void)error;
    h->errors++;
}

static void hear_begin(struct heard *h, struct told *t)
{
    const struct kube_watch_options o = {.resource = &kube_configmaps,
                                         .namespace = "ns",
                                         .on_set = hear_set,
                                         .on_delete = hear_delete,
                                         .on_synced = hear_synced,
                                         .on_error = hear_error,
                                         .arg = h};

    h->t = t;
    t->watch = kube_watch_new(t->f->kube, &o);
}

static void put_object(struct buf *b, unsigned i, char pad[static PAD_BYTES + 1])
{
    buf_printf(b,
               "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"n%u\",\"resourceVersion\":"
               "\"%u\"},\"data\":\"%s\"}",
               i, i + 1, pad);
    assert_int_equal(buf_failed(b), 0);
}

static const char *text_of(struct fake_kube *f, struct buf *b)
{
    buf_putc(b, '\0');
    assert_int_equal(buf_failed(b), 0);
    return fake_kube_text(f, "%s", b->p);
}

/* Objects n0, n1 and so on, separated by commas. */
static const char *many_objects(struct fake_kube *f, unsigned n)
{
    char pad[PAD_BYTES + 1] = {0};
    BUF_AUTO(b, SIZE_MAX / 2);

    memset(pad, 'x', PAD_BYTES);
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            buf_putc(&b, ',');
        put_object(&b, i, pad);
    }
    return text_of(f, &b);
}

static const char *many_events(struct fake_kube *f, unsigned n)
{
    char pad[PAD_BYTES + 1] = {0};
    BUF_AUTO(b, SIZE_MAX / 2);

    memset(pad, 'x', PAD_BYTES);
    for (unsigned i = 0; i < n; i++) {
        buf_puts(&b, "{\"type\":\"ADDED\",\"object\":");
        assert_int_equal(buf_failed(&b), 0);
        put_object(&b, i, pad);
        buf_puts(&b, "}\n");
        assert_int_equal(buf_failed(&b), 0);
    }
    return text_of(f, &b);
}

static void assert_in_shares(const struct heard *h)
{
    assert_int_equal(h->n_bad_order, 0);
    assert_true(h->turns > 1);
    assert_true(h->most <= MOST_IN_A_TURN);
    /* One string, the longest piece of work that cannot be divided, may come on top. */
    assert_true(loop_most_bytes(h->t->f->loop) <= LOOP_TURN_BYTES + LOOP_PIECE_BYTES);
}

static void reads_a_page_in_shares_of_turns(void **state)
{
    struct told *t = *state;
    struct heard h = {0};

    fake_kube_list(t->f, "20000", NULL, many_objects(t->f, OBJECTS));
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "20001"));
    hear_begin(&h, t);
    fake_kube_turn(t->f, &h.synced, 1);
    assert_int_equal(h.n, OBJECTS);
    assert_int_equal(h.deleted, 0);
    assert_in_shares(&h);
}

static void reads_events_in_shares_of_turns(void **state)
{
    struct told *t = *state;
    struct heard h = {0};

    fake_kube_list(t->f, "0", NULL, "");
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, many_events(t->f, EVENTS));
    hear_begin(&h, t);
    fake_kube_turn(t->f, &h.n, EVENTS);
    assert_in_shares(&h);
}

/* A stream that has ended is read to its end, and resumed from its last event. */
static void reads_all_events_of_a_stream_that_ended(void **state)
{
    struct told *t = *state;
    struct heard h = {0};
    const char *last;

    fake_kube_list(t->f, "0", NULL, "");
    fake_kube_watch(t->f, FAKE_WATCH_ENDS, many_events(t->f, EVENTS));
    last = fake_kube_text(t->f, "%d", EVENTS);
    fake_kube_check(t->f, last);
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "20001"));
    hear_begin(&h, t);
    fake_kube_turn(t->f, &h.n, EVENTS);
    assert_in_shares(&h);
    while (fake_kube_calls(t->f)) /* the stream */
        assert_int_equal(loop_turn(t->f->loop, 5), 0);
    fake_kube_advance(t->f, 500);
    assert_watches_from(t, 3, last);
}

/* Its values take more than a turn has a share for, and what follows waits for them. */
static void reads_one_long_event_in_shares_of_turns(void **state)
{
    struct told *t = *state;
    struct heard h = {0};
    BUF_AUTO(b, SIZE_MAX / 2);

    for (unsigned i = 0; i < LONG_EVENT_VALUES; i++)
        buf_printf(&b, "%s{\"a\":%u}", i ? "," : "", i);
    assert_int_equal(buf_failed(&b), 0);
    fake_kube_list(t->f, "0", NULL, "");
    fake_kube_watch(t->f, FAKE_WATCH_STAYS,
                    fake_kube_text(t->f,
                                   "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\","
                                   "\"name\":\"n0\",\"resourceVersion\":\"1\"},\"values\":[%s]}}\n%s",
                                   text_of(t->f, &b),
                                   fake_kube_event(t->f, "ADDED", fake_kube_object(t->f, "ns", "n1", "2"))));
    hear_begin(&h, t);
    fake_kube_turn(t->f, &h.n, 2);
    assert_int_equal(h.n_bad_order, 0);
    assert_int_equal(h.n_values, LONG_EVENT_VALUES);
    assert_true(loop_most_bytes(t->f->loop) > LOOP_TURN_BYTES / 2);
    assert_true(loop_most_bytes(t->f->loop) <= LOOP_TURN_BYTES + LOOP_PIECE_BYTES);
}

static void turn_until_some(struct heard *h)
{
    while (h->n == 0)
        assert_int_equal(loop_turn(h->t->f->loop, 5), 0);
    assert_true(h->n < OBJECTS);
}

/* Half of a page is not the list: nothing is taken as gone, and nothing more is told. */
static void can_be_freed_with_half_a_page(void **state)
{
    struct told *t = *state;
    struct heard h = {0};
    unsigned n;

    fake_kube_list(t->f, "20000", NULL, many_objects(t->f, OBJECTS));
    hear_begin(&h, t);
    turn_until_some(&h);
    n = h.n;
    t->watch = kube_watch_free(t->watch);
    fake_kube_idle(t->f);
    assert_int_equal(h.n, n);
    assert_int_equal(h.synced, 0);
    assert_int_equal(h.deleted, 0);
    assert_int_equal(fake_kube_calls(t->f), 0);
}

/* A watch that is hurried asks for the page again, and the list is complete only after that one. */
static void asks_again_for_a_page_that_was_half_read(void **state)
{
    struct told *t = *state;
    struct heard h = {0};

    fake_kube_list(t->f, "20000", NULL, many_objects(t->f, OBJECTS));
    fake_kube_list(t->f, "20000", NULL, many_objects(t->f, OBJECTS));
    fake_kube_watch(t->f, FAKE_WATCH_STAYS, fake_kube_bookmark(t->f, "20001"));
    hear_begin(&h, t);
    turn_until_some(&h);
    kube_watch_hurry(t->watch);
    assert_int_equal(h.synced, 0);
    fake_kube_turn(t->f, &h.synced, 1);
    assert_int_equal(h.n, OBJECTS); /* none of them twice */
    assert_int_equal(h.deleted, 0);
    assert_in_shares(&h);
    assert_lists(t, 0);
    assert_lists(t, 1);
}

/* A page that ends in the middle tells nothing, not even what came before. */
static void takes_nothing_of_a_damaged_page(void **state)
{
    struct told *t = *state;
    struct heard h = {0};
    const char *objects = many_objects(t->f, 2000);

    fake_push(t->f->server, (struct fake_answer){.body = fake_kube_text(t->f,
                                                                        "{\"metadata\":{\"resourceVersion\":"
                                                                        "\"1\"},\"items\":[%s,{\"metadata\":",
                                                                        objects)});
    hear_begin(&h, t);
    fake_kube_turn(t->f, &h.errors, 1);
    assert_int_equal(h.n, 0);
    assert_non_null(strstr(kube_watch_error(t->watch), "HTTP 200 with a body that is not JSON at line 1"));
}

/* A tree is freed in one step, so its size is bounded. */
static void refuses_a_page_with_an_object_that_is_too_large(void **state)
{
    struct told *t = *state;
    struct heard h = {0};
    BUF_AUTO(items, SIZE_MAX / 2);

    buf_puts(&items, many_objects(t->f, 2));
    buf_puts(&items, ",{\"data\":\"");
    for (unsigned i = 0; i < KUBE_TREE_MAX_BYTES / 16; i++)
        buf_puts(&items, "0123456789abcdef");
    buf_puts(&items, "\"}");
    assert_int_equal(buf_failed(&items), 0);
    fake_kube_list(t->f, "1", NULL, text_of(t->f, &items));
    hear_begin(&h, t);
    fake_kube_turn(t->f, &h.errors, 1);
    assert_int_equal(h.synced, 0);
    assert_int_equal(h.deleted, 0);
    assert_non_null(strstr(kube_watch_error(t->watch),
                           "HTTP 200 with a body that is a list whose item 3 is larger than 4 MiB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(reads_a_page_in_shares_of_turns),         CASE(reads_events_in_shares_of_turns),
        CASE(reads_all_events_of_a_stream_that_ended), CASE(reads_one_long_event_in_shares_of_turns),
        CASE(can_be_freed_with_half_a_page),           CASE(asks_again_for_a_page_that_was_half_read),
        CASE(takes_nothing_of_a_damaged_page),         CASE(refuses_a_page_with_an_object_that_is_too_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
