/* The table of keys: what counts, what excludes what, and how each problem reads. */
#include "exporter/base/buf.h"
#include "exporter/http/http.h"
#include "exporter/score/credentials.h"
#include "test/unit/base/pairs.h"

#include <errno.h>
#include <stdio.h>

/* A Secret in memory. */
enum { MAX_KEYS = 8 };

struct key {
    const char *name;
    struct str value;
};

struct memory {
    struct secrets secrets;
    bool ignores_ca;
    struct key keys[MAX_KEYS];
};

static struct pair ours, strange;
static struct str ca, cert, key, other_key;

static int memory_read(struct secrets *s, const char *name, const char *wanted, struct buf *into,
                       const char **ret_why)
{
    const struct memory *m = CONTAINER_OF(s, const struct memory, secrets);

    (void)ret_why;
    assert_string_equal(name, "box");
    for (size_t i = 0; i < MAX_KEYS && m->keys[i].name; i++)
        if (strcmp(m->keys[i].name, wanted) == 0) {
            buf_put_str(into, m->keys[i].value);
            return buf_failed(into);
        }
    return -ENOENT;
}

static int memory_look(struct secrets *s, const char *name, bool *ret_trusts_ca, const char **ret_why)
{
    (void)name;
    (void)ret_why;
    *ret_trusts_ca = !CONTAINER_OF(s, const struct memory, secrets)->ignores_ca;
    return 0;
}

static struct str pem_of(const gnutls_datum_t *d)
{
    return (struct str){(char *)d->data, d->size};
}

static int setup(void **state)
{
    (void)state;
    make_pair(&ours, (struct wish){.name = "ours"});
    make_pair(&strange, (struct wish){.name = "strange"});
    ca = pem_of(&strange.crt_pem);
    cert = pem_of(&ours.crt_pem);
    key = pem_of(&ours.key_pem);
    other_key = pem_of(&strange.key_pem);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drop_pair(&ours);
    drop_pair(&strange);
    return 0;
}

/* What a request gets. */
struct wanted {
    struct str ca, cert, key, bearer;
    const char *user, *password, *header;
};

static void assert_part(struct str got, struct str want)
{
    assert_true(str_eq(got, want));
}

static void assert_text(const char *got, const char *want)
{
    assert_int_equal(got == NULL, want == NULL);
    if (want)
        assert_string_equal(got, want);
}

static void assert_request(const struct credentials *c, const struct wanted *want)
{
    struct http_request rq = {.timeout_ms = 1};

    credentials_apply(c, &rq);
    assert_part(rq.tls->ca, want->ca);
    assert_part(rq.tls->cert, want->cert);
    assert_part(rq.tls->key, want->key);
    assert_part(rq.bearer, want->bearer);
    assert_text(rq.user, want->user);
    assert_text(rq.password, want->password);
    assert_int_equal(rq.n_headers, want->header != NULL);
    assert_text(rq.n_headers ? rq.headers[0] : NULL, want->header);
    assert_int_equal(rq.timeout_ms, 1);
}

#define T                       \
    {                           \
        "token", STR("t0ken\n") \
    }
#define CA           \
    {                \
        "ca.crt", ca \
    }
#define CERT            \
    {                   \
        "tls.crt", cert \
    }
#define KEY            \
    {                  \
        "tls.key", key \
    }
#define USER                       \
    {                              \
        "username", STR("us er\n") \
    }
#define PASS                               \
    {                                      \
        "password", STR(" pass word \r\n") \
    }
#define HEAD                                     \
    {                                            \
        "header", STR("X-Scope-OrgID: team-a\n") \
    }

