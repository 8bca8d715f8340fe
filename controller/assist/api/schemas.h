/* What operations take and answer: the files of controller/assist/schemas as texts. */
#ifndef DS_ASSIST_API_SCHEMAS_H
#define DS_ASSIST_API_SCHEMAS_H

extern const char schema_plan_request[], schema_plan_answer[], schema_apply_input[];
extern const char schema_reset_input[], schema_reset_output[];
extern const char schema_scores_get_input[], schema_scores_get_output[];
extern const char schema_policies_list_input[], schema_policies_list_output[];
extern const char schema_workloads_list_input[], schema_workloads_list_output[];
extern const char schema_scorers_list_input[], schema_scorers_list_output[];
extern const char schema_scorer_explain_input[], schema_scorer_explain_output[];

#endif
