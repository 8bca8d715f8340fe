/* What the share of a turn of the loop costs (loop.h, LOOP_TURN_BYTES): unpacking, or reading, so many bytes
 * of what peers send. Nothing else waits longer than that for a large answer. */
#include "controller/kube/tree.h"
#include "exporter/base/clock.h"
#include "exporter/base/inflate.h"
#include "exporter/base/loop.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/score/answer.h"
#include "exporter/score/prom_answer.h"
#include "exporter/score/round_error.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <zlib.h>

enum { REPEATS = 15, LABEL_MAX = 256, RESULTS = 6000, SERIES = 470, POINTS = 60 };

struct work {
    struct buf plain, packed;
};

static void pack(struct work *w)
{
    z_stream z = {.next_in = (unsigned char *)w->plain.p, .avail_in = (unsigned)w->plain.n};
    char *room;

    must(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    must(buf_reserve(&w->packed, deflateBound(&z, w->plain.n), &room) == 0);
    z.next_out = (unsigned char *)room;
    z.avail_out = (unsigned)deflateBound(&z, w->plain.n);
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    w->packed.n += z.total_out;
    (void)deflateEnd(&z);
}

static void unpack(void *arg)
{
    struct work *w = arg;
    CLEANUP(cleanup_inflate_free) struct inflate *d = inflate_new();
    BUF_AUTO(out, SIZE_MAX / 2);
    struct str rest = buf_str(&w->packed), piece;

    while (out.n < LOOP_TURN_BYTES && inflate_next(d, &rest, &piece) > 0)
        buf_put_str(&out, piece);
    must(out.n >= LOOP_TURN_BYTES);
}

static void read_scores(void *arg)
{
    struct work *w = arg;
    CLEANUP(cleanup_batch_builder_free)
    struct batch_builder *b = batch_builder_new("cluster-1", "sample_my_score", 1u << 24);
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    struct answer_stats stats;
    char why[ROUND_REASON_BYTES];

    must(answer_parse(buf_str(&w->plain), b, LABEL_MAX, &stats, why) == ROUND_OK);
    batch_seal(b, (unix_ms){0}, &batch, NULL);
}

static void read_series(void *arg)
{
    struct work *w = arg;
    struct prom_answer a;
    char why[ROUND_REASON_BYTES];

    must(prom_answer_parse(buf_str(&w->plain), &a, why) == ROUND_OK);
    buf_done(&a.made);
}

/* As much of a tree as a turn has a share for. */
static void read_tree(void *arg)
{
    struct work *w = arg;
    struct kube_tree t = {0};

    kube_tree_begin(&t, buf_str(&w->plain), NULL);
    must(kube_tree_step(&t, LOOP_TURN_BYTES) >= LOOP_TURN_BYTES);
    kube_tree_done(&t);
}

static void work_begin(struct work *w)
{
    buf_init(&w->plain, SIZE_MAX / 2);
    buf_init(&w->packed, SIZE_MAX / 2);
}

static void work_done(struct work *w)
{
    buf_done(&w->plain);
    buf_done(&w->packed);
}

/* A bomb: a byte of it becomes a thousand. */
static void measure_bomb(void)
{
    struct work w;
    char *room;

    work_begin(&w);
    must(buf_reserve(&w.plain, 2 * LOOP_TURN_BYTES, &room) == 0);
    memset(room, ' ', 2 * LOOP_TURN_BYTES);
    w.plain.n = 2 * LOOP_TURN_BYTES;
    pack(&w);
    measure_print(measure_ms(unpack, &w, REPEATS), "bomb_ms");
    work_done(&w);
}

static void measure_series(void)
{
    struct work w;

    work_begin(&w);
    gen_query_answer(&w.plain, SERIES, POINTS);
    must(w.plain.n >= LOOP_TURN_BYTES);
    pack(&w);
    measure_print(measure_ms(unpack, &w, REPEATS), "unpack_ms");
    measure_print(measure_ms(read_series, &w, REPEATS) * LOOP_TURN_BYTES / (double)w.plain.n, "series_ms");
    work_done(&w);
}

static void measure_scores(void)
{
    struct work w;

    work_begin(&w);
    gen_scoring_answer(&w.plain, RESULTS, 0, 0);
    measure_print(measure_ms(read_scores, &w, REPEATS) * LOOP_TURN_BYTES / (double)w.plain.n, "scores_ms");
    measure_print(measure_ms(read_tree, &w, REPEATS), "tree_ms");
    work_done(&w);
}

int main(void)
{
    measure_init();
    measure_print((double)LOOP_TURN_BYTES, "bytes");
    measure_bomb();
    measure_series();
    measure_scores();
    return 0;
}
