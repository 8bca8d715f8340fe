/* The optimizer's HTTP server: its operations as REST requests, /mcp, /openapi.json, and the page of the last
 * plan. */
#ifndef DS_ASSIST_OPERATIONS_OPERATIONS_H
#define DS_ASSIST_OPERATIONS_OPERATIONS_H

#include "controller/assist/api/operation.h"
#include "controller/assist/state/assist.h"
#include "exporter/ui/site.h"

#include <stdbool.h>

struct assist_web;

/* Sets the role's part of *o. `a` may be freed before the server is stopped, once the loop has ended.
 * `allow_writes`: by assistants. On failure *ret_why (from malloc) says what is wrong. */
MUST_USE int assist_web_start(struct assist_web **ret, struct assist *a, struct site_options *o,
                              bool allow_writes, char **ret_why);
struct site *assist_web_site(const struct assist_web *w);
/* Takes NULL, returns NULL. */
struct assist_web *assist_web_stop(struct assist_web *w, int grace_ms);

/* ---- The operations that list and explain; `assist` is a struct assist ---- */

void scores_get(void *assist, struct call *c);
void policies_list(void *assist, struct call *c);
void workloads_list(void *assist, struct call *c);
void scorers_list(void *assist, struct call *c);
void scorer_explain(void *assist, struct call *c);

#endif
