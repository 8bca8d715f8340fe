#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/httpd.h"
#include "exporter/base/str.h"
#include "exporter/models/call.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "exporter/models/request.h"
#include "exporter/models/results.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SERIES "{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"2\"],[2,\"4\"]]}"

/* A reply, as the server would send it. */
struct sent {
    struct httpd_reply reply;
    struct buf shown;
    char body[1000]; /* terminated */
};

static void keep_reply(struct call *c)
{
    struct sent *to = c->owner;

    to->shown = buf_take(&c->shown);
    call_reply(c);
    if (to->reply.n_parts)
        memcpy(to->body, to->reply.parts[0].iov_base,
               size_min(to->reply.parts[0].iov_len, sizeof(to->body) - 1));
}

/* Calls a model; false if there was no memory for the call. */
static bool call_model(struct sent *to, const struct model *m, void *state, struct str body,
                       const char *coding)
{
    const struct httpd_request rq = {.body = body, .content_encoding = coding, .authorization = ""};
    struct call *c;

    *to = (struct sent){.reply.status = 200};
    c = call_new(m, state, 0, &rq, &to->reply);
    if (!c)
        return false;
    c->owner = to;
    c->done = keep_reply;
    call_start(c, NULL);
    return true;
}

static void sent_done(struct sent *s)
{
    if (s->reply.release)
        s->reply.release(s->reply.arg);
    buf_done(&s->shown);
}

static void assert_sent(struct sent *s, unsigned status, const char *text)
{
    assert_int_equal(s->reply.status, status);
    assert_string_equal(s->reply.content_type, "application/json");
    assert_string_equal(s->body, text);
    sent_done(s);
}

static void answers_and_shows_the_call(void **state)
{
    struct sent s;

    (void)state;
    assert_true(call_model(&s, &model_mean, NULL, STR("{\"data\":[" SERIES "]}"), ""));
    assert_int_equal(buf_putc(&s.shown, '\0'), 0);
    assert_string_equal(s.shown.p,
                        "\"shownSeries\":[{\"metric\":{\"a\":\"b\"},\"unixSeconds\":[1,2],\"values\":[2,4]}],"
                        "\"shownResults\":[{\"metric\":{\"a\":\"b\",\"meta\":\"my_something_meta_by_sample_"
                        "scorer\"},\"score\":3.0}]");
    assert_sent(&s, 200,
                "{\"results\":[{\"metric\":{\"a\":\"b\",\"meta\":\"my_something_meta_by_sample_scorer\"},"
                "\"score\":3.0}]}");
}

static void refuses_what_it_cannot_read(void **state)
{
    struct sent s;

    (void)state;
    assert_true(call_model(&s, &model_mean, NULL, STR("{\"data\":[" SERIES ",{\"metric\":1}]}"), "identity"));
    assert_int_equal(s.shown.n, 0);
    assert_sent(&s, 400, "{\"error\":\"data[1].metric: expected an object\"}");
    assert_true(call_model(&s, &model_mean, NULL, STR("{}"), "gzip"));
    assert_sent(&s, 400, "{\"error\":\"the body is not gzip\"}");
    assert_true(call_model(&s, &model_mean, NULL, STR("{}"), "br"));
    assert_sent(&s, 415, "{\"error\":\"unsupported Content-Encoding; supported are gzip and deflate\"}");
}

/* ---- A model that answers later ---- */

static struct scoring *waiting;

static void later_begin(void *state, struct scoring *s)
{
    (void)state;
    waiting = s;
}

static const struct model model_later = {.name = "later", .begin = later_begin};

static void lets_a_model_answer_later(void **state)
{
    struct input_series series;
    struct sent s;

    (void)state;
    assert_true(call_model(&s, &model_later, NULL, STR("{\"data\":[" SERIES "]}"), ""));
    assert_string_equal(s.body, "");
    assert_true(request_next(&waiting->request, &series));
    results_add(&waiting->results, &(struct result){.metric = series.metric, .score = 7});
    scoring_done(waiting, 0);
    assert_sent(&s, 200, "{\"results\":[{\"metric\":{\"a\":\"b\"},\"score\":7.0}]}");
}

static void says_why_a_model_failed(void **state)
{
    static const struct {
        int r;
        unsigned status;
        const char *why, *text;
    } cases[] = {
        {-EIO, 502, "no answer", "{\"error\":\"no answer\"}"},
        {-EIO, 502, "", "{\"error\":\"the model's service failed\"}"},
        {-EINVAL, 400, "no node", "{\"error\":\"no node\"}"},
        {-ECANCELED, 503, "", "{\"error\":\"shutting down\"}"},
        {-ENOMEM, 503, "", "{\"error\":\"out of memory\"}"},
        {-EFBIG, 500, "", "{\"error\":\"the answer would be larger than 256 MiB\"}"},
    };
    struct sent s;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_true(call_model(&s, &model_later, NULL, STR("{\"data\":[]}"), ""));
        (void)strcpy(waiting->why, cases[i].why);
        scoring_done(waiting, cases[i].r);
        assert_int_equal(s.reply.retry_after > 0, cases[i].status == 503);
        assert_sent(&s, cases[i].status, cases[i].text);
    }
}

/* ---- */

static void survives_a_lack_of_memory(void **state)
{
    static const struct model *const of[] = {&model_mean, &model_static};

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(of); k++) {
        CLEANUP(cleanup_instance_free) struct instance *i = NULL;
        CLEANUP(cleanup_free) char *why = NULL;

        assert_int_equal(instance_new(&i, of[k]), 0);
        assert_int_equal(instance_open(i, NULL, &why), 0);
        FOR_EACH_ALLOCATION_FAILURE(n)
        {
            struct sent s;
            bool ok = call_model(&s, of[k], i->state, STR("{\"data\":[" SERIES "," SERIES "]}"), "");

            assert_true(!ok || s.reply.status == 200 || s.reply.status == 503);
            assert_true((ok && s.reply.status == 200) || oom_happened());
            sent_done(&s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_and_shows_the_call), cmocka_unit_test(refuses_what_it_cannot_read),
        cmocka_unit_test(lets_a_model_answer_later),  cmocka_unit_test(says_why_a_model_failed),
        cmocka_unit_test(survives_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
