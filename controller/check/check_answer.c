/* What an agent makes of an answer: read by the agent's own code, under its default limits. */
#include "controller/check/check_internal.h"

#include "exporter/agent/config.h"
#include "exporter/base/json.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/error.h"
#include "exporter/ui/ranking.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

void answer_done(struct reading_of_answer *a)
{
    a->batch = batch_unref(a->batch);
}

/* Which rule a result breaks that the agent drops. */
static enum rule answer_rule_of_drop(const struct answer_stats *s)
{
    if (strstr(s->first_invalid, "].metric"))
        return RULE_LABEL_STRINGS;
    return strstr(s->first_invalid, "].score") ? RULE_SCORE : RULE_RESULTS;
}

static void answer_set_rule(struct reading_of_answer *a)
{
    if (a->error == ROUND_JSON)
        a->rule = RULE_JSON;
    else if (a->stats.results && a->stats.invalid == a->stats.results)
        a->rule = answer_rule_of_drop(&a->stats);
    else
        a->rule = RULE_RESULTS;
}

/* Looks at the labels of one result as they are written: the agent takes some that are no strings. */
static void answer_scan_metric(struct jr *j, size_t result, char out[200])
{
    struct str key;

    if (jr_peek(j) != JR_OBJECT) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_peek(j) != JR_STRING && !*out)
            (void)snprintf(out, 200, "results[%zu].metric.%.*s: expected a string", result,
                           (int)size_min(key.n, 100), key.p);
        (void)jr_skip(j, NULL);
    }
}

static void answer_scan_results(struct jr *j, char out[200])
{
    struct str key;

    for (size_t i = 0; jr_item(j); i++) {
        if (jr_peek(j) != JR_OBJECT) {
            (void)jr_skip(j, NULL);
            continue;
        }
        (void)jr_object(j);
        while (jr_member(j, &key))
            if (jr_key_is(key, "metric"))
                answer_scan_metric(j, i, out);
            else
                (void)jr_skip(j, NULL);
    }
}

static void answer_scan(struct str body, char out[200])
{
    struct jr j;
    struct str key;

    jr_init(&j, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    if (!jr_object(&j))
        return;
    while (jr_member(&j, &key)) {
        if (jr_key_is(key, "results") && jr_peek(&j) == JR_ARRAY && jr_array(&j))
            answer_scan_results(&j, out);
        else
            (void)jr_skip(&j, NULL);
    }
}

int answer_read(struct reading_of_answer *ret, const struct check *c, struct str body)
{
    const struct batch_options o = {
        .cluster_name = c->options->cluster_name,
        .score_name = c->summary.score_name,
        .max_series = (size_t)limits_default.series_per_scorer,
    };
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = NULL;
    int r = batch_builder_new(&b, &o) ?: batch_begin(b);

    *ret = (struct reading_of_answer){.error = ROUND_OK};
    if (r < 0)
        return r;
    ret->error = answer_parse(body, b, (size_t)limits_default.label_value_bytes, &ret->stats, ret->why);
    if (ret->error == ROUND_MEMORY)
        return -ENOMEM;
    if (ret->error != ROUND_OK) {
        answer_set_rule(ret);
        return 0;
    }
    if (ret->stats.invalid)
        ret->rule = answer_rule_of_drop(&ret->stats);
    answer_scan(body, ret->odd_label);
    r = batch_seal(b, loop_wall(c->loop), &ret->batch, &ret->duplicates);
    for (size_t i = 0; r == 0 && i < series_count(ret->batch->set); i++)
        ret->not_finite += isfinite(ret->batch->values[i]) ? 0 : 1;
    return r;
}

static bool answer_same_labels(const struct str a[DS_LABELS], const struct str b[DS_LABELS], bool with_meta)
{
    for (unsigned i = 0; i < DS_LABELS; i++)
        if ((with_meta || i != DS_META) && !str_eq(a[i], b[i]))
            return false;
    return true;
}

size_t answer_new_series(const struct batch *a, const struct batch *b, bool with_meta)
{
    for (size_t i = 0; i < series_count(a->set); i++) {
        struct str own[DS_LABELS], other[DS_LABELS];
        bool found = false;

        series_labels(a->set, i, own);
        for (size_t k = 0; k < series_count(b->set) && !found; k++) {
            series_labels(b->set, k, other);
            found = answer_same_labels(own, other, with_meta);
        }
        if (!found)
            return i;
    }
    return SIZE_MAX;
}

void answer_describe_series(const struct batch *b, size_t series, char out[FINDINGS_TEXT_BYTES])
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = shown_labels(b, series, labels);
    BUF_AUTO(text, 1 << 20);
    int r = n ? 0 : buf_puts(&text, "no labels");

    for (size_t i = 0; i < n && r == 0; i++)
        r = buf_printf(&text, "%s%s=", i ? ", " : "", labels[i].name) ?: buf_put_json(&text, labels[i].value);
    text_line(out, FINDINGS_TEXT_BYTES, buf_str(&text));
}
