/* Revised frames against two things that know nothing of them: libsnappy, which takes them apart, and
 * protobuf-c, which reads them. Frames are revised again and again, so that a distance that is off by one
 * shows sooner or later. */
#include "exporter/base/random.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "remotewrite/frame.h"
#include "remotewrite/revision.h"
#include "test/unit/remotewrite/rw.h"

static const int64_t AT = 1760000000123;

enum { PODS = 600, POD_BYTES_MAX = 3000 };

/* Series that come and go: pod i is there or not, and always has the same labels. */
struct pods {
    char *name[PODS];
    bool there[PODS];
    struct batch_builder *builder;
    struct rw_endpoint_config *config;
};

/* Of few letters, so that there is much to copy; `longest` decides how far back that is. */
static void pods_begin(struct pods *p, size_t longest)
{
    *p = (struct pods){.builder = rw_builder("score"),
                       .config =
                           rw_endpoint("[{url: 'http://h/', external_labels: {zone: \"é\", ds_app: x}}]")};
    for (size_t i = 0; i < PODS; i++) {
        char name[POD_BYTES_MAX + 32];
        size_t n = (size_t)snprintf(name, sizeof(name), "pod-%04zu-", i), more = rand_below(longest);

        for (size_t k = 0; k < more; k++)
            name[n++] = (char)('a' + rand_below(1 + rand_below(4)));
        name[n] = '\0';
        p->name[i] = strdup(name);
        assert_non_null(p->name[i]);
    }
}

static void pods_end(struct pods *p)
{
    for (size_t i = 0; i < PODS; i++)
        free(p->name[i]);
    (void)batch_builder_free(p->builder);
    (void)rw_endpoint_config_unref(p->config);
}

static struct batch *pods_batch(struct pods *p)
{
    struct batch *batch;

    batch_begin(p->builder, 0, 0);
    for (size_t i = 0; i < PODS; i++) {
        struct batch_labels l = {.escapes = 0};

        for (int k = 0; k < DS_LABELS; k++)
            l.value[k] = k == DS_POD ? str_of(p->name[i]) : k == DS_NODE ? STR("node-1") : STR("");
        if (p->there[i])
            assert_int_equal(batch_add(p->builder, &l, 1.0 + (double)rand_below(1000)), 0);
    }
    batch_seal(p->builder, (unix_ms){AT}, &batch, NULL);
    return batch;
}

/* The frame has the series [begin, end) of the batch, with their labels and values. */
static void assert_has(const struct frame *f, const struct batch *b, size_t begin, size_t end,
                       const struct rw_endpoint_config *c)
{
    struct label_bytes *l = label_bytes_new(b->set, begin, end - begin, c, NULL);
    char *block = malloc(f->block_n);
    Rw__V1__WriteRequest *rq;

    assert_non_null(block);
    frame_fill(f, block, b->values, AT);
    rq = rw_decode((struct str){block, f->block_n});
    assert_int_equal(f->n, end - begin);
    assert_int_equal(rq->n_timeseries, f->n);
    assert_int_equal(rw__v1__write_request__get_packed_size(rq), f->raw_n); /* no value is 0 */
    for (size_t i = 0; i < f->n; i++) {
        const Rw__V1__TimeSeries *s = rq->timeseries[i];
        struct str labels = label_bytes_at(l, i);
        Rw__V1__TimeSeries *want = rw__v1__time_series__unpack(NULL, labels.n, (const uint8_t *)labels.p);

        assert_non_null(want);
        assert_int_equal(s->n_labels, want->n_labels);
        for (size_t k = 0; k < s->n_labels; k++) {
            assert_string_equal(s->labels[k]->name, want->labels[k]->name);
            assert_string_equal(s->labels[k]->value, want->labels[k]->value);
        }
        rw__v1__time_series__free_unpacked(want, NULL);
        assert_int_equal(s->n_samples, 1);
        assert_true(s->samples[0]->value == b->values[begin + i] && s->samples[0]->timestamp == AT);
    }
    rw__v1__write_request__free_unpacked(rq, NULL);
    free(block);
    (void)label_bytes_free(l);
}

/* Revises the frame of one batch for another. */
static void revise(const struct pods *p, struct frame *f, const struct batch *was, const struct batch *now)
{
    CLEANUP(series_diff_done) struct series_diff d = {0};
    CLEANUP(cleanup_label_source_free) struct label_source *labels = label_source_new(now->set, p->config);
    struct revision v = {.end = series_count(now->set), .labels = labels, .at = AT};
    CLEANUP(revision_room_done) struct revision_room room = {0};

    series_diff_init(&d, was->set, now->set);
    v.moved = d.moved;
    if (d.n_gone == 0 && d.n_fresh == 0) {
        frame_renumber(f, d.moved);
        return;
    }
    assert_true(frame_revise(f, &v, &room));
}

