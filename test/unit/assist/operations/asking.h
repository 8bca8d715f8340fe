/* Asks an operation, as the API would, about a hub whose objects are texts. */
#ifndef DS_TEST_ASKING_H
#define DS_TEST_ASKING_H

#include "controller/assist/api/request.h"
#include "controller/assist/api/schema.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/reader.h"
#include "controller/assist/state/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NOT_INSTALLED NULL

enum { MAX_TEXTS = 2048, ASKED_AT_S = 1795242181 }; /* 2026-11-21T06:23:01Z */

struct known {
    const char *items[KINDS]; /* JSON objects separated by commas; NOT_INSTALLED */
    const char *work;         /* the ManifestWork; NULL: none */
    struct outcome failure;   /* of reading; status 0: none */
    char *texts[MAX_TEXTS];
    size_t n_texts;
};

struct asked {
    struct call call;
    unsigned ended;
};

/* A text that lives as long as the test. */
static inline const char *PRINTF_LIKE(2, 3) known_text(struct known *k, const char *fmt, ...)
{
    va_list args;

    assert_true(k->n_texts < MAX_TEXTS);
    va_start(args, fmt);
    assert_true(vasprintf(&k->texts[k->n_texts++], fmt, args) >= 0);
    va_end(args);
    return k->texts[k->n_texts - 1];
}

/* ---- In place of the real reader ---- */

struct reader *assist_reader(const struct assist *a)
{
    return (struct reader *)(uintptr_t)a;
}

/* As the API server selects. */
static inline bool known_selects(const struct reader_query *q, enum kind kind, const json_t *o)
{
    const char *namespace = kind == KIND_SCORES ? q->cluster : kind == KIND_CLUSTERS ? NULL : q->namespace;
    const char *name = kind == KIND_SCORES ? q->score : kind == KIND_CLUSTERS ? q->cluster : NULL;

    return (!namespace || strcmp(namespace, kube_namespace(o)) == 0) &&
           (!name || strcmp(name, kube_name(o)) == 0);
}

/* Quotes are single in the tests' texts, as they have fewer backslashes. */
static inline json_t *quoted_json(const char *text)
{
    char *copy = strdup(text);
    json_t *o;

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    o = json_loads(copy, 0, NULL);
    assert_non_null(o);
    free(copy);
    return o;
}

static inline void known_read_kind(const struct known *k, struct snapshot *s, const struct reader_query *q,
                                   enum kind kind)
{
    BUF_AUTO(text, 64u << 20);
    json_auto_t *list = NULL;
    json_t *o;
    size_t i;

    s->lists[kind].lacks_kind = !k->items[kind];
    assert_int_equal(buf_printf(&text, "[%s]%c", k->items[kind] ? k->items[kind] : "", '\0'), 0);
    list = quoted_json(text.p);
    json_array_foreach(list, i, o)
    {
        if (known_selects(q, kind, o))
            snapshot_add(s, kind, o);
    }
    snapshot_sort(s, kind);
}

void reader_read(struct reader *r, const struct reader_query *q, reader_done_fn done, void *arg)
{
    const struct known *k = (void *)r;
    struct snapshot *s = snapshot_new((unix_ms){ASKED_AT_S * INT64_C(1000)});

    assert_non_null(s);
    for (enum kind kind = 0; kind < KINDS; kind++)
        if (q->kinds & KIND_BIT(kind))
            known_read_kind(k, s, q, kind);
    if (q->wants_work && k->work)
        s->work = quoted_json(k->work);
    if (k->failure.status)
        s = snapshot_free(s);
    done(arg, s, s ? NULL : &k->failure);
}

/* ---- Asking ---- */

static inline void asked_on_end(struct call *c)
{
    ((struct asked *)(void *)c)->ended++;
}

/* As the output schema, which clients check answers against, promises. */
static inline void expect_schema(const struct operation *o, const json_t *answer)
{
    json_auto_t *schema = json_loads(o->output, 0, NULL);
    struct schema_problem problem;

    if (!schema_accepts(schema, answer, &problem))
        fail_msg("%s: %s", problem.field, problem.text);
}

/* The answer, a new reference. max_bytes: SIZE_MAX for REST. */
static inline json_t *ask(struct known *k, const struct operation *o, const char *input, size_t max_bytes,
                          unsigned status)
{
    BUF_AUTO(text, 64u << 20);
    struct asked a = {.call = {.input = quoted_json(input), .max_bytes = max_bytes, .ended = asked_on_end}};
    json_t *answer;

    o->run(k, &a.call);
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.call.status, status);
    assert_int_equal(call_print(&a.call, &text), 0);
    answer = json_loadb(text.p, text.n, 0, NULL);
    assert_non_null(answer);
    if (status == 200)
        expect_schema(o, answer);
    call_end(&a.call);
    return answer;
}

/* The answer as text with sorted members is so. */
static inline void expect_answer(struct known *k, const struct operation *o, const char *input,
                                 const char *want)
{
    json_t *answer = ask(k, o, input, SIZE_MAX, 200), *wanted = quoted_json(want);
    char *got = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS), *text;

    text = json_dumps(wanted, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(got, text);
    free(got);
    free(text);
    json_decref(answer);
    json_decref(wanted);
}

/* An assistant's answer stays within the bytes. */
static inline json_t *ask_briefly(struct known *k, const struct operation *o, const char *input,
                                  size_t max_bytes)
{
    json_t *answer = ask(k, o, input, max_bytes, 200);

    assert_true(json_dumpb(answer, NULL, 0, JSON_COMPACT) <= max_bytes);
    return answer;
}

static inline int asking_setup(void **state)
{
    struct known *k = calloc(1, sizeof(*k));

    for (size_t i = 0; i < KINDS; i++)
        k->items[i] = "";
    *state = k;
    return 0;
}

static inline int asking_teardown(void **state)
{
    struct known *k = *state;

    for (size_t i = 0; i < k->n_texts; i++)
        free(k->texts[i]);
    free(k);
    return 0;
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, asking_setup, asking_teardown)

#endif
