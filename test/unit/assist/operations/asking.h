/* Asks an operation, as the API would, about a known world. */
#ifndef DS_TEST_ASKING_H
#define DS_TEST_ASKING_H

#include "controller/assist/api/call.h"
#include "controller/assist/api/schema.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/state/assist.h"
#include "exporter/base/buf.h"
#include "test/fakes/fake_kube.h"
#include "test/unit/assist/known_world.h"

#include <stdio.h>

struct asked {
    struct call call;
    unsigned ended;
};

/* The real one holds more than these operations need. */
struct assist {
    const struct world *world;
};

const struct world *assist_world(const struct assist *a)
{
    return a->world;
}

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
    struct assist assist = {k->w};
    BUF_AUTO(text, 64u << 20);
    struct asked a = {
        .call = {.input = json_loads(input, 0, NULL), .max_bytes = max_bytes, .ended = asked_on_end}};
    json_t *answer;

    assert_non_null(a.call.input);
    o->run(&assist, &a.call);
    fake_kube_turn(k->f, &a.ended, 1);
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
    json_t *answer = ask(k, o, input, SIZE_MAX, 200), *wanted = json_loads(want, 0, NULL);
    char *got = json_dumps(answer, JSON_COMPACT | JSON_SORT_KEYS), *text;

    assert_non_null(wanted);
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

    known_init(k);
    *state = k;
    return 0;
}

static inline int asking_teardown(void **state)
{
    known_end(*state);
    free(*state);
    return 0;
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, asking_setup, asking_teardown)

#endif
