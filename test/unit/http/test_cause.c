/* Which cause the client names for each way in which a call fails, and what a rule makes of it. */
#include "exporter/http/cause.h"
#include "exporter/http/rule.h"
#include "test/unit/http/http_world.h"

static int setup(void **state)
{
    *state = world_new(fake_new(), fake_new());
    return 0;
}

#define RAW(text)                        \
    {                                    \
        .mode = FAKE_RAW, .body = (text) \
    }

static void names_what_is_wrong_with_an_answer(void **state)
{
    static const struct {
        struct fake_answer answer;
        enum http_cause cause;
    } cases[] = {
        {{.mode = FAKE_CLOSE}, CAUSE_TRANSFER},
        {RAW("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), CAUSE_TRANSFER},
        {RAW("SSH-2.0-OpenSSH_9.2p1\r\n"), CAUSE_NOT_HTTP},
        {{.body = "x", .repeat = MAX_ANSWER + 1}, CAUSE_BODY_LIMIT},
        {{.mode = FAKE_GZIP, .body = "x", .repeat = MAX_ANSWER + 1}, CAUSE_BODY_LIMIT},
        {{.headers = "Content-Encoding: br\r\n", .body = "x"}, CAUSE_ENCODING},
        {{.headers = "Content-Encoding: gzip\r\n", .body = "x"}, CAUSE_ENCODED_BODY},
        {{.mode = FAKE_HANG}, CAUSE_DEADLINE},
        {{.mode = FAKE_HANG_LATE, .body = "0123456789"}, CAUSE_DEADLINE},
        {{.status = 302, .location = "http://elsewhere.test/"}, CAUSE_ELSEWHERE},
        {{.status = 302, .location = "/a b"}, CAUSE_LOCATION_INVALID},
        {RAW("HTTP/1.1 302 Found\r\nLocation: /a\r\n /b\r\nContent-Length: 0\r\n\r\n"),
         CAUSE_LOCATION_INVALID},
        {{.status = 302, .location = "/a", .headers = "Location: /b\r\n"}, CAUSE_LOCATION_SEVERAL},
    };
    struct env *e = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(fake_url(e->server, "/"));
        struct got g;

        rq.accept_gzip = true;
        rq.timeout_ms = cases[i].cause == CAUSE_DEADLINE ? 300 : PATIENCE_MS;
        fake_push(e->server, cases[i].answer);
        call(e, &rq, &g);
        if (g.a.cause != cases[i].cause)
            print_error("case %zu: %s\n", i, g.a.reason);
        assert_failed(&g, cases[i].cause);
    }
}

/* One line is longer than libcurl takes; the other head is longer than we do. */
static void names_the_limit_of_headers(void **state)
{
    static char line[200 << 10], lines[300 << 10];
    const char *const heads[] = {line, lines};
    struct env *e = *state;
    struct got g;

    memset(line, 'x', sizeof(line) - 1);
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof(line) - 3, "\r\n", 2);
    for (size_t i = 0; i + 100 < sizeof(lines); i += 100) {
        memset(lines + i, 'y', 100);
        memcpy(lines + i, "Y: ", 3);
        memcpy(lines + i + 98, "\r\n", 2);
    }
    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        fake_push(e->server, (struct fake_answer){.headers = heads[i]});
        get(e, "/", &g);
        assert_failed(&g, CAUSE_HEADERS_LIMIT);
    }
}

static void names_the_redirects(void **state)
{
    struct env *e = *state;
    struct got g;

    for (unsigned i = 0; i < 6; i++)
        fake_push(e->server, (struct fake_answer){.status = 307, .location = "/again"});
    get(e, "/", &g);
    assert_failed(&g, CAUSE_REDIRECTS);
}

