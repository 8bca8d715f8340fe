/* Reads the report of an agent, which may say anything. Pure. */
#include "controller/hub/rules/report.h"

#include "controller/kube/time.h"
#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/score/feature.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"

#include <errno.h>
#include <string.h>

/* ---- Reads an agent's report into few bytes ---- */

enum { CELLS_STEP = 64, TROUBLE_BYTES = 512, MAX_LIFE_S = (1 << 19) - 1 };

/* Finds the members of those names, the bytes of each value. False if the text is not an object. */
static bool read_members(struct str text, const char *const *names, struct str *values, size_t n)
{
    struct jr j;
    struct str key;

    jr_init(&j, text, JR_STRICT);
    jr_object(&j);
    while (jr_member(&j, &key)) {
        size_t i = 0;

        while (i < n && !jr_key_is(key, names[i]))
            i++;
        jr_skip(&j, i < n ? &values[i] : NULL);
    }
    return jr_end(&j);
}

/* The raw string; empty for a value of another type. */
static struct str read_raw(struct str value)
{
    return value.n && *value.p == '"' ? (struct str){value.p + 1, value.n - 2} : (struct str){0};
}

/* The bit of the feature that is named; 0 for another word, of a newer agent. */
static unsigned read_feature(struct str value)
{
    for (enum feature f = 0; f < FEATURES; f++)
        if (jr_key_is(read_raw(value), feature_word(f)))
            return 1u << f;
    return 0;
}

static uint64_t read_score(struct str raw)
{
    CLEANUP(cleanup_free) char *plain = NULL;

    if (!memchr(raw.p, '\\', raw.n))
        return report_score(raw);
    plain = xmalloc(raw.n * 3);
    return report_score((struct str){plain, jr_unescape(raw, plain)});
}

/* Seconds since 1970; 0 if it is not a time. */
static uint32_t read_time(struct str value)
{
    char text[KUBE_TIME_BYTES] = "";
    struct str raw = read_raw(value);
    int64_t seconds;

    memcpy(text, cstr(raw.p), size_min(raw.n, sizeof(text) - 1));
    seconds = kube_time_parse(text).ms / 1000;
    return seconds > 0 && seconds <= UINT32_MAX ? (uint32_t)seconds : 0;
}

/* Seconds, with a sign; 0 for anything but a whole number of fewer than ten digits. */
static int32_t read_offset(struct str value)
{
    bool is_negative = str_starts(value, STR("-"));
    struct str digits = value;
    uint64_t seconds;

    if (is_negative)
        digits = (struct str){value.p + 1, value.n - 1};
    if (!str_to_u64(digits, &seconds) || seconds > 999999999)
        return 0;
    return is_negative ? -(int32_t)seconds : (int32_t)seconds;
}

/* 1 + the line's index in errors; 0 for an empty line, and past REPORT_MAX_ERRORS. */
static uint16_t report_keep_error(struct report *to, struct str raw)
{
    char line[REPORT_ERROR_BYTES];
    uint32_t i = 0;

    text_line_json(line, sizeof(line), raw);
    while (i < to->n_errors && strcmp(to->errors[i], line) != 0)
        i++;
    if (!*line || i == REPORT_MAX_ERRORS)
        return 0;
    if (i == to->n_errors) {
        to->errors = xreallocarray(to->errors, i + 1, sizeof(*to->errors));
        to->errors[to->n_errors++] = xstrdup(line);
    }
    return (uint16_t)(i + 1);
}

static void read_cell(struct report *to, struct str text)
{
    enum { NAME, STATE, ERROR, STAGE, PLACEMENT, NO_ITEMS, SUCCESS, UNTIL, MEMBERS };
    static const char *const names[MEMBERS] = {"scoreName",      "state",   "error",       "failedStage",
                                               "placementError", "noItems", "lastSuccess", "validUntil"};
    struct str v[MEMBERS] = {0}, name, error, placement, no_items;
    struct report_cell cell;
    enum scorer_state state = SCORER_WAITING;
    uint32_t until;
    bool failed;

    if (!read_members(text, names, v, MEMBERS))
        return;
    name = read_raw(v[NAME]);
    while (state < SCORER_STATES && !jr_key_is(read_raw(v[STATE]), scorer_state_word(state)))
        state++;
    cell = (struct report_cell){.succeeded = read_time(v[SUCCESS]), .state = state};
    until = read_time(v[UNTIL]);
    if (cell.succeeded && until > cell.succeeded)
        cell.life = size_min(until - cell.succeeded, MAX_LIFE_S) & MAX_LIFE_S;
    if (name.n == 0 || state == SCORER_STATES)
        return;
    if (to->n == REPORT_MAX_CELLS) {
        to->not_shown++;
        return;
    }
    failed = state == SCORER_FAILING || state == SCORER_STALE;
    error = read_raw(v[ERROR]);
    placement = read_raw(v[PLACEMENT]);
    no_items = read_raw(v[NO_ITEMS]);
    cell.score = read_score(name);
    cell.placement = placement.n > 0;
    cell.no_items = no_items.n > 0 && (state == SCORER_OK || state == SCORER_EMPTY);
    cell.api_failed = failed && jr_key_is(read_raw(v[STAGE]), round_stage_word(STAGE_SCORING));
    if (report_cell_fails(&cell))
        cell.error = report_keep_error(to, failed && error.n ? error : placement) & 0x7fu;
    else if (cell.no_items)
        cell.error = report_keep_error(to, no_items) & 0x7fu;
    if (to->n % CELLS_STEP == 0)
        to->cells = xreallocarray(to->cells, to->n + CELLS_STEP, sizeof(*to->cells));
    to->cells[to->n++] = cell;
}

