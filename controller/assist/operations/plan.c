/* POST /optimize, /plan, /apply and /reset; and the table of all operations. */
#include "controller/assist/api/operation.h"
#include "controller/assist/api/schemas.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/rules/answer.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/reader.h"
#include "controller/kube/json.h"

static void call_end(void *arg, const struct outcome *o)
{
    struct call *c = arg;

    if (o->status != 200)
        call_fail(c, o->status, json_incref(o->body), "%s", o->detail);
    else
        call_done(c, answer_cut(o->body, c->max_bytes));
}

static void run_optimize(void *arg, struct call *c)
{
    assist_plan(arg, c->input, false, call_end, c);
}

static void run_plan(void *arg, struct call *c)
{
    assist_plan(arg, c->input, true, call_end, c);
}

static void run_apply(void *arg, struct call *c)
{
    assist_apply(arg, cstr(kube_str(c->input, "planHash", NULL)), call_end, c);
}

static void run_reset(void *arg, struct call *c)
{
    const char *namespace = kube_str(c->input, "namespace", NULL);

    assist_reset(arg, namespace ? namespace : "default", call_end, c);
}

const struct operation optimize_post = {
    .name = "optimize_optimize_post",
    .method = "POST",
    .path = "/optimize",
    .title = "Optimize the placement of workloads",
    .description =
        "Chooses a policy for each cluster and a cluster for each workload so that the sum of scores is as "
        "high as possible and every capacity holds, and makes the Placements and PlacementBindings that "
        "bring it about; those of an earlier run are replaced. With dryRun it only answers. Choose the "
        "score by its description (get_addonplacementscores_addonplacementscores_get), clusters and "
        "policies from policies_list, workloads from workloads_list. To look before anything is written, "
        "use plan, then apply.",
    .input = schema_plan_request,
    .output = schema_plan_answer,
    .effect = OPERATION_DESTROYS,
    .is_tool = true,
    .has_dry_run = true,
    .run = run_optimize,
};

const struct operation plan_post = {
    .name = "plan",
    .method = "POST",
    .path = "/plan",
    .title = "Plan placements, write nothing",
    .description =
        "Does what optimize_optimize_post does, but writes nothing: says which workload would go to which "
        "cluster under which policy, what would be left out and why, and which running workloads would "
        "move. Its planHash is what apply takes. Choose the score by its description "
        "(get_addonplacementscores_addonplacementscores_get), clusters and policies from policies_list, "
        "workloads from workloads_list.",
    .input = schema_plan_request,
    .output = schema_plan_answer,
    .effect = OPERATION_READS,
    .is_tool = true,
    .run = run_plan,
};

const struct operation apply_post = {
    .name = "apply",
    .method = "POST",
    .path = "/apply",
    .title = "Apply a plan by its hash",
    .description =
        "Makes the Placements and PlacementBindings of a plan; those of an earlier run are replaced. "
        "Refused with a list of what has changed if the labels, scores or placements that the plan was "
        "made from are no longer the same: make a new plan then. Plans are kept for 15 minutes.",
    .input = schema_apply_input,
    .output = schema_plan_answer,
    .effect = OPERATION_DESTROYS,
    .is_tool = true,
    .run = run_apply,
};

const struct operation reset_post = {
    .name = "reset_reset_post",
    .method = "POST",
    .path = "/reset",
    .title = "Delete what plans made",
    .description =
        "Deletes the PlacementBindings and Placements that plans made in a namespace. Policies are "
        "unbound, and workloads are removed from their clusters.",
    .input = schema_reset_input,
    .output = schema_reset_output,
    .effect = OPERATION_DESTROYS,
    .is_tool = true,
    .run = run_reset,
};

const struct operation *const assist_operations[] = {
    &scores_get, &policies_list, &workloads_list, &scorers_list, &scorer_explain,
    &plan_post,  &apply_post,    &optimize_post,  &reset_post,
};
const size_t n_assist_operations = ARRAY_SIZE(assist_operations);
