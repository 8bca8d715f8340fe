/* What is wrong is said with its place; the scenarios try many more. */
#include "exporter/base/doc.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>

#define URL "url: 'http://a/'"

/* The problem's text, NULL for a good one. */
static const struct {
    const char *yaml, *problem;
} cases[] = {
    {"[{" URL "}]", NULL},
    {"[]", NULL},
    {"{" URL "}", "remoteWrite: expected a list of at most 32 endpoints"},
    {"[1]", "remoteWrite[0]: expected an endpoint"},
    {"[{name: a}]", "remoteWrite[0].url: missing"},
    {"[{url: ''}]", "remoteWrite[0].url: expected an absolute http or https URL"},
    {"[{url: 'ftp://a/'}]", "remoteWrite[0].url: expected an absolute"},
    {"[{url: 'http:///a'}]", "remoteWrite[0].url: expected an absolute"},
    {"[{" URL ", urls: x}]", "remoteWrite[0].urls: unknown key, did you mean url?"},
    {"[{" URL ", name: 'a/b'}]", "remoteWrite[0].name: expected at most 64 letters"},
    {"[{" URL ", name: a}, {" URL ", name: a}]",
     "remoteWrite[1]: same name as entry 0, \"a\"; names must be unique"},
    {"[{" URL "}, {" URL "}]", "remoteWrite[1]: same name as entry 0"},
    {"[{" URL ", remote_timeout: 0s}]", "remoteWrite[0].remote_timeout: expected"},
    {"[{" URL ", headers: {content-type: x}}]",
     "remoteWrite[0].headers.content-type: this header cannot be set here"},
    {"[{" URL ", headers: {X-PROMETHEUS-Remote-Write-Version: x}}]", "this header cannot be set here"},
    {"[{" URL ", headers: {AUTHORIZATION: x}}]", "use authorization or basic_auth"},
    {"[{" URL ", headers: {'a b': x}}]", "expected a header name"},
    {"[{" URL ", headers: {a: \"x\\ny\"}}]", "expected a header value"},
    {"[{" URL ", basic_auth: {password: p}}]", "remoteWrite[0].basic_auth.username: missing"},
    {"[{" URL ", basic_auth: {username: u, password: p, password_file: f}}]",
     "only one of password and password_file"},
    {"[{" URL ", basic_auth: {username: u, password: \"secret\\n\"}}]", "contains control characters"},
    {"[{" URL ", authorization: \"Bearer secret\"}]", "authorization: expected an object, got a value"},
    {"[{" URL ", authorization: {Bearer secret: }}]", "remoteWrite[0].authorization[...]: unknown key"},
    {"[{" URL ", authorization: {secret1: x}}]", "remoteWrite[0].authorization[...]: unknown key"},
    {"[{" URL ", authorization: {type: \"a secret\", credentials: x}}]",
     "expected a word like Bearer, got a value"},
    {"[{" URL ", basic_auth: \"u:secret\"}]", "basic_auth: expected an object, got a value"},
    {"[{" URL ", basic_auth: {username: u, password: 123}}]", "(put it in quotes), got a value"},
    {"[{" URL ", headers: \"X-Token: secret\"}]", "headers: expected an object, got a value"},
    {"[{" URL ", headers: {X-Key: \"secret\\n\"}}]", "expected a header value"},
    {"[{" URL ", authorization: {}}]", "remoteWrite[0].authorization.credentials_file: missing"},
    {"[{" URL ", authorization: {type: basic, credentials: c}}]", "expected basic_auth instead"},
    {"[{" URL ", authorization: {credentials: c}, basic_auth: {username: u}}]",
     "only one of basic_auth and authorization"},
    {"[{" URL ", tls_config: {cert_file: f}}]", "cert_file and key_file must be set together"},
    {"[{" URL ", proxy_url: nonsense}]", "remoteWrite[0].proxy_url: expected a URL"},
    {"[{" URL ", protocol: 1.0}, {" URL ", name: b, protocol: '2.0'}]", NULL},
    {"[{" URL ", protocol: 3}]", "remoteWrite[0].protocol: expected auto, 1.0, 2.0 or vm"},
    {"[{" URL ", compression: snappy}, {" URL ", name: b, protocol: auto, compression: zstd}]", NULL},
    {"[{" URL ", compression: zstd}]",
     "remoteWrite[0].compression: expected snappy (for protocol 1.0, 2.0 or auto)"},
    {"[{" URL ", protocol: vm, compression: snappy}]", "remoteWrite[0].compression: expected snappy"},
    {"[{" URL ", compression: gzip}]", "remoteWrite[0].compression: expected snappy"},
    {"[{" URL ", queue_config: {max_samples_per_send: 0}}]", "max_samples_per_send: expected"},
    {"[{" URL ", queue_config: {min_backoff: 2s, max_backoff: 1s}}]",
     "min_backoff is longer than max_backoff"},
    {"[{" URL ", queue_config: {max_backoff: 61s}}]", "max_backoff: expected"},
    {"[{" URL ", queue_config: {full_policy: block}}]", "full_policy: expected drop_oldest or drop_newest"},
    {"[{" URL ", queue_config: {max_spool_bytes: 1KiB}}]", "max_spool_bytes: expected a size"},
    {"[{" URL ", external_labels: {1a: x}}]", "expected a label name"},
    {"[{" URL ", external_labels: {__name__: x}}]", "expected a label name"},
    {"[{" URL ", external_labels: {a: 1}}]", "remoteWrite[0].external_labels.a: expected a label value"},
    {"[{" URL ", send_health_metrics: maybe}]", "expected true or false"},
    {"[{" URL ", metadata_config: {send_intervall: 1m}}]", "unknown key, did you mean send_interval?"},
    {"[{" URL ", write_relabel_configs: [{regex: '('}]}]",
     "remoteWrite[0].write_relabel_configs[0].regex: expected a regular expression: missing closing "
     "parenthesis at offset 1"},
    {"[{" URL ", write_relabel_configs: [{regex: '[a', target_label: b}]}]",
     "missing terminating ] for character class at offset 2"},
    {"[{" URL ", write_relabel_configs: [{regex: '(((a{999}){999}){999})', target_label: b}]}]", "too large"},
    {"[{" URL ", write_relabel_configs: [{regex: '[]+*]+(?:a|b)*\\d{2,3}?', target_label: b}]}]", NULL},
    {"[{" URL ", write_relabel_configs: [{action: hash}]}]", "expected replace, hashmod"},
    {"[{" URL ", write_relabel_configs: [{action: keep}]}]", "source_labels: missing"},
    {"[{" URL ", write_relabel_configs: [{action: hashmod, target_label: a}]}]", "modulus: missing"},
    {"[{" URL ", write_relabel_configs: [{action: keepequal}]}]", "target_label: missing"},
    {"[{" URL ", write_relabel_configs: [{action: lowercase, target_label: '${3}'}]}]",
     "target_label: expected a label name, got"},
    {"[{" URL ", protocol: auto, protobuf_message: prometheus.WriteRequest}]",
     "only one of protocol and protobuf_message"},
    {"[{" URL ", protobuf_message: v3}]",
     "expected prometheus.WriteRequest or io.prometheus.write.v2.Request"},
    {"[{" URL ", sigv4: {region: r, secret_key: secret}}]",
     "remoteWrite[0].sigv4: not supported: use basic_auth, authorization or oauth2"},
    {"[{" URL ", queue_config: {send_exemplars: true}}]", "queue_config.send_exemplars: unknown key"},
};

