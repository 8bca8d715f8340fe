#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/base/problems.h"
#include "exporter/models/instance.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct made_up {
    const char *text, *url;
    double number;
    int64_t count, ms, seconds;
};

#define FIELD(name) .field = offsetof(struct made_up, name)

static const struct setting settings[] = {
    {"some-text", "TEXT", "Text", SETTING_TEXT, FIELD(text), "by default", "OTHER_TEXT"},
    {"server", "URL", "Server", SETTING_URL, FIELD(url), "http://localhost"},
    {"number", "X", "Number", SETTING_NUMBER, FIELD(number), "1.5", .min = -2, .max = 2},
    {"count", "N", "Count", SETTING_COUNT, FIELD(count), "7", .min = 1, .max = 10},
    {"wait-time", "DURATION", "Wait", SETTING_DURATION, FIELD(ms), "1.5", .min = 1, .max = 60},
    {"age", "DURATION", "Age", SETTING_SECONDS, FIELD(seconds)},
    {.name = NULL},
};
static const struct model_endpoint endpoints[] = {{.prefix = "/one",
                                                   .name = "n",
                                                   .description = "d",
                                                   .source_type = "none",
                                                   .score_name = "s",
                                                   .interval = 30}};
static const struct model model_made_up = {
    .name = "made-up",
    .endpoints = endpoints,
    .n_endpoints = 1,
    .settings = settings,
    .size = sizeof(struct made_up),
};

static const struct instance_setting *setting_of(const struct instance *i, const char *name)
{
    for (size_t k = 0; k < i->n_settings; k++)
        if (strcmp(i->settings[k].name, name) == 0)
            return &i->settings[k];
    fail_msg("there is no setting %s", name);
    return NULL;
}

