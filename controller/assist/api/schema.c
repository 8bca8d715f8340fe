#include "controller/assist/api/operation.h"

#include "exporter/base/doc.h"
#include "exporter/base/str.h"

#include <errno.h>
#include <string.h>

enum { MAX_NAMES = 64 };

static int schema_check(const json_t *schema, const json_t *value, struct objection *ob);

/* Puts a member's name, or an element's index if that is NULL, before the path to what is wrong. */
static int schema_fail_within(struct objection *ob, const char *name, size_t index)
{
    CLEANUP(cleanup_free) char *inner = xstrdup(ob->field);
    const char *dot = *inner && *inner != '[' ? "." : "";

    if (name)
        objection_at(ob, "%s%s%s", name, dot, inner);
    else
        objection_at(ob, "[%zu]%s%s", index, dot, inner);
    return -EINVAL;
}

static bool value_is(const json_t *value, const char *type)
{
    static const char *const types[] = {
        [JSON_OBJECT] = "object",   [JSON_ARRAY] = "array", [JSON_STRING] = "string",
        [JSON_INTEGER] = "integer", [JSON_REAL] = "number", [JSON_TRUE] = "boolean",
        [JSON_FALSE] = "boolean",   [JSON_NULL] = "null",
    };

    return strcmp(types[json_typeof(value)], type) == 0 ||
           (json_is_integer(value) && strcmp(type, "number") == 0);
}

/* The unit of what is counted; "" for the value itself. */
static int schema_check_limits(const json_t *schema, double value, const char *least, const char *most,
                               const char *unit, struct objection *ob)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);
    const char *verb = *unit ? "have" : "be";

    if (low && value < json_number_value(low))
        return objection_set(ob, 422, "must %s at least %.17g%s", verb, json_number_value(low), unit);
    if (high && value > json_number_value(high))
        return objection_set(ob, 422, "must %s at most %.17g%s", verb, json_number_value(high), unit);
    return 0;
}

static int schema_check_string(const json_t *schema, const json_t *value, struct objection *ob)
{
    const char *s = json_string_value(value);
    size_t n = json_string_length(value), characters = 0;

    if (strlen(s) != n)
        return objection_set(ob, 422, "must not contain a NUL");
    for (size_t i = 0; i < n; i++)
        characters += ((unsigned char)s[i] & 0xc0) != 0x80;
    return schema_check_limits(schema, (double)characters, "minLength", "maxLength", " characters", ob);
}

static int schema_fail_unknown(const json_t *properties, const char *name, struct objection *ob)
{
    const char *known[MAX_NAMES + 1] = {NULL}, *key, *nearest;
    size_t n = 0;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)properties, key, value) if (n < MAX_NAMES) known[n++] = key;
    nearest = name_nearest(str_of(name), known);
    return objection_set(ob, 422, "unknown field%s%s%s", nearest ? "; did you mean " : "", cstr(nearest),
                         nearest ? "?" : "");
}

static int schema_check_object(const json_t *schema, const json_t *value, struct objection *ob)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required"), *own;
    bool is_closed = json_is_false(json_object_get(schema, "additionalProperties"));
    const char *name;
    json_t *part;

    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        own = json_object_get(properties, name);
        if (own ? schema_check(own, part, ob) < 0
                : is_closed && schema_fail_unknown(properties, name, ob) < 0)
            return schema_fail_within(ob, name, 0);
    }
    for (size_t i = 0; i < json_array_size(required); i++) {
        name = json_string_value(json_array_get(required, i));
        if (!json_object_get(value, name)) {
            (void)objection_set(ob, 422, "missing field");
            return schema_fail_within(ob, name, 0);
        }
    }
    return 0;
}

static int schema_check_array(const json_t *schema, const json_t *value, struct objection *ob)
{
    const json_t *items = json_object_get(schema, "items");

    if (schema_check_limits(schema, (double)json_array_size(value), "minItems", "maxItems", " elements", ob) <
        0)
        return -EINVAL;
    for (size_t i = 0; items && i < json_array_size(value); i++)
        if (schema_check(items, json_array_get(value, i), ob) < 0)
            return schema_fail_within(ob, NULL, i);
    return 0;
}

static int schema_check(const json_t *schema, const json_t *value, struct objection *ob)
{
    const char *type = json_string_value(json_object_get(schema, "type"));

    if (type && !value_is(value, type))
        return objection_set(ob, 422, "must be %s%s", strchr("aeiou", *type) ? "an " : "a ", type);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return schema_check_object(schema, value, ob);
    case JSON_ARRAY:
        return schema_check_array(schema, value, ob);
    case JSON_STRING:
        return schema_check_string(schema, value, ob);
    case JSON_INTEGER:
    case JSON_REAL:
        return schema_check_limits(schema, json_number_value(value), "minimum", "maximum", "", ob);
    default:
        return 0;
    }
}

bool schema_accepts(const json_t *schema, const json_t *value, const char *whole, struct objection *ret)
{
    struct objection ob = {0};

    if (schema_check(schema, value, &ob) == 0)
        return true;
    *ret = (struct objection){0};
    objection_at(ret, "%s", ob.field);
    (void)objection_set(ret, 422, "%s: %s", *ob.field ? ob.field : whole, ob.detail);
    return false;
}
