/* Reads the scoring API's answer in one pass: results become series of a batch that the caller's builder
 * makes. Labels that are spelled as in the last answer are not read again. Owns nothing beyond the call;
 * on the loop, or on the worker for a large response, which then has the builder. */
#include "exporter/score/answer.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

struct answer_reader {
    struct jr j;
    struct batch_builder *builder;
    struct answer_stats *stats;
    size_t label_max;
    int error; /* of the batch or of memory; else 0 */
    /* The current result. */
    struct batch_labels labels;
    bool has_labels;       /* labels is not all empty */
    bool is_repeated;      /* labels have the same spelling as in the last answer, and were not read */
    const char *no_score;  /* why it has no score; NULL if it has one */
    const char *no_metric; /* why its metric is invalid; NULL if it is valid */
    unsigned bad_labels;   /* by bit: those that are objects or arrays */
    double score;
    /* Scratch space. */
    char *room;        /* DS_LABELS values of label_max bytes, for those that are no slice of the body */
    struct buf escape; /* one value without its escapes */
    uint32_t uncut[DS_LABELS]; /* labels.uncut points here */
};

/* Mostly they are empty already, and clearing nine slices takes longer than comparing a spelling. */
static inline void answer_forget_labels(struct answer_reader *r)
{
    if (r->has_labels)
        r->labels = (struct batch_labels){.escapes = 0};
    r->has_labels = false;
}

/* The labels of one result: from JSON to values that are valid UTF-8 within the limit. */

static const struct str REPLACEMENT = {"\xef\xbf\xbd", 3};

/* Whether a raw value needs no change in an exposition line. */
static bool label_is_plain(struct str raw)
{
    const uint64_t ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;
    size_t i = 0;

    for (; i + 8 <= raw.n; i += 8) {
        uint64_t v, x;
        memcpy(&v, raw.p + i, 8);
        x = v ^ ones * '\\';
        if ((v | ((x - ones) & ~x)) & tops)
            return false;
    }
    for (; i < raw.n; i++)
        if ((raw.p[i] & 0x80) || raw.p[i] == '\\')
            return false;
    return true;
}

static void cut_label(struct answer_reader *r, enum ds_label label, struct str *value)
{
    if (r->labels.uncut)
        r->uncut[label] = 0;
    if (value->n <= r->label_max)
        return;
    if (!r->labels.uncut)
        memset(r->uncut, 0, sizeof(r->uncut));
    r->labels.uncut = r->uncut;
    r->uncut[label] = (uint32_t)hash_bytes(*value) | 1;
    *value = utf8_cut(*value, r->label_max);
    r->stats->cut++;
}

/* NUL is valid in JSON and UTF-8, but some parsers of the text format end the line there. */
static void replace_nul(struct buf *b, size_t n)
{
    size_t nuls = 0;

    for (size_t i = 0; i < n; i++)
        nuls += b->p[i] == '\0';
    b->n = n + nuls * 2; /* for which there is room, as an escaped NUL has six bytes */
    for (size_t i = n, o = b->n; o > i;)
        if (b->p[--i])
            b->p[--o] = b->p[i];
        else
            memcpy(b->p + (o -= REPLACEMENT.n), REPLACEMENT.p, REPLACEMENT.n);
}

static void set_escaped_label(struct answer_reader *r, enum ds_label label, struct str raw)
{
    struct str value;
    char *to;

    buf_clear(&r->escape);
    if (buf_reserve(&r->escape, raw.n * 3 + 1, &to) < 0) {
        r->error = -ENOMEM;
        return;
    }
    replace_nul(&r->escape, jr_unescape(raw, to));
    value = buf_str(&r->escape);
    if (memmem(value.p, value.n, REPLACEMENT.p, REPLACEMENT.n))
        r->stats->repaired++;
    cut_label(r, label, &value);
    to = r->room + (size_t)label * r->label_max;
    if (value.n)
        memcpy(to, value.p, value.n);
    r->labels.value[label] = (struct str){to, value.n};
    r->labels.escapes |= 1u << label;
}

static void set_label(struct answer_reader *r, enum ds_label label, struct str raw)
{
    r->bad_labels &= ~(1u << label);
    if (!label_is_plain(raw)) {
        set_escaped_label(r, label, raw);
        return;
    }
    cut_label(r, label, &raw);
    r->labels.value[label] = raw;
    r->labels.escapes &= ~(1u << label);
}

/* The label that a member of `metric` becomes, or DS_LABELS. */
static enum ds_label label_of_member(struct str key)
{
    static const enum ds_label sources[] = {DS_NODE,      DS_POD,    DS_NAMESPACE, DS_APP,
                                            DS_CONTAINER, DS_DEVICE, DS_META};

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        struct str name = ds_label_sources[sources[i]];
        if (key.n == name.n && memcmp(key.p, name.p, name.n) == 0)
            return sources[i];
    }
    if (memchr(key.p, '\\', key.n))
        for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
            if (jr_key_is(key, ds_label_sources[sources[i]].p))
                return sources[i];
    return DS_LABELS;
}

static void read_labels(struct answer_reader *r)
{
    struct str key;

    r->has_labels = true;
    (void)jr_object(&r->j);
    while (jr_member(&r->j, &key)) {
        enum ds_label label = label_of_member(key);
        enum jr_type type = label == DS_LABELS ? JR_NONE : jr_peek(&r->j);
        struct str raw = STR("");

        /* Of values that are no strings, numbers and booleans count as written, null as empty. */
        if (type == JR_STRING) {
            if (jr_string(&r->j, &raw))
                set_label(r, label, raw);
            continue;
        }
        (void)jr_skip(&r->j, &raw);
        if (type == JR_OBJECT || type == JR_ARRAY)
            r->bad_labels |= 1u << label;
        else if (label != DS_LABELS)
            set_label(r, label, type == JR_NULL ? STR("") : raw);
    }
}