static int parse(const char *yaml, struct problems *p, struct rw_config **ret)
{
    struct doc *d = NULL;
    char text[1024];
    void *section = NULL;
    int r;

    (void)snprintf(text, sizeof(text), "remoteWrite: %s", yaml);
    r = doc_parse(&d, str_of(text), p);
    if (r == 0)
        r = rw_config_section.parse(node_get(d->root, "remoteWrite"), p, &section);
    (void)doc_free(d);
    *ret = section;
    return r;
}

static void explains_each_problem(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct problems p;
        struct rw_config *c;
        bool found = !cases[i].problem;

        problems_init(&p, "f");
        assert_int_equal(parse(cases[i].yaml, &p, &c), 0);
        for (size_t k = 0; k < p.n; k++) {
            found = found || (cases[i].problem && strstr(p.list[k].text, cases[i].problem));
            assert_true(p.list[k].line == 1 && p.list[k].column > 1);
            assert_null(strstr(p.list[k].text, "secret"));
        }
        if (!found || (!cases[i].problem && p.errors))
            fail_msg("%s: %s", cases[i].yaml, p.n ? p.list[0].text : "no problem");
        if (c)
            rw_config_section.done(c);
        problems_done(&p);
    }
}

static void applies_defaults_and_hides_credentials(void **state)
{
    struct rw_endpoint_config *c =
        rw_endpoint("[{url: 'https://user:secret@hub:9/api/v1/write?token=secret'}]");

    (void)state;
    assert_string_equal(c->url_shown, "https://hub:9/api/v1/write");
    assert_int_equal(strlen(c->name), 6);
    assert_int_equal(c->timeout_ms, 30000);
    assert_int_equal(c->protocol, RW_PROTOCOL_V1);
    assert_int_equal(c->max_samples_per_send, 10000);
    assert_int_equal(c->max_backoff_ms, 60000);
    assert_true(c->metadata_send && !c->send_health_metrics);
    (void)rw_endpoint_config_unref(c);
}

