#include "exporter/score/answer.h"

#include "exporter/base/json.h"
#include "exporter/base/num.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const struct str REPLACEMENT = {"\xef\xbf\xbd", 3};

struct reader {
    struct jr j;
    struct batch_builder *builder;
    struct answer_stats *stats;
    size_t label_max;
    struct batch_labels labels; /* of the result at hand */
    bool has_labels;            /* something stands in `labels` */
    char *room;       /* DS_LABELS values of label_max bytes, for those that cannot be slices of the body */
    struct buf plain; /* one value without its escapes */
    const char *no_score;  /* why the result at hand has no score; NULL once it has one */
    const char *no_metric; /* why its metric cannot be read; NULL when it can */
    unsigned odd_labels;   /* of those read, by bit: objects and arrays */
    double score;
    bool spelled; /* the labels are spelled as the last answer spelled them: they were not read */
    bool out_of_memory;
};

/* Whether a raw value can stand in an exposition line as it is. */
static bool is_plain(struct str raw)
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

static void cut(struct reader *r, struct str *value)
{
    if (value->n <= r->label_max)
        return;
    *value = utf8_cut(*value, r->label_max);
    r->stats->cut++;
}

/* NUL is a character in JSON and in UTF-8, and the end of a line to some readers of the text format. */
static int replace_nul(struct buf *b, size_t n)
{
    size_t nuls = 0;
    char *to;

    for (size_t i = 0; i < n; i++)
        nuls += b->p[i] == '\0';
    b->n = n;
    if (nuls == 0)
        return 0;
    if (buf_room(b, nuls * 2, &to) < 0)
        return -ENOMEM;
    b->n = n + nuls * 2;
    for (size_t i = n, o = b->n; i-- > 0;) {
        if (b->p[i] == '\0') {
            o -= REPLACEMENT.n;
            memcpy(b->p + o, REPLACEMENT.p, REPLACEMENT.n);
        } else {
            b->p[--o] = b->p[i];
        }
    }
    return 0;
}

static void set_mended(struct reader *r, enum ds_label label, struct str raw)
{
    struct str value;
    char *to;

    r->plain.n = 0;
    if (buf_room(&r->plain, raw.n * 3 + 1, &to) < 0 || replace_nul(&r->plain, jr_unescape(raw, to)) < 0) {
        r->out_of_memory = true;
        return;
    }
    value = buf_str(&r->plain);
    if (memmem(value.p, value.n, REPLACEMENT.p, REPLACEMENT.n))
        r->stats->mended++;
    cut(r, &value);
    to = r->room + (size_t)label * r->label_max;
    if (value.n)
        memcpy(to, value.p, value.n);
    r->labels.value[label] = (struct str){to, value.n};
    r->labels.escapes |= 1u << label;
}

static void set_label(struct reader *r, enum ds_label label, struct str raw)
{
    r->odd_labels &= ~(1u << label);
    if (!is_plain(raw)) {
        set_mended(r, label, raw);
        return;
    }
    cut(r, &raw);
    r->labels.value[label] = raw;
    r->labels.escapes &= ~(1u << label);
}

/* The label that a member of `metric` becomes, or DS_LABELS. */
static enum ds_label label_of(struct str key)
{
    static const enum ds_label brought[] = {DS_NODE,      DS_POD,    DS_NAMESPACE, DS_APP,
                                            DS_CONTAINER, DS_DEVICE, DS_META};

    for (size_t i = 0; i < ARRAY_SIZE(brought); i++) {
        struct str name = ds_label_sources[brought[i]];
        if (key.n == name.n && memcmp(key.p, name.p, name.n) == 0)
            return brought[i];
    }
    if (memchr(key.p, '\\', key.n))
        for (size_t i = 0; i < ARRAY_SIZE(brought); i++)
            if (jr_key_is(key, ds_label_sources[brought[i]].p))
                return brought[i];
    return DS_LABELS;
}

/* A value that is no string: numbers and booleans as they are written, null as nothing. Deeper ones are no label. */
static void take_odd_label(struct reader *r, enum ds_label label)
{
    enum jr_type type = jr_peek(&r->j);
    struct str span = STR("");

    (void)jr_skip(&r->j, &span);
    if (type == JR_OBJECT || type == JR_ARRAY)
        r->odd_labels |= 1u << label;
    else
        set_label(r, label, type == JR_NULL ? STR("") : span);
}

