#include "controller/assist/api/schema.h"

#include "exporter/base/doc.h"
#include "exporter/base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAMES = 64 };

/* A value being checked, and where it is. */
struct checking {
    struct schema_problem *ret;
    size_t n; /* of ret->field */
};

static bool schema_check_value(struct checking *c, const json_t *schema, const json_t *value);

/* ---- Problems ---- */

static bool schema_fail(struct checking *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool schema_fail(struct checking *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(c->ret->text, sizeof(c->ret->text), fmt, ap);
    va_end(ap);
    return false;
}

/* Moves on to a part, or to an element if `name` is NULL; returns where it was. A path that is too long
 * ends early. */
static size_t schema_enter(struct checking *c, const char *name, size_t index)
{
    size_t was = c->n, room = sizeof(c->ret->field) - c->n;
    int n = name ? snprintf(c->ret->field + c->n, room, "%s%s", c->n ? "." : "", name)
                 : snprintf(c->ret->field + c->n, room, "[%zu]", index);

    c->n += size_min(n < 0 ? 0 : (size_t)n, room - 1);
    return was;
}

static void schema_leave(struct checking *c, size_t was)
{
    c->n = was;
    c->ret->field[was] = '\0';
}

/* ---- Types ---- */

static bool value_is(const json_t *value, const char *type)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return strcmp(type, "object") == 0;
    case JSON_ARRAY:
        return strcmp(type, "array") == 0;
    case JSON_STRING:
        return strcmp(type, "string") == 0;
    case JSON_INTEGER:
        return strcmp(type, "integer") == 0 || strcmp(type, "number") == 0;
    case JSON_REAL:
        return strcmp(type, "number") == 0;
    case JSON_NULL:
        return strcmp(type, "null") == 0;
    default:
        return strcmp(type, "boolean") == 0;
    }
}

/* The i-th type that a value may have; NULL: no more. */
static const char *schema_type(const json_t *schema, size_t i)
{
    const json_t *type = json_object_get(schema, "type");

    if (json_is_string(type))
        return i == 0 ? json_string_value(type) : NULL;
    return json_string_value(json_array_get(type, i));
}

bool schema_has_type(const json_t *schema, const char *type)
{
    for (size_t i = 0; schema_type(schema, i); i++)
        if (strcmp(schema_type(schema, i), type) == 0)
            return true;
    return false;
}

static bool schema_check_type(struct checking *c, const json_t *schema, const json_t *value)
{
    const char *one = schema_type(schema, 0), *other = schema_type(schema, 1);

    for (size_t i = 0; schema_type(schema, i); i++)
        if (value_is(value, schema_type(schema, i)))
            return true;
    return !one || schema_fail(c, "must be %s%s%s%s", strchr("aeiou", *one) ? "an " : "a ", one,
                               other ? " or " : "", cstr(other));
}

/* ---- Strings, numbers, choices ---- */

static bool schema_check_choice(struct checking *c, const json_t *schema, const json_t *value)
{
    const json_t *choices = json_object_get(schema, "enum"), *only = json_object_get(schema, "const");
    char text[256] = "";
    size_t n = 0;

    if (only && !json_equal(only, value))
        return schema_fail(c, "must be %s",
                           json_is_string(only) ? json_string_value(only) : "the one value allowed");
    if (!choices)
        return true;
    for (size_t i = 0; i < json_array_size(choices); i++) {
        const json_t *choice = json_array_get(choices, i);

        if (json_equal(choice, value))
            return true;
        if (json_is_string(choice) && n < sizeof(text))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "",
                                  json_string_value(choice));
    }
    return schema_fail(c, "must be one of %s", text);
}

/* The unit of what is counted; "" for the value itself. */
static bool schema_check_limits(struct checking *c, const json_t *schema, double value, const char *least,
                                const char *most, const char *unit)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);
    const char *verb = *unit ? "have" : "be";

    if (low && value < json_number_value(low))
        return schema_fail(c, "must %s at least %.17g%s", verb, json_number_value(low), unit);
    if (high && value > json_number_value(high))
        return schema_fail(c, "must %s at most %.17g%s", verb, json_number_value(high), unit);
    return true;
}

