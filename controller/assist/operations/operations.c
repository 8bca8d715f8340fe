#include "controller/assist/operations/operations.h"

const struct operation *const assist_operations[] = {
    &scores_get,        &policies_list, &workloads_list, &scorers_list,  &scorer_explain,
    &placement_explain, &plan_post,     &apply_post,     &optimize_post, &reset_post,
};
const size_t n_assist_operations = ARRAY_SIZE(assist_operations);
