/* GET /placements/explain. */
#include "controller/assist/api/listing.h"
#include "controller/assist/api/operation.h"
#include "controller/assist/operations/answer.h"
#include "controller/assist/operations/decisions.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/operations/placement_match.h"
#include "controller/assist/operations/placement_rank.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/world.h"
#include "controller/kube/condition.h"
#include "controller/kube/json.h"
#include "controller/kube/time.h"

#include <errno.h>

enum { FEW_LEFT_OUT = 5 }; /* for assistants */

struct placed {
    const json_t *placement, *decisions; /* the clusters that it has selected */
    const json_t **matched;              /* clusters that it may select */
    size_t n_matched, n_unknown;         /* unknown: by a CEL expression */
    json_t *left_out;                    /* [{"cluster", "why"}]; NULL once out of memory */
    size_t n_left_out;
};

static bool placed_matches(const struct answer *a, const struct placed *p, const json_t *cluster,
                           bool is_selected, bool *ret_unknown, char why[PLACEMENT_WHY_BYTES])
{
    (void)strcpy(why, "it is being deleted");
    return placement_reaches(a->world, p->placement, cluster, why) &&
           placement_requires(p->placement, cluster, ret_unknown, why) &&
           placement_tolerates(p->placement, cluster, is_selected, world_now(a->world), why);
}

