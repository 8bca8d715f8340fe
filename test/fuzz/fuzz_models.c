/* Calls of models: the first byte chooses one, the rest is the request. Whatever the series are, the answer
 * is valid, and no score is NaN. */
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "test/unit/models/model_world.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The result's metric is an object, its score a finite number. */
static void check_result(struct jr *j)
{
    struct str key;
    size_t scores = 0, metrics = 0;

    for ((void)jr_object(j); jr_member(j, &key);) {
        bool score = jr_key_is(key, "score"), metric = jr_key_is(key, "metric");

        assert(!score || jr_peek(j) == JR_NUMBER);
        assert(!metric || jr_peek(j) == JR_OBJECT);
        scores += score;
        metrics += metric;
        (void)jr_skip(j, NULL);
    }
    assert(scores == 1 && metrics == 1);
}

static void check_answer(struct str answer, size_t results)
{
    struct str key;
    size_t n = 0;
    struct jr j;

    jr_init(&j, answer, JR_STRICT);
    (void)jr_object(&j);
    assert(jr_member(&j, &key) && jr_key_is(key, "results"));
    for ((void)jr_array(&j); jr_item(&j); n++)
        check_result(&j);
    assert(!jr_member(&j, &key) && jr_end(&j) && n == results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct model *const chosen[] = {&model_mean, &model_forecast};
    static struct instance *instances[ARRAY_SIZE(chosen)];
    BUF_AUTO(answer, 1u << 26);
    size_t i = size ? data[0] % ARRAY_SIZE(chosen) : 0;
    struct scoring s;

    if (!instances[i])
        instances[i] = instance_new(chosen[i]);
    if (size && model_call(chosen[i], instances[i]->state, (struct str){(const char *)data + 1, size - 1},
                           &answer, &s) == 0)
        check_answer(buf_str(&answer), s.results.n);
    return 0;
}
