/* The requests of a probe, and what their answers mean. */
#include "controller/hub/rules/spec.h"
#include "exporter/score/source.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/probe/probe_world.h"

#define CONFIG_500 "{\"name\":\"evil\",\"source\":{\"type\":\"None\"},\"scoring\":{},\"detail\":\"no model\"}"

#define BAD_CONFIG(host, query, interval)                               \
    "{\"source\":{\"host\":\"" host "\",\"params\":{\"query\":\"" query \
    "\"}},\"scoring\":{\"params\":{\"name\":\"b\",\"interval\":" interval "}}}"

static void asks_both_paths_of_one_host(void **state)
{
    struct world *w = *state;
    char value[64];

    begin(w);
    for (size_t i = 0; i < 2; i++) {
        const struct fake_request *rq = fake_request(w->api, i);
        assert_string_equal(rq->method, "GET");
        assert_false(fake_header(rq, "Authorization", value, sizeof(value)));
        assert_true(strcmp(rq->target, "/healthz") == 0 || strcmp(rq->target, "/config") == 0);
    }
}

/* The bad answer is for /healthz alone. */
static void fails_health_with_the_reason(void **state)
{
    static const struct {
        struct fake_answer answer;
        const char *reason, *message;
    } cases[] = {
        {{.status = 500, .body = "{\"detail\":\"model not loaded\"}"},
         "HTTPStatus",
         "/healthz: HTTP 500 Internal Server Error: model not loaded"},
        {{.status = 503, .body = "{\"error\":\"no\\nGPU\"}"},
         "HTTPStatus",
         "/healthz: HTTP 503 Service Unavailable: no GPU"},
        {{.status = 502, .body = "<html>\r\nbad gateway"}, "HTTPStatus", "HTTP 502 Bad Gateway: <html>"},
        {{.status = 500, .body = "{\"detail\":[1]}"}, "HTTPStatus", "Error: {\"detail\":[1]}"},
        {{.status = 500, .body = ""}, "HTTPStatus", "/healthz: HTTP 500 Internal Server Error"},
        {{.status = 304}, "HTTPStatus", "HTTP 304"},
        {{.status = 400, .body = "{}"}, "HTTPStatus", "HTTP 400"},
        {{.mode = FAKE_HANG}, "Timeout", "/healthz: timed out after 1.0 s with 0 bytes received"},
        {{.mode = FAKE_HANG_LATE, .body = "healthy"}, "Timeout", "timed out after 1.0 s with "},
        {{.mode = FAKE_CLOSE}, "Broken", "/healthz: "},
        {{.mode = FAKE_RAW, .body = "SSH-2.0-OpenSSH\r\n"}, "Broken", "/healthz: "},
        {{.body = "healthy", .close_after = 40}, "Broken", "/healthz: "},
    };
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w->settings.timeout_ms = cases[i].reason[0] == 'T' ? 1000 : 20000;
        push(w, "/healthz", cases[i].answer);
        probe_once(w);
        assert_part(&status(w)->probe, false, cases[i].reason, cases[i].message);
        assert_string_equal(w->last[PROBE_HEALTH].message, status(w)->probe.message);
        assert_true(status(w)->config.ok);
        assert_int_equal(status(w)->health, HEALTH_ACTIVE);
        w->settings.timeout_ms = 20000;
        probe_once(w);
    }
}

static void accepts_any_2xx_as_healthy(void **state)
{
    static const struct fake_answer cases[] = {
        {.status = 204},
        {.body = "not JSON"},
        {.body = "0123456789abcdef", .repeat = 1 << 16}, /* 1 MiB: cut, and no error */
        {.mode = FAKE_CHUNKED, .body = "ok"},
        {.status = 302, .location = "/elsewhere"},
    };
    struct world *w = *state;

    w->spec.mode = SYNC_NONE;
    begin(w);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        push(w, "/healthz", cases[i]);
        probe_once(w);
        assert_part(&status(w)->probe, true, "Healthy", "/healthz: HTTP 20");
    }
}