/* Nine empty slices take longer to write than a spelling takes to compare; mostly they are empty already. */
static void forget_labels(struct reader *r)
{
    if (r->has_labels)
        r->labels = (struct batch_labels){.escapes = 0};
    r->has_labels = false;
}

static void take_labels(struct reader *r)
{
    struct str key;

    r->has_labels = true;
    (void)jr_object(&r->j);
    while (jr_member(&r->j, &key)) {
        enum ds_label label = label_of(key);
        struct str raw;
        if (label == DS_LABELS)
            (void)jr_skip(&r->j, NULL);
        else if (jr_peek(&r->j) != JR_STRING)
            take_odd_label(r, label);
        else if (jr_string(&r->j, &raw))
            set_label(r, label, raw);
    }
}

/* Labels that were cut or mended are read in each round, because they are counted in each. */
static void take_object(struct reader *r)
{
    const char *from = r->j.p;
    size_t counted = r->stats->cut + r->stats->mended;
    size_t n = batch_spelled(r->builder, (struct str){from, (size_t)(r->j.end - from)});

    r->spelled = n > 0;
    if (r->spelled) {
        jr_pass(&r->j, n);
        return;
    }
    take_labels(r);
    if (r->stats->cut + r->stats->mended == counted)
        r->labels.spelling = (struct str){from, (size_t)(r->j.p - from)};
}

static void take_metric(struct reader *r)
{
    enum jr_type type = jr_peek(&r->j);

    forget_labels(r);
    r->odd_labels = 0;
    r->no_metric = type == JR_OBJECT || type == JR_NULL ? NULL : ".metric: expected an object";
    r->spelled = false;
    if (type == JR_OBJECT)
        take_object(r);
    else
        (void)jr_skip(&r->j, NULL);
}

static const char too_large[] = ".score: number too large for a double";

static const char *score_of_word(struct str raw, double *ret)
{
    switch (num_parse_word(raw, ret)) {
    case NUM_OK:
        return NULL;
    case NUM_RANGE:
        return too_large;
    default:
        return ".score: expected a number, got a string that spells none";
    }
}

static const char *score_of_nonfinite(struct str word, double *ret)
{
    *ret = word.p[0] == 'N' ? NAN : word.p[0] == '-' ? -INFINITY : INFINITY;
    return NULL;
}

static void take_score(struct reader *r)
{
    enum jr_type type = jr_peek(&r->j);
    struct str raw = STR("");

    if (type == JR_NUMBER && jr_number(&r->j, &raw)) {
        r->no_score = num_parse(raw, &r->score) == NUM_RANGE ? too_large : NULL;
    } else if (type == JR_NONFINITE && jr_number(&r->j, &raw)) {
        r->no_score = score_of_nonfinite(raw, &r->score);
    } else if (type == JR_STRING && jr_string(&r->j, &raw)) {
        r->no_score = score_of_word(raw, &r->score);
    } else {
        (void)jr_skip(&r->j, NULL);
        r->no_score = type == JR_NULL ? ".score: expected a number, got null" : ".score: expected a number";
    }
    /* One bit pattern for all NaNs: remote write keeps others for itself. */
    if (isnan(r->score))
        memcpy(&r->score, &(uint64_t){0x7ff8000000000001ull}, sizeof(r->score));
}

static void note_invalid(struct reader *r)
{
    struct answer_stats *s = r->stats;
    const char *what = r->no_score ? r->no_score : r->no_metric;

    if (s->invalid++ == 0)
        (void)snprintf(s->first_invalid, sizeof(s->first_invalid), "results[%zu]%s", s->results - 1,
                       what ? what : ".metric: label values must be strings");
}

static void take_members(struct reader *r)
{
    struct str key;

    (void)jr_object(&r->j);
    while (jr_member(&r->j, &key)) {
        if (jr_key_is(key, "metric"))
            take_metric(r);
        else if (jr_key_is(key, "score"))
            take_score(r);
        else
            (void)jr_skip(&r->j, NULL);
    }
}