static void limits_the_protocol_to_the_compression(void **state)
{
    static const struct {
        const char *yaml;
        enum rw_protocol protocol;
    } forms[] = {
        {"[{" URL ", compression: snappy}]", RW_PROTOCOL_V1},
        {"[{" URL ", protocol: auto, compression: snappy}]", RW_PROTOCOL_V2},
        {"[{" URL ", protocol: auto, compression: zstd}]", RW_PROTOCOL_VM},
        {"[{" URL ", protocol: auto}]", RW_PROTOCOL_AUTO},
        {"[{" URL ", protobuf_message: io.prometheus.write.v2.Request}]", RW_PROTOCOL_V2},
        {"[{" URL ", protobuf_message: prometheus.WriteRequest}]", RW_PROTOCOL_V1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        struct rw_endpoint_config *c = rw_endpoint(forms[i].yaml);
        assert_int_equal(c->protocol, forms[i].protocol);
        (void)rw_endpoint_config_unref(c);
    }
}

static void changes_the_fingerprint_with_the_text(void **state)
{
    static const char *const others[] = {"[{" URL ", name: a}]", "[{" URL ", remote_timeout: 5s}]",
                                         "[{" URL ", external_labels: {a: b}}]",
                                         "[{" URL ", external_labels: {b: a}}]",
                                         "[{" URL ", write_relabel_configs: [{regex: a, target_label: b}]}]"};
    struct rw_endpoint_config *same = rw_endpoint("[{" URL "}]"),
                              *again = rw_endpoint("[{\"url\": \"http://a/\"}]");

    (void)state;
    assert_int_equal(same->fingerprint, again->fingerprint);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct rw_endpoint_config *c = rw_endpoint(others[i]);

        assert_int_not_equal(c->fingerprint, same->fingerprint);
        (void)rw_endpoint_config_unref(c);
    }
    for (size_t i = 0; i < 2; i++) {
        struct problems p;
        struct rw_config *c;

        /* The entry before it says nothing about this one. */
        problems_init(&p, "f");
        assert_int_equal(
            parse(i ? "[{" URL ", name: a}, {" URL "}]" : "[{name: a, " URL "}, {" URL "}]", &p, &c), 0);
        assert_int_equal(c->list[1]->fingerprint, same->fingerprint);
        rw_config_section.done(c);
        problems_done(&p);
    }
    (void)rw_endpoint_config_unref(same);
    (void)rw_endpoint_config_unref(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains_each_problem),
        cmocka_unit_test(applies_defaults_and_hides_credentials),
        cmocka_unit_test(limits_the_protocol_to_the_compression),
        cmocka_unit_test(changes_the_fingerprint_with_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
