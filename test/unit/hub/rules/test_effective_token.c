/* In Full mode a scoring API cannot choose where tokens are sent. */
#include "controller/hub/rules/spec.h"
#include "exporter/base/buf.h"
#include "test/unit/hub/rules/spec_world.h"

#define FULL     "'configSyncMode':'Full','configURL':'http://api:8000/config'"
#define TOKEN    "'tokenSecretRef':{'name':'prom-token','key':'t'}"
#define SOURCE   "'source':{'host':'http://prom:9090','auth':{" TOKEN "}}"
#define HOST(h)  "{'source':{'host':'" h "','query':'up'},'scoring':{'params':{'name':'n'}}}"
#define SCORE(h) "{'scoring':{'host':'" h "','params':{'name':'n'}},'source':{'type':'None'}}"

static const struct {
    const char *spec, *config;
    bool refused;
} cases[] = {
    /* The same origin. */
    {FULL "," SOURCE, HOST("http://prom:9090"), false},
    {FULL "," SOURCE, HOST("HTTP://PROM:9090/prefix/"), false},
    {FULL "," SOURCE, "{'source':{'query':'up','path':'/x'}}", false},
    {FULL "," SOURCE, "{'scoring':{}}", false},
    /* Another origin. */
    {FULL "," SOURCE, HOST("http://prom"), true},
    {FULL "," SOURCE, HOST("https://prom:9090"), true},
    {FULL "," SOURCE, HOST("http://evil:9090"), true},
    {FULL "," SOURCE, HOST("http://prom.:9090"), true},
    {FULL "," SOURCE, HOST("http://prom:9090@evil/"), true},
    {FULL "," SOURCE, HOST("http://user@prom:9090"), true},
    {FULL "," SOURCE, HOST("http://evil#http://prom:9090"), true},
    {FULL "," SOURCE, HOST("http://evil?http://prom:9090"), true},
    {FULL "," SOURCE, HOST("http://prom:9090.evil"), true},
    {FULL "," SOURCE, HOST("prom:9090"), true},
    /* A Secret without a token has other credentials. */
    {FULL ",'source':{'host':'http://prom:9090','auth':{'tokenSecretRef':{'name':'prom'}}}",
     HOST("http://evil"), true},
    {FULL ",'source':{'host':'http://prom:9090','auth':{'tokenSecretRef':{'name':'prom','key':''}}}",
     HOST("http://prom:9090"), false},
    /* Without credentials. */
    {FULL ",'source':{'host':'http://prom:9090'}", HOST("http://evil"), false},
    {FULL "," SOURCE, "{'source':{'type':'none','host':'http://evil'}}", false},
    {FULL ",'source':{'type':'None','auth':{" TOKEN "}}", "{'source':{'host':'http://evil'}}", false},
    {"'configURL':'http://api:8000/config'," SOURCE, HOST("http://evil"), false},
    /* No host of its own: only what the list allows. */
    {FULL ",'source':{'auth':{" TOKEN "}}", HOST("http://prom:9090"), true},
    {FULL ",'source':{'auth':{" TOKEN ",'allowedHosts':['http://x','http://Prom:9090/']}}",
     HOST("http://prom:9090"), false},
    {FULL ",'source':{'auth':{" TOKEN ",'allowedHosts':['http://x','http://Prom:9090/']}}",
     HOST("http://prom:9091"), true},
    {FULL ",'source':{'auth':{" TOKEN ",'allowedHosts':['*']}}", HOST("http://anything"), false},
    /* The host of configURL is allowed for scoring, not for sources. */
    {FULL ",'source':{'auth':{" TOKEN "}}", HOST("http://api:8000"), true},
    {FULL ",'scoring':{'auth':{" TOKEN "}}", SCORE("http://api:8000/x"), false},
    {FULL ",'scoring':{'auth':{" TOKEN "}}", SCORE("http://api:8001"), true},
    {FULL ",'scoring':{'host':'http://s','auth':{" TOKEN "}}", SCORE("http://s:80"), false},
    {FULL ",'scoring':{'host':'http://s','auth':{" TOKEN "}}", SCORE("http://api:8000"), false},
    {FULL ",'scoring':{'auth':{" TOKEN ",'allowedHosts':['http://ok']}}", SCORE("http://ok"), false},
    {FULL ",'scoring':{'auth':{" TOKEN "}}", "{'scoring':{}}", false},
    /* Several sources: each token has its own hosts; further sources use the first. */
    {FULL ",'sources':[{'host':'http://a'},{'host':'http://b','auth':{" TOKEN "}}]",
     "{'sources':[{'host':'http://x'},{'host':'http://b'}]}", false},
    {FULL ",'sources':[{'host':'http://a'},{'host':'http://b','auth':{" TOKEN "}}]",
     "{'sources':[{'host':'http://b'},{'host':'http://a'}]}", true},
    {FULL "," SOURCE, "{'sources':[{'host':'http://prom:9090'},{'host':'http://prom:9090'}]}", false},
    {FULL "," SOURCE, "{'sources':[{'host':'http://prom:9090'},{'host':'http://evil'}]}", true},
    {FULL "," SOURCE, "{'sources':[{'host':'http://prom:9090'},{'type':'none','host':'http://evil'}]}",
     false},
};

