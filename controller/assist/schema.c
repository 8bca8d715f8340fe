/* Reads JSON under a schema. Owns the tree until it is handed over; a refused text leaves none. Any
 * thread. */
#include "controller/assist/schema.h"

#include "controller/kube/json.h"
#include "exporter/base/alloc.h"
#include "exporter/base/doc.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <string.h>

/* What jansson allocates for each value, with the allocator's own share: upper estimates. A list and a
 * table of members double as they grow, so that half of them may be empty. */
enum {
    OBJECT_BYTES = 256,
    MEMBER_BYTES = 112, /* and its name */
    ARRAY_BYTES = 160,
    ELEMENT_BYTES = 16,
    STRING_BYTES = 80, /* and its text */
    NUMBER_BYTES = 48,
};

enum {
    MAX_KNOWN_NAMES = 64,
    NAME_BYTES = 192, /* of a member's name: longer ones are cut where they are unknown */
};

struct schema_reader {
    struct jr j;
    struct api_error *error;
    size_t bytes, max_bytes; /* of the tree */
};

static json_t *schema_read_value(struct schema_reader *r, const json_t *schema);

static bool schema_charge(struct schema_reader *r, size_t bytes)
{
    r->bytes += bytes;
    return r->bytes <= r->max_bytes;
}

/* ---- Limits ---- */

/* Puts a member's name, or an element's index if that is NULL, before the path to what is wrong. */
static void schema_fail_within(struct api_error *error, const char *name, size_t index)
{
    CLEANUP(cleanup_free) char *inner = xstrdup(error->field);
    const char *dot = *inner && *inner != '[' ? "." : "";

    if (name)
        api_error_at(error, "%s%s%s", name, dot, inner);
    else
        api_error_at(error, "[%zu]%s%s", index, dot, inner);
}

/* The unit of what is counted; "" for the value itself. */
static int schema_check_limits(const json_t *schema, double value, const char *least, const char *most,
                               const char *unit, struct api_error *error)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);
    const char *verb = *unit ? "have" : "be";

    if (low && value < json_number_value(low))
        return api_error_set(error, 422, "must %s at least %.17g%s", verb, json_number_value(low), unit);
    if (high && value > json_number_value(high))
        return api_error_set(error, 422, "must %s at most %.17g%s", verb, json_number_value(high), unit);
    return 0;
}

static bool number_is_integer(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (strchr(".eE", text.p[i]))
            return false;
    return true;
}

/* The text of a number begins at j.p. */
static struct str schema_peek_number(const struct schema_reader *r)
{
    struct jr ahead = r->j;
    struct str text = {0};

    (void)jr_number(&ahead, &text);
    return text;
}

static bool schema_type_is(const struct schema_reader *r, enum jr_type found, const char *type)
{
    switch (found) {
    case JR_OBJECT:
        return strcmp(type, "object") == 0;
    case JR_ARRAY:
        return strcmp(type, "array") == 0;
    case JR_STRING:
        return strcmp(type, "string") == 0;
    case JR_TRUE:
    case JR_FALSE:
        return strcmp(type, "boolean") == 0;
    case JR_NUMBER:
        return strcmp(type, "number") == 0 ||
               (strcmp(type, "integer") == 0 && number_is_integer(schema_peek_number(r)));
    default:
        return false;
    }
}

/* ---- Strings and numbers ---- */

/* Counts the characters of a raw string; false if one of them is a NUL. */
static bool string_count(struct str raw, size_t *ret)
{
    bool has_nul = false;
    size_t n = 0;

    for (size_t i = 0; i < raw.n; n++) {
        uint32_t c = (unsigned char)raw.p[i];

        if (c == '\\') {
            i += jr_escape((struct str){raw.p + i, raw.n - i}, &c);
        } else {
            do
                i++;
            while (i < raw.n && ((unsigned char)raw.p[i] & 0xc0) == 0x80);
        }
        has_nul |= c == 0;
    }
    *ret = n;
    return !has_nul;
}

