/* Checks JSON against a JSON Schema (2020-12): the part of it that the operations' schemas are written in.
 *
 * type (also a list), enum, const, properties, required, additionalProperties (false or a schema), items,
 * minimum, maximum, minLength, maxLength, minItems, maxItems. Integers are written without a fraction. A
 * pattern is for readers of the schema: the operation itself checks names. Other keywords are not checked. */
#ifndef DS_ASSIST_API_SCHEMA_H
#define DS_ASSIST_API_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

struct schema_problem {
    char field[256]; /* "clusters[1].name"; "" for the whole value */
    char text[512];  /* "must be a string" */
};

/* Whether the value keeps the schema; if not, *ret is what is wrong first. */
bool schema_accepts(const json_t *schema, const json_t *value, struct schema_problem *ret);
/* The value of a query parameter: a number or a boolean if the schema asks for one and the text is one, else
 * a string. NULL when out of memory, or if it is not well-formed UTF-8. */
json_t *schema_read_text(const json_t *schema, const char *text);
/* Whether the schema's type is this one, or one of several. */
bool schema_has_type(const json_t *schema, const char *type);

#endif
