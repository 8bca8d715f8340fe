/* The JSON of a status that is being made, member by member. Pure; loop thread. */
#pragma once

#include "controller/kube/json.h"

enum { STATUS_LINE_BYTES = 1023 };

void status_set_count(json_t *status, const char *key, size_t n);
/* One line, of at most STATUS_LINE_BYTES. */
void status_set_line(json_t *status, const char *key, const char *text);
/* Takes the reference; NULL: no member. */
void status_set_optional(json_t *status, const char *key, json_t *value);
/* Makes the status a merge patch: what the object's has and it lacks becomes null, at any depth. ours: the
 * members that may be absent or objects, NULL-terminated; those of others stay. */
json_t *status_patch(json_t *status, const json_t *object, const char *const *ours);