static void takes_the_keys_that_count(void **state)
{
    const struct {
        const char *token_key;
        bool ignores_ca;
        struct key keys[MAX_KEYS];
        struct wanted want;
    } cases[] = {
        {"token", false, {T}, {.bearer = STR("t0ken")}},
        {NULL, false, {CA}, {.ca = ca}},
        {NULL, false, {CERT, KEY}, {.cert = cert, .key = key}},
        {NULL, false, {USER, PASS}, {.user = "us er", .password = " pass word "}},
        {NULL, false, {USER, {"password", STR("\n")}}, {.user = "us er", .password = ""}},
        {NULL, false, {HEAD}, {.header = "X-Scope-OrgID: team-a"}},
        {"token",
         false,
         {T, CA, CERT, KEY, HEAD},
         {ca, cert, key, STR("t0ken"), .header = "X-Scope-OrgID: team-a"}},
        {NULL,
         false,
         {T, CA, CERT, KEY, USER, PASS, HEAD},
         {ca, cert, key, {0}, "us er", " pass word ", "X-Scope-OrgID: team-a"}},
        /* The token that is named wins. */
        {"token", false, {T, USER, PASS}, {.bearer = STR("t0ken")}},
        {"token", false, {T, USER}, {.bearer = STR("t0ken")}},
        {"password", false, {USER, {"password", STR("p4ss")}}, {.bearer = STR("p4ss")}},
        {"header", false, {{"header", STR("t0ken")}}, {.bearer = STR("t0ken")}},
        {"ca.crt", false, {{"ca.crt", STR("t0ken")}}, {.bearer = STR("t0ken")}},
        /* As in a service account's Secret. */
        {"token", true, {T, CA}, {.bearer = STR("t0ken")}},
        {"token",
         true,
         {T, {"ca.crt", STR("junk")}, CERT, KEY},
         {.bearer = STR("t0ken"), .cert = cert, .key = key}},
        /* Other schemes of Authorization, and other forms of a header. */
        {NULL,
         false,
         {{"header", STR("authorization: ApiKey abc")}},
         {.header = "authorization: ApiKey abc"}},
        {"token",
         false,
         {T, {"header", STR("Authorization-Info: x")}},
         {.bearer = STR("t0ken"), .header = "Authorization-Info: x"}},
        {NULL, false, {{"header", STR("  X-Api-Key:a:b\t c \r\n")}}, {.header = "X-Api-Key:a:b\t c"}},
        {NULL, false, {{"header", STR("Cookie: a=b; c=d")}}, {.header = "Cookie: a=b; c=d"}},
        {NULL, false, {{"stranger", STR("x")}, HEAD}, {.header = "X-Scope-OrgID: team-a"}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_credentials_free) struct credentials *c = NULL;
        struct memory m = {.secrets = {.look = memory_look, .read = memory_read},
                           .ignores_ca = cases[i].ignores_ca};
        char why[CREDENTIALS_WHY_BYTES];
        memcpy(m.keys, cases[i].keys, sizeof(m.keys));
        if (credentials_read(&c, &m.secrets, "box", cases[i].token_key, why) < 0)
            fail_msg("case %zu: %s", i, why);
        assert_string_equal(why, "");
        assert_request(c, &cases[i].want);
    }
}

#define BAD_HEADER(value, problem)                                                 \
    {                                                                              \
        NULL, {{"header", STR(value)}}, "secret \"box\", key \"header\": " problem \
    }
#define NO_NAME  "expected a header as \"Name: value\""
#define NO_VALUE NO_NAME "; the value is empty, too long, or has control characters"

