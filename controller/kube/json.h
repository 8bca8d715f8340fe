/* Reading Kubernetes documents: jansson values by path, as kube_int(o, &n, "status", "observedGeneration",
 * NULL). Absent members, nulls and values of another type all read as absent. */
#pragma once

#include "exporter/base/buf.h"

#include <jansson.h>

struct kube_cut;

/* The member at the end of a NULL-terminated path of names, borrowed; NULL when any is missing. */
json_t *kube_get(const json_t *o, ...) __attribute__((sentinel));
/* A string without a NUL inside; NULL when there is none. */
#define kube_str(...) kube_as_str(kube_get(__VA_ARGS__))
const char *kube_as_str(const json_t *v);
/* A string of any bytes; absent: an empty slice with p = NULL. */
#define kube_text(...) kube_as_text(kube_get(__VA_ARGS__))
struct str kube_as_text(const json_t *v);
/* True, and sets *ret, for an integer; 12.0 is one. */
#define kube_int(o, ret, ...) kube_as_int(kube_get(o, __VA_ARGS__), ret)
bool kube_as_int(const json_t *v, int64_t *ret);
/* Whether it is true. */
#define kube_bool(...) (kube_get(__VA_ARGS__) == json_true())
/* An array, or an object; NULL when there is none. For json_array_foreach() and json_object_foreach(). */
#define kube_list(...) kube_as(JSON_ARRAY, kube_get(__VA_ARGS__))
#define kube_map(...)  kube_as(JSON_OBJECT, kube_get(__VA_ARGS__))
json_t *kube_as(json_type type, json_t *v);

/* Whether the string is an element of the array. */
bool kube_list_has(const json_t *list, const char *text);

/* metadata.name, .namespace ("" without one) and so on; "" when absent. */
#define kube_name(o)      cstr(kube_str(o, "metadata", "name", NULL))
#define kube_namespace(o) cstr(kube_str(o, "metadata", "namespace", NULL))
#define kube_uid(o)       cstr(kube_str(o, "metadata", "uid", NULL))
#define kube_version(o)   cstr(kube_str(o, "metadata", "resourceVersion", NULL))
/* metadata.labels[key], metadata.annotations[key]; NULL when absent. */
#define kube_label(o, key)      kube_str(o, "metadata", "labels", key, NULL)
#define kube_annotation(o, key) kube_str(o, "metadata", "annotations", key, NULL)

/* ---- Making documents, member by member, in the order in which they are written ---- */

/* Sets a member, whose value is taken. NULL leaves it out. */
void kube_set(json_t *object, const char *name, json_t *value);
void kube_set_str(json_t *object, const char *name, const char *text);
void kube_set_int(json_t *object, const char *name, int64_t n);
void kube_set_bool(json_t *object, const char *name, bool is_true);
/* Sets a member to a new, empty object; returns it, borrowed. */
json_t *kube_set_object(json_t *object, const char *name);
/* Appends a value, which is taken. */
void kube_append(json_t *list, json_t *value);

/* ---- Documents ---- */

/* Parses a document of at most 2048 levels. -EINVAL with a sentence in `why` (may be NULL). The second cuts
 * it before, unless `cut` is NULL. */
MUST_USE int kube_json_parse(json_t **ret, struct str text, char why[256]);
MUST_USE int kube_json_parse_cut(json_t **ret, struct str text, struct kube_cut *cut, char why[256]);
/* A new reference; NULL for what is no JSON. */
json_t *kube_json_load(struct str text);
/* Appends o as compact JSON, its strings as buf_put_json_visible() writes them. */
void kube_json_print(const json_t *o, struct buf *into);
/* One line of at most `max` bytes, as text_line() makes it. A new reference. */
json_t *kube_line(const char *text, size_t max);
/* Wipes the string members of an object: a Secret's data, before its memory is given back. Takes NULL. */
void kube_wipe_strings(json_t *object);
