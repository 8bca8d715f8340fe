/* Remote write's encoding of 100,000 series: the first time, in the steady state, and what the usual way
 * costs: protobuf-c packing and snappy, each round anew. Then what a receiver's other forms cost, and
 * bytes a sample of each. Last, a round from the batch to the disk, when none, some or all series are new. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"
#include "remote_v1.pb-c.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"
#include "remotewrite/intake.h"
#include "remotewrite/labels.h"
#include "remotewrite/queue.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <snappy-c.h>
#include <stdio.h>

enum {
    SERIES = 100000,
    PART = 10000,
    PARTS = SERIES / PART,
    REPEATS = 15,
    PEER_REPEATS = 5,
    ROUNDS = 24, /* that are measured, so that what is done once in some rounds counts */
    BATCHES = ROUNDS + 2,
    LABEL_MAX = 256
};

static const int64_t AT = 1760000000123;

struct work {
    struct batch *batch;
    struct rw_endpoint_config config;
    struct label_bytes *labels;
    struct frame *frames[PARTS];
    struct buf out, blocks[PARTS];
    Rw__V1__WriteRequest *decoded[PARTS];
    struct buf packed;
    enum rw_form form;
    size_t bytes;
    uint32_t crc;
};

static void make_labels(void *arg)
{
    struct work *w = arg;

    w->labels = label_bytes_free(w->labels);
    w->labels = label_bytes_new(w->batch->set, 0, SERIES, &w->config, NULL);
}

static void make_frames(void *arg)
{
    struct work *w = arg;

    for (size_t i = 0; i < PARTS; i++) {
        w->frames[i] = frame_free(w->frames[i]);
        w->frames[i] = frame_new(w->labels, i * PART, PART, AT);
    }
}

/* A round, into memory that is kept. */
static void fill(void *arg)
{
    struct work *w = arg;

    for (size_t i = 0; i < PARTS; i++)
        frame_fill(w->frames[i], w->blocks[i].p, w->batch->values, AT);
    measure_keep(w->blocks[0].p);
}

/* A round as intake does it: into new memory for each record, and with the record's checksum. */
static void fill_fresh(void *arg)
{
    struct work *w = arg;

    for (size_t i = 0; i < PARTS; i++) {
        char *block = malloc(w->frames[i]->block_n);

        must(block != NULL);
        frame_fill(w->frames[i], block, w->batch->values, AT);
        w->crc = crc32c(0, (struct str){block, w->frames[i]->block_n});
        measure_keep(block);
        free(block);
    }
}

static void copy(void *arg)
{
    struct work *w = arg;

    for (size_t i = 0; i < PARTS; i++)
        memcpy(w->blocks[i].p, w->frames[i]->block, w->frames[i]->block_n);
    measure_keep(w->blocks[0].p);
}

static void checksum(void *arg)
{
    struct work *w = arg;

    for (size_t i = 0; i < PARTS; i++)
        w->crc = crc32c(w->crc, buf_str(&w->blocks[i]));
}

static void pack_by_protobuf_c(void *arg)
{
    struct work *w = arg;

    for (size_t i = 0; i < PARTS; i++) {
        w->packed.n = rw__v1__write_request__pack(w->decoded[i], (uint8_t *)w->packed.p);
        measure_keep(w->packed.p);
    }
}

static void pack_and_compress(void *arg)
{
    struct work *w = arg;

    w->bytes = 0;
    for (size_t i = 0; i < PARTS; i++) {
        size_t n = w->out.cap;

        w->packed.n = rw__v1__write_request__pack(w->decoded[i], (uint8_t *)w->packed.p);
        must(snappy_compress(w->packed.p, w->packed.n, w->out.p, &n) == SNAPPY_OK);
        w->bytes += n;
    }
}

static void other_form(void *arg)
{
    struct work *w = arg;

    w->bytes = 0;
    for (size_t i = 0; i < PARTS; i++) {
        BUF_AUTO(message, BODY_MAX);
        CLEANUP(cleanup_free) struct str *series = NULL;
        size_t n;

        w->out.n = 0;
        must(body_unpack(buf_str(&w->blocks[i]), &message) == 0);
        must(body_series(buf_str(&message), &series, &n) == 0);
        must(body_make(w->form, series, n, NULL, &w->out) == 0);
        w->bytes += w->out.n;
    }
}

static struct batch *seal_answer(struct batch_builder *builder, const struct buf *body, int64_t at)
{
    struct answer_stats stats;
    struct batch *batch;
    char why[1024];

    must(answer_parse(buf_str(body), builder, LABEL_MAX, &stats, why) == ROUND_OK);
    batch_seal(builder, (unix_ms){at}, &batch, NULL);
    return batch;
}

static struct batch *make_batch(void)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = NULL;
    BUF_AUTO(body, SIZE_MAX / 2);

    builder = batch_builder_new("cluster-1", "sample_my_score", 1u << 24);
    gen_scoring_answer(&body, SERIES, 0, 0);
    return seal_answer(builder, &body, AT);
}