static void says_why_a_host_cannot_be_reached(void **state)
{
    struct world *w = *state;
    struct fake_server *gone = fake_new();

    w->spec.config_url = fake_kube_text(w->f, "http://127.0.0.1:%u/config?token=hush", fake_port(gone));
    gone = fake_free(gone);
    begin(w);
    assert_part(&status(w)->probe, false, "Unreachable", "could not connect to 127.0.0.1");
    assert_part(&status(w)->config, false, "Unreachable", "could not connect to 127.0.0.1");
    assert_null(strstr(status(w)->config.message, "hush"));
    w->spec.config_url = fake_kube_text(w->f, "https%s/config", fake_url(w->api, "") + 4);
    set(w);
    probe_once(w);
    assert_part(&status(w)->probe, false, "TLS", "https://127.0.0.1");
}

/* Whatever the API answers, the last good configuration stays, and what is wrong is said. */
static void keeps_the_last_good_configuration_and_says_why(void **state)
{
    static const struct {
        struct fake_answer answer;
        const char *reason, *message;
    } cases[] = {
        {{.status = 500, .body = CONFIG_500},
         "HTTPStatus",
         "/config: HTTP 500 Internal Server Error: no model"},
        {{.status = 404, .body = "{\"detail\":\"Not Found\"}"},
         "HTTPStatus",
         "HTTP 404 Not Found: Not Found"},
        {{.body = "<html>"}, "InvalidConfig", "/config: "},
        {{.body = ""}, "InvalidConfig", "/config: "},
        {{.status = 204}, "InvalidConfig", "/config: "},
        {{.body = "[1]"}, "InvalidConfig", "/config: "},
        {{.body = "{\"detail\":\"an error with status 200\"}"}, "InvalidConfig", "/config: "},
        {{.body = GOOD_CONFIG("b") " and more"}, "InvalidConfig", "/config: "},
        /* Well-formed, but agents would reject the summary. */
        {{.body = BAD_CONFIG("prom:9090", "up", "60")},
         "InvalidConfig",
         "/config: source.host in /config: expected an absolute http or https URL"},
        {{.body = BAD_CONFIG("http://p", " ", "60")},
         "InvalidConfig",
         "source.params.query in /config: expected a PromQL query"},
        {{.body = BAD_CONFIG("http://p", "up", "9999999")},
         "InvalidConfig",
         "scoring.params.interval in /config: expected a whole number of seconds"},
        {{.body = BAD_CONFIG("http://p", "", "60")}, "InvalidConfig", "spec.source.params.query: missing"},
        {{.body = GOOD_CONFIG("b") "                ", .repeat = 8192},
         "TooLarge",
         "exceeds the limit of 131072 bytes"},
        {{.body = GOOD_CONFIG("b"), .close_after = 100}, "Broken", "/config: "},
        {{.mode = FAKE_HANG}, "Timeout", "/config: timed out after 1.0 s with 0 bytes received"},
        {{.mode = FAKE_HANG_LATE, .body = GOOD_CONFIG("b")}, "Timeout", "timed out after 1.0 s with "},
        {{.mode = FAKE_CLOSE}, "Broken", "/config: "},
    };
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w->settings.timeout_ms = cases[i].reason[0] == 'T' && cases[i].reason[1] == 'i' ? 1000 : 20000;
        push(w, "/config", cases[i].answer);
        probe_once(w);
        assert_part(&status(w)->config, false, cases[i].reason, cases[i].message);
        assert_int_equal(status(w)->config.failures, i + 1);
        assert_string_equal(w->last[PROBE_CONFIG].reason, cases[i].reason);
        assert_string_equal(synced_name(w), "a");
        assert_true(status(w)->probe.ok);
    }
    push(w, "/config", (struct fake_answer){.body = GOOD_CONFIG("new"), .mode = FAKE_GZIP});
    probe_once(w);
    assert_part(&status(w)->config, true, "Synced", "");
    assert_string_equal(synced_name(w), "new");
}

