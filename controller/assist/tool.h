/* Operations as tools of the Model Context Protocol. */
#pragma once

#include <stdbool.h>

struct api;
struct api_interface;
struct api_operation;

/* The way by which tools are called. */
extern const struct api_interface tool_interface;

/* Sets op->tool_input and describes the tool in the API's list, if it is offered. */
void tool_build(struct api_operation *op);
/* NULL without one of that name; name may be NULL. */
const struct api_operation *tool_find(const struct api *a, const char *name);
/* Whether it could write, but may not: dryRun is forced. */
bool tool_only_plans(const struct api_operation *op);
