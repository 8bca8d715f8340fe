#include "controller/hub/rules/report_read.h"

#include "exporter/base/json.h"

#include <errno.h>
#include <time.h>

enum { FIRST_CAP = 64, MAX_DIGITS = 9 };

void reading_done(struct reading *r)
{
    free(r->list);
}

/* A string raw; what is of another type is passed over and reads as an empty one. */
static void read_raw(struct jr *j, struct str *ret)
{
    *ret = (struct str){0};
    if (jr_peek(j) == JR_STRING)
        jr_string(j, ret);
    else
        jr_skip(j, NULL);
}

/* -ENOMEM. */
static int score_of(struct str raw, uint64_t *ret)
{
    CLEANUP(cleanup_free) char *plain = NULL;

    if (!memchr(cstr(raw.p), '\\', raw.n)) {
        *ret = report_score(raw);
        return 0;
    }
    plain = malloc(raw.n * 3);
    if (!plain)
        return -ENOMEM;
    *ret = report_score((struct str){plain, jr_unescape(raw, plain)});
    return 0;
}

/* A time as "2026-11-21T06:23:01.123Z", in seconds; 0 for what is none. */
static uint32_t time_of(struct str raw)
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
static uint8_t read_state(struct str raw)
{
    uint8_t i = 0;

    while (i < SCORER_STATES && !jr_key_is(raw, scorer_state_word(i)))
        i++;
    return i;
}

static int add(struct reading *r, const struct found *f)
{
    if (r->n == REPORT_MAX_CELLS) {
        r->over++;
        return 0;
    }
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : FIRST_CAP;
        struct found *list = reallocarray(r->list, cap, sizeof(*list));

        if (!list)
            return -ENOMEM;
        r->list = list;
        r->cap = cap;
    }
    r->list[r->n] = *f;
    r->list[r->n].place = (uint32_t)r->n;
    r->n++;
    return 0;
}

static int read_cell(struct jr *j, struct reading *r)
{
    struct str key, name = {0}, state = {0}, error = {0}, placement = {0}, success = {0};
    struct found f = {0};

    jr_object(j);
    while (jr_member(j, &key)) {
        if (jr_key_is(key, "scoreName"))
            read_raw(j, &name);
        else if (jr_key_is(key, "state"))
            read_raw(j, &state);
        else if (jr_key_is(key, "error"))
            read_raw(j, &error);
        else if (jr_key_is(key, "placementError"))
            read_raw(j, &placement);
        else if (jr_key_is(key, "lastSuccess"))
            read_raw(j, &success);
        else
            jr_skip(j, NULL);
    }
    f.cell.succeeded = time_of(success);
    f.cell.state = read_state(state);
    if (j->error || name.n == 0 || f.cell.state == SCORER_STATES)
        return 0;
    f.cell.placement = placement.n > 0;
    f.error = error.n > 0 && report_state_fails(f.cell.state) ? error : placement;
    if (score_of(name, &f.cell.score) < 0)
        return -ENOMEM;
    return add(r, &f);
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
    while (e == 0 && jr_item(j)) {
        if (jr_peek(j) == JR_OBJECT)
            e = read_cell(j, r);
        else
            jr_skip(j, NULL);
    }
    return e;
}

static void read_in_force(struct jr *j, struct reading *r)
{
    enum jr_type type = jr_peek(j);

    r->is_report |= type == JR_TRUE || type == JR_FALSE;
    r->config_ok = type == JR_TRUE;
    jr_skip(j, NULL);
}

/* Digits, so few that they cannot overflow; all else counts nothing. */
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

int reading_read(struct reading *r, struct str text)
{
    struct jr j;
    struct str key;
    int e = 0;

    jr_init(&j, text, JR_STRICT);
    jr_object(&j);
    while (e == 0 && jr_member(&j, &key)) {
        if (jr_key_is(key, "configurationInForce"))
            read_in_force(&j, r);
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