/* The DynamicScorer's source has a token; /config names another host. */
static void rejects_a_configuration_that_redirects_a_token(void **state)
{
    struct world *w = *state;

    w->spec.own.n_sources = 1;
    w->spec.own.sources[0].type = SOURCE_PROMETHEUS;
    w->spec.own.sources[0].host = "https://other.example:9090";
    w->spec.own.sources[0].auth.token = (struct token_ref){"s", "k"};
    begin(w);
    assert_part(&status(w)->config, false, "TokenHostNotAllowed", "prom.example");
    assert_string_equal(synced_name(w), "(nothing)");
    assert_true(status(w)->probe.ok);
    w->spec.own.sources[0].host = "https://prom.example:9090";
    set(w);
    probe_once(w);
    assert_part(&status(w)->config, true, "Synced", "");
    assert_string_equal(synced_name(w), "a");
}

/* The error may be in the spec: any change of it leads to another probe at once. */
/* An invalid field of the DynamicScorer is no reason to reject /config; a field missing in both is. */
static void blames_configurations_for_their_own_fields_only(void **state)
{
    struct world *w = *state;

    w->spec.own.scoring.interval_s = 9999999;
    push(w, "/config", (struct fake_answer){.body = BAD_CONFIG("http://p", "up", "0")});
    begin(w);
    assert_part(&status(w)->config, true, "Synced", "");
    w->spec.own.scoring.interval_s = 60;
    set(w);
    assert_true(pause_of(w) > 0);
    push(w, "/config", (struct fake_answer){.body = BAD_CONFIG("http://p", "", "60")});
    probe_once(w);
    assert_part(&status(w)->config, false, "InvalidConfig", "spec.source.params.query: missing");
    w->spec.own.n_sources = 1;
    w->spec.own.sources[0] = (struct source_spec){.type = SOURCE_PROMETHEUS, .query = "up"};
    set(w);
    assert_int_equal(pause_of(w), 0);
    push(w, "/config", (struct fake_answer){.body = BAD_CONFIG("http://p", "", "60")});
    probe_once(w);
    assert_part(&status(w)->config, true, "Synced", "");
}

/* The answer of configURL counts instead. */
static void derives_health_from_config_url_without_healthz(void **state)
{
    static const struct {
        enum sync_mode mode;
        struct fake_answer config;
        bool healthy;
        const char *health, *message, *reason; /* the last: of the configuration */
    } cases[] = {
        {SYNC_FULL, {.body = GOOD_CONFIG("b")}, true, "Healthy", "/config: HTTP 200 OK", "Synced"},
        {SYNC_FULL, {.body = "{}", .delay_ms = 50}, true, "Healthy", "/config: HTTP 200", "InvalidConfig"},
        {SYNC_FULL, {.status = 500, .delay_ms = 50}, false, "HTTPStatus", "HTTP 500", "HTTPStatus"},
        {SYNC_FULL,
         {.status = 404, .body = "no"},
         false,
         "HTTPStatus",
         "HTTP 404 Not Found: no",
         "HTTPStatus"},
        {SYNC_FULL, {.mode = FAKE_CLOSE}, false, "Broken", "/config: ", "Broken"},
        {SYNC_NONE, {.body = "anything"}, true, "Healthy", "/config: HTTP 200 OK", ""},
        {SYNC_NONE, {.status = 500}, false, "HTTPStatus", "/config: HTTP 500", ""},
        {SYNC_NONE, {.status = 401, .body = "who?"}, false, "HTTPStatus", "HTTP 401 Unauthorized: who?", ""},
        {SYNC_NONE, {.mode = FAKE_CLOSE}, false, "Broken", "/config: ", ""},
    };
    static const int missing[] = {404, 405, 501, 401, 403};
    struct world *w = *state;

    w->settings.unhealthy_after = w->settings.healthy_after = 1;
    for (size_t i = 0; i < ARRAY_SIZE(cases) * 2; i++) {
        bool late = i >= ARRAY_SIZE(cases); /* /healthz answers after configURL */
        size_t k = i % ARRAY_SIZE(cases);
        push(w, "/healthz",
             (struct fake_answer){.status = missing[i % ARRAY_SIZE(missing)], .delay_ms = late ? 100 : 0});
        push(w, "/config", cases[k].config);
        w->spec.mode = cases[k].mode;
        set(w);
        if (i == 0)
            begin(w);
        else
            probe_once(w);
        assert_part(&status(w)->probe, cases[k].healthy, cases[k].health, cases[k].message);
        assert_string_equal(status(w)->config.reason, cases[k].reason);
        assert_int_equal(status(w)->health, cases[k].healthy ? HEALTH_ACTIVE : HEALTH_INACTIVE);
        assert_int_equal(w->n[PROBE_HEALTH], i + 1);
        /* At most one request each. */
        assert_int_equal(fake_requests(w->api), (i + 1) * 2);
    }
}

