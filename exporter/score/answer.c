#include "exporter/score/answer.h"

#include "exporter/base/buf.h"
#include "exporter/num/num.h"
#include "exporter/score/answer_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const char too_large[] = ".score: number too large for a double";

static const char *parse_score_word(struct str raw, double *ret)
{
    switch (num_parse_word(raw, ret)) {
    case NUM_OK:
        return NULL;
    case NUM_RANGE:
        return too_large;
    default:
        return ".score: expected a number, got a string that is not one";
    }
}

static void parse_score(struct answer_reader *r)
{
    enum jr_type type = jr_peek(&r->j);
    struct str raw = STR("");

    if (type == JR_NUMBER && jr_number(&r->j, &raw)) {
        r->no_score = num_parse(raw, &r->score) == NUM_RANGE ? too_large : NULL;
    } else if (type == JR_NONFINITE && jr_number(&r->j, &raw)) {
        r->score = *raw.p == 'N' ? NAN : *raw.p == '-' ? -INFINITY : INFINITY;
        r->no_score = NULL;
    } else if (type == JR_STRING && jr_string(&r->j, &raw)) {
        r->no_score = parse_score_word(raw, &r->score);
    } else {
        (void)jr_skip(&r->j, NULL);
        r->no_score = type == JR_NULL ? ".score: expected a number, got null" : ".score: expected a number";
    }
    /* One bit pattern for all NaNs: in remote write another one is the stale marker. */
    if (isnan(r->score))
        memcpy(&r->score, &(uint64_t){0x7ff8000000000001ull}, sizeof(r->score));
}

static void count_invalid(struct answer_reader *r)
{
    struct answer_stats *s = r->stats;
    const char *what = r->no_score ? r->no_score : r->no_metric;

    if (s->invalid++ == 0)
        (void)snprintf(s->first_invalid, sizeof(s->first_invalid), "results[%zu]%s", s->results - 1,
                       what ? what : ".metric: label values must be strings");
}

static void read_members(struct answer_reader *r)
{
    struct str key;

    (void)jr_object(&r->j);
    while (jr_member(&r->j, &key)) {
        if (jr_key_is(key, "metric"))
            answer_read_metric(r);
        else if (jr_key_is(key, "score"))
            parse_score(r);
        else
            (void)jr_skip(&r->j, NULL);
    }
}

/* A result that is invalid in any way is dropped alone. */
static int read_result(struct answer_reader *r)
{
    r->stats->results++;
    answer_forget_labels(r);
    r->no_score = ".score: missing";
    r->no_metric = NULL;
    r->bad_labels = 0;
    r->is_repeated = false;
    if (jr_peek(&r->j) == JR_OBJECT) {
        read_members(r);
    } else {
        (void)jr_skip(&r->j, NULL);
        r->no_score = ": expected an object";
    }
    if (r->j.error)
        return 0;
    if (r->no_score || r->no_metric || r->bad_labels) {
        count_invalid(r);
        return 0;
    }
    return r->is_repeated ? batch_add_spelled(r->builder, r->score)
                          : batch_add(r->builder, &r->labels, r->score);
}

static int read_results(struct answer_reader *r)
{
    int e = 0;

    if (jr_peek(&r->j) == JR_NULL) { /* as Go writes an empty list */
        (void)jr_skip(&r->j, NULL);
        return 0;
    }
    (void)jr_array(&r->j);
    while (e == 0 && !r->out_of_memory && jr_item(&r->j))
        e = read_result(r);
    return r->out_of_memory ? -ENOMEM : e;
}

static int read_answer(struct answer_reader *r, bool *ret_has_results)
{
    struct str key;
    int e = 0;

    (void)jr_object(&r->j);
    while (e == 0 && jr_member(&r->j, &key)) {
        if (jr_key_is(key, "results")) {
            if (*ret_has_results) {
                (void)jr_fail(&r->j, "duplicate \"results\"");
                break;
            }
            *ret_has_results = true;
            e = read_results(r);
        } else {
            (void)jr_skip(&r->j, NULL);
        }
    }
    if (e == 0)
        (void)jr_end(&r->j);
    return e;
}

static enum round_error answer_error(struct str body, const struct answer_reader *r, int e, bool has_results,
                                     char why[ROUND_REASON_BYTES])
{
    if (e == -ENOSPC) {
        (void)snprintf(why, ROUND_REASON_BYTES, "too many series");
        return ROUND_SERIES;
    }
    if (e < 0) {
        (void)snprintf(why, ROUND_REASON_BYTES, "out of memory");
        return ROUND_MEMORY;
    }
    if (r->j.error)
        return round_error_of_json(body, &r->j, "invalid scoring response", why);
    if (!has_results) {
        (void)snprintf(why, ROUND_REASON_BYTES, "invalid scoring response: missing \"results\"");
        return ROUND_SHAPE;
    }
    if (r->stats->results && r->stats->invalid == r->stats->results) {
        (void)snprintf(why, ROUND_REASON_BYTES, "no result is valid: %s", r->stats->first_invalid);
        return ROUND_SHAPE;
    }
    return ROUND_OK;
}

enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[ROUND_REASON_BYTES])
{
    CLEANUP(cleanup_free) char *room = malloc(DS_LABELS * label_max);
    struct answer_reader r = {.builder = b, .stats = stats, .label_max = label_max, .room = room};
    bool has_results = false;
    enum round_error error;
    int e;

    *stats = (struct answer_stats){.results = 0};
    batch_builder_set_label_max(b, label_max);
    buf_init(&r.escape, SIZE_MAX / 2);
    jr_init(&r.j, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    e = room ? read_answer(&r, &has_results) : -ENOMEM;
    error = answer_error(body, &r, e, has_results, why);
    buf_done(&r.escape);
    return error;
}
