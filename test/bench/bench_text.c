/* The exposition text of a batch, and its compression; then both, and reading the answer before them, from
 * a thousand series to a million. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/block.h"
#include "exporter/metric/deflate.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <zlib.h>

enum { REPEATS = 15, PEER_REPEATS = 5, LABEL_MAX = 256 };

struct work {
    struct buf body;
    struct batch_builder *builder;
    struct batch *batch;
    struct buf text;
    struct buf out; /* of compressors and memcpy, kept from run to run */
};

static void read_answer(void *arg)
{
    struct work *w = arg;
    struct answer_stats stats;
    char why[1024];

    w->batch = batch_unref(w->batch);
    must(answer_parse(buf_str(&w->body), w->builder, LABEL_MAX, &stats, why) == ROUND_OK);
    batch_seal(w->builder, (unix_ms){0}, &w->batch, NULL);
}

/* Into a buffer that is kept, as memcpy() below, so that both are compared without the kernel's clearing
 * of pages. */
static void render(void *arg)
{
    struct work *w = arg;

    w->text.n = 0;
    must(batch_render(w->batch, &w->text) == 0);
    measure_keep(w->text.p);
}

/* As the page does it: into a new buffer. */
static void render_fresh(void *arg)
{
    struct work *w = arg;
    BUF_AUTO(text, SIZE_MAX / 2);

    must(batch_render(w->batch, &text) == 0);
    measure_keep(text.p);
}

static void copy(void *arg)
{
    struct work *w = arg;

    memcpy(w->out.p, w->text.p, w->text.n);
    measure_keep(w->out.p);
}

static void compress_ours(void *arg)
{
    struct work *w = arg;

    w->out.n = 0;
    must(deflate_piece(&w->out, buf_str(&w->text)) == 0);
}

static void compress_zlib(void *arg)
{
    struct work *w = arg;
    z_stream z = {.next_in = (Bytef *)w->text.p, .avail_in = (uInt)w->text.n};

    must(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_out = (Bytef *)w->out.p;
    z.avail_out = (uInt)w->out.cap;
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    w->out.n = z.total_out;
    must(deflateEnd(&z) == Z_OK);
}

static void checksum(void *arg)
{
    struct work *w = arg;
    uint32_t crc = crc32_gzip_refl(0, (uint8_t *)w->text.p, w->text.n);

    measure_keep(&crc);
}

static struct work *work_new(int series)
{
    struct work *w = calloc(1, sizeof(*w));
    char *to;

    must(w != NULL);
    w->body.max = w->text.max = w->out.max = SIZE_MAX / 2;
    gen_scoring_answer(&w->body, series, 0, 0);
    w->builder = batch_builder_new("cluster-1", "sample_my_score", 1u << 24);
    read_answer(w);
    render(w);
    must(buf_reserve(&w->out, w->text.n + w->text.n / 8 + 4096, &to) == 0);
    return w;
}

static void work_free(struct work *w)
{
    (void)batch_unref(w->batch);
    (void)batch_builder_free(w->builder);
    buf_done(&w->body);
    buf_done(&w->text);
    buf_done(&w->out);
    free(w);
}

static void measure_compressor(const char *name, void (*fn)(void *), struct work *w, int repeats)
{
    measure_print(measure_ms(fn, w, repeats), "%s_ms", name);
    measure_print((double)w->out.n, "%s_bytes", name);
}

static void measure_text(void)
{
    struct work *w = work_new(100000);

    measure_print((double)w->text.n, "bytes");
    measure_print(measure_ms(render, w, REPEATS), "render_ms");
    measure_print(measure_ms(render_fresh, w, REPEATS), "render_fresh_ms");
    measure_print(measure_ms(copy, w, REPEATS), "memcpy_ms");
    measure_print(measure_ms(checksum, w, REPEATS), "crc32_ms");
    measure_compressor("deflate", compress_ours, w, REPEATS);
    measure_compressor("zlib", compress_zlib, w, PEER_REPEATS);
    work_free(w);
}

static void measure_growth(int series, int repeats)
{
    struct work *w = work_new(series);
    double ns = 1e6 / series;

    measure_print(measure_ms(read_answer, w, repeats) * ns, "answer_ns_%d", series);
    measure_print(measure_ms(render, w, repeats) * ns, "render_ns_%d", series);
    measure_print(measure_ms(compress_ours, w, repeats) * ns, "deflate_ns_%d", series);
    work_free(w);
}

int main(void)
{
    measure_init();
    measure_text();
    measure_growth(1000, 99);
    measure_growth(10000, 51);
    measure_growth(100000, 9);
    measure_growth(1000000, 3);
    return 0;
}