/* It also stays close to what packing all anew gives, and knows when it does not. */
static void check_chain(size_t longest, size_t revisions, size_t most_changes)
{
    struct pods p;
    struct batch *was, *now;
    struct label_bytes *l;
    struct frame *f, *anew;

    pods_begin(&p, longest);
    for (size_t i = 0; i < PODS; i++)
        p.there[i] = rand_below(2);
    p.there[PODS / 2] = true;
    was = pods_batch(&p);
    l = label_bytes_new(was->set, 0, series_count(was->set), p.config, NULL);
    f = frame_new(l, 0, l->n, AT);
    (void)label_bytes_free(l);
    for (size_t k = 0; k < revisions; k++) {
        for (size_t changes = rand_below(most_changes + 1); changes > 0; changes--)
            p.there[rand_below(PODS)] ^= true;
        p.there[PODS / 2] = true;
        now = pods_batch(&p);
        revise(&p, f, was, now);
        assert_has(f, now, 0, series_count(now->set), p.config);
        (void)batch_unref(was);
        was = now;
    }
    l = label_bytes_new(was->set, 0, series_count(was->set), p.config, NULL);
    anew = frame_new(l, 0, l->n, AT);
    assert_true(f->block_n < anew->block_n + anew->block_n / 2 &&
                (frame_is_loose(f) || f->block_n < anew->block_n * 5 / 4));
    (void)frame_free(anew);
    (void)label_bytes_free(l);
    (void)frame_free(f);
    (void)batch_unref(was);
    pods_end(&p);
}

static void revises_short_labels(void **state)
{
    (void)state;
    check_chain(12, 300, 8);
    check_chain(40, 100, 200);
}

/* Copies reach over many kilobytes, and some become too far. */
static void revises_long_labels(void **state)
{
    (void)state;
    check_chain(400, 100, 10);
    check_chain(POD_BYTES_MAX, 60, 30);
}

/* To one series and back: the length at the head takes one byte, two, and three. */
static void revises_to_almost_nothing(void **state)
{
    struct pods p;
    struct batch *was, *now;
    struct label_bytes *l;
    struct frame *f;

    (void)state;
    pods_begin(&p, 10);
    p.there[7] = true;
    was = pods_batch(&p);
    l = label_bytes_new(was->set, 0, 1, p.config, NULL);
    f = frame_new(l, 0, 1, AT);
    (void)label_bytes_free(l);
    for (size_t k = 0; k < 60; k++) {
        size_t n = k % 3 == 0 ? PODS : k % 3 == 1 ? 1 + k / 3 : 20 * k;

        for (size_t i = 0; i < PODS; i++)
            p.there[i] = i < n || i == PODS - 1 - k;
        now = pods_batch(&p);
        revise(&p, f, was, now);
        assert_has(f, now, 0, series_count(now->set), p.config);
        (void)batch_unref(was);
        was = now;
    }
    (void)frame_free(f);
    (void)batch_unref(was);
    pods_end(&p);
}

/* All other, with not one series that stays. */
static void replaces_every_series(void **state)
{
    struct pods p;
    struct batch *was, *now;
    struct label_bytes *l;
    struct frame *f;

    (void)state;
    pods_begin(&p, 30);
    for (size_t i = 0; i < PODS; i++)
        p.there[i] = i % 2;
    was = pods_batch(&p);
    l = label_bytes_new(was->set, 0, series_count(was->set), p.config, NULL);
    f = frame_new(l, 0, l->n, AT);
    (void)label_bytes_free(l);
    for (size_t i = 0; i < PODS; i++)
        p.there[i] ^= true;
    now = pods_batch(&p);
    revise(&p, f, was, now);
    assert_has(f, now, 0, series_count(now->set), p.config);
    (void)frame_free(f);
    (void)batch_unref(was);
    (void)batch_unref(now);
    pods_end(&p);
}

/* A frame of the middle of a set: what comes before and after it is another's. */
static void revises_a_part_of_a_set(void **state)
{
    CLEANUP(cleanup_label_source_free) struct label_source *labels = NULL;
    CLEANUP(series_diff_done) struct series_diff d = {0};
    CLEANUP(revision_room_done) struct revision_room room = {0};
    struct revision v;
    struct pods p;
    struct batch *was, *now;
    struct label_bytes *l;
    struct frame *f;

    (void)state;
    pods_begin(&p, 30);
    for (size_t i = 0; i < PODS; i++)
        p.there[i] = i % 2;
    was = pods_batch(&p);
    l = label_bytes_new(was->set, 100, 50, p.config, NULL); /* pods 201 to 299 */
    f = frame_new(l, 0, l->n, AT);
    (void)label_bytes_free(l);
    for (size_t i = 0; i < 200; i++)
        p.there[i] = i < 10; /* ten pods before it, instead of a hundred */
    p.there[202] = p.there[298] = p.there[300] = true;
    p.there[203] = p.there[299] = false;
    now = pods_batch(&p);
    series_diff_init(&d, was->set, now->set);
    labels = label_source_new(now->set, p.config);
    v = (struct revision){d.moved, 10, 61, labels, AT}; /* pod 300 belongs to it, too */
    assert_true(frame_revise(f, &v, &room));
    assert_has(f, now, 10, 61, p.config);
    (void)frame_free(f);
    (void)batch_unref(was);
    (void)batch_unref(now);
    pods_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(revises_short_labels),      cmocka_unit_test(revises_long_labels),
        cmocka_unit_test(revises_to_almost_nothing), cmocka_unit_test(replaces_every_series),
        cmocka_unit_test(revises_a_part_of_a_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
