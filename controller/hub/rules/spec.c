/* The spec of a DynamicScorer. */
#include "controller/hub/rules/spec.h"

#include "controller/hub/rules/spec_internal.h"

static enum sync_mode spec_mode(struct spec_reading *rd, const struct spec_place *spec)
{
    static const char *const modes[] = {"Full", "None", NULL};

    return spec_word(rd, spec, "configSyncMode", modes) == modes[0] ? SYNC_FULL : SYNC_NONE;
}

static const char *const health_checks[] = {
    [HEALTH_CHECK_HUB] = "Hub", [HEALTH_CHECK_AGENTS] = "Agents", [HEALTH_CHECK_NONE] = "None", NULL};

const char *health_check_word(enum health_check c)
{
    return health_checks[c];
}

static enum health_check spec_health_check(struct spec_reading *rd, const struct spec_place *spec)
{
    const char *word = spec_word(rd, spec, "healthCheck", health_checks);
    enum health_check c = HEALTH_CHECK_HUB;

    while (word && health_checks[c] != word)
        c++;
    return c;
}

enum health_check scorer_spec_health_check(const json_t *object)
{
    struct spec_reading rd = {.errors.max = SPEC_ERRORS_BYTES};
    const struct spec_place spec = {.map = kube_map(object, "spec", NULL)};
    enum health_check c = spec_health_check(&rd, &spec);

    buf_done(&rd.errors);
    return c;
}

static void spec_config_url(struct spec_reading *rd, const struct spec_place *spec, struct scorer_spec *s)
{
    struct spec_place auth = spec_object(rd, spec, "configAuth"),
                      ref = spec_object(rd, &auth, "tokenSecretRef");

    s->config_url = spec_string(rd, spec, "configURL");
    s->config_token = spec_token(rd, &ref);
    if (s->mode == SYNC_FULL && !s->config_url)
        spec_expected(rd, spec, "configURL", "a URL, as configSyncMode is Full",
                      kube_get(spec->map, "configURL", NULL));
}

/* The values kept as written are checked with the summary. */
static void spec_destination(struct spec_reading *rd, const struct spec_place *spec, struct scorer_spec *s)
{
    static const char *const locations[] = {"Internal", "External", NULL};
    static const char *const destinations[] = {"AddOnPlacementScore", "None", NULL};
    static const char *const aggregations[] = {"last", "avg", "max", "min", "sum", NULL};

    s->location = spec_word(rd, spec, "location", locations);
    s->destination = spec_word(rd, spec, "scoreDestination", destinations);
    s->dimension_format = spec_string(rd, spec, "scoreDimensionFormat");
    s->aggregation = spec_word(rd, spec, "scoreAggregation", aggregations);
    s->score_range = kube_get(spec->map, "scoreRange", NULL);
    s->fallback_score = kube_get(spec->map, "fallbackScore", NULL);
    s->timeout = kube_get(spec->map, "timeout", NULL);
}

int scorer_spec_read(struct scorer_spec *ret, json_t *object, char why[SPEC_WHY_BYTES])
{
    struct spec_reading rd = {.errors.max = SPEC_ERRORS_BYTES};
    CLEANUP(scorer_spec_done) struct scorer_spec s = {0};
    const struct spec_place top = {.map = object};
    struct spec_place spec = spec_object(&rd, &top, "spec");
    int r;

    if (!spec.map && rd.errors.n == 0)
        spec_expected(&rd, &top, "spec", "an object", NULL);
    s.mode = spec_mode(&rd, &spec);
    s.health_check = spec_health_check(&rd, &spec);
    spec_config_url(&rd, &spec, &s);
    spec_read_config(&rd, &s.own, object, &spec, DOCUMENT_SCORER);
    spec_destination(&rd, &spec, &s);
    r = spec_result(&rd, why);
    buf_done(&rd.errors);
    if (r < 0)
        return r;
    *ret = s;
    s = (struct scorer_spec){0};
    return 0;
}

void scorer_spec_done(struct scorer_spec *s)
{
    api_config_done(&s->own);
    *s = (struct scorer_spec){0};
}