/* Reads the value of `metric`. Labels that were cut or repaired are read again each round, so that they are
 * counted. */
static void answer_read_metric(struct answer_reader *r)
{
    enum jr_type type = jr_peek(&r->j);
    size_t counted = r->stats->cut + r->stats->repaired, n = 0;
    struct str rest = {r->j.p, (size_t)(r->j.end - r->j.p)};

    answer_forget_labels(r);
    r->bad_labels = 0;
    r->no_metric = type == JR_OBJECT || type == JR_NULL ? NULL : ".metric: expected an object";
    if (type == JR_OBJECT)
        n = batch_spelled(r->builder, rest);
    r->is_repeated = n > 0;
    if (type != JR_OBJECT) {
        (void)jr_skip(&r->j, NULL);
    } else if (n > 0) {
        r->j.p += n; /* these bytes are known to be valid */
    } else {
        read_labels(r);
        if (r->stats->cut + r->stats->repaired == counted)
            r->labels.spelling = (struct str){rest.p, (size_t)(r->j.p - rest.p)};
    }
}

static const char too_large[] = ".score: number too large for a double";

/* NaN, Infinity or -Infinity, by its first character. */
static double score_of_word(char first)
{
    switch (first) {
    case 'N':
        return NAN;
    case '-':
        return -INFINITY;
    default:
        return INFINITY;
    }
}

static const char *score_problem(enum num_result n)
{
    switch (n) {
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
        r->score = score_of_word(*raw.p);
        r->no_score = NULL;
    } else if (type == JR_STRING && jr_string(&r->j, &raw)) {
        r->no_score = score_problem(num_parse_word(raw, &r->score));
    } else {
        (void)jr_skip(&r->j, NULL);
        r->no_score = type == JR_NULL ? ".score: expected a number, got null" : ".score: expected a number";
    }
    /* One bit pattern for all NaNs: in remote write another one is the stale marker. */
    if (isnan(r->score))
        memcpy(&r->score, &(uint64_t){0x7ff8000000000001ull}, sizeof(r->score));
}

/* A result that is invalid in any way is dropped alone. */
static void read_result(struct answer_reader *r)
{
    struct answer_stats *s = r->stats;
    bool is_object = jr_peek(&r->j) == JR_OBJECT;
    const char *what;
    struct str key;

    s->results++;
    answer_forget_labels(r);
    r->no_score = ".score: missing";
    r->no_metric = NULL;
    r->bad_labels = 0;
    r->is_repeated = false;
    if (!is_object) {
        (void)jr_skip(&r->j, NULL);
        r->no_score = ": expected an object";
    } else if (jr_object(&r->j)) {
        while (jr_member(&r->j, &key))
            if (jr_key_is(key, "metric"))
                answer_read_metric(r);
            else if (jr_key_is(key, "score"))
                parse_score(r);
            else
                (void)jr_skip(&r->j, NULL);
    }
    if (r->j.error || r->error)
        return;
    if (!r->no_score && !r->no_metric && !r->bad_labels) {
        r->error = r->is_repeated ? batch_add_spelled(r->builder, r->score)
                                  : batch_add(r->builder, &r->labels, r->score);
    } else if (s->invalid++ == 0) {
        if (!is_object)
            s->first_fault = ANSWER_FAULT_RESULT;
        else
            s->first_fault = r->no_score ? ANSWER_FAULT_SCORE : ANSWER_FAULT_METRIC;
        what = r->no_score ?: r->no_metric ?: ".metric: label values must be strings";
        (void)snprintf(s->first_invalid, sizeof(s->first_invalid), "results[%zu]%s", s->results - 1, what);
    }
}

static void read_answer(struct answer_reader *r, bool *ret_has_results)
{
    struct str key;

    (void)jr_object(&r->j);
    while (r->error == 0 && jr_member(&r->j, &key)) {
        bool is_results = jr_key_is(key, "results");

        if (is_results && *ret_has_results)
            (void)jr_fail(&r->j, "duplicate \"results\"");
        else if (!is_results || jr_peek(&r->j) == JR_NULL) /* as Go writes an empty list */
            (void)jr_skip(&r->j, NULL);
        else if (jr_array(&r->j))
            while (r->error == 0 && jr_item(&r->j))
                read_result(r);
        *ret_has_results |= is_results;
    }
    if (r->error == 0)
        (void)jr_end(&r->j);
}

enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[ROUND_REASON_BYTES])
{
    CLEANUP(cleanup_free) char *room = xmalloc(DS_LABELS * label_max);
    struct answer_reader r = {.builder = b, .stats = stats, .label_max = label_max, .room = room};
    bool has_results = false;

    *stats = (struct answer_stats){.results = 0};
    batch_begin(b, label_max, body.n);
    buf_init(&r.escape, SIZE_MAX / 2);
    jr_init(&r.j, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    read_answer(&r, &has_results);
    buf_done(&r.escape);
    if (r.error == -ENOSPC)
        return round_error_because(why, ROUND_SERIES, "too many series");
    if (r.error < 0)
        return round_error_because(why, ROUND_MEMORY, "out of memory");
    if (r.j.error)
        return round_error_of_json(body, &r.j, "invalid scoring response", why);
    if (!has_results)
        return round_error_because(why, ROUND_SHAPE, "invalid scoring response: missing \"results\"");
    if (stats->results && stats->invalid == stats->results)
        return round_error_because(why, ROUND_SHAPE, "no result is valid: %s", stats->first_invalid);
    return ROUND_OK;
}
