/* Checks JSON against a JSON Schema (2020-12): the part of it that the schemas of operations' arguments are
 * written in.
 *
 * type, properties, required, additionalProperties (false), items, minimum, maximum, minLength, maxLength,
 * minItems, maxItems. Integers are written without a fraction. Other keywords are not checked. */
#ifndef DS_ASSIST_API_SCHEMA_H
#define DS_ASSIST_API_SCHEMA_H

#include "controller/assist/api/operation.h"

/* Whether the value keeps the schema; otherwise *ret is the first objection: "clusters[1].name: must be a
 * string". `whole` is what the value itself is called: "body". */
bool schema_accepts(const json_t *schema, const json_t *value, const char *whole, struct objection *ret);

#endif
