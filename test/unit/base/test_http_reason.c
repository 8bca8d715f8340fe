/* Why there is no answer: the class and the sentence. */
#include "exporter/base/buf.h"
#include "test/unit/base/http_world.h"

#include <pthread.h>

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t names_changed = PTHREAD_COND_INITIALIZER;
static unsigned names_waiting;
static bool names_go;

static void wait_for_slow_name(void)
{
    pthread_mutex_lock(&names_lock);
    names_waiting++;
    while (!names_go)
        pthread_cond_wait(&names_changed, &names_lock);
    names_waiting--;
    pthread_cond_broadcast(&names_changed);
    pthread_mutex_unlock(&names_lock);
}

static void explains_bad_urls(void **state)
{
    static const char *const urls[] = {"http://",     "http://user:secret@[::1/",  "http://h:99999/",
                                       "http://a b/", "http://user:sec/secret@h/", "http://user:secret@/x"};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct http_request rq = rq_of(urls[i]);
        struct got g;
        call(e, &rq, &g);
        assert_failed(&g, HTTP_URL);
    }
}

static void explains_names_that_do_not_resolve(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://user:secret@nowhere.test:9090/x");
    struct got g;

    call(e, &rq, &g);
    assert_failed(&g, HTTP_DNS);
    assert_string_equal(g.a.reason, "could not resolve host: nowhere.test");
}

static unsigned closed_port(void)
{
    struct fake_server *s = fake_new();
    unsigned port = fake_port(s);

    (void)fake_free(s);
    return port;
}

static void explains_refused_connections(void **state)
{
    struct env *e = *state;
    unsigned port = closed_port();
    char url[128], want[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%u/x", port);
    (void)snprintf(want, sizeof(want), "could not connect to 127.0.0.1:%u: connection refused", port);
    rq = rq_of(url);
    call(e, &rq, &g);
    assert_failed(&g, HTTP_CONNECT);
    assert_string_equal(g.a.reason, want);
}

/* "{}" */
#define GZIP         "\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\xae\x05\0\x43\xbf\xa6\xa3\x02\0\0\0"
#define GZIP_DAMAGED "\x1f\x8b\x08\0\0\0\0\0\0\x03\xab\xae\x05\0\x43\xbf\xa6\xa4\x02\0\0\0"
#define GZIP_BYTES   (sizeof(GZIP) - 1)

static void explains_broken_answers(void **state)
{
    static const struct {
        struct fake_answer answer;
        const char *reason; /* part of it; libcurl's own texts are not compared */
    } cases[] = {
        {{.mode = FAKE_RAW, .body = "SSH-2.0-OpenSSH_9.2 secret \x01\x02\r\n"},
         "does not speak HTTP; if it is an https port, use https://"},
        {{.mode = FAKE_RAW, .body = "HTTP/1.1 banana\r\n\r\n"}, ""},
        {{.mode = FAKE_RAW, .body = "HTTP/9.9 200 OK\r\n\r\n"}, ""},
        {{.mode = FAKE_RAW, .body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}, ""},
        {{.mode = FAKE_RAW, .body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}, ""},
        {{.mode = FAKE_RAW,
          .body = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain"},
         "response has Content-Encoding gzip, but its body is not gzip"},
        {{.headers = "Content-Encoding: zstd\r\n", .body = "{}"},
         "response has Content-Encoding zstd, an encoding that was not asked for"},
        {{.headers = "Content-Encoding: br\r\n", .body = "{}"}, "Content-Encoding br, an encoding"},
        {{.headers = "Content-Encoding: gzip, gzip\r\n", .body = "{}"}, "Content-Encoding gzip, gzip, an"},
        {{.headers = "Content-Encoding: gzip\r\n", .body = GZIP, .body_len = GZIP_BYTES - 1},
         "ends early, after"},
        {{.headers = "Content-Encoding: gzip\r\n", .body = GZIP, .body_len = GZIP_BYTES - 9},
         "ends early, after"},
        {{.headers = "Content-Encoding: gzip\r\n", .body = GZIP "{}", .body_len = GZIP_BYTES + 2},
         "but its body is followed by other data"},
        {{.headers = "Content-Encoding: gzip\r\n", .body = GZIP_DAMAGED, .body_len = GZIP_BYTES},
         "but its body is damaged"},
        {{.body = "0123456789", .close_after = 45}, ""},
        {{.body = "0123456789", .close_after = 5}, ""},
        {{.mode = FAKE_CHUNKED, .body = "0123456789", .close_after = 80}, ""},
        {{.mode = FAKE_CLOSE}, ""},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct got g;
        fake_push(e->server, cases[i].answer);
        get(e, "/", &g);
        assert_failed(&g, HTTP_BROKEN);
        assert_non_null(strstr(g.a.reason, cases[i].reason));
        assert_true(*g.a.reason);
        for (const char *p = g.a.reason; *p; p++)
            assert_true(*p >= ' ' && *p < 0x7f);
    }
}

/* The status of an error says more than its body. */
static void keeps_the_status_of_an_error_that_cannot_be_decoded(void **state)
{
    static const char *const encodings[] = {"Content-Encoding: zstd\r\n", "Content-Encoding: gzip\r\n"};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(encodings); i++) {
        struct got g;
        fake_push(e->server, (struct fake_answer){.status = 503, .headers = encodings[i], .body = "damaged"});
        get(e, "/", &g);
        assert_ok(&g, 503);
        assert_int_equal(g.body.n, 0);
        buf_done(&g.body);
    }
}

static void reads_gzip_of_several_members(void **state)
{
    struct env *e = *state;
    struct got g;

    fake_push(e->server, (struct fake_answer){.headers = "Content-Encoding: x-gzip\r\n",
                                              .body = GZIP,
                                              .body_len = GZIP_BYTES,
                                              .repeat = 3});
    get(e, "/", &g);
    assert_ok(&g, 200);
    assert_body(&g, "{}{}{}");
}

static void explains_tls_to_a_plain_server(void **state)
{
    struct env *e = *state;
    char url[128], want[128];
    struct http_request rq;
    struct got g;

    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/x", fake_port(e->server));
    (void)snprintf(
        want, sizeof(want),
        "TLS handshake with 127.0.0.1:%u failed; if it is an http port, use http://: ", fake_port(e->server));
    rq = rq_of(url);
    fake_push(e->server, (struct fake_answer){.mode = FAKE_RAW, .body = "HTTP/1.1 400 Bad Request\r\n\r\n"});
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TLS);
    assert_memory_equal(g.a.reason, want, strlen(want));
}