/* What is no result at all is left out like one without a score: it must not cost the others theirs. */
static int take_result(struct reader *r)
{
    r->stats->results++;
    forget_labels(r);
    r->no_score = ".score: missing";
    r->no_metric = NULL;
    r->odd_labels = 0;
    r->spelled = false;
    if (jr_peek(&r->j) == JR_OBJECT) {
        take_members(r);
    } else {
        (void)jr_skip(&r->j, NULL);
        r->no_score = ": expected an object";
    }
    if (r->j.error)
        return 0;
    if (r->no_score || r->no_metric || r->odd_labels) {
        note_invalid(r);
        return 0;
    }
    return r->spelled ? batch_add_spelled(r->builder, r->score) : batch_add(r->builder, &r->labels, r->score);
}

static int take_results(struct reader *r)
{
    int e = 0;

    if (jr_peek(&r->j) == JR_NULL) { /* as Go writes an empty list */
        (void)jr_skip(&r->j, NULL);
        return 0;
    }
    (void)jr_array(&r->j);
    while (e == 0 && !r->out_of_memory && jr_item(&r->j))
        e = take_result(r);
    return r->out_of_memory ? -ENOMEM : e;
}

static int take_answer(struct reader *r, bool *ret_has_results)
{
    struct str key;
    int e = 0;

    (void)jr_object(&r->j);
    while (e == 0 && jr_member(&r->j, &key)) {
        if (jr_key_is(key, "results")) {
            if (*ret_has_results) {
                (void)jr_fail(&r->j, "\"results\" a second time");
                break;
            }
            *ret_has_results = true;
            e = take_results(r);
        } else {
            (void)jr_skip(&r->j, NULL);
        }
    }
    if (e == 0)
        (void)jr_end(&r->j);
    return e;
}

/* Tells an answer that is JSON but of another shape from one that is not JSON at all. */
static enum round_error refuse(struct str body, const struct jr *j, char why[1024])
{
    struct jr again;
    unsigned line, column;
    bool is_json;

    jr_init(&again, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    (void)jr_skip(&again, NULL);
    is_json = jr_end(&again);
    jr_position(body, j->error_at, &line, &column);
    (void)snprintf(why, 1024, "%s: line %u, column %u: %s",
                   is_json ? "not a scoring answer" : "the answer is not JSON", line, column, j->error);
    return is_json ? ROUND_SHAPE : ROUND_JSON;
}

static enum round_error judge(struct str body, const struct reader *r, int e, bool has_results,
                              char why[1024])
{
    if (e == -ENOSPC) {
        (void)snprintf(why, 1024, "more series than allowed");
        return ROUND_SERIES;
    }
    if (e < 0) {
        (void)snprintf(why, 1024, "out of memory");
        return ROUND_MEMORY;
    }
    if (r->j.error)
        return refuse(body, &r->j, why);
    if (!has_results) {
        (void)snprintf(why, 1024, "not a scoring answer: it has no \"results\"");
        return ROUND_SHAPE;
    }
    if (r->stats->results && r->stats->invalid == r->stats->results) {
        (void)snprintf(why, 1024, "no result has a usable score; %s", r->stats->first_invalid);
        return ROUND_SHAPE;
    }
    return ROUND_OK;
}

enum round_error answer_parse(struct str body, struct batch_builder *b, size_t label_max,
                              struct answer_stats *stats, char why[1024])
{
    CLEANUP(cleanup_free) char *room = malloc(DS_LABELS * label_max);
    struct reader r = {.builder = b, .stats = stats, .label_max = label_max, .room = room};
    bool has_results = false;
    enum round_error error;
    int e;

    *stats = (struct answer_stats){.results = 0};
    batch_builder_set_label_max(b, label_max);
    buf_init(&r.plain, SIZE_MAX / 2);
    jr_init(&r.j, body, JR_LENIENT_UTF8 | JR_NAN_WORDS);
    e = room ? take_answer(&r, &has_results) : -ENOMEM;
    error = judge(body, &r, e, has_results, why);
    buf_done(&r.plain);
    return error;
}
