/* GET /workloads. */
#include "controller/assist/api/listing.h"
#include "controller/assist/api/operation.h"
#include "controller/assist/operations/answer.h"
#include "controller/assist/operations/decisions.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/operations/resources.h"
#include "controller/assist/rules/inputs.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"

#define ASKED "resource-request"

enum { FEW_CLUSTERS = 10 }; /* named for each workload, for assistants */

static bool workloads_match(const struct answer *a, const json_t *o)
{
    const char *app = answer_input(a, "app"), *kind = answer_input(a, "kind");

    return (!app || strcmp(app, cstr(kube_label(o, "app"))) == 0) &&
           (!kind || strcmp(kind, cstr(resources_kind(o, ASKED))) == 0);
}

/* The first clusters of the list. */
static json_t *workloads_clusters(const struct answer *a, const json_t *list)
{
    json_auto_t *few = json_array();
    size_t max = answer_is_short(a) ? FEW_CLUSTERS : SIZE_MAX;

    for (size_t i = 0; i < json_array_size(list) && i < max; i++)
        if (json_array_append(few, json_array_get(list, i)) < 0)
            return NULL;
    return TAKE_PTR(few);
}

static json_t *workloads_item(const struct answer *a, const json_t *o, const json_t *decisions)
{
    const char *placement = input_placement_name(o);
    const json_t *runs = placement ? decisions_of(decisions, kube_namespace(o), placement) : NULL;

    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:s*,s:o,s:I}", "namespace", kube_namespace(o), "name",
                     kube_name(o), "app", cstr(kube_label(o, "app")), "kind", cstr(resources_kind(o, ASKED)),
                     "amounts", resources_of_labels(o, ASKED), "placement", placement, "runsOn",
                     workloads_clusters(a, runs), "runsOnTotal", (json_int_t)json_array_size(runs));
}

static bool workloads_are_usable(const json_t *o)
{
    return kube_label(o, "app") && resources_kind(o, ASKED) && input_placement_name(o);
}

/* The request's member with all workloads of one namespace. NULL when out of memory. */
static json_t *workloads_targets(const struct answer *a, size_t *ret_unusable, bool *ret_mixed)
{
    json_auto_t *list = json_array();
    const char *namespace = NULL;
    const json_t *o;
    size_t at = 0;

    *ret_unusable = 0;
    *ret_mixed = false;
    while ((o = world_next(a->world, WORLD_WORKLOADS, answer_input(a, "namespace"), &at))) {
        if (!workloads_are_usable(o)) {
            ++*ret_unusable;
            continue;
        }
        if (!workloads_match(a, o))
            continue;
        *ret_mixed |= namespace && strcmp(namespace, kube_namespace(o)) != 0;
        namespace = kube_namespace(o);
        if (json_array_append_new(list, json_pack("{s:s}", "name", kube_name(o))) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static void workloads_put_targets(struct answer *a)
{
    size_t unusable;
    bool mixed;
    json_t *targets = workloads_targets(a, &unusable, &mixed);

    if (mixed) {
        json_decref(targets);
        answer_note(a, "The workloads are in several namespaces: targetWorkloads is there with `namespace`.");
    } else {
        answer_put_if_short(a, "targetWorkloads", targets, "ask with app or kind, or with a larger maxBytes");
    }
    if (unusable)
        answer_note(a,
                    "%zu ManifestWorkReplicaSets are not listed: they lack the label app, the label " ASKED
                    "-kind, or a placementRef.",
                    unusable);
}

static void workloads_run(void *arg, struct call *c)
{
    static const enum world_kind kinds[] = {WORLD_WORKLOADS, WORLD_DECISIONS};
    const struct world *w = assist_world(arg);
    json_auto_t *decisions = NULL;
    struct answer a;
    const json_t *o;
    size_t at = 0;

    if (!answer_begin(&a, c, w, kinds, ARRAY_SIZE(kinds)))
        return;
    decisions = decisions_index(w, answer_input(&a, "namespace"));
    workloads_put_targets(&a);
    while ((o = world_next(w, WORLD_WORKLOADS, answer_input(&a, "namespace"), &at)))
        if (workloads_are_usable(o) && workloads_match(&a, o) && listing_wants(&a.listing))
            listing_add(&a.listing, decisions ? workloads_item(&a, o, decisions) : NULL);
    answer_end(&a);
}

const struct operation workloads_list = {
    .name = "workloads_list",
    .method = "GET",
    .path = "/workloads",
    .title = "List workloads",
    .description =
        "Lists the workloads that can be placed: ManifestWorkReplicaSets with the labels app and "
        "resource-request-kind. Each has the amounts of resources that it asks for, and the clusters where "
        "it runs now. targetWorkloads is ready to be passed to optimize_optimize_post, and may be "
        "shortened to the workloads that the user means. An optimization is for one namespace.",
    /* clang-format off */
    .input = SCHEMA({"type": "object", "additionalProperties": false, "properties": {
        "namespace": {"type": "string", "description": "All without."},
        "app": {"type": "string", "description": "Value of the label app."},
        "kind": {"type": "string", "description": "Kind of resource asked for, such as gpu."},)
        LISTING_INPUT("Workloads"),
    .output = SCHEMA({"type": "object", "required": ["items", "total", "shown"], "properties": {
        "targetWorkloads": {"type": "array", "items": {"type": "object", "required": ["name"], "properties":
            {"name": {"type": "string"}}}},
        "items": {"type": "array", "items": {"type": "object", "required": ["namespace", "name", "app",
            "kind", "amounts", "runsOn", "runsOnTotal"], "properties": {"namespace": {"type": "string"},
            "name": {"type": "string"}, "app": {"type": "string"}, "kind": {"type": "string"}, "amounts":
            {"type": "object", "additionalProperties": {"type": "string"}}, "placement": {"type": "string",
            "description": "The Placement that decides where it runs."}, "runsOn": {"type": "array",
            "items": {"type": "string"}, "description": "Clusters, the first ones."}, "runsOnTotal":
            {"type": "integer"}}}},)
        LISTING_OUTPUT,
    /* clang-format on */
    .effect = OPERATION_READS,
    .is_tool = true,
    .run = workloads_run,
};