static int fail_socket_with;

/* Takes the place of the C library's, for libcurl too. */
int socket(int domain, int type, int protocol)
{
    int (*real)(int, int, int);

    *(void **)&real = dlsym(RTLD_NEXT, "socket");
    if (fail_socket_with && domain == AF_INET && type & SOCK_STREAM) {
        errno = fail_socket_with;
        return -1;
    }
    return real(domain, type, protocol);
}

static void names_the_lack_of_descriptors(void **state)
{
    struct env *e = *state;
    struct got g;

    fail_socket_with = EMFILE;
    get(e, "/", &g);
    fail_socket_with = ENFILE;
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, ": too many open files, the process's limit is "));
    get(e, "/", &g);
    fail_socket_with = 0;
    assert_failed(&g, HTTP_CONNECT);
    assert_non_null(strstr(g.a.reason, ": too many open files in the system"));
}

static void explains_an_exceeded_deadline(void **state)
{
    static const struct {
        enum fake_mode mode;
        int delay_ms;
        const char *reason;
    } cases[] = {{FAKE_HANG, 0, "timed out after 1.0 s with 0 bytes received"},
                 {FAKE_PLAIN, 5000, "timed out after 1.0 s with 0 bytes received"},
                 {FAKE_HANG_LATE, 0, "timed out after 1.0 s with 5 bytes received"}};
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        int64_t began = now();
        struct got g;
        fake_push(e->server, (struct fake_answer){
                                 .mode = cases[i].mode, .body = "0123456789", .delay_ms = cases[i].delay_ms});
        rq.timeout_ms = 1000;
        call(e, &rq, &g);
        assert_failed(&g, HTTP_TIMEOUT);
        assert_string_equal(g.a.reason, cases[i].reason);
        assert_true(now() - began >= 990); /* curl counts in whole milliseconds */
    }
}

/* A chain of answers, each in time, does not outlive the deadline of the whole call. */
static void counts_redirects_against_the_deadline(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct got g;

    fake_default(e->server, (struct fake_answer){.status = 302, .location = "/again", .delay_ms = 150});
    rq.timeout_ms = 300;
    call(e, &rq, &g);
    assert_failed(&g, HTTP_TIMEOUT);
    assert_true(fake_requests(e->server) <= 3);
}

static void delays_no_other_call_for_a_slow_name_server(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of("http://slow.test/");
    struct got slow, quick;

    rq.timeout_ms = 300;
    slow_name = wait_for_slow_name;
    start(e, &rq, &slow);
    get(e, "/", &quick);
    assert_ok(&quick, 200);
    buf_done(&quick.body);
    turn_until(e, &slow.times, 1);
    assert_failed(&slow, HTTP_TIMEOUT);
    assert_non_null(strstr(slow.a.reason, "connection to slow.test:80 timed out after 0.3"));
    pthread_mutex_lock(&names_lock);
    names_go = true;
    pthread_cond_broadcast(&names_changed);
    while (names_waiting)
        pthread_cond_wait(&names_changed, &names_lock);
    pthread_mutex_unlock(&names_lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(explains_bad_urls),
        CASE(explains_names_that_do_not_resolve),
        CASE(explains_refused_connections),
        CASE(explains_broken_answers),
        CASE(keeps_the_status_of_an_error_that_cannot_be_decoded),
        CASE(reads_gzip_of_several_members),
        CASE(explains_tls_to_a_plain_server),
        CASE(names_the_lack_of_descriptors),
        CASE(explains_an_exceeded_deadline),
        CASE(counts_redirects_against_the_deadline),
        CASE(delays_no_other_call_for_a_slow_name_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
