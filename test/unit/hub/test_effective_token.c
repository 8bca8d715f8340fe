/* In Full mode a scorer does not choose where tokens go. */
#include "test/oom.h"
#include "test/unit/hub/spec_world.h"

#define FULL     "'configSyncMode':'Full','configURL':'http://api:8000/config'"
#define TOKEN    "'tokenSecretRef':{'name':'prom-token','key':'t'}"
#define SOURCE   "'source':{'host':'http://prom:9090','auth':{" TOKEN "}}"
#define HOST(h)  "{'source':{'host':'" h "','query':'up'},'scoring':{'params':{'name':'n'}}}"
#define SCORE(h) "{'scoring':{'host':'" h "','params':{'name':'n'}},'source':{'type':'None'}}"

static const struct {
    const char *spec, *config;
    bool refused;
} cases[] = {
    /* The same place. */
    {FULL "," SOURCE, HOST("http://prom:9090"), false},
    {FULL "," SOURCE, HOST("HTTP://PROM:9090/prefix/"), false},
    {FULL "," SOURCE, "{'source':{'query':'up','path':'/x'}}", false},
    {FULL "," SOURCE, "{'scoring':{}}", false},
    /* Another. */
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
    /* Nothing to lose. */
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
    /* configURL stands for the scoring API, not for the source. */
    {FULL ",'source':{'auth':{" TOKEN "}}", HOST("http://api:8000"), true},
    {FULL ",'scoring':{'auth':{" TOKEN "}}", SCORE("http://api:8000/x"), false},
    {FULL ",'scoring':{'auth':{" TOKEN "}}", SCORE("http://api:8001"), true},
    {FULL ",'scoring':{'host':'http://s','auth':{" TOKEN "}}", SCORE("http://s:80"), false},
    {FULL ",'scoring':{'host':'http://s','auth':{" TOKEN "}}", SCORE("http://api:8000"), false},
    {FULL ",'scoring':{'auth':{" TOKEN ",'allowedHosts':['http://ok']}}", SCORE("http://ok"), false},
    {FULL ",'scoring':{'auth':{" TOKEN "}}", "{'scoring':{}}", false},
    /* Several sources: each token with its own hosts; past the list the first one's. */
    {FULL ",'sources':[{'host':'http://a'},{'host':'http://b','auth':{" TOKEN "}}]",
     "{'sources':[{'host':'http://x'},{'host':'http://b'}]}", false},
    {FULL ",'sources':[{'host':'http://a'},{'host':'http://b','auth':{" TOKEN "}}]",
     "{'sources':[{'host':'http://b'},{'host':'http://a'}]}", true},
    {FULL "," SOURCE, "{'sources':[{'host':'http://prom:9090'},{'host':'http://prom:9090'}]}", false},
    {FULL "," SOURCE, "{'sources':[{'host':'http://prom:9090'},{'host':'http://evil'}]}", true},
    {FULL "," SOURCE, "{'sources':[{'host':'http://prom:9090'},{'type':'none','host':'http://evil'}]}",
     false},
};

static void judges_hosts(void **state)
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
            assert_string_equal(e.why, why);
            assert_int_equal(e.text.n, 0);
        }
    }
}

static void says_what_would_allow_it(void **state)
{
    static const struct {
        const char *spec, *config, *why;
    } refused[] = {
        {FULL "," SOURCE, HOST("http://X:80"),
         "/config sends the source's queries to http://x:80, but the token of Secret prom-token may only go "
         "to "
         "hosts that spec.source.host or spec.source.auth.allowedHosts name"},
        {FULL "," SOURCE, HOST("http://me:s3cret@prom:9090"),
         "/config sends the source's queries to \"http://***@prom:9090\", but the token of Secret prom-token "
         "may "
         "only go to hosts that spec.source.host or spec.source.auth.allowedHosts name"},
        {FULL ",'sources':[{},{'auth':{" TOKEN "}}]", "{'sources':[{},{'host':'http://b'}]}",
         "/config sends the source's queries to http://b:80, but the token of Secret prom-token may only go "
         "to "
         "hosts that spec.sources[1].host or spec.sources[1].auth.allowedHosts name"},
        {FULL ",'scoring':{'auth':{" TOKEN "}}", SCORE("https://e"),
         "/config sends the scoring requests to https://e:443, but the token of Secret prom-token may only "
         "go "
         "to hosts that spec.scoring.host, spec.configURL or spec.scoring.auth.allowedHosts name"},
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

static void lets_nothing_through_unjudged(void **state)
{
    CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(FULL "," SOURCE);
    CLEANUP(api_config_done) struct api_config good = good_config(HOST("http://prom:9090"));
    CLEANUP(api_config_done) struct api_config bad = good_config(HOST("http://evil"));
    char why[SPEC_WHY_BYTES];

    (void)state;
    assert_false(effective_refuses(&s, NULL, why));
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        bool refused = effective_refuses(&s, &good, why);

        assert_int_equal(refused, oom_happened());
    }
    FOR_EACH_ALLOCATION_FAILURE(n)
    assert_true(effective_refuses(&s, &bad, why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges_hosts),
        cmocka_unit_test(says_what_would_allow_it),
        cmocka_unit_test(lets_nothing_through_unjudged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
