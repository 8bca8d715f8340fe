/* Reads DynamicScorers. Owns nothing; on the worker that fills in an answer. */
#include "controller/assist/scorer.h"

#include "controller/assist/score.h"
#include "controller/placement/owner.h"

#include "controller/assist/kind.h"
#include "controller/assist/listing.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "exporter/base/utf8.h"

enum {
    DESCRIPTION_BYTES = 200, /* for assistants */
    MESSAGE_BYTES = 160,
};

const char *scorer_score_name(const json_t *scorer)
{
    return kube_str(scorer, "status", "scoreName", NULL)
               ?: kube_str(scorer, "spec", "scoring", "params", "name", NULL)
               ?: kube_str(scorer, "spec", "name", NULL);
}

const char *scorer_description(const json_t *scorer)
{
    const char *text = kube_str(scorer, "spec", "description", NULL);

    return cstr(text && *text ? text : kube_str(scorer, "status", "lastSyncedConfig", "description", NULL));
}

const char *scorer_dimension_format(const json_t *scorer)
{
    const json_t *first = json_array_get(kube_list(scorer, "spec", "scoreItems", NULL), 0);
    const char *text =
        kube_str(first, "format", NULL) ?: kube_str(scorer, "spec", "scoreDimensionFormat", NULL);

    return text && *text ? text : "${scoreName}";
}

const char *scorer_object_name(const json_t *scorer, char name[OBJECT_NAME_MAX + 1])
{
    const char *score = scorer_score_name(scorer);

    if (score)
        (void)object_name(str_of(score), name);
    return score ? name : NULL;
}

static bool scorer_has_object(const json_t *scorer, const char *object)
{
    char name[OBJECT_NAME_MAX + 1];

    return strcmp(cstr(scorer_object_name(scorer, name)), object) == 0;
}

const json_t *scorer_of_score(const struct snapshot *hub, const struct score *s)
{
    const char *score = kube_annotation(s->object, SCORE_NAME_ANNOTATION);
    const json_t *scorer;
    size_t at = 0;

    while ((scorer = snapshot_next(hub, KIND_SCORERS, &at)))
        if (score ? strcmp(cstr(scorer_score_name(scorer)), score) == 0 : scorer_has_object(scorer, s->name))
            return scorer;
    return NULL;
}

const json_t *scorer_by_name(const struct snapshot *hub, const char *name)
{
    const json_t *scorer, *found = NULL;
    size_t at = 0;

    while ((scorer = snapshot_next(hub, KIND_SCORERS, &at))) {
        if (strcmp(kube_name(scorer), name) == 0)
            return scorer;
        if (!found && (strcmp(cstr(scorer_score_name(scorer)), name) == 0 || scorer_has_object(scorer, name)))
            found = scorer;
    }
    return found;
}

json_t *text_cut(const char *text, size_t max)
{
    size_t n = strlen(cstr(text));

    if (n <= max)
        return json_string(cstr(text));
    return json_sprintf("%.*s...", (int)utf8_cut(str_of(text), max).n, text);
}

/* ---- The list of scorers ---- */

/* For assistants the condition Ready and those that are not True, whose messages may be long. */
static json_t *scorers_conditions(const struct listing *l, const json_t *scorer)
{
    json_t *list = json_array(), *one;
    size_t i;

    json_array_foreach(kube_list(scorer, "status", "conditions", NULL), i, one)
    {
        const char *type = cstr(kube_str(one, "type", NULL)), *status = cstr(kube_str(one, "status", NULL));

        if (listing_is_short(l) && strcmp(status, "True") == 0 && strcmp(type, "Ready") != 0)
            continue;
        (void)json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:o}", "type", type, "status", status, "reason",
                            cstr(kube_str(one, "reason", NULL)), "message",
                            text_cut(kube_str(one, "message", NULL), listing_at_most(l, MESSAGE_BYTES))));
    }
    return list;
}

static json_t *scorers_item(const struct listing *l, const json_t *scorer)
{
    char object[OBJECT_NAME_MAX + 1];
    json_t *item = json_object();

    kube_set_str(item, "namespace", kube_namespace(scorer));
    kube_set_str(item, "name", kube_name(scorer));
    kube_set_str(item, "scoreName", scorer_score_name(scorer));
    kube_set_str(item, "addonPlacementScore", scorer_object_name(scorer, object));
    kube_set(item, "description",
             text_cut(scorer_description(scorer), listing_at_most(l, DESCRIPTION_BYTES)));
    kube_set_str(item, "scoreDimensionFormat", scorer_dimension_format(scorer));
    kube_set(item, "scoreItems", json_incref(kube_list(scorer, "spec", "scoreItems", NULL)));
    kube_set_str(item, "health", kube_str(scorer, "status", "healthStatus", NULL) ?: "Unknown");
    kube_set(item, "conditions", scorers_conditions(l, scorer));
    kube_set(item, "clusters", json_incref(kube_map(scorer, "status", "clusters", NULL)));
    kube_set_bool(item, "untrusted", true);
    return item;
}

void scorers_fill(struct listing *l, const struct snapshot *hub)
{
    const json_t *scorer;
    size_t at = 0;

    while ((scorer = snapshot_next(hub, KIND_SCORERS, &at)))
        if (listing_wants(l))
            listing_add(l, scorers_item(l, scorer));
}