static int placed_match(struct placed *p, const struct answer *a)
{
    size_t max = answer_is_short(a) ? FEW_LEFT_OUT : SIZE_MAX, n = 0, at = 0;
    char why[PLACEMENT_WHY_BYTES];
    const json_t *cluster;

    while (world_next(a->world, WORLD_CLUSTERS, NULL, &at))
        n++;
    p->matched = calloc(n + 1, sizeof(*p->matched));
    if (!p->matched)
        return -ENOMEM;
    at = 0;
    while ((cluster = world_next(a->world, WORLD_CLUSTERS, NULL, &at))) {
        bool unknown = false;

        if (placed_matches(a, p, cluster, kube_list_has(p->decisions, kube_name(cluster)), &unknown, why)) {
            p->matched[p->n_matched++] = cluster;
            p->n_unknown += unknown;
        } else if (p->n_left_out++ < max &&
                   json_array_append_new(
                       p->left_out, json_pack("{s:s,s:s}", "cluster", kube_name(cluster), "why", why)) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static json_t *placed_prioritizers(const struct rank *r)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < r->n_prioritizers; i++) {
        const struct rank_prioritizer *p = &r->prioritizers[i];
        json_t *one = json_pack("{s:o,s:i}", "name",
                                p->built_in ? json_string(p->built_in)
                                            : json_sprintf("AddOn/%s/%s", p->resource, p->item),
                                "weight", (int)p->weight);

        if (json_array_append_new(list, one) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

/* One value for each prioritizer, in their order. */
static json_t *placed_values(const struct answer *a, const struct rank *r, const struct rank_cluster *c)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < r->n_prioritizers; i++) {
        const struct rank_prioritizer *p = &r->prioritizers[i];
        const struct world_score *s =
            p->built_in ? NULL : world_score(a->world, kube_name(c->cluster), p->resource);
        char until[KUBE_TIME_BYTES] = "";

        if (s && s->valid_until.ms)
            kube_time_format(s->valid_until, until);
        if (json_array_append_new(list, json_pack("{s:I,s:s*,s:s*}", "value", (json_int_t)c->values[i].value,
                                                  "countsAsZero", c->values[i].missing, "validUntil",
                                                  *until ? until : NULL)) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static size_t placed_wanted(const struct placed *p)
{
    int64_t n;

    return kube_int(p->placement, &n, "spec", "numberOfClusters", NULL) && n >= 0 ? (size_t)n : SIZE_MAX;
}

/* Whether the decisions are those that the order leads to. */
static bool placed_agrees(const struct placed *p, const struct rank *r)
{
    size_t wanted = size_min(placed_wanted(p), r->n_clusters);

    if (json_array_size(p->decisions) != wanted)
        return false;
    for (size_t i = 0; i < wanted; i++)
        if (!r->clusters[i].is_selected)
            return false;
    return true;
}

static void placed_put_notes(struct answer *a, const struct placed *p, const struct rank *r, bool agrees)
{
    const json_t *bad = kube_condition(kube_get(p->placement, "status", NULL), "PlacementMisconfigured");

    if (!agrees)
        answer_note(
            a,
            "The decisions are not those that the order leads to now: Placement looks again when an object "
            "changes, not when a score expires%s.",
            p->n_unknown ? ", and CEL expressions may leave clusters out" : "");
    if (p->n_unknown)
        answer_note(
            a,
            "%zu clusters depend on a CEL expression, which is not evaluated here: they count as selected "
            "by it.",
            p->n_unknown);
    if (kube_condition_is(bad, "True"))
        answer_note(a, "The Placement is misconfigured: %s", cstr(kube_str(bad, "message", NULL)));
    if (r->unknown_built_in)
        answer_note(a, "The built-in prioritizer %s is not known here and counts as 0.", r->unknown_built_in);
    if (r->n_left_out)
        answer_note(a, "%zu prioritizers are left out.", r->n_left_out);
    if (kube_map(p->placement, "spec", "spreadPolicy", NULL))
        answer_note(a, "spec.spreadPolicy is not taken into account.");
}

static void placed_put(struct answer *a, const struct placed *p, const struct rank *r)
{
    bool agrees = placed_agrees(p, r);
    size_t wanted = placed_wanted(p);

    answer_put(a, "namespace", json_string(kube_namespace(p->placement)));
    answer_put(a, "name", json_string(kube_name(p->placement)));
    if (wanted != SIZE_MAX)
        answer_put(a, "numberOfClusters", json_integer((json_int_t)wanted));
    answer_put(a, "agrees", json_boolean(agrees));
    answer_put(a, "prioritizers", placed_prioritizers(r));
    answer_put_if_short(a, "decisions",
                        p->decisions ? json_copy((json_t *)(uintptr_t)p->decisions) : json_array(),
                        "items say which clusters are selected");
    answer_put(a, "leftOut", json_incref(p->left_out));
    answer_put(a, "leftOutTotal", json_integer((json_int_t)p->n_left_out));
    placed_put_notes(a, p, r, agrees);
    for (size_t i = 0; i < r->n_clusters; i++) {
        const struct rank_cluster *c = &r->clusters[i];

        if (listing_wants(&a->listing))
            listing_add(&a->listing, json_pack("{s:s,s:b,s:I,s:o}", "cluster", kube_name(c->cluster),
                                               "selected", c->is_selected, "total", (json_int_t)c->total,
                                               "values", placed_values(a, r, c)));
    }
}

static int placed_explain(struct answer *a, struct placed *p)
{
    struct rank rank;
    int r;

    rank_init(&rank, p->placement);
    r = placed_match(p, a);
    if (r == 0)
        r = rank_clusters(&rank, a->world, p->placement, p->matched, p->n_matched, p->decisions);
    if (r == 0)
        placed_put(a, p, &rank);
    rank_done(&rank);
    free(p->matched);
    return r;
}

static void placed_run(void *arg, struct call *c)
{
    static const enum world_kind kinds[] = {WORLD_PLACEMENTS, WORLD_DECISIONS,    WORLD_CLUSTERS,
                                            WORLD_SETS,       WORLD_SET_BINDINGS, WORLD_SCORES};
    const struct world *w = assist_world(arg);
    const char *namespace = json_string_value(json_object_get(call_input(c), "namespace"));
    const char *name = json_string_value(json_object_get(call_input(c), "name"));
    json_auto_t *decisions = NULL, *left_out = NULL;
    struct placed p = {.placement = world_get(w, WORLD_PLACEMENTS, cstr(namespace), cstr(name))};
    struct answer a;

    if (!p.placement && world_knows_kind(w, WORLD_PLACEMENTS)) {
        call_fail(c, 404, json_pack("{s:s}", "field", "name"), "Placement %s/%s does not exist",
                  cstr(namespace), cstr(name));
        return;
    }
    if (!answer_begin(&a, c, w, kinds, ARRAY_SIZE(kinds)))
        return;
    decisions = decisions_index(w, namespace);
    p.decisions = decisions_of(decisions, namespace, name);
    p.left_out = left_out = json_array();
    if (!decisions || placed_explain(&a, &p) < 0)
        answer_put(&a, "decisions", NULL);
    answer_end(&a);
}

const struct operation placement_explain = {
    .name = "placement_explain",
    .method = "GET",
    .path = "/placements/explain",
    .title = "Explain a Placement",
    .description =
        "Says why a Placement selected its clusters: the order in which it prefers the clusters that "
        "match, by the weighted sum of its prioritizers, with the value of each (values are in the order "
        "of prioritizers) and why a score counts as 0; and the clusters that do not match, with the "
        "reason. The sums are those of now.",
    /* clang-format off */
    .input = SCHEMA({"type": "object", "additionalProperties": false, "required": ["namespace", "name"],
        "properties": {
        "namespace": {"type": "string", "minLength": 1},
        "name": {"type": "string", "minLength": 1},)
        LISTING_INPUT("Clusters"),
    .output = SCHEMA({"type": "object", "required": ["namespace", "name", "agrees", "prioritizers",
        "leftOut", "items", "total", "shown"], "properties": {
        "namespace": {"type": "string"},
        "name": {"type": "string"},
        "numberOfClusters": {"type": "integer"},
        "agrees": {"type": "boolean", "description": "Whether the decisions are the first of the order."},
        "prioritizers": {"type": "array", "items": {"type": "object", "properties": {"name": {"type":
            "string"}, "weight": {"type": "integer"}}}},
        "decisions": {"type": "array", "items": {"type": "string"}, "description":
            "The clusters selected."},
        "leftOut": {"type": "array", "description": "The first clusters that do not match.", "items":
            {"type": "object", "properties": {"cluster": {"type": "string"}, "why": {"type": "string"}}}},
        "leftOutTotal": {"type": "integer"},
        "items": {"type": "array", "description": "Clusters that match, the preferred first.", "items":
            {"type": "object", "required": ["cluster", "selected", "total", "values"], "properties":
            {"cluster": {"type": "string"}, "selected": {"type": "boolean"}, "total": {"type": "integer"},
            "values": {"type": "array", "items": {"type": "object", "required": ["value"], "properties":
            {"value": {"type": "integer"}, "countsAsZero": {"enum": ["missing", "expired"]}, "validUntil":
            {"type": "string"}}}}}}},)
        LISTING_OUTPUT,
    /* clang-format on */
    .effect = OPERATION_READS,
    .is_tool = true,
    .run = placed_run,
};
