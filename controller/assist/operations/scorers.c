#include "controller/assist/operations/scorers.h"

#include "controller/kube/json.h"
#include "controller/placement/name.h"

const char *scorer_score_name(const json_t *scorer)
{
    const char *name = kube_str(scorer, "status", "scoreName", NULL);

    if (!name)
        name = kube_str(scorer, "spec", "scoring", "params", "name", NULL);
    return name ? name : kube_str(scorer, "spec", "name", NULL);
}

const char *scorer_description(const json_t *scorer)
{
    const char *text = kube_str(scorer, "spec", "description", NULL);

    return cstr(text && *text ? text : kube_str(scorer, "status", "lastSyncedConfig", "description", NULL));
}

const char *scorer_dimension_format(const json_t *scorer)
{
    const char *text = kube_str(scorer, "spec", "scoreDimensionFormat", NULL);

    return text && *text ? text : "${scoreName}";
}

static bool scorer_has_object(const json_t *scorer, const char *object)
{
    const char *score = scorer_score_name(scorer);
    char name[OBJECT_NAME_MAX + 1];

    if (!score)
        return false;
    (void)object_name(str_of(score), name);
    return strcmp(name, object) == 0;
}

const json_t *scorer_of_score(const struct world *w, const struct world_score *s)
{
    const char *score =
        kube_str(s->annotations, "dynamic-scoring.open-cluster-management.io/score-name", NULL);
    const json_t *scorer;
    size_t at = 0;

    while ((scorer = world_next(w, WORLD_SCORERS, NULL, &at)))
        if (score ? strcmp(cstr(scorer_score_name(scorer)), score) == 0 : scorer_has_object(scorer, s->name))
            return scorer;
    return NULL;
}

const json_t *scorer_by_name(const struct world *w, const char *name)
{
    const json_t *scorer, *found = NULL;
    size_t at = 0;

    while ((scorer = world_next(w, WORLD_SCORERS, NULL, &at))) {
        if (strcmp(kube_name(scorer), name) == 0)
            return scorer;
        if (!found && (strcmp(cstr(scorer_score_name(scorer)), name) == 0 || scorer_has_object(scorer, name)))
            found = scorer;
    }
    return found;
}