static void write_file(char path[64], const char *text)
{
    int fd;

    (void)snprintf(path, 64, "/tmp/test_instance_XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

/* Configures it from a file, and returns the first problem, to be freed; NULL without one. */
static char *configure(struct instance *i, const char *text, int *ret)
{
    struct problems file = {0}, others = {0};
    const struct problems *p;
    char path[64], *first;

    write_file(path, text);
    problems_init(&file, "f");
    problems_init(&others, "environment");
    *ret = instance_configure(i, path, &file, &others);
    p = file.n ? &file : &others;
    first = p->n ? strdup(p->list[0].text) : NULL;
    problems_done(&file);
    problems_done(&others);
    assert_int_equal(unlink(path), 0);
    return first;
}

static void knows_three_names_of_a_setting(void **state)
{
    CLEANUP(cleanup_instance_free) struct instance *i = NULL;
    const struct instance_setting *s;

    (void)state;
    assert_int_equal(instance_new(&i, &model_made_up), 0);
    s = setting_of(i, "wait-time");
    assert_string_equal(s->variable, "WAIT_TIME");
    assert_string_equal(s->key, "waitTime");
    assert_string_equal(s->expected, "a duration such as 30s or 1m30s from 1s to 60s");
    s = setting_of(i, "one.score-name");
    assert_string_equal(s->variable, "ONE_SCORE_NAME");
    assert_string_equal(s->key, "oneScoreName");
    assert_int_equal(i->n_settings, 8); /* without a source there is nothing to query */
}

static void takes_flags_before_the_environment_before_the_file(void **state)
{
    CLEANUP(cleanup_instance_free) struct instance *i = NULL;
    const struct made_up *own;
    int r;

    (void)state;
    assert_int_equal(instance_new(&i, &model_made_up), 0);
    own = i->state;
    assert_string_equal(own->text, "by default");
    assert_true(own->number == 1.5 && own->count == 7 && own->ms == 1500 && own->seconds == 0);
    assert_int_equal(setenv("OTHER_TEXT", "of the environment", 1), 0);
    assert_int_equal(setenv("COUNT", "9", 1), 0);
    assert_int_equal(setenv("NUMBER", "", 1), 0);
    i->settings[3].flag = "10";
    assert_null(configure(i, "someText: of the file\nnumber: -2\ncount: 3\nage: 1h\noneScoreName: x\n", &r));
    assert_int_equal(r, 0);
    assert_string_equal(own->text, "of the environment");
    assert_true(own->number == -2 && own->count == 10 && own->seconds == 3600);
    assert_string_equal(i->endpoints[0].score_name, "x");
    assert_int_equal(unsetenv("OTHER_TEXT"), 0);
    assert_int_equal(unsetenv("COUNT"), 0);
    assert_int_equal(unsetenv("NUMBER"), 0);
}

static void names_what_is_wrong(void **state)
{
    static const struct {
        const char *file, *count, *problem;
    } cases[] = {
        {"count: 1.5", "", "count: expected a whole number from 1 to 10, got 1.5"},
        {"count: 11", "", "count: expected a whole number from 1 to 10, got 11"},
        {"count: [1]", "", "count: expected a whole number from 1 to 10, got a list"},
        {"number: x", "", "number: expected a number from -2 to 2, got the string \"x\""},
        {"someText: ''", "", "someText: expected a text, got an empty string"},
        {"age: 500ms", "",
         "age: expected a duration in whole seconds such as 30s or 5m, got the string \"500ms\""},
        {"server: prometheus:9090", "",
         "server: expected a URL with http:// or https://, got the string \"prometheus:9090\""},
        {"server: https:///", "",
         "server: expected a URL with http:// or https://, got the string \"https:///\""},
        {"agge: 1", "", "agge: unknown key, did you mean age?"},
        {"x", "", "expected an object, got a string"},
        {"", "many", "COUNT: expected a whole number from 1 to 10, got \"many\""},
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        CLEANUP(cleanup_instance_free) struct instance *i = NULL;
        CLEANUP(cleanup_free) char *problem = NULL;
        int r;

        assert_int_equal(setenv("COUNT", cases[k].count, 1), 0);
        assert_int_equal(instance_new(&i, &model_made_up), 0);
        problem = configure(i, cases[k].file, &r);
        assert_int_equal(r, -EINVAL);
        assert_non_null(problem);
        assert_string_equal(problem, cases[k].problem);
    }
    assert_int_equal(unsetenv("COUNT"), 0);
}

static void reads_the_tables_of_static(void **state)
{
    static const struct {
        const char *file, *why;
    } cases[] = {
        {"performance: 'a=b,c=d=e 1; a=\"x\"  -2.5;\n'", NULL},
        {"performance: [{metric: {a: b, c: d=e}, score: 1}, {metric: {a: '\"x\"'}, score: -2.5}]", NULL},
        {"performance: a=b", "row \"a=b\": expected labels and a score, like app=app01,device=all 80"},
        {"performance: a 1", "row \"a 1\": expected labels and a score, like app=app01,device=all 80"},
        {"performance: ',=b 1'", "row \",=b 1\": expected labels and a score, like app=app01,device=all 80"},
    };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
        CLEANUP(cleanup_instance_free) struct instance *i = NULL;
        CLEANUP(cleanup_free) char *why = NULL;
        BUF_AUTO(out, 1000);
        struct scoring s = {0};
        int r;

        assert_int_equal(instance_new(&i, &model_static), 0);
        assert_null(configure(i, cases[k].file, &r));
        assert_int_equal(instance_open(i, NULL, &why), cases[k].why ? -EINVAL : 0);
        if (cases[k].why) {
            assert_string_equal(why, cases[k].why);
            continue;
        }
        results_begin(&s.results, &out);
        assert_int_equal(model_static.score(i->state, &s), 0);
        assert_int_equal(results_end(&s.results) ?: buf_putc(&out, '\0'), 0);
        assert_string_equal(out.p, "{\"results\":[{\"metric\":{\"a\":\"b\",\"c\":\"d=e\"},\"score\":1.0},"
                                   "{\"metric\":{\"a\":\"\\\"x\\\"\"},\"score\":-2.5}]}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_three_names_of_a_setting),
        cmocka_unit_test(takes_flags_before_the_environment_before_the_file),
        cmocka_unit_test(names_what_is_wrong),
        cmocka_unit_test(reads_the_tables_of_static),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