static void allows_only_hosts_that_the_spec_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(cases[i].spec);
        CLEANUP(api_config_done) struct api_config c = good_config(cases[i].config);
        CLEANUP(effective_done) struct effective e = {0};
        char why[SPEC_WHY_BYTES] = "";

        if (effective_refuses(&s, &c, why) != cases[i].refused)
            print_error("%s with %s\n", cases[i].spec, cases[i].config);
        assert_int_equal(effective_refuses(&s, &c, why), cases[i].refused);
        assert_int_equal(*why != '\0', cases[i].refused);
        assert_int_equal(effective_make(&e, "m", &s, &c), 0);
        assert_int_equal(e.reason == EFFECTIVE_TOKEN_HOST, cases[i].refused);
        if (cases[i].refused) {
            assert_string_equal(e.error, why);
            assert_int_equal(e.text.n, 0);
        }
    }
}

static void says_where_to_allow_a_host(void **state)
{
    static const struct {
        const char *spec, *config, *why;
    } refused[] = {
        {FULL "," SOURCE, HOST("http://X:80"),
         "the credentials in Secret prom-token may not be sent to http://x:80, "
         "which /config names; allow it in spec.source.auth.allowedHosts"},
        {FULL "," SOURCE, HOST("http://me:s3cret@prom:9090"),
         "the credentials in Secret prom-token may not be sent to \"http://***@prom:9090\", "
         "which /config names; allow it in spec.source.auth.allowedHosts"},
        {FULL ",'sources':[{},{'auth':{" TOKEN "}}]", "{'sources':[{},{'host':'http://b'}]}",
         "the credentials in Secret prom-token may not be sent to http://b:80, "
         "which /config names; to allow it, set spec.sources[1].host: http://b:80"},
        {FULL ",'source':{'auth':{" TOKEN "}}", HOST("http://prom:9090"),
         "the credentials in Secret prom-token may not be sent to http://prom:9090, "
         "which /config names; to allow it, set spec.source.host: http://prom:9090"},
        {FULL ",'source':{'auth':{" TOKEN "}}", HOST("prom:9090"),
         "the credentials in Secret prom-token may not be sent to \"prom:9090\", "
         "which /config names; allow it in spec.source.auth.allowedHosts"},
        {FULL ",'scoring':{'auth':{" TOKEN "}}", SCORE("https://e"),
         "the credentials in Secret prom-token may not be sent to https://e:443, "
         "which /config names; to allow it, set spec.scoring.host: https://e:443"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(refused[i].spec);
        CLEANUP(api_config_done) struct api_config c = good_config(refused[i].config);
        char why[SPEC_WHY_BYTES] = "";

        assert_true(effective_refuses(&s, &c, why));
        assert_string_equal(why, refused[i].why);
    }
}

/* ---- What stays active ---- */

#define URL  "'configURL':'http://api:8000/config'"
#define AUTH "'auth':{" TOKEN "}"
#define NAME "'params':{'name':'n'}"
#define SENT URL ",'source':{'host':'http://prom:9090','query':'up'," AUTH "},'scoring':{" NAME "," AUTH "}"

/* NULL config: nothing synced. */
static struct effective make(const char *spec, const char *config, const struct effective *last)
{
    CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(spec);
    CLEANUP(api_config_done)
    struct api_config c = config ? good_config(config) : (struct api_config){0};
    struct effective e, before = last ? *last : (struct effective){0};

    assert_int_equal(effective_make(&e, "meta", &s, config ? &c : NULL), 0);
    if (last)
        effective_keep(&e, &before, &s);
    effective_done(&before);
    return e;
}

static const struct {
    const char *spec, *config, *newer;
    bool kept;
} turns[] = {
    {SENT, NULL, URL ",'source':{'host':'http://prom:9090'," AUTH "},'scoring':{" NAME "," AUTH "}", true},
    {URL ",'source':{'host':'http://p','query':'up'},'scoring':{" NAME "}", NULL,
     URL ",'source':{'host':'p','query':'up'},'scoring':{" NAME "}", true},
    {FULL ",'source':{'type':'none'},'scoring':{" NAME "}", "{'scoring':{}}",
     FULL ",'source':{'type':'none'},'scoring':{'params':{'name':'n','interval':9999999}}", true},
    /* An unknown name is not another name. */
    {FULL ",'source':{'type':'none'},'scoring':{" NAME "}", "{'scoring':{}}",
     FULL ",'source':{'type':'none'}", true},
    /* Another mode or name, or nothing to keep. */
    {FULL ",'source':{'type':'none'},'scoring':{" NAME "}", "{'scoring':{}}",
     URL ",'source':{'host':'p'},'scoring':{" NAME "}", false},
    {SENT, NULL,
     URL ",'source':{'host':'http://prom:9090'," AUTH "},'scoring':{'params':{'name':'m'}," AUTH "}", false},
    {URL ",'source':{'host':'http://p','query':'up'},'scoring':{" NAME "}", NULL,
     FULL ",'source':{'host':'http://p'},'scoring':{" NAME "}", false},
    /* The newest spec has another host, another token, or none. */
    {SENT, NULL, URL ",'source':{'host':'http://x'," AUTH "},'scoring':{" NAME "," AUTH "}", false},
    {SENT, NULL, URL ",'source':{'host':'prom:9090'," AUTH "},'scoring':{" NAME "," AUTH "}", false},
    {SENT, NULL,
     URL ",'source':{'host':'http://x','auth':{" TOKEN
         ",'allowedHosts':['http://prom:9090']}},'scoring':{" NAME "," AUTH "}",
     true},
    {SENT, NULL, URL ",'source':{'host':'http://prom:9090'},'scoring':{" NAME "," AUTH "}", false},
    {SENT, NULL,
     URL ",'source':{'host':'http://prom:9090','auth':{'tokenSecretRef':{'name':'prom-token','key':'u'}}},"
         "'scoring':{" NAME "," AUTH "}",
     false},
    {SENT, NULL,
     URL ",'source':{'host':'http://prom:9090','auth':{'tokenSecretRef':{'name':'other','key':'t'}}},"
         "'scoring':{" NAME "," AUTH "}",
     false},
    {SENT, NULL, URL ",'source':{'host':'http://prom:9090'," AUTH "},'scoring':{" NAME "}", false},
    {SENT, NULL,
     "'configURL':'http://api:8000/other','source':{'host':'http://prom:9090'," AUTH "},'scoring':{" NAME
     "," AUTH "}",
     true},
    {SENT, NULL,
     "'configURL':'http://api:81','source':{'host':'http://prom:9090'," AUTH "},'scoring':{" NAME "," AUTH
     "}",
     false},
    {FULL "," SOURCE, HOST("http://prom:9090"),
     FULL ",'source':{'host':'http://x'," AUTH "},'scoring':{'params':{'interval':9999999}}", false},
    /* Each of several sources counts. */
    {URL ",'sources':[{'host':'http://a','query':'q'},{'host':'http://b','query':'q'," AUTH "}]", NULL,
     URL ",'sources':[{'host':'http://b'," AUTH "}]", true},
    {URL ",'sources':[{'host':'http://a','query':'q'},{'host':'http://b','query':'q'," AUTH "}]", NULL,
     URL ",'sources':[{'host':'http://a'," AUTH "},{'host':'http://b'}]", false},
};

static void keeps_the_last_summary_while_its_tokens_stay_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
        struct effective last = make(turns[i].spec, turns[i].config, NULL);
        CLEANUP(cleanup_free) char *text = str_dup(buf_str(&last.text));
        CLEANUP(effective_done) struct effective e = {0}, again = {0};

        assert_int_equal(last.reason, EFFECTIVE_OK);
        e = make(turns[i].newer, turns[i].config, &last);
        if (e.kept != turns[i].kept)
            print_error("%s then %s: %s\n", turns[i].spec, turns[i].newer, e.error);
        assert_int_equal(e.kept, turns[i].kept);
        assert_int_equal(effective_usable(&e), turns[i].kept);
        assert_true(e.reason != EFFECTIVE_OK && *e.error);
        if (!e.kept) {
            assert_int_equal(e.text.n, 0);
            continue;
        }
        assert_true(str_eq(buf_str(&e.text), str_of(text)) && e.interval_ms == 60000);
        /* More than once in a row. */
        again = make(turns[i].newer, turns[i].config, &e);
        e = (struct effective){0};
        assert_true(again.kept && str_eq(buf_str(&again.text), str_of(text)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allows_only_hosts_that_the_spec_names),
        cmocka_unit_test(says_where_to_allow_a_host),
        cmocka_unit_test(keeps_the_last_summary_while_its_tokens_stay_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
