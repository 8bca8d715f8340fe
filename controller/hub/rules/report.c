#include "controller/hub/rules/rules.h"

#include "exporter/base/json.h"
#include "exporter/base/map.h"
#include "exporter/base/text.h"
#include "exporter/score/round.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Reads an agent's report into few bytes ---- */

enum { CELLS_STEP = 64, TROUBLE_BYTES = 512, MAX_LIFE_S = (1 << 19) - 1 };

/* The document as it is read; texts are raw. */
struct reading {
    struct report *to;
    bool is_report; /* has a member that only reports have */
    struct str problems, hub_error;
};

/* The raw string; empty for a value of another type. */
static void read_raw(struct jr *j, struct str *ret)
{
    *ret = (struct str){0};
    if (jr_peek(j) == JR_STRING)
        jr_string(j, ret);
    else
        jr_skip(j, NULL);
}

static uint64_t read_score(struct str raw)
{
    CLEANUP(cleanup_free) char *plain = NULL;

    if (!memchr(cstr(raw.p), '\\', raw.n))
        return report_score(raw);
    plain = xmalloc(raw.n * 3);
    return report_score((struct str){plain, jr_unescape(raw, plain)});
}

/* Seconds since 1970 of "2026-11-21T06:23:01.123Z"; 0 if it is not a time. */
static uint32_t read_time(struct str raw)
{
    char text[sizeof("2026-11-21T06:23:01")] = "";
    struct tm tm = {0};
    time_t t;

    if (raw.n < sizeof(text) - 1)
        return 0;
    memcpy(text, raw.p, sizeof(text) - 1);
    if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    t = timegm(&tm);
    return t > 0 && t <= UINT32_MAX ? (uint32_t)t : 0;
}

/* SCORER_STATES for an unknown word. */
static enum scorer_state read_state(struct str raw)
{
    enum scorer_state i = SCORER_WAITING;