static void asks_the_scoring_host_without_config_url(void **state)
{
    struct world *w = *state;

    w->spec.mode = SYNC_NONE;
    w->spec.config_url = NULL;
    w->spec.own.scoring.host = fake_url(w->api, "/prefix");
    begin(w);
    assert_string_equal(fake_request(w->api, 0)->target, "/healthz");
    assert_part(&status(w)->probe, true, "Healthy", "/healthz: HTTP 200 OK");
    push(w, "/healthz", (struct fake_answer){.status = 404});
    probe_once(w);
    assert_part(&status(w)->probe, true, "Healthy",
                "/healthz: HTTP 404 Not Found: no such path, but the server responds");
    assert_int_equal(fake_requests(w->api), 2);
    push(w, "/healthz", (struct fake_answer){.status = 403});
    probe_once(w);
    assert_part(&status(w)->probe, true, "Healthy",
                "HTTP 403 Forbidden: access denied, but the server responds");
    assert_int_equal(fake_requests(w->api), 3);
    w->spec.own.scoring.host = fake_kube_text(w->f, "http://localhost:%u", fake_port(w->api));
    set(w);
    assert_false(status(w)->probe.asked);
    assert_int_equal(pause_of(w), 0);
}

static void says_which_url_is_missing_or_invalid(void **state)
{
    static const struct {
        enum sync_mode mode;
        const char *config_url, *host, *health, *config;
    } cases[] = {
        {SYNC_NONE, NULL, NULL, "neither spec.configURL nor spec.scoring.host", NULL},
        {SYNC_NONE, NULL, "ftp://x", "spec.scoring.host: expected an http or https URL", NULL},
        {SYNC_NONE, "prom:9090", "http://x", "spec.configURL: expected an http or https URL", NULL},
        {SYNC_FULL, NULL, NULL, "neither spec.configURL nor spec.scoring.host",
         "spec.configURL: required when spec.configSyncMode is Full"},
        {SYNC_FULL, "http://user:secret@127.0.0.1/config", NULL, "an http or https URL without a user",
         "without a user"},
        {SYNC_FULL, "x", NULL, "spec.configURL: expected an http or https URL",
         "spec.configURL: expected an http or https URL"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        w->spec.mode = cases[i].mode;
        w->spec.config_url = cases[i].config_url;
        w->spec.own.scoring.host = cases[i].host;
        begin(w);
        assert_part(&status(w)->probe, false, "InvalidURL", cases[i].health);
        assert_int_equal(status(w)->config.asked, cases[i].config != NULL);
        assert_null(strstr(status(w)->config.message, "secret"));
        if (cases[i].config)
            assert_part(&status(w)->config, false, "InvalidURL", cases[i].config);
    }
    assert_int_equal(fake_connections(w->api), 0);
}

static void refuses_private_addresses_in_public_mode(void **state)
{
    struct world *w = *state;

    w->settings.public_only = true;
    begin(w);
    assert_part(&status(w)->probe, false, "Forbidden",
                "/healthz: connections to private addresses are not allowed: 127.0.0.1");
    assert_part(&status(w)->config, false, "Forbidden",
                "/config: connections to private addresses are not allowed: 127.0.0.1");
    assert_int_equal(fake_connections(w->api), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(asks_both_paths_of_one_host),
        CASE(fails_health_with_the_reason),
        CASE(accepts_any_2xx_as_healthy),
        CASE(says_why_a_host_cannot_be_reached),
        CASE(keeps_the_last_good_configuration_and_says_why),
        CASE(rejects_a_configuration_that_redirects_a_token),
        CASE(blames_configurations_for_their_own_fields_only),
        CASE(derives_health_from_config_url_without_healthz),
        CASE(asks_the_scoring_host_without_config_url),
        CASE(says_which_url_is_missing_or_invalid),
        CASE(refuses_private_addresses_in_public_mode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
