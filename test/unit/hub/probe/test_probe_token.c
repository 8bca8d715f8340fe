/* The token for configURL: where it goes, and which Secrets are refused. */
#include "controller/hub/rules/spec.h"
#include "controller/kube/client.h"
#include "controller/kube/reach.h"
#include "exporter/base/clock.h"
#include "test/fakes/fake_server.h"
#include "test/unit/hub/probe/probe_world.h"

#define SECRETS "/api/v1/namespaces/ocm/secrets/"

static int setup_token(void **state)
{
    int r = setup(state);
    struct world *w = *state;

    w->spec.config_token = (struct token_ref){"api", "token"};
    return r;
}

/* value: in base64. */
static void push_secret(struct world *w, const char *value)
{
    fake_push(w->f->server,
              (struct fake_answer){.body = fake_kube_text(w->f,
                                                          "{\"kind\":\"Secret\",\"type\":\"Opaque\","
                                                          "\"data\":{\"token\":\"%s\",\"other\":\"eA==\"}}",
                                                          value)});
}

/* The header of the last request for the path. */
static const char *authorization(struct world *w, const char *path)
{
    static char value[128];

    for (size_t i = fake_requests(w->api); i-- > 0;)
        if (strcmp(fake_request(w->api, i)->target, path) == 0)
            return fake_header(fake_request(w->api, i), "Authorization", value, sizeof(value)) ? value
                                                                                               : "(absent)";
    return "(not asked)";
}

static size_t asked(struct world *w, const char *path)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->api); i++)
        n += strcmp(fake_request(w->api, i)->target, path) == 0;
    return n;
}

static void sends_the_current_token_to_config_url_alone(void **state)
{
    struct world *w = *state;

    push_secret(w, "Zmlyc3QtdG9rZW4K"); /* "first-token\n" */
    begin(w);
    assert_string_equal(fake_kube_asked(w->f, 0), "GET " SECRETS "api");
    assert_string_equal(authorization(w, "/config"), "Bearer first-token");
    assert_string_equal(authorization(w, "/healthz"), "(absent)");
    assert_part(&status(w)->config, true, "Synced", "");
    /* The Secret is read again for each probe. */
    push_secret(w, "c2Vjb25k");
    probe_once(w);
    assert_string_equal(authorization(w, "/config"), "Bearer second");
    assert_int_equal(fake_requests(w->f->server), 2);
    w->spec.config_token = (struct token_ref){0};
    set(w);
    probe_once(w);
    assert_string_equal(authorization(w, "/config"), "(absent)");
    assert_int_equal(fake_requests(w->f->server), 2);
}

static void sends_no_token_to_a_redirected_host(void **state)
{
    struct world *w = *state;
    struct fake_server *other = fake_new();

    push_secret(w, "Zmlyc3QtdG9rZW4K");
    push(w, "/config", (struct fake_answer){.status = 307, .location = fake_url(other, "/x")});
    begin(w);
    assert_int_equal(fake_requests(other), 0);
    assert_false(status(w)->config.ok);
    assert_non_null(strstr(status(w)->config.message, "redirect"));
    (void)fake_free(other);
}

#define TYPED(type)                                                       \
    {                                                                     \
        200, "{\"type\":\"" type "\",\"data\":{\"token\":\"c2VjcmV0\"}}", \
            "the Secret's type is " type ", only Opaque is allowed"       \
    }