static json_t *schema_read_string(struct schema_reader *r, const json_t *schema)
{
    CLEANUP(cleanup_free) char *plain = NULL;
    struct str raw;
    size_t characters;

    if (!jr_string(&r->j, &raw))
        return NULL;
    if (!string_count(raw, &characters)) {
        (void)api_error_set(r->error, 422, "must not contain a NUL");
        return NULL;
    }
    if (schema_check_limits(schema, (double)characters, "minLength", "maxLength", " characters", r->error) <
            0 ||
        !schema_charge(r, STRING_BYTES + raw.n))
        return NULL;
    if (raw.n == 0 || !memchr(raw.p, '\\', raw.n))
        return json_stringn_nocheck(cstr(raw.p), raw.n);
    plain = xmalloc(raw.n * 3);
    return json_stringn_nocheck(plain, jr_unescape(raw, plain));
}

static json_t *schema_read_number(struct schema_reader *r, const json_t *schema)
{
    json_auto_t *number = NULL;
    struct str text;

    if (!jr_number(&r->j, &text) || !schema_charge(r, NUMBER_BYTES))
        return NULL;
    number = json_loadb(text.p, text.n, JSON_DECODE_ANY, NULL);
    if (!number) /* its grammar has been checked */
        (void)api_error_set(r->error, 422, "is out of range");
    else if (schema_check_limits(schema, json_number_value(number), "minimum", "maximum", "", r->error) == 0)
        return TAKE_PTR(number);
    return NULL;
}

static json_t *schema_read_word(struct schema_reader *r, enum jr_type type)
{
    if (!jr_skip(&r->j, NULL))
        return NULL;
    if (type == JR_NULL)
        return json_null();
    return json_boolean(type == JR_TRUE);
}

/* ---- Objects ---- */

static void schema_fail_unknown(const json_t *properties, const char *name, struct api_error *error)
{
    const char *known[MAX_KNOWN_NAMES + 1] = {NULL}, *key, *nearest;
    size_t n = 0;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        if (n < MAX_KNOWN_NAMES)
            known[n++] = key;
    }
    nearest = name_nearest(str_of(name), known);
    if (nearest)
        (void)api_error_set(error, 422, "unknown field; did you mean %s?", nearest);
    else
        (void)api_error_set(error, 422, "unknown field");
    schema_fail_within(error, name, 0);
}

/* Unescapes a member's name, cut to what is shown of one. False if it is none that a schema can have: it
 * is longer, or has a NUL. */
static bool member_name(struct str raw, char name[NAME_BYTES])
{
    CLEANUP(cleanup_free) char *plain = NULL;
    struct str whole = raw, cut;

    if (raw.n && memchr(raw.p, '\\', raw.n)) {
        plain = xmalloc(raw.n * 3);
        whole = (struct str){plain, jr_unescape(raw, plain)};
    }
    cut = utf8_cut(whole, NAME_BYTES - 1);
    memcpy(name, cstr(cut.p), cut.n);
    name[cut.n] = '\0';
    return strlen(name) == whole.n;
}

/* Reads the next member's value, if it is described, into the object. */
static int schema_read_member(struct schema_reader *r, const json_t *schema, struct str raw, json_t *into)
{
    const json_t *properties = json_object_get(schema, "properties"), *property = NULL;
    char name[NAME_BYTES];
    json_t *value;

    if (member_name(raw, name))
        property = json_object_get(properties, name);
    if (!property && json_is_false(json_object_get(schema, "additionalProperties"))) {
        schema_fail_unknown(properties, name, r->error);
        return -EINVAL;
    }
    if (!property)
        return jr_skip(&r->j, NULL) ? 0 : -EINVAL;
    value = schema_read_value(r, property);
    if (!value) {
        schema_fail_within(r->error, name, 0);
        return -EINVAL;
    }
    (void)json_object_set_new_nocheck(into, name, value);
    return schema_charge(r, MEMBER_BYTES + raw.n) ? 0 : -EFBIG;
}

