/* What the optimizer can be asked for, beside plans; `assist` is a struct assist. */
#ifndef DS_ASSIST_OPERATIONS_OPERATIONS_H
#define DS_ASSIST_OPERATIONS_OPERATIONS_H

#include "controller/assist/api/operation.h"

void scores_get(void *assist, struct call *c);
void policies_list(void *assist, struct call *c);
void workloads_list(void *assist, struct call *c);
void scorers_list(void *assist, struct call *c);
void scorer_explain(void *assist, struct call *c);

#endif
