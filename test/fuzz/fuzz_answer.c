/* A scoring API's answer: whatever it holds, the batch is one that can be exposed. */
#include "exporter/base/clock.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_series(const struct series_set *set, size_t i, size_t label_max)
{
    struct str labels[DS_LABELS], name = series_name(set, i);

    assert(utf8_valid_prefix(name) == name.n && !memchr(name.p, '\n', name.n) &&
           !memchr(name.p, '\0', name.n));
    series_labels(set, i, labels);
    for (size_t k = 0; k < DS_LABELS; k++)
        assert(labels[k].n <= (ds_label_sources[k].n ? label_max : 2));
}

static struct batch *read_once(struct batch_builder *b, struct str body, size_t label_max)
{
    struct batch *batch = NULL;
    struct answer_stats stats;
    char why[1024] = "";
    size_t duplicates;

    if (answer_parse(body, b, label_max, &stats, why) != ROUND_OK) {
        assert(*why && strlen(why) < sizeof(why) && !strchr(why, '\n'));
        batch_abandon(b);
        return NULL;
    }
    assert(!*why);
    batch_seal(b, (unix_ms){0}, &batch, &duplicates);
    assert(series_count(batch->set) + duplicates + stats.invalid == stats.results);
    return batch;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    size_t label_max = size % 2 ? 256 : size % 9;
    struct batch_builder *b = NULL;
    struct batch *first, *second;

    b = batch_builder_new("c1", "s1", 1000);
    first = read_once(b, body, label_max);
    second = read_once(b, body, label_max);
    assert(!first == !second && (!first || first->set == second->set));
    for (size_t i = 0; first && i < series_count(first->set); i++) {
        check_series(first->set, i, label_max);
        assert(i == 0 || str_cmp(series_name(first->set, i - 1), series_name(first->set, i)) < 0);
        assert(memcmp(&first->values[i], &second->values[i], sizeof(double)) == 0);
    }
    (void)batch_unref(first);
    (void)batch_unref(second);
    (void)batch_builder_free(b);
    return 0;
}
