/* Reads members of documents, parses and prints them. Owns nothing. Any thread that owns the document: on
 * the loop, and on the optimizer's workers. No error quotes a document, which may have secrets. */
#include "controller/kube/json.h"

#include "controller/kube/cut.h"
#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

json_t *kube_get(const json_t *o, ...)
{
    /* jansson's getters of a member do not take const, nor do they change anything. */
    json_t *at = (json_t *)(uintptr_t)o;
    const char *name;
    va_list names;

    va_start(names, o);
    while ((name = va_arg(names, const char *)))
        at = json_object_get(at, name);
    va_end(names);
    return json_is_null(at) ? NULL : at;
}

const char *kube_as_str(const json_t *v)
{
    const char *s = json_string_value(v);

    return s && strlen(s) == json_string_length(v) ? s : NULL;
}

struct str kube_as_text(const json_t *v)
{
    return (struct str){json_string_value(v), json_string_length(v)};
}

json_t *kube_as(json_type type, json_t *v)
{
    return v && json_typeof(v) == type ? v : NULL;
}

bool kube_as_int(const json_t *v, int64_t *ret)
{
    double d = json_real_value(v);

    if (json_is_integer(v))
        *ret = json_integer_value(v);
    else if (json_is_real(v) && d == trunc(d) && fabs(d) <= 9007199254740992.0)
        *ret = (int64_t)d;
    else
        return false;
    return true;
}

bool kube_list_has(const json_t *list, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (strcmp(cstr(json_string_value(one)), text) == 0)
            return true;
    }
    return false;
}

/* ---- Making documents ---- */

void kube_set(json_t *object, const char *name, json_t *value)
{
    if (value)
        (void)json_object_set_new(object, name, value);
}

void kube_set_str(json_t *object, const char *name, const char *text)
{
    if (text)
        kube_set(object, name, json_string(text));
}

void kube_set_int(json_t *object, const char *name, int64_t n)
{
    kube_set(object, name, json_integer(n));
}

void kube_set_bool(json_t *object, const char *name, bool is_true)
{
    kube_set(object, name, json_boolean(is_true));
}

json_t *kube_set_object(json_t *object, const char *name)
{
    json_t *value = json_object();

    kube_set(object, name, value);
    return value;
}

void kube_append(json_t *list, json_t *value)
{
    (void)json_array_append_new(list, value);
}

/* ---- Documents ---- */

int kube_json_parse(json_t **ret, struct str text, char why[256])
{
    json_error_t e;
    /* A NUL in one object's string must not make a whole list unreadable. */
    json_t *o = json_loadb(cstr(text.p), text.n, JSON_ALLOW_NUL, &e);

    if (o)
        *ret = o;
    else if (why) /* jansson's message quotes the document, which may contain secrets */
        (void)snprintf(why, 256, "not JSON at line %d, column %d", e.line, e.column);
    return o ? 0 : -EINVAL;
}

json_t *kube_json_load(struct str text)
{
    json_t *o = NULL;

    return kube_json_parse(&o, text, NULL) == 0 ? o : NULL;
}

int kube_json_parse_cut(json_t **ret, struct str text, struct kube_cut *cut, char why[256])
{
    BUF_AUTO(less, SIZE_MAX);
    int r = cut ? kube_cut(cut, text, &less) : 0;

    return r < 0 ? r : kube_json_parse(ret, cut ? buf_str(&less) : text, why);
}

void kube_json_print(const json_t *o, struct buf *into)
{
    CLEANUP(cleanup_free) char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);

    buf_put_visible(into, str_of(text));
}

json_t *kube_line(const char *s, size_t max)
{
    CLEANUP(cleanup_free) char *line = xmalloc(max + 1);

    text_line(line, max + 1, str_of(s));
    return json_string(line);
}

void kube_wipe_strings(json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) if (json_is_string(value))
        explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
}
