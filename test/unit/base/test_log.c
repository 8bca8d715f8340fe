/* What reaches standard error is caught in a file in memory. */
#include "exporter/base/buf.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

static int caught = -1, real_stderr = -1;

static void catch_begin(void)
{
    caught = memfd_create("log", MFD_CLOEXEC);
    real_stderr = dup(STDERR_FILENO);
    assert_true(caught >= 0 && real_stderr >= 0);
    assert_true(fcntl(caught, F_SETFL, O_APPEND) == 0 && dup2(caught, STDERR_FILENO) >= 0);
}

static void catch_end(struct buf *into)
{
    char *to;
    ssize_t n;

    assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
    (void)close(real_stderr);
    assert_int_equal(lseek(caught, 0, SEEK_SET), 0);
    do {
        assert_int_equal(buf_reserve(into, 4096, &to), 0);
        n = read(caught, to, 4096);
        assert_true(n >= 0);
        into->n += (size_t)n;
    } while (n > 0);
    (void)close(caught);
}

/* Writes one line and leaves out its time, which no test can know. */
static void write_line(struct buf *into, enum log_format format, const char *msg,
                       const struct log_field *fields)
{
    static const char begin[2][7] = {"ts=", "{\"ts\":\""};
    size_t skip = (format == LOG_FORMAT_JSON ? 7 : 3) + 24;

    log_setup(LOG_LEVEL_INFO, format);
    catch_begin();
    log_write(LOG_LEVEL_INFO, msg, fields);
    catch_end(into);
    assert_true(into->n > skip + 1);
    assert_memory_equal(into->p, begin[format == LOG_FORMAT_JSON], skip - 24);
    assert_int_equal(into->p[skip - 1], 'Z');
    assert_int_equal(into->p[into->n - 1], '\n');
    assert_null(memchr(into->p, '\n', into->n - 1));
    memmove(into->p, into->p + skip, into->n - skip - 1);
    into->n -= skip + 1;
}

static void assert_line(enum log_format format, const char *msg, const struct log_field *fields,
                        const char *want)
{
    BUF_AUTO(got, 1u << 20);

    write_line(&got, format, msg, fields);
    buf_putc(&got, '\0');
    assert_int_equal(buf_failed(&got), 0);
    assert_string_equal(got.p, want);
}

#define FIELDS(...) ((const struct log_field[]){__VA_ARGS__, {.key = NULL}})

static void logfmt_quotes_what_needs_it(void **state)
{
    static const struct {
        const char *value, *want;
    } cases[] = {
        {"plain", "plain"},
        {"a/b:c,d?e&f", "a/b:c,d?e&f"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"say \"x\"", "\"say \\\"x\\\"\""},
        {"\"", "\"\\\"\""},
        {"back\\slash", "\"back\\\\slash\""},
        {"line\nfeed", "\"line\\nfeed\""},
        {"\x01\t\r\x7f", "\"\\u0001\\t\\r\\u007f\""},
        {"\xc2\x9b[31m\xe2\x80\xae", "\"\\u009b[31m\\u202e\""},
        {"\x1b[31mred", "\"\\u001b[31mred\""},
        {"sm\xc3\xb8rrebr\xc3\xb8"
         "d",
         "sm\xc3\xb8rrebr\xc3\xb8"
         "d"},
        {"bad\xff", "\"bad\xef\xbf\xbd\""},
        {"cut\xe2\x82", "\"cut\xef\xbf\xbd\""},
    };
    char want[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        (void)snprintf(want, sizeof(want), " level=info msg=\"a message\" v=%s", cases[i].want);
        assert_line(LOG_FORMAT_LOGFMT, "a message", FIELDS(L_STR("v", cases[i].value)), want);
    }
}

static void writes_numbers(void **state)
{
    (void)state;
    assert_line(LOG_FORMAT_LOGFMT, "m",
                FIELDS(L_INT("i", -5), L_INT("big", INT64_MIN), L_DBL("d", 0.25), L_DBL("n", NAN),
                       L_DBL("f", INFINITY)),
                " level=info msg=m i=-5 big=-9223372036854775808 d=0.25 n=nan f=inf");
    assert_line(LOG_FORMAT_JSON, "m",
                FIELDS(L_INT("i", -5), L_DBL("d", 1e300), L_DBL("n", NAN), L_DBL("f", -INFINITY)),
                "\",\"level\":\"info\",\"msg\":\"m\",\"i\":-5,\"d\":1e+300,\"n\":\"nan\",\"f\":\"-inf\"}");
}

