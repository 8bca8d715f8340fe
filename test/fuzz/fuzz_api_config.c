/* Any body of /config: what is taken is kept whole in the status, no token follows it to a place that was not
 * named. */
#include "test/fuzz/effective_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "\"auth\":{\"tokenSecretRef\":{\"name\":\"t\",\"key\":\"k\"}}"

/* With tokens that may go to one place each, and with nothing of its own. */
static const char *const scorers[] = {
    "{\"spec\":{\"configSyncMode\":\"Full\",\"configURL\":\"http://api/config\","
    "\"source\":{\"host\":\"http://prom:9090\",\"params\":{\"query\":\"up\"}," TOKEN "},"
    "\"scoring\":{\"params\":{\"name\":\"n\"}," TOKEN "}}}",
    "{\"spec\":{\"configSyncMode\":\"Full\",\"configURL\":\"http://api/config\"}}",
    "{\"spec\":{\"configURL\":\"http://api/config\"}}",
};

static void check_kept(const struct api_config *c)
{
    json_t *value = api_config_value(c), *again_value;
    char why[SPEC_WHY_BYTES];
    struct api_config again;

    assert(value && api_config_read(&again, value, why) == 0);
    again_value = api_config_value(&again);
    assert(json_equal(value, again_value) && c->n_sources == again.n_sources);
    assert(!c->scoring.params == !again.scoring.params);
    json_decref(again_value);
    json_decref(value);
    api_config_done(&again);
}

static void check_scorer(const char *text, const struct api_config *c, bool tokens)
{
    static const char *const prom[] = {"http://prom:9090", NULL}, *const api[] = {"http://api", NULL};
    json_t *object = NULL;
    char why[SPEC_WHY_BYTES];
    struct scorer_spec spec;
    struct effective e;

    assert(kube_json_parse(&object, str_of(text), NULL) == 0);
    assert(scorer_spec_read(&spec, object, why) == 0);
    check_effective(&spec, c, &e);
    if (tokens && e.reason == EFFECTIVE_OK)
        check_tokens(&e, prom, api);
    effective_done(&e);
    scorer_spec_done(&spec);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[SPEC_WHY_BYTES] = "";
    struct api_config c;
    int r = api_config_parse(&c, (struct str){(const char *)data, size}, why);

    assert(r == 0 || r == -EINVAL || r == -EBADMSG);
    if (r < 0) {
        check_sentence(why);
        return 0;
    }
    check_kept(&c);
    for (size_t i = 0; i < ARRAY_SIZE(scorers); i++)
        check_scorer(scorers[i], &c, i == 0);
    api_config_done(&c);
    return 0;
}
