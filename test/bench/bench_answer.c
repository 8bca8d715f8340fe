/* From a scoring answer to a sealed batch: the first round, which makes the set of series, and those after
 * it. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <jansson.h>
#include <stdio.h>

enum { REPEATS = 15, PEER_REPEATS = 3, LABEL_MAX = 256 };

struct work {
    struct buf body, churned; /* the second has other series in one place of a hundred */
    struct buf other;         /* and this one in all places */
    char *copy;
    size_t results;
    struct batch_builder *builder;
    bool turn;
};

static void round_with(const struct work *w, struct batch_builder *b, const struct buf *body)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    struct answer_stats stats;
    char why[1024];

    must(answer_parse(buf_str(body), b, LABEL_MAX, &stats, why) == ROUND_OK);
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    must(series_count(batch->set) == w->results);
}

static void first_round(void *arg)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;

    b = batch_builder_new("cluster-1", "sample_my_score", 1u << 24);
    round_with(arg, b, &((struct work *)arg)->body);
}

static void next_round(void *arg)
{
    struct work *w = arg;

    round_with(w, w->builder, &w->body);
}

static void next_round_churned(void *arg)
{
    struct work *w = arg;

    w->turn = !w->turn;
    round_with(w, w->builder, w->turn ? &w->churned : &w->body);
}

static void next_round_new(void *arg)
{
    struct work *w = arg;

    w->turn = !w->turn;
    round_with(w, w->builder, w->turn ? &w->other : &w->body);
}

/* Decodes the answer and looks at every label and score: less than an agent has to do. */
static void walk(void *arg)
{
    static const char *const labels[] = {"app", "container", "device", "meta", "namespace", "node", "pod"};
    struct work *w = arg;
    json_t *answer = json_loadb(w->body.p, w->body.n, 0, NULL), *result;
    size_t i, n = 0;
    double sum = 0;

    json_array_foreach(json_object_get(answer, "results"), i, result)
    {
        json_t *metric = json_object_get(result, "metric");
        for (size_t k = 0; k < ARRAY_SIZE(labels); k++)
            n += json_string_length(json_object_get(metric, labels[k]));
        sum += json_number_value(json_object_get(result, "score"));
    }
    json_decref(answer);
    must(n > w->results && sum > 0);
}

static void copy(void *arg)
{
    struct work *w = arg;

    memcpy(w->copy, w->body.p, w->body.n);
    measure_keep(w->copy);
}

static void measure(size_t results)
{
    struct work w = {.body = {.max = SIZE_MAX / 2},
                     .churned = {.max = SIZE_MAX / 2},
                     .other = {.max = SIZE_MAX / 2},
                     .results = results};
    unsigned n = (unsigned)results;

    gen_scoring_answer(&w.body, (int)results, 0, 0);
    gen_scoring_answer(&w.churned, (int)results, 0, 100);
    gen_scoring_answer(&w.other, (int)results, 0, 1);
    w.copy = malloc(w.body.n);
    must(w.copy);
    w.builder = batch_builder_new("cluster-1", "sample_my_score", 1u << 24);
    measure_print((double)w.body.n, "bytes_%u", n);
    measure_print(measure_ms(first_round, &w, REPEATS), "first_ms_%u", n);
    measure_print(measure_ms(next_round, &w, REPEATS), "next_ms_%u", n);
    measure_print(measure_ms(next_round_churned, &w, REPEATS), "churn_ms_%u", n);
    measure_print(measure_ms(next_round_new, &w, REPEATS), "new_ms_%u", n);
    measure_print(measure_ms(copy, &w, REPEATS), "memcpy_ms_%u", n);
    measure_print(measure_ms(walk, &w, PEER_REPEATS), "jansson_ms_%u", n);
    w.builder = batch_builder_free(w.builder);
    free(w.copy);
    buf_done(&w.body);
    buf_done(&w.churned);
    buf_done(&w.other);
}

/* With two arguments, an answer of so many results is only written to a file, for the other programs. */
int main(int argc, char **argv)
{
    BUF_AUTO(body, SIZE_MAX / 2);
    FILE *f;

    measure_init();
    if (argc > 2) {
        gen_scoring_answer(&body, atoi(argv[1]), 0, 0);
        f = fopen(argv[2], "we");
        must(f && fwrite(body.p, 1, body.n, f) == body.n && fclose(f) == 0);
        return 0;
    }
    measure(10000);
    measure(100000);
    return 0;
}