static void says_why_there_is_no_token(void **state)
{
    static const struct {
        int code;
        const char *body, *message;
    } cases[] = {
        {404,
         "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"secrets api not found\",\"code\":404}",
         "the Secret does not exist in namespace ocm"},
        {403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"may not get\",\"code\":403}",
         "may not get"},
        {200, "{\"kind\":\"Secret\"}", "not found"},
        {200, "{\"data\":{\"tok\":\"c2VjcmV0\"}}", "not found"},
        {200, "{\"data\":{\"token\":7}}", "not found"},
        {200, "{\"data\":{\"header\":\"c2VjcmV0\"}}", "not found; name no key to send no bearer token"},
        {200, "{\"data\":{\"token\":\"c2VjcmV0!\"}}", "not valid base64"},
        {200, "{\"data\":{\"token\":\"\"}}", "empty"},
        {200, "{\"data\":{\"token\":\"Cg==\"}}", "empty"},
        {200, "{\"data\":{\"token\":\"c2VjcmV0IHNlY3JldA==\"}}", "not a token"},
        {200, "{\"data\":{\"token\":\"c2VjcmV0DQpYLUE6IGI=\"}}", "not a token"},
        TYPED("kubernetes.io/service-account-token"),
        TYPED("bootstrap.kubernetes.io/token"),
        TYPED("kubernetes.io/dockerconfigjson"),
        TYPED("kubernetes.io/dockercfg"),
        TYPED("kubernetes.io/basic-auth"),
        TYPED("kubernetes.io/ssh-auth"),
        TYPED("kubernetes.io/tls"),
        TYPED("helm.sh/release.v1"),
        TYPED("opaque"),
        {200, "{\"type\":\"a\\nb\",\"data\":{\"token\":\"c2VjcmV0\"}}", "the Secret's type is a b, only"},
        {200, "{\"type\":\"Opaque\",\"data\":{\"token\":\"c2VjcmV0\",\"kubeconfig\":\"eA==\"}}",
         "the Secret contains a kubeconfig, which is never sent"},
        {200, "{\"data\":{\"token\":\"c2VjcmV0\",\"kubeconfig\":\"eA==\"}}",
         "the Secret contains a kubeconfig, which is never sent"},
    };
    struct world *w = *state;

    push_secret(w, "Zmlyc3QtdG9rZW4K");
    begin(w);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_push(w->f->server, (struct fake_answer){.status = cases[i].code, .body = cases[i].body});
        probe_once(w);
        assert_part(&status(w)->config, false, "TokenMissing", cases[i].message);
        assert_part(&status(w)->config, false, "TokenMissing", "Secret \"api\", key \"token\": ");
        assert_null(strstr(status(w)->config.message, "c2VjcmV0"));
        assert_null(strstr(status(w)->config.message, "secret secret"));
        assert_string_equal(synced_name(w), "a");
        assert_true(status(w)->probe.ok);
    }
    assert_int_equal(asked(w, "/config"), 1);
    w->spec.config_token.name = "a/b";
    set(w);
    probe_once(w);
    assert_part(&status(w)->config, false, "TokenMissing", "not a valid name of a Secret");
    /* Without a type, which the API server treats as Opaque. */
    fake_push(w->f->server, (struct fake_answer){.body = "{\"data\":{\"token\":\"c2Vjb25k\"}}"});
    w->spec.config_token.name = "api";
    set(w);
    probe_once(w);
    assert_part(&status(w)->config, true, "Synced", "");
}

static void fail_secret(struct world *w)
{
    fake_push(w->f->server, (struct fake_answer){.status = 503, .body = "starting"});
    probe_once(w);
}

/* configURL also stands for the health here. */
static void holds_no_absence_of_the_hub_against_the_api(void **state)
{
    struct world *w = *state;
    struct kube_reach *reach = kube_reach(w->f->kube);
    struct probe_part health, config;

    for (unsigned i = 0; i < 5; i++)
        push(w, "/healthz", (struct fake_answer){.status = 401});
    push_secret(w, "Zmlyc3QtdG9rZW4K");
    begin(w);
    health = status(w)->probe;
    config = status(w)->config;
    assert_true(health.ok && config.ok);
    reach->away_at = loop_now(w->f->loop);
    for (unsigned i = 0; i < 4; i++) {
        fail_secret(w);
        assert_memory_equal(&status(w)->probe, &health, sizeof(health));
        assert_memory_equal(&status(w)->config, &config, sizeof(config));
        assert_pause(w, 1000 << i); /* it is asked again soon */
    }
    assert_int_equal(status(w)->health, HEALTH_ACTIVE);
    push_secret(w, "Zmlyc3QtdG9rZW4K");
    probe_once(w);
    assert_part(&status(w)->config, true, "Synced", "");
}

static void counts_a_token_that_cannot_be_read_for_a_minute(void **state)
{
    struct world *w = *state;
    struct kube_reach *reach = kube_reach(w->f->kube);

    push_secret(w, "Zmlyc3QtdG9rZW4K");
    begin(w);
    reach->away_at = mono_add(loop_now(w->f->loop), -KUBE_GRACE_MS);
    reach->cleared_at = loop_now(w->f->loop);
    fail_secret(w);
    assert_part(&status(w)->config, false, "TokenMissing", "starting");
}

/* A token that is too long, and one that just fits. */
static void limits_the_size_of_tokens(void **state)
{
    struct world *w = *state;
    size_t n = 88000; /* 66000 bytes */
    char *text = malloc(n + 1);

    memset(text, 'Y', n);
    text[n] = '\0';
    push_secret(w, text);
    begin(w);
    assert_part(&status(w)->config, false, "TokenMissing", "longer than 65536 bytes");
    free(text);
}

