/* Documents for the tests of spec*.c and effective*.c, with ' for ". */
#pragma once

#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Replaces each ' by ". */
static inline char *quoted(const char *text)
{
    char *copy = strdup(text);

    assert_non_null(copy);
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    return copy;
}

static inline json_t *value_of(const char *text)
{
    CLEANUP(cleanup_free) char *json = quoted(text);
    json_t *o = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    if (!o)
        print_error("not JSON: %s\n", json);
    assert_non_null(o);
    return o;
}

/* members: of the spec, without braces. */
static inline int read_spec(struct scorer_spec *s, const char *members, char why[SPEC_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *text = NULL;
    json_t *o;
    int r;

    assert_true(asprintf(&text, "{'metadata':{'name':'x'},'spec':{%s}}", members) > 0);
    o = value_of(text);
    r = scorer_spec_read(s, o, why);
    json_decref(o); /* the spec keeps a reference */
    return r;
}

static inline struct scorer_spec good_spec(const char *members)
{
    char why[SPEC_WHY_BYTES] = "";
    struct scorer_spec s;
    int r = read_spec(&s, members, why);

    if (r < 0)
        print_error("%s: %s\n", members, why);
    assert_int_equal(r, 0);
    return s;
}

static inline int parse_config(struct api_config *c, const char *text, char why[SPEC_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *json = quoted(text);

    return api_config_parse(c, str_of(json), why);
}

static inline struct api_config good_config(const char *text)
{
    char why[SPEC_WHY_BYTES] = "";
    struct api_config c;
    int r = parse_config(&c, text, why);

    if (r < 0)
        print_error("%s: %s\n", text, why);
    assert_int_equal(r, 0);
    return c;
}

static inline bool same_str(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static inline bool same_config(const struct api_config *a, const struct api_config *b)
{
    const struct scoring_spec *p = &a->scoring, *q = &b->scoring;

    if (!same_str(a->name, b->name) || !same_str(a->description, b->description) ||
        a->n_sources != b->n_sources || !same_str(p->host, q->host) || !same_str(p->path, q->path) ||
        !same_str(p->score_name, q->score_name) || p->interval_s != q->interval_s ||
        !p->params != !q->params || (p->params && !json_equal(p->params, q->params)))
        return false;
    for (size_t i = 0; i < a->n_sources; i++) {
        const struct source_spec *s = &a->sources[i], *t = &b->sources[i];

        if (s->type != t->type || !same_str(s->host, t->host) || !same_str(s->path, t->path) ||
            !same_str(s->query, t->query) || s->range_s != t->range_s || s->step_s != t->step_s)
            return false;
    }
    return true;
}