static void says_what_is_wrong(void **state)
{
    const struct {
        const char *token_key;
        struct key keys[MAX_KEYS];
        const char *why;
    } cases[] = {
        {NULL,
         {{0}},
         "secret \"box\": it has none of the keys ca.crt, tls.crt, username, client_id and header; a bearer "
         "token needs the name of its key"},
        {NULL,
         {T},
         "secret \"box\": it has none of the keys ca.crt, tls.crt, username, client_id and header; a bearer "
         "token needs the name of its key"},
        {"token", {{"Token", STR("x")}}, "secret \"box\", key \"token\": key not found"},
        {"token",
         {USER, PASS},
         "secret \"box\", key \"token\": key not found; name no key to send no bearer token"},
        {"token", {CA}, "secret \"box\", key \"token\": key not found; name no key to send no bearer token"},
        {"token",
         {{"token", STR("two words")}},
         "secret \"box\", key \"token\": not a token: it contains white space or characters not allowed in a "
         "header"},
        /* Halves. */
        {NULL, {USER}, "secret \"box\": it has the key \"username\" without \"password\""},
        {NULL, {PASS}, "secret \"box\": it has the key \"password\" without \"username\""},
        {NULL, {CERT}, "secret \"box\": it has the key \"tls.crt\" without \"tls.key\""},
        {"token", {T, KEY}, "secret \"box\": it has the key \"tls.key\" without \"tls.crt\""},
        {NULL,
         {CERT, {"tls.key", other_key}},
         "secret \"box\", key \"tls.key\": not the key of the certificate in \"tls.crt\""},
        /* PEM. */
        {"token",
         {T, {"ca.crt", STR("")}},
         "secret \"box\", key \"ca.crt\": no certificate in PEM format found"},
        {NULL, {{"ca.crt", key}}, "secret \"box\", key \"ca.crt\": no certificate in PEM format found"},
        {NULL,
         {{"tls.crt", STR("s3cret")}, KEY},
         "secret \"box\", key \"tls.crt\": no certificate in PEM format found"},
        {NULL,
         {CERT, {"tls.key", cert}},
         "secret \"box\", key \"tls.key\": no private key in PEM format found"},
        /* Basic authentication. */
        {NULL,
         {{"username", STR("a:b")}, PASS},
         "secret \"box\", key \"username\": contains a colon, which basic authentication does not allow"},
        {NULL, {{"username", STR("\n")}, PASS}, "secret \"box\", key \"username\": empty"},
        {NULL,
         {{"username", STR("a\nb")}, PASS},
         "secret \"box\", key \"username\": contains control characters"},
        {NULL,
         {USER, {"password", STR("a\0b")}},
         "secret \"box\", key \"password\": contains control characters"},
        /* Headers. */
        BAD_HEADER(" \n", "empty"),
        BAD_HEADER("X-Key: a\r\nX-Evil: b", "expected one header, found several lines"),
        BAD_HEADER("X-Key: a\nX-Evil: b", "expected one header, found several lines"),
        BAD_HEADER("X-Key: a\rX-Evil: b", "expected one header, found several lines"),
        BAD_HEADER("s3cret", NO_NAME),
        BAD_HEADER(": s3cret", NO_NAME "; the name is not valid"),
        BAD_HEADER("X Key: s3cret", NO_NAME "; the name is not valid"),
        BAD_HEADER("X-Key : s3cret", NO_NAME "; the name is not valid"),
        BAD_HEADER("X-Key:", NO_VALUE),
        BAD_HEADER("X-Key: a\0b", NO_VALUE),
        BAD_HEADER("X-Key: a\x01", NO_VALUE),
        BAD_HEADER("Host: s3cret", "this header cannot be set"),
        BAD_HEADER("content-length: 0", "this header cannot be set"),
        BAD_HEADER("Transfer-Encoding: chunked", "this header cannot be set"),
        BAD_HEADER("Connection: close", "this header cannot be set"),
        BAD_HEADER("TE: trailers", "this header cannot be set"),
        BAD_HEADER("Proxy-Authorization: Basic eA==", "this header cannot be set"),
        BAD_HEADER("Accept: text/html", "this header cannot be set"),
        {"token",
         {T, {"header", STR("AUTHORIZATION: Basic eA==")}},
         "secret \"box\", key \"header\": Authorization is set by the key \"token\" already"},
        {NULL,
         {USER, PASS, {"header", STR("Authorization: Basic eA==")}},
         "secret \"box\", key \"header\": Authorization is set by the key \"username\" already"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct memory m = {.secrets.read = memory_read};
        struct credentials *c = NULL;
        char why[CREDENTIALS_WHY_BYTES];
        memcpy(m.keys, cases[i].keys, sizeof(m.keys));
        assert_true(credentials_read(&c, &m.secrets, "box", cases[i].token_key, why) < 0);
        assert_null(c);
        assert_string_equal(why, cases[i].why);
    }
}

static void applies_nothing_without_credentials(void **state)
{
    struct http_request rq = {0}, none = {0};

    (void)state;
    credentials_apply(NULL, &rq);
    assert_memory_equal(&rq, &none, sizeof(rq));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_keys_that_count),
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(applies_nothing_without_credentials),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
