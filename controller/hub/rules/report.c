#include "controller/hub/rules/report.h"

#include "exporter/base/hash.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Reads an agent's report into few bytes ---- */

enum { FIRST_CAP = 64, MAX_DIGITS = 9, TROUBLE_BYTES = 512 };

/* A cell, and what is needed until all are read. */
struct found {
    struct report_cell cell;
    uint32_t place; /* in the document */
    struct str error;
};

/* The document; texts are raw. */
struct reading {
    bool is_report; /* has a member that only reports have */
    bool config_ok;
    struct str problems, hub_error;
    struct found *list;
    size_t n, cap;
    uint64_t not_shown, over; /* over: cells past REPORT_MAX_CELLS */
};

static void reading_done(struct reading *r)
{
    free(r->list);
}

/* The raw string; empty for a value of another type. */
static void read_raw(struct jr *j, struct str *ret)
{
    *ret = (struct str){0};
    if (jr_peek(j) == JR_STRING)
        jr_string(j, ret);
    else
        jr_skip(j, NULL);
}

/* -ENOMEM. */
static void read_score(struct str raw, uint64_t *ret)
{
    CLEANUP(cleanup_free) char *plain = NULL;

    if (!memchr(cstr(raw.p), '\\', raw.n)) {
        *ret = report_score(raw);
        return;
    }
    plain = xmalloc(raw.n * 3);
    *ret = report_score((struct str){plain, jr_unescape(raw, plain)});
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

static void reading_add(struct reading *r, const struct found *f)
{
    if (r->n == REPORT_MAX_CELLS) {
        r->over++;
        return;
    }
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : FIRST_CAP;
        struct found *list = xreallocarray(r->list, cap, sizeof(*list));

        r->list = list;
        r->cap = cap;
    }
    r->list[r->n] = *f;
    r->list[r->n].place = (uint32_t)r->n;
    r->n++;
}

static void read_cell(struct jr *j, struct reading *r)
{
    struct str key, name = {0}, state = {0}, error = {0}, stage = {0}, placement = {0}, success = {0};
    struct found f = {0};
    bool is_round_error;

    jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "scoreName"))
            read_raw(j, &name);
        else if (jr_key_is(key, "state"))
            read_raw(j, &state);
        else if (jr_key_is(key, "error"))
            read_raw(j, &error);
        else if (jr_key_is(key, "failedStage"))
            read_raw(j, &stage);
        else if (jr_key_is(key, "placementError"))
            read_raw(j, &placement);
        else if (jr_key_is(key, "lastSuccess"))
            read_raw(j, &success);
        else
            jr_skip(j, NULL);
    }
    f.cell.succeeded = read_time(success);
    f.cell.state = read_state(state);
    if (j->error || name.n == 0 || f.cell.state == SCORER_STATES)
        return;
    f.cell.placement = placement.n > 0;
    is_round_error = f.cell.state == SCORER_FAILING || f.cell.state == SCORER_STALE;
    f.cell.api_failed = is_round_error && jr_key_is(stage, round_stage_word(STAGE_SCORING));
    f.error = error.n > 0 && is_round_error ? error : placement;
    read_score(name, &f.cell.score);
    reading_add(r, &f);
}

static int read_cells(struct jr *j, struct reading *r)
{
    int e = 0;

    if (jr_peek(j) != JR_ARRAY) {
        jr_skip(j, NULL);
        return 0;
    }
    r->is_report = true;
    jr_array(j);
    while (jr_item(j)) {
        if (jr_peek(j) == JR_OBJECT)
            read_cell(j, r);
        else
            jr_skip(j, NULL);
    }
    return e;
}

static void read_config_ok(struct jr *j, struct reading *r)
{
    enum jr_type type = jr_peek(j);

    r->is_report |= type == JR_TRUE || type == JR_FALSE;
    r->config_ok = type == JR_TRUE;
    jr_skip(j, NULL);
}

/* Too few digits to overflow; anything else counts as 0. */
static void read_not_shown(struct jr *j, struct reading *r)
{
    struct str digits = {0};

    jr_skip(j, &digits);
    r->not_shown = 0;
    for (size_t i = 0; i < digits.n; i++) {
        unsigned d = (unsigned)(digits.p[i] - '0');

        if (d > 9 || i >= MAX_DIGITS) {
            r->not_shown = 0;
            return;
        }
        r->not_shown = r->not_shown * 10 + d;
    }
}

/* -EINVAL if it is no report, -ENOMEM. */
static int reading_read(struct reading *r, struct str text)
{
    struct jr j;
    struct str key;
    int e = 0;

    jr_init(&j, text, JR_STRICT);
    jr_object(&j);
    while (e == 0 && jr_member(&j, &key)) {
        if (jr_key_is(key, "configurationInForce"))
            read_config_ok(&j, r);
        else if (jr_key_is(key, "configurationProblems"))
            read_raw(&j, &r->problems);
        else if (jr_key_is(key, "hubError"))
            read_raw(&j, &r->hub_error);
        else if (jr_key_is(key, "scorers"))
            e = read_cells(&j, r);
        else if (jr_key_is(key, "notShown"))
            read_not_shown(&j, r);
        else
            jr_skip(&j, NULL);
    }
    if (e < 0)
        return e;
    return jr_end(&j) && r->is_report ? 0 : -EINVAL;
}