    while (i < SCORER_STATES && !jr_key_is(raw, scorer_state_word(i)))
        i++;
    return i;
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

static void read_cell(struct jr *j, struct reading *r)
{
    enum { NAME, STATE, ERROR, STAGE, PLACEMENT, SUCCESS, UNTIL, MEMBERS };
    static const char *const names[MEMBERS] = {"scoreName",      "state",       "error",     "failedStage",
                                               "placementError", "lastSuccess", "validUntil"};
    struct report *to = r->to;
    struct str key, v[MEMBERS] = {0};
    struct report_cell cell;
    uint32_t until;
    bool failed;

    jr_object(j);
    while (jr_member(j, &key)) {
        size_t i = 0;

        while (i < MEMBERS && !jr_key_is(key, names[i]))
            i++;
        if (i < MEMBERS)
            read_raw(j, &v[i]);
        else
            jr_skip(j, NULL);
    }
    cell = (struct report_cell){.succeeded = read_time(v[SUCCESS]), .state = read_state(v[STATE])};
    until = read_time(v[UNTIL]);
    if (cell.succeeded && until > cell.succeeded)
        cell.life = size_min(until - cell.succeeded, MAX_LIFE_S) & MAX_LIFE_S;
    if (j->error || v[NAME].n == 0 || cell.state == SCORER_STATES)
        return;
    if (to->n == REPORT_MAX_CELLS) {
        to->not_shown++;
        return;
    }
    failed = cell.state == SCORER_FAILING || cell.state == SCORER_STALE;
    cell.score = read_score(v[NAME]);
    cell.placement = v[PLACEMENT].n > 0;
    cell.api_failed = failed && jr_key_is(v[STAGE], round_stage_word(STAGE_SCORING));
    if (report_cell_fails(&cell))
        cell.error = report_keep_error(to, failed && v[ERROR].n ? v[ERROR] : v[PLACEMENT]) & 0x7fu;
    if (to->n % CELLS_STEP == 0)
        to->cells = xreallocarray(to->cells, to->n + CELLS_STEP, sizeof(*to->cells));
    to->cells[to->n++] = cell;
}

static void read_cells(struct jr *j, struct reading *r)
{
    if (jr_peek(j) != JR_ARRAY) {
        jr_skip(j, NULL);
        return;
    }
    r->is_report = true;
    jr_array(j);
    while (jr_item(j)) {
        if (jr_peek(j) == JR_OBJECT)
            read_cell(j, r);
        else
            jr_skip(j, NULL);
    }
}

static void read_config_ok(struct jr *j, struct reading *r)
{
    enum jr_type type = jr_peek(j);

    r->is_report |= type == JR_TRUE || type == JR_FALSE;
    r->to->config_ok = type == JR_TRUE;
    jr_skip(j, NULL);
}

static void read_features(struct jr *j, struct reading *r)
{
    struct str feature;

    if (jr_peek(j) != JR_ARRAY) {
        jr_skip(j, NULL);
        return;
    }
    jr_array(j);
    while (jr_item(j)) {
        read_raw(j, &feature);
        r->to->takes_items |= jr_key_is(feature, "scoreItems");
    }
}

/* Anything but a number below a billion counts as 0. */
static void read_not_shown(struct jr *j, struct reading *r)
{
    struct str digits = {0};
    uint64_t n;

    jr_skip(j, &digits);
    r->to->not_shown += str_to_u64(digits, &n) && n < 1000000000 ? (uint32_t)n : 0;
}

static bool reading_read(struct reading *r, struct str text)
{
    struct jr j;
    struct str key;

    jr_init(&j, text, JR_STRICT);
    jr_object(&j);
    while (jr_member(&j, &key)) {
        if (jr_key_is(key, "configurationInForce"))
            read_config_ok(&j, r);
        else if (jr_key_is(key, "configurationProblems"))
            read_raw(&j, &r->problems);
        else if (jr_key_is(key, "hubError"))
            read_raw(&j, &r->hub_error);
        else if (jr_key_is(key, "features"))
            read_features(&j, r);
        else if (jr_key_is(key, "scorers"))
            read_cells(&j, r);
        else if (jr_key_is(key, "notShown"))
            read_not_shown(&j, r);
        else
            jr_skip(&j, NULL);
    }
    return jr_end(&j) && r->is_report;
}

/* A copy of the raw string as one line; NULL if it is empty. */
static char *reading_line(struct str raw)
{
    char line[TROUBLE_BYTES];

    text_line_json(line, sizeof(line), raw);
    return *line ? xstrdup(line) : NULL;
}

static int report_by_score(const void *a, const void *b)
{
    const struct report_cell *x = a, *y = b;

    return x->score < y->score ? -1 : x->score > y->score;
}

int report_parse(struct report *ret, struct str text)
{
    CLEANUP(report_done) struct report to = {.exists = text.n > 0, .hash = hash_bytes(text)};
    struct reading r = {.to = &to};

    if (text.n == 0) {
        *ret = (struct report){0};
        return 0;
    }
    if (!reading_read(&r, text))
        return -EINVAL;
    to.problem = reading_line(r.problems);
    to.config_rejected = to.problem && !to.config_ok;
    to.problem = to.problem ?: reading_line(r.hub_error);
    if (to.n) {
        qsort(to.cells, to.n, sizeof(*to.cells), report_by_score);
        to.cells = xreallocarray(to.cells, to.n, sizeof(*to.cells));
    }
    *ret = to;
    to = (struct report){0};
    return 0;
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

bool report_cell_scores(const struct report_cell *c)
{
    return !report_cell_fails(c) && (c->state == SCORER_OK || c->state == SCORER_EMPTY);
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
                a->config_rejected == b->config_rejected && a->takes_items == b->takes_items &&
                a->n == b->n && a->not_shown == b->not_shown && a->n_errors == b->n_errors &&
                strcmp(cstr(a->problem), cstr(b->problem)) == 0;

    for (uint32_t i = 0; same && i < a->n_errors; i++)
        same = strcmp(a->errors[i], b->errors[i]) == 0;
    for (uint32_t i = 0; same && i < a->n; i++) {
        const struct report_cell *x = &a->cells[i], *y = &b->cells[i];

        same = x->score == y->score && x->state == y->state && x->placement == y->placement &&
               x->api_failed == y->api_failed && x->error == y->error && !x->succeeded == !y->succeeded;
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