static int schema_check_required(const json_t *schema, const json_t *object, struct api_error *error)
{
    const json_t *required = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));

        if (json_object_get(object, name))
            continue;
        (void)api_error_set(error, 422, "missing field");
        schema_fail_within(error, name, 0);
        return -EINVAL;
    }
    return 0;
}

static json_t *schema_read_object(struct schema_reader *r, const json_t *schema)
{
    json_auto_t *object = json_object();
    struct str raw;

    if (!schema_charge(r, OBJECT_BYTES))
        return NULL;
    (void)jr_object(&r->j);
    while (jr_member(&r->j, &raw))
        if (schema_read_member(r, schema, raw, object) < 0)
            return NULL;
    if (r->j.error || schema_check_required(schema, object, r->error) < 0)
        return NULL;
    return TAKE_PTR(object);
}

/* ---- Arrays ---- */

static int schema_read_element(struct schema_reader *r, const json_t *items, json_t *into)
{
    json_t *value;

    if (!items)
        return jr_skip(&r->j, NULL) ? 0 : -EINVAL;
    value = schema_read_value(r, items);
    if (!value) {
        schema_fail_within(r->error, NULL, json_array_size(into));
        return -EINVAL;
    }
    (void)json_array_append_new(into, value);
    return schema_charge(r, ELEMENT_BYTES) ? 0 : -EFBIG;
}

static json_t *schema_read_array(struct schema_reader *r, const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items"), *most = json_object_get(schema, "maxItems");
    json_auto_t *array = json_array();
    size_t n = 0;

    if (!schema_charge(r, ARRAY_BYTES))
        return NULL;
    (void)jr_array(&r->j);
    while (jr_item(&r->j)) {
        n++;
        if (most && (double)n > json_number_value(most))
            break;
        if (schema_read_element(r, items, array) < 0)
            return NULL;
    }
    if (r->j.error ||
        schema_check_limits(schema, (double)n, "minItems", "maxItems", " elements", r->error) < 0)
        return NULL;
    return TAKE_PTR(array);
}

/* ---- Values ---- */

/* NULL: j.error, the error, or more bytes than allowed. The depth is that of the schema. */
static json_t *schema_read_value(struct schema_reader *r, const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    enum jr_type found = jr_peek(&r->j);

    if (found != JR_NONE && type && !schema_type_is(r, found, type)) {
        (void)api_error_set(r->error, 422, "must be %s%s", strchr("aeiou", *type) ? "an " : "a ", type);
        return NULL;
    }
    switch (found) {
    case JR_OBJECT:
        return schema_read_object(r, schema);
    case JR_ARRAY:
        return schema_read_array(r, schema);
    case JR_STRING:
        return schema_read_string(r, schema);
    case JR_NUMBER:
        return schema_read_number(r, schema);
    case JR_TRUE:
    case JR_FALSE:
    case JR_NULL:
        return schema_read_word(r, found);
    default:
        return NULL;
    }
}

static int schema_fail_json(const struct schema_reader *r, struct str text)
{
    unsigned line, column;

    jr_position(text, r->j.error_at, &line, &column);
    *r->error = (struct api_error){0};
    return api_error_set(r->error, 400, "not JSON at line %u, column %u", line, column);
}

int schema_read(json_t **ret, const json_t *schema, struct str text, const char *whole, size_t max_bytes,
                size_t *ret_bytes, struct api_error *error)
{
    struct schema_reader r = {.error = error, .max_bytes = max_bytes};
    json_auto_t *value = NULL;

    *error = (struct api_error){0};
    jr_init(&r.j, text, JR_STRICT);
    value = schema_read_value(&r, schema);
    *ret_bytes = r.bytes;
    if (r.j.error || (value && !jr_end(&r.j)))
        return schema_fail_json(&r, text);
    if (error->status)
        return api_error_set(error, error->status, "%s: %s", *error->field ? error->field : whole,
                             error->detail);
    if (r.bytes > max_bytes) {
        *error = (struct api_error){0};
        return -EFBIG;
    }
    *ret = TAKE_PTR(value);
    return 0;
}