static void errno_is_text(void **state)
{
    (void)state;
    assert_line(LOG_FORMAT_LOGFMT, "m", FIELDS(L_ERR(-ENOENT), L_SL("s", ((struct str){NULL, 0}))),
                " level=info msg=m err=\"No such file or directory\" s=\"\"");
    assert_line(LOG_FORMAT_LOGFMT, "m", FIELDS(L_STR("null", NULL)), " level=info msg=m null=\"\"");
}

static json_t *parse_line(struct buf *line)
{
    json_error_t error;
    json_t *j;

    /* write_line() took the beginning off. */
    line->p[0] = '{';
    assert_memory_equal(line->p, "{,", 2);
    line->p[1] = ' ';
    j = json_loadb(line->p, line->n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!j)
        fail_msg("%s: %.*s", error.text, STR_ARG(buf_str(line)));
    return j;
}

static void json_holds_any_bytes(void **state)
{
    uint64_t x = 88172645463325252;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        BUF_AUTO(line, 1u << 20);
        char bytes[64];
        struct str value = {bytes, 0};
        json_t *j, *v;
        for (size_t i = 0; i < sizeof(bytes); i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            /* Mostly what is hard. */
            bytes[i] = x % 3 ? (char)(x >> 32) : "\"\\\n\t\x7f\xc3\xa4\xe2\x82\xac{}"[(x >> 32) % 12];
        }
        value.n = (size_t)round % sizeof(bytes);
        write_line(&line, LOG_FORMAT_JSON, "m", FIELDS(L_SL("v", value), L_INT("after", round)));
        j = parse_line(&line);
        v = json_object_get(j, "v");
        assert_true(json_is_string(v));
        assert_int_equal(json_integer_value(json_object_get(j, "after")), round);
        json_decref(j);
    }
}

static void json_gives_text_back(void **state)
{
    BUF_AUTO(line, 1u << 20);
    json_t *j;

    (void)state;
    write_line(&line, LOG_FORMAT_JSON, "say \"hi\"\n", FIELDS(L_STR("v", "a\\b\t\xe2\x82\xac\x7f")));
    j = parse_line(&line);
    assert_string_equal(json_string_value(json_object_get(j, "msg")), "say \"hi\"\n");
    assert_string_equal(json_string_value(json_object_get(j, "v")), "a\\b\t\xe2\x82\xac\x7f");
    json_decref(j);
}

/* A line ends well whatever is too much for it: a long value, many of them, and those that grow when
 * escaped. */
static void long_values_are_cut(void **state)
{
    static const char *const fills[] = {"x", "\"", "\x01", "\xc3\xa4", "\xe2\x82\xac", "\xff", "ab\\"};
    static char text[40001];

    (void)state;
    for (size_t f = 0; f < ARRAY_SIZE(fills); f++) {
        size_t n = strlen(fills[f]);
        for (size_t i = 0; i < sizeof(text) - 1; i++)
            text[i] = fills[f][i % n];
        for (int format = LOG_FORMAT_LOGFMT; format <= LOG_FORMAT_JSON; format++) {
            BUF_AUTO(line, 1u << 20);
            write_line(&line, (enum log_format)format, text,
                       FIELDS(L_STR("a", text), L_STR("b", text), L_STR("c", text), L_STR("d", text),
                              L_STR("e", text), L_INT("last", 7)));
            assert_in_range(line.n, 4096, 32768);
            assert_non_null(memmem(line.p, line.n, "...", 3));
            if (format == LOG_FORMAT_JSON)
                json_decref(parse_line(&line));
            else
                assert_true(line.p[line.n - 1] == '"' || line.p[line.n - 1] == '7');
        }
    }
}

