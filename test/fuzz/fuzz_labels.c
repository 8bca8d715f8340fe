/* Label values, cut at NUL: a set of series returns the same bytes. */
#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_own(size_t label)
{
    return label == DS_CLUSTER || label == DS_SCORE_NAME;
}

static struct batch_labels split(struct str s)
{
    struct batch_labels l = {.escapes = 0};

    for (size_t i = 0; i < DS_LABELS; i++) {
        size_t n = strnlen(s.p, s.n);
        if (is_own(i))
            continue;
        l.value[i] = (struct str){s.p, n};
        if (memchr(s.p, '\\', n) || memchr(s.p, '"', n) || memchr(s.p, '\n', n))
            l.escapes |= 1u << i;
        n += n < s.n;
        s = (struct str){s.p + n, s.n - n};
    }
    return l;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch_labels in = split((struct str){size ? (const char *)data : "", size});
    struct str out[DS_LABELS], name;
    struct batch_builder *b = NULL;
    struct batch *batch = NULL;

    in.value[DS_CLUSTER] = in.value[DS_SCORE_NAME] = STR("a\"\\\n");
    b = batch_builder_new("a\"\\\n", "a\"\\\n", 1);
    batch_begin(b, 0, 0);
    assert(batch_add(b, &in, 1) == 0);
    batch_seal(b, (unix_ms){0}, &batch, NULL);
    name = series_name(batch->set, 0);
    assert(!memchr(name.p, '\n', name.n));
    assert(str_starts(name, STR("dynamic_score{ds_app=\"")) && name.p[name.n - 1] == '}');
    series_labels(batch->set, 0, out);
    for (size_t i = 0; i < DS_LABELS; i++)
        assert(str_eq(out[i], in.value[i]));
    (void)batch_unref(batch);
    (void)batch_builder_free(b);
    return 0;
}