static size_t count_characters(const json_t *text)
{
    const char *s = json_string_value(text);
    size_t n = 0;

    for (size_t i = 0; i < json_string_length(text); i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

/* ---- Objects and lists ---- */

static bool schema_check_unknown(struct checking *c, const json_t *properties, const char *name)
{
    const char *known[MAX_NAMES + 1], *key, *nearest;
    size_t n = 0;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)properties, key, value) if (n < MAX_NAMES) known[n++] = key;
    known[n] = NULL;
    nearest = name_nearest(str_of(name), known);
    return nearest ? schema_fail(c, "unknown field; did you mean %s?", nearest)
                   : schema_fail(c, "unknown field");
}

static bool schema_check_member(struct checking *c, const json_t *schema, const char *name,
                                const json_t *value)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *own = json_object_get(properties, name);
    const json_t *other = json_object_get(schema, "additionalProperties");

    if (own || json_is_object(other))
        return schema_check_value(c, own ? own : other, value);
    return !json_is_false(other) || schema_check_unknown(c, properties, name);
}

static bool schema_check_object(struct checking *c, const json_t *schema, const json_t *value)
{
    const json_t *required = json_object_get(schema, "required");
    const char *name;
    json_t *part;

    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        size_t was = schema_enter(c, name, 0);

        if (!schema_check_member(c, schema, name, part))
            return false;
        schema_leave(c, was);
    }
    for (size_t i = 0; i < json_array_size(required); i++) {
        name = json_string_value(json_array_get(required, i));
        if (!json_object_get(value, name)) {
            (void)schema_enter(c, name, 0);
            return schema_fail(c, "missing field");
        }
    }
    return true;
}

static bool schema_check_array(struct checking *c, const json_t *schema, const json_t *value)
{
    const json_t *items = json_object_get(schema, "items");

    if (!schema_check_limits(c, schema, (double)json_array_size(value), "minItems", "maxItems", " elements"))
        return false;
    for (size_t i = 0; items && i < json_array_size(value); i++) {
        size_t was = schema_enter(c, NULL, i);

        if (!schema_check_value(c, items, json_array_get(value, i)))
            return false;
        schema_leave(c, was);
    }
    return true;
}

static bool schema_check_value(struct checking *c, const json_t *schema, const json_t *value)
{
    if (!schema_check_type(c, schema, value) || !schema_check_choice(c, schema, value))
        return false;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return schema_check_object(c, schema, value);
    case JSON_ARRAY:
        return schema_check_array(c, schema, value);
    case JSON_STRING:
        if (strlen(json_string_value(value)) != json_string_length(value))
            return schema_fail(c, "must not contain a NUL");
        return schema_check_limits(c, schema, (double)count_characters(value), "minLength", "maxLength",
                                   " characters");
    case JSON_INTEGER:
    case JSON_REAL:
        return schema_check_limits(c, schema, json_number_value(value), "minimum", "maximum", "");
    default:
        return true;
    }
}

bool schema_accepts(const json_t *schema, const json_t *value, struct schema_problem *ret)
{
    struct checking c = {.ret = ret};

    *ret = (struct schema_problem){0};
    return schema_check_value(&c, schema, value);
}

/* ---- Query parameters ---- */

json_t *schema_read_text(const json_t *schema, const char *text)
{
    char *end;
    long long integer;
    double real;

    errno = 0;
    integer = strtoll(text, &end, 10);
    if (schema_has_type(schema, "integer") && !*end && end > text && errno == 0 && *text != ' ')
        return json_integer(integer);
    errno = 0;
    real = strtod(text, &end);
    if (schema_has_type(schema, "number") && !*end && end > text && errno == 0 && real - real == 0)
        return json_real(real);
    if (schema_has_type(schema, "boolean") && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        return json_boolean(*text == 't');
    return json_string(text);
}