/* ---- Rounds ---- */

struct rounds {
    struct intake *intake;
    struct queue *queue;
    struct batch *batches[BATCHES]; /* of one builder, as the agent has them */
    int n;                          /* taken so far */
};

static void make_batches(struct rounds *r, int fresh)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *builder = NULL;

    builder = batch_builder_new("cluster-1", "sample_my_score", 1u << 24);
    for (int i = 0; i < BATCHES; i++) {
        BUF_AUTO(body, SIZE_MAX / 2);

        gen_churned_answer(&body, SERIES, i, fresh);
        r->batches[i] = seal_answer(builder, &body, AT + i);
    }
    r->n = 0;
}

/* Takes the next batch, and drops the records as soon as they are on disk. */
static void take_round(void *arg)
{
    struct rounds *r = arg;
    struct record *record;

    must(r->n < BATCHES);
    intake_publish(r->intake, r->batches[r->n], r->batches[r->n]->at.ms);
    r->n++;
    intake_commit(r->intake);
    while ((record = queue_pick(r->queue, AT)))
        queue_finish(r->queue, record);
}

static void measure_rounds(const struct work *w, const char *dir)
{
    static const int fresh[] = {0, 1, SERIES / 100, SERIES};
    const struct queue_options o = {
        .dir = dir, .segment_bytes = 16u << 20, .max_bytes = 1u << 30, .memory_bytes = 1u << 20};
    struct rounds r = {.n = 0};

    r.queue = queue_new(&o);
    must(queue_open(r.queue, (mono_ms){1}));
    r.intake = intake_new(&w->config, r.queue);
    intake_attach(r.intake, AT);
    for (size_t i = 0; i < ARRAY_SIZE(fresh); i++) {
        make_batches(&r, fresh[i]);
        measure_print(measure_mean_ms(take_round, &r, ROUNDS), "round_%d_ms", fresh[i]);
        measure_print(measure_peak_bytes(take_round, &r), "round_%d_peak_bytes", fresh[i]);
        for (int k = 0; k < BATCHES; k++)
            r.batches[k] = batch_unref(r.batches[k]);
    }
}

static void make_peers_input(struct work *w)
{
    size_t most = 0;
    char *room;

    for (size_t i = 0; i < PARTS; i++) {
        BUF_AUTO(message, BODY_MAX);

        must(body_unpack(buf_str(&w->blocks[i]), &message) == 0);
        w->decoded[i] = rw__v1__write_request__unpack(NULL, message.n, (const uint8_t *)message.p);
        must(w->decoded[i] != NULL);
        most = size_max(most, message.n);
    }
    w->packed.max = w->out.max = SIZE_MAX / 2;
    must(buf_reserve(&w->packed, most, &room) == 0);
    must(buf_reserve(&w->out, snappy_max_compressed_length(most) * 2, &room) == 0);
}

static void make_room(struct work *w)
{
    char *room;

    for (size_t i = 0; i < PARTS; i++) {
        w->blocks[i].max = SIZE_MAX / 2;
        must(buf_reserve(&w->blocks[i], w->frames[i]->block_n, &room) == 0);
        w->blocks[i].n = w->frames[i]->block_n;
        w->bytes += w->frames[i]->block_n;
    }
}

int main(int argc, char **argv)
{
    static struct work w;
    const double ns = 1e6 / SERIES;

    measure_init();
    w.batch = make_batch();
    w.config.max_samples_per_send = PART;
    measure_print(measure_ms(make_labels, &w, PEER_REPEATS) * ns, "labels_ns");
    measure_print(measure_ms(make_frames, &w, PEER_REPEATS) * ns, "frame_ns");
    make_room(&w);
    measure_print((double)w.bytes / SERIES, "template_bytes");
    measure_print(measure_ms(fill, &w, REPEATS) * ns, "fill_ns");
    measure_print(measure_ms(copy, &w, REPEATS) * ns, "memcpy_ns");
    measure_print(measure_ms(checksum, &w, REPEATS) * ns, "crc32c_ns");
    measure_print(measure_ms(fill_fresh, &w, REPEATS) * ns, "fill_fresh_crc_ns");
    make_peers_input(&w);
    measure_print(measure_ms(pack_by_protobuf_c, &w, PEER_REPEATS) * ns, "protobuf_c_ns");
    measure_print(measure_ms(pack_and_compress, &w, PEER_REPEATS) * ns, "protobuf_c_snappy_ns");
    measure_print((double)w.bytes / SERIES, "snappy_bytes");
    for (w.form = RW_FORM_VM; w.form <= RW_FORM_V2; w.form++) {
        const char *name = w.form == RW_FORM_VM ? "vm_zstd" : "v2_snappy";

        measure_print(measure_ms(other_form, &w, PEER_REPEATS) * ns, "%s_ns", name);
        measure_print((double)w.bytes / SERIES, "%s_bytes", name);
    }
    if (argc > 1)
        measure_rounds(&w, argv[1]);
    return 0;
}