static void names_why_there_is_no_connection(void **state)
{
    static const struct http_tls no_ca = {.ca_file = "/nowhere/ca.pem"};
    static const struct http_tls no_key = {.cert_file = "/nowhere/tls.crt", .key_file = "/nowhere/tls.key"};
    struct env *e = *state;
    char https[64];
    const struct {
        const char *url, *proxy;
        const struct http_tls *tls;
        bool public_only;
        enum http_cause cause;
    } cases[] = {
        {.url = "http://nowhere.test/", .cause = CAUSE_DNS},
        {.url = "http://127.0.0.1:1/", .cause = CAUSE_CONNECT},
        {.url = "http://127.0.0.1:1/", .public_only = true, .cause = CAUSE_PRIVATE_ADDRESS},
        {.url = "http://127.0.0.1:80/", .proxy = "http://127.0.0.1:1", .cause = CAUSE_PROXY_CONNECT},
        {.url = "http://127.0.0.1:80/", .proxy = "http://proxy.test:1", .cause = CAUSE_PROXY_DNS},
        /* The other server answers the CONNECT with 403. */
        {.url = "https://127.0.0.1:443/", .proxy = fake_url(e->other, ""), .cause = CAUSE_PROXY_TUNNEL},
        {.url = https, .cause = CAUSE_TLS_HANDSHAKE},
        {.url = https, .tls = &no_ca, .cause = CAUSE_TLS_CA},
        {.url = https, .tls = &no_key, .cause = CAUSE_TLS_CERTIFICATE},
    };

    (void)snprintf(https, sizeof(https), "https://127.0.0.1:%u/", fake_port(e->server));
    fake_push(e->other, (struct fake_answer){.status = 403});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct http_request rq = rq_of(cases[i].url);
        struct got g;

        rq.proxy = cases[i].proxy;
        rq.tls = cases[i].tls;
        rq.public_only = cases[i].public_only;
        call(e, &rq, &g);
        if (g.a.cause != cases[i].cause)
            print_error("case %zu: %s\n", i, g.a.reason);
        assert_failed(&g, cases[i].cause);
    }
}

static void names_the_budget(void **state)
{
    struct env *e = *state;
    struct got g;

    http_set_budget(e->http, 100 << 10);
    fake_push(e->server, (struct fake_answer){.body = "x", .repeat = 500 << 10});
    get(e, "/", &g);
    assert_failed(&g, CAUSE_BUDGET);
}

static void names_the_token(void **state)
{
    struct env *e = *state;
    struct http_request rq = rq_of(fake_url(e->server, "/"));
    struct http_oauth2 oauth2 = {.token_url = fake_url(e->other, "/token"),
                                 .client_id = STR("id"),
                                 .client_secret = STR("a secret"),
                                 .form = STR("grant_type=client_credentials")};
    struct got g;

    rq.oauth2 = &oauth2;
    fake_push(e->other, (struct fake_answer){.status = 500});
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_TOKEN);
    assert_int_equal(fake_requests(e->server), 0);

    oauth2.client_id = STR("another");
    rq.timeout_ms = 300;
    fake_push(e->other, (struct fake_answer){.mode = FAKE_HANG});
    call(e, &rq, &g);
    assert_failed(&g, CAUSE_TOKEN_DEADLINE);
}

/* Each cause belongs to a class, and each class but HTTP_OK has a cause. */
static void has_words_for_all(void **state)
{
    unsigned causes_of[HTTP_ERRORS] = {0};

    (void)state;
    for (enum http_cause cause = CAUSE_NONE; cause < CAUSES; cause++) {
        for (enum http_cause other = CAUSE_NONE; other < cause; other++)
            assert_string_not_equal(http_cause_word(cause), http_cause_word(other));
        assert_int_equal(http_cause_class(cause) == HTTP_OK, cause == CAUSE_NONE);
        causes_of[http_cause_class(cause)]++;
    }
    for (enum http_error class = HTTP_OK; class < HTTP_ERRORS; class ++) {
        assert_true(causes_of[class] > 0);
        assert_string_not_equal(http_error_word(class), "unknown");
    }
}

static void the_first_rule_that_matches_decides(void **state)
{
    enum { TAKE = 1, AGAIN, NEVER, LIMIT };
    static const struct http_rule rules[] = {
        {200, 299, HTTP_OK, TAKE},
        {429, 429, HTTP_OK, AGAIN},
        {400, 499, HTTP_OK, LIMIT},
        {0, 0, HTTP_TIMEOUT, AGAIN},
        {0, HTTP_STATUS_MAX, HTTP_ANY, NEVER},
    };
    static const struct {
        long status;
        enum http_error cause;
        int verdict;
    } cases[] = {
        {199, HTTP_OK, NEVER},   {200, HTTP_OK, TAKE},  {299, HTTP_OK, TAKE},   {300, HTTP_OK, NEVER},
        {428, HTTP_OK, LIMIT},   {429, HTTP_OK, AGAIN}, {430, HTTP_OK, LIMIT},  {0, HTTP_TIMEOUT, AGAIN},
        {0, HTTP_MEMORY, NEVER}, {999, HTTP_OK, NEVER}, {1200, HTTP_OK, NEVER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(HTTP_VERDICT(rules, cases[i].status, cases[i].cause), cases[i].verdict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_what_is_wrong_with_an_answer),
        CASE(names_the_limit_of_headers),
        CASE(names_the_redirects),
        CASE(names_why_there_is_no_connection),
        CASE(names_the_budget),
        CASE(names_the_token),
        cmocka_unit_test(has_words_for_all),
        cmocka_unit_test(the_first_rule_that_matches_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