static void cuts_at_4_kib_and_says_so(void **state)
{
    static char text[4098];
    BUF_AUTO(line, 1u << 20);

    (void)state;
    memset(text, 'x', 4096);
    write_line(&line, LOG_FORMAT_LOGFMT, "m", FIELDS(L_STR("v", text), L_STR("after", "y")));
    assert_null(memmem(line.p, line.n, "...", 3));
    assert_non_null(memmem(line.p, line.n, "x after=y", 9));
    text[4096] = 'x';
    line.n = 0;
    write_line(&line, LOG_FORMAT_LOGFMT, "m", FIELDS(L_STR("v", text), L_STR("after", "y")));
    assert_non_null(memmem(line.p, line.n, "x...\" after=y", 13));
}

static void writes_from_a_level_on(void **state)
{
    BUF_AUTO(got, 1u << 20);
    int evaluated = 0;

    (void)state;
    log_setup(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    catch_begin();
    log_debug("d", L_INT("n", evaluated++));
    log_info("i", L_INT("n", evaluated++));
    log_warn("w", L_INT("n", evaluated++));
    log_error("e");
    catch_end(&got);
    assert_null(memmem(got.p, got.n, "level=info", 10));
    assert_non_null(memmem(got.p, got.n, "level=warn msg=w n=0\n", 21));
    assert_non_null(memmem(got.p, got.n, "level=error msg=e\n", 18));
    assert_int_equal(evaluated, 1); /* fields of a line that is not written cost nothing */
    assert_false(log_enabled(LOG_LEVEL_INFO));
    assert_true(log_enabled(LOG_LEVEL_ERROR));
}

enum { WRITERS = 4, LINES = 500 };

static void *write_many(void *arg)
{
    for (int i = 0; i < LINES; i++)
        log_info("line", L_STR("who", arg), L_INT("n", i));
    return NULL;
}

static void threads_write_whole_lines(void **state)
{
    static const char *const names[WRITERS] = {"a", "b", "c", "d"};
    BUF_AUTO(got, 4u << 20);
    pthread_t threads[WRITERS];
    int seen[WRITERS] = {0};
    size_t lines = 0;

    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT);
    catch_begin();
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)(uintptr_t)names[i]), 0);
    for (size_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    catch_end(&got);
    buf_putc(&got, '\0');
    assert_int_equal(buf_failed(&got), 0);
    for (char *line = strtok(got.p, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        char who;
        int n;
        assert_int_equal(sscanf(line + 27, " level=info msg=line who=%c n=%d", &who, &n), 2);
        assert_int_equal(n, seen[who - 'a']++);
    }
    assert_int_equal(lines, WRITERS * LINES);
}

static void *change_formats(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++)
        log_setup(LOG_LEVEL_INFO, i % 2 ? LOG_FORMAT_JSON : LOG_FORMAT_LOGFMT);
    return NULL;
}

/* A reload changes the format while other threads write. */
static void gives_each_line_one_format(void **state)
{
    BUF_AUTO(got, 16u << 20);
    pthread_t thread;
    struct str rest;

    (void)state;
    catch_begin();
    assert_int_equal(pthread_create(&thread, NULL, change_formats, NULL), 0);
    for (int i = 0; i < 2000; i++)
        log_write(LOG_LEVEL_INFO, "m", FIELDS(L_INT("i", i)));
    assert_int_equal(pthread_join(thread, NULL), 0);
    catch_end(&got);
    for (rest = buf_str(&got); rest.n;) {
        struct str line = str_take(&rest, '\n');

        assert_true(str_starts(line, STR("{\"ts\":")) || str_starts(line, STR("ts=")));
        assert_int_equal(line.p[line.n - 1] == '}', line.p[0] == '{');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logfmt_quotes_what_needs_it),
        cmocka_unit_test(writes_numbers),
        cmocka_unit_test(errno_is_text),
        cmocka_unit_test(json_gives_text_back),
        cmocka_unit_test(json_holds_any_bytes),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(cuts_at_4_kib_and_says_so),
        cmocka_unit_test(writes_from_a_level_on),
        cmocka_unit_test(threads_write_whole_lines),
        cmocka_unit_test(gives_each_line_one_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