/* A copy of the string as one line; NULL if it is empty. */
static char *read_line(struct str value)
{
    char line[TROUBLE_BYTES];

    text_line_json(line, sizeof(line), read_raw(value));
    return *line ? xstrdup(line) : NULL;
}

DEFINE_ORDER(report_by_score, struct report_cell, COMPARE(a->score, b->score))

int report_parse(struct report *ret, struct str text)
{
    enum { CONFIG_OK, PROBLEMS, HUB_ERROR, KNOWN, SCORERS, NOT_SHOWN, CLOCK, MEMBERS };
    static const char *const names[MEMBERS] = {
        "configurationInForce", "configurationProblems", "hubError", "features", "scorers", "notShown",
        "clockOffsetSeconds"};
    CLEANUP(report_done) struct report to = {.exists = text.n > 0, .hash = hash_bytes(text)};
    struct str v[MEMBERS] = {0}, one;
    uint64_t not_shown;
    struct jr j;

    if (text.n == 0) {
        *ret = (struct report){0};
        return 0;
    }
    if (!read_members(text, names, v, MEMBERS))
        return -EINVAL;
    to.config_ok = str_eq(v[CONFIG_OK], STR("true"));
    /* Only reports have one of these. */
    if (!to.config_ok && !str_eq(v[CONFIG_OK], STR("false")) && !str_starts(v[SCORERS], STR("[")))
        return -EINVAL;
    jr_init(&j, v[KNOWN], JR_STRICT);
    jr_array(&j);
    while (jr_item(&j) && jr_skip(&j, &one))
        to.features |= read_feature(one);
    jr_init(&j, v[SCORERS], JR_STRICT);
    jr_array(&j);
    while (jr_item(&j) && jr_skip(&j, &one))
        read_cell(&to, one);
    /* Anything but a number below a billion counts as 0. */
    if (str_to_u64(v[NOT_SHOWN], &not_shown) && not_shown < 1000000000)
        to.not_shown += (uint32_t)not_shown;
    to.clock_offset_s = read_offset(v[CLOCK]);
    to.problem = read_line(v[PROBLEMS]);
    to.config_rejected = to.problem && !to.config_ok;
    to.problem = to.problem ?: read_line(v[HUB_ERROR]);
    if (to.n) {
        qsort(to.cells, to.n, sizeof(*to.cells), report_by_score);
        to.cells = xreallocarray(to.cells, to.n, sizeof(*to.cells));
    }
    *ret = to;
    to = (struct report){0};
    return 0;
}

/* ---- After a restart of the agent ---- */

/* Whether it had scores in the last report, or had them in the one before and still waits. */
static bool cell_scored(const struct report_cell *c)
{
    bool is_good = c->state == SCORER_OK && !c->placement && !c->no_items;

    return c->life && (is_good || c->state == SCORER_WAITING);
}

void report_carry_over(struct report *to, const struct report *last)
{
    for (uint32_t i = 0; i < to->n; i++) {
        struct report_cell *cell = &to->cells[i];
        const struct report_cell *before = report_find(last, cell->score);

        if (cell->state != SCORER_WAITING || cell->succeeded || !before || !cell_scored(before))
            continue;
        cell->succeeded = before->succeeded;
        cell->life = before->life;
    }
}

/* ---- Asking ---- */

uint64_t report_score(struct str score_name)
{
    return hash_bytes(score_name);
}

bool report_cell_fails(const struct report_cell *c)
{
    return c->placement || c->state == SCORER_FAILING || c->state == SCORER_STALE;
}

void report_done(struct report *r)
{
    free(r->problem);
    free(r->cells);
    for (uint32_t i = 0; i < r->n_errors; i++)
        free(r->errors[i]);
    free(r->errors);
    *r = (struct report){0};
}

bool report_same(const struct report *a, const struct report *b)
{
    bool same = a->exists == b->exists && a->config_ok == b->config_ok &&
                a->config_rejected == b->config_rejected && a->features == b->features &&
                a->clock_offset_s == b->clock_offset_s && a->n == b->n && a->not_shown == b->not_shown &&
                a->n_errors == b->n_errors && strcmp(cstr(a->problem), cstr(b->problem)) == 0;

    for (uint32_t i = 0; same && i < a->n_errors; i++)
        same = strcmp(a->errors[i], b->errors[i]) == 0;
    for (uint32_t i = 0; same && i < a->n; i++) {
        const struct report_cell *x = &a->cells[i], *y = &b->cells[i];

        same = x->score == y->score && x->state == y->state && x->placement == y->placement &&
               x->api_failed == y->api_failed && x->no_items == y->no_items && x->error == y->error &&
               !x->succeeded == !y->succeeded;
    }
    return same;
}

const struct report_cell *report_find(const struct report *r, uint64_t score)
{
    size_t low = 0, high = r->n;

    /* Not bsearch(): this runs for each pair of scorer and cluster. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->cells[middle].score < score)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n && r->cells[low].score == score ? &r->cells[low] : NULL;
}

const char *report_error(const struct report *r, const struct report_cell *c)
{
    return c->error > 0 ? r->errors[c->error - 1] : "";
}
