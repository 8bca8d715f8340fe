/* A scoring request: whatever it holds, an error names a place, and what is read is what the checking parser
 * accepts; the results of what is read are valid JSON. */
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/str.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(struct str text)
{
    struct jr j;

    jr_init(&j, text, JR_STRICT);
    (void)jr_skip(&j, NULL);
    return jr_end(&j);
}

static void check_series(struct str body, const struct input_series *s)
{
    struct str label;

    assert(s->metric.p >= body.p && s->metric.p + s->metric.n <= body.p + body.n && is_json(s->metric));
    assert(s->n == 0 || (s->times && s->values));
    if (series_label(s->metric, "node", &label))
        assert(label.p >= s->metric.p && label.p + label.n <= s->metric.p + s->metric.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    BUF_AUTO(out, 1u << 20);
    struct input_series series;
    struct scoring s = {0};
    struct request rq;
    size_t n = 0;
    int r;

    request_begin(&rq, body);
    for (; request_next(&rq, &series); n++)
        check_series(body, &series);
    r = request_end(&rq);
    assert(r == 0 || *rq.why);
    assert(r < 0 || (is_json(body) && n + rq.n_without_values == rq.n_series));
    results_begin(&s.results, &out);
    request_begin(&s.request, body);
    assert(model_mean.score(NULL, &s) == 0);
    assert(request_end(&s.request) == r);
    if (results_end(&s.results) == 0)
        assert(is_json(buf_str(&out)) && (r < 0 || s.results.n + s.left_out[LEFT_OUT_NOT_FINITE] == n));
    return 0;
}
