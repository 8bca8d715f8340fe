/* From the answer of a range query to the body of a scoring request: found in the answer and sent from
 * there, against decoding it and encoding it anew. */
#include "exporter/score/prom_answer.h"
#include "exporter/score/round_error.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <jansson.h>
#include <stdio.h>

enum { SERIES = 10000, POINTS = 60, REPEATS = 15, PEER_REPEATS = 3 };

struct work {
    struct buf body;
    char *copy;
};

static void splice(void *arg)
{
    struct work *w = arg;
    struct prom_answer a;
    char why[1024];

    must(prom_answer_parse(buf_str(&w->body), &a, why) == ROUND_OK && a.n_series == SERIES);
    measure_keep(a.series.p);
    buf_done(&a.made);
}

static void decode_and_encode(void *arg)
{
    struct work *w = arg;
    json_t *answer = json_loadb(w->body.p, w->body.n, 0, NULL), *request;
    char *text;

    request = json_pack("{s:O}", "data", json_object_get(json_object_get(answer, "data"), "result"));
    json_decref(answer);
    text = json_dumps(request, JSON_COMPACT);
    must(text && strlen(text) + 100 > w->body.n);
    json_decref(request);
    free(text);
}

static void copy(void *arg)
{
    struct work *w = arg;

    memcpy(w->copy, w->body.p, w->body.n);
    measure_keep(w->copy);
}

/* With an argument, the body is only written there, for the other programs. */
int main(int argc, char **argv)
{
    struct work w = {.body = {.max = SIZE_MAX / 2}};
    FILE *f;

    measure_init();
    gen_query_answer(&w.body, SERIES, POINTS);
    if (argc > 1) {
        f = fopen(argv[1], "we");
        must(f && fwrite(w.body.p, 1, w.body.n, f) == w.body.n && fclose(f) == 0);
        return 0;
    }
    w.copy = malloc(w.body.n);
    must(w.copy != NULL);
    measure_print((double)w.body.n, "bytes");
    measure_print(measure_peak_bytes(splice, &w), "ours_bytes");
    measure_print(measure_ms(splice, &w, REPEATS), "ours_ms");
    measure_print(measure_ms(copy, &w, REPEATS), "memcpy_ms");
    measure_print(measure_peak_bytes(decode_and_encode, &w), "jansson_bytes");
    measure_print(measure_ms(decode_and_encode, &w, PEER_REPEATS), "jansson_ms");
    free(w.copy);
    buf_done(&w.body);
    return 0;
}