static int found_by_score(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->cell.score != y->cell.score)
        return x->cell.score < y->cell.score ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int found_by_place(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->place < y->place ? -1 : x->place > y->place;
}

static int report_by_score(const void *a, const void *b)
{
    const struct report_cell *x = a, *y = b;

    return x->score < y->score ? -1 : x->score > y->score;
}

/* The first cell of a name stays. */
static void reading_drop_repeated(struct reading *r)
{
    size_t n = 0;

    if (r->n == 0)
        return;
    qsort(r->list, r->n, sizeof(*r->list), found_by_score);
    for (size_t i = 0; i < r->n; i++)
        if (n == 0 || r->list[n - 1].cell.score != r->list[i].cell.score)
            r->list[n++] = r->list[i];
    r->n = n;
    qsort(r->list, r->n, sizeof(*r->list), found_by_place);
}

/* A copy of the raw string as one line; *ret stays NULL if it is empty. */
static void report_keep_line(char **ret, struct str raw)
{
    char line[TROUBLE_BYTES];

    text_line_json(line, sizeof(line), raw);
    if (!line[0])
        return;
    *ret = xstrdup(line);
}

/* Sets *ret to 1 + the line's index in errors; not for an empty line, or past REPORT_MAX_ERRORS. */
static void report_keep_error(struct report *to, const char *line, uint16_t *ret)
{
    uint32_t i = 0;
    char **list;

    while (i < to->n_errors && strcmp(to->errors[i], line) != 0)
        i++;
    if (!*line || i == REPORT_MAX_ERRORS)
        return;
    if (i == to->n_errors) {
        list = xreallocarray(to->errors, i + 1, sizeof(*list));
        to->errors = list;
        list[i] = xstrdup(line);
        to->n_errors++;
    }
    *ret = (uint16_t)(i + 1);
}

static int report_keep_errors(struct report *to, struct reading *r)
{
    char line[REPORT_ERROR_BYTES];
    int e = 0;

    for (size_t i = 0; i < r->n && e == 0; i++) {
        struct found *f = &r->list[i];

        if (!report_cell_fails(&f->cell))
            continue;
        text_line_json(line, sizeof(line), f->error);
        report_keep_error(to, line, &f->cell.error);
    }
    return e;
}

static void report_keep_cells(struct report *to, const struct reading *r)
{
    if (r->n == 0)
        return;
    to->cells = xcalloc(r->n, sizeof(*to->cells));
    for (size_t i = 0; i < r->n; i++)
        to->cells[i] = r->list[i].cell;
    to->n = (uint32_t)r->n;
    qsort(to->cells, to->n, sizeof(*to->cells), report_by_score);
}

int report_parse(struct report *ret, struct str text)
{
    CLEANUP(reading_done) struct reading r = {0};
    CLEANUP(report_done) struct report to = {0};
    int e;

    if (text.n == 0) {
        *ret = to;
        return 0;
    }
    e = reading_read(&r, text);
    if (e < 0)
        return e;
    reading_drop_repeated(&r);
    to.exists = true;
    to.config_ok = r.config_ok;
    to.hash = report_hash(text);
    to.not_shown = (uint32_t)(r.not_shown + r.over);
    report_keep_line(&to.problem, r.problems);
    to.config_rejected = to.problem && !to.config_ok;
    if (!to.problem)
        report_keep_line(&to.problem, r.hub_error);
    if (report_keep_errors(&to, &r) < 0)
        return -ENOMEM;
    report_keep_cells(&to, &r);
    *ret = to;
    to = (struct report){0};
    return 0;
}

/* ---- Asking ---- */

uint64_t report_score(struct str score_name)
{
    return hash_bytes(score_name);
}

uint64_t report_hash(struct str text)
{
    return hash_bytes(text);
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

static bool report_same_cell(const struct report_cell *a, const struct report_cell *b)
{
    return a->score == b->score && a->state == b->state && a->placement == b->placement &&
           a->api_failed == b->api_failed && a->error == b->error && !a->succeeded == !b->succeeded;
}

bool report_same(const struct report *a, const struct report *b)
{
    bool same = a->exists == b->exists && a->config_ok == b->config_ok &&
                a->config_rejected == b->config_rejected && a->n == b->n && a->not_shown == b->not_shown &&
                a->n_errors == b->n_errors && strcmp(cstr(a->problem), cstr(b->problem)) == 0;

    for (uint32_t i = 0; same && i < a->n_errors; i++)
        same = strcmp(a->errors[i], b->errors[i]) == 0;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = report_same_cell(&a->cells[i], &b->cells[i]);
    return same;
}

static int report_compare_score(const void *score, const void *at)
{
    uint64_t want = *(const uint64_t *)score;
    const struct report_cell *c = at;

    return want < c->score ? -1 : want > c->score;
}

const struct report_cell *report_find(const struct report *r, uint64_t score)
{
    return r->n ? bsearch(&score, r->cells, r->n, sizeof(*r->cells), report_compare_score) : NULL;
}

const char *report_error(const struct report *r, const struct report_cell *c)
{
    return c->error > 0 ? r->errors[c->error - 1] : "";
}
