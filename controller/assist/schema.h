/* Reads JSON under a JSON Schema (2020-12): what the schema refuses ends the reading, so that no tree is
 * ever built of it, and what the schema does not describe is skipped. A tree costs up to eighty times its
 * text ("{}," becomes an object of 250 bytes), and so it has a ceiling of its own.
 *
 * Known are type, properties, required, additionalProperties (false), items, minimum, maximum, minLength,
 * maxLength, minItems and maxItems. Any thread: schemas are only read. */
#pragma once

#include "controller/assist/api_error.h"
#include "exporter/base/str.h"

#include <jansson.h>

/* Reads a text that keeps the schema into *ret. `whole` is what the value itself is called: "body".
 * *ret_bytes, also on failure, is what the tree takes at most.
 * -EINVAL: *error says why: 400 for what is not JSON, else 422 and "clusters[1].name: must be a string".
 * -EFBIG: the tree would take more than max_bytes; *error is unset. */
MUST_USE int schema_read(json_t **ret, const json_t *schema, struct str text, const char *whole,
                         size_t max_bytes, size_t *ret_bytes, struct api_error *error);