/* configURL is asked for health with its token. Without a token, any answer of /healthz proves that the
 * server is up. */
static void uses_the_token_for_health_without_healthz(void **state)
{
    struct world *w = *state;
    const struct fake_answer none = {.status = 404};

    w->spec.mode = SYNC_NONE;
    push(w, "/healthz", none);
    push_secret(w, "c2Vjb25k");
    begin(w);
    assert_string_equal(authorization(w, "/config"), "Bearer second");
    assert_part(&status(w)->probe, true, "Healthy", "/config: HTTP 200 OK");
    for (unsigned i = 0; i < 2; i++) {
        w->spec.mode = i ? SYNC_FULL : SYNC_NONE;
        set(w);
        push(w, "/healthz", none);
        fake_push(w->f->server, (struct fake_answer){.status = 404, .body = "{}"});
        probe_once(w);
        assert_part(&status(w)->probe, true, "Healthy", "no such path, but the server responds");
        assert_int_equal(status(w)->config.asked, i);
        if (i)
            assert_part(&status(w)->config, false, "TokenMissing", "the Secret does not exist");
    }
}

static void stops_while_a_secret_is_read(void **state)
{
    struct world *w = *state;

    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    set(w);
    probe_start(w->p);
    fake_kube_requests(w->f, 1);
    fake_kube_turn(w->f, &w->n[PROBE_HEALTH], 1);
    assert_int_equal(status(w)->next_ms, 0);
    probe_stop(w->p);
    fake_kube_idle(w->f);
    assert_int_equal(w->n[PROBE_CONFIG], 0);
}

static void free_it(struct world *w)
{
    w->p = probe_free(w->p);
}

static void survives_being_freed_after_a_secret_was_read(void **state)
{
    struct world *w = *state;

    push(w, "/healthz", (struct fake_answer){.mode = FAKE_HANG});
    fake_push(w->f->server, (struct fake_answer){.status = 404, .body = "{}"});
    w->then = free_it;
    set(w);
    probe_start(w->p);
    fake_kube_turn(w->f, &w->n[PROBE_CONFIG], 1);
    assert_null(w->p);
    assert_int_equal(w->n[PROBE_HEALTH], 0);
}

/* The keys that agents know, too, in a Secret without a token. */
static void sends_basic_authentication_and_a_header(void **state)
{
    struct world *w = *state;
    char header[64] = "";

    w->spec.config_token.key = NULL;
    fake_push(w->f->server,
              (struct fake_answer){.body = "{\"type\":\"Opaque\",\"data\":{\"username\":\"dQ==\","
                                           "\"password\":\"cA==\",\"header\":\"WC1LZXk6IDE=\"}}"});
    begin(w);
    assert_string_equal(authorization(w, "/config"), "Basic dTpw");
    assert_string_equal(authorization(w, "/healthz"), "(absent)");
    for (size_t i = 0; i < fake_requests(w->api); i++)
        if (strcmp(fake_request(w->api, i)->target, "/config") == 0)
            assert_true(fake_header(fake_request(w->api, i), "X-Key", header, sizeof(header)));
    assert_string_equal(header, "1");
    fake_push(w->f->server, (struct fake_answer){.body = "{\"data\":{\"username\":\"dQ==\"}}"});
    probe_once(w);
    assert_part(&status(w)->config, false, "TokenMissing",
                "spec.configAuth: Secret \"api\": it has the key \"username\" without \"password\"");
    fake_push(w->f->server, (struct fake_answer){.status = 404, .body = "{}"});
    probe_once(w);
    assert_part(&status(w)->config, false, "TokenMissing",
                "spec.configAuth: Secret \"api\": the Secret does not exist in namespace ocm");
}

#define TOKEN_CASE(fn) cmocka_unit_test_setup_teardown(fn, setup_token, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOKEN_CASE(sends_the_current_token_to_config_url_alone),
        TOKEN_CASE(sends_no_token_to_a_redirected_host),
        TOKEN_CASE(says_why_there_is_no_token),
        TOKEN_CASE(sends_basic_authentication_and_a_header),
        TOKEN_CASE(holds_no_absence_of_the_hub_against_the_api),
        TOKEN_CASE(counts_a_token_that_cannot_be_read_for_a_minute),
        TOKEN_CASE(limits_the_size_of_tokens),
        TOKEN_CASE(uses_the_token_for_health_without_healthz),
        TOKEN_CASE(stops_while_a_secret_is_read),
        TOKEN_CASE(survives_being_freed_after_a_secret_was_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
