/* Reading Kubernetes documents: jansson values by path, as kube_int(o, &n, "status", "observedGeneration",
 * NULL). Absent members, nulls and values of another type all read as absent. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <jansson.h>

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

/* ---- Documents ---- */

enum { KUBE_CUT_MIN_BYTES = 256 };

/* Long strings to replace by their hashes before a document is parsed: jansson is slow to read them. */
struct kube_cut {
    const char *name; /* the member's, of letters only */
    uint64_t (*hash)(struct str text);
    /* Gets each new text, unescaped, and its hash, but none that repeats the last one. May be NULL */
    void (*learn)(void *arg, uint64_t hash, struct str text);
    void *arg;
    /* Private: the last one, raw and with its closing quote. Most objects of a fleet contain the same one,
     * and to compare is much cheaper than to read. */
    struct buf last;
    uint64_t last_hash;
};

/* Appends the JSON text with each string of more than KUBE_CUT_MIN_BYTES in a member of that name replaced by
 * "cut:" and the hash of the unescaped string, in 16 digits. Only compact text, as API servers write it, is
 * cut; invalid JSON stays invalid. -EFBIG. */
MUST_USE int kube_cut(struct kube_cut *cut, struct str text, struct buf *into);
/* Reads the hash from such a replacement; false for other text. Only its maker can make one. */
bool kube_cut_read(struct str text, uint64_t *ret);

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

/* ---- Times, in UTC: metav1.Time in whole seconds, metav1.MicroTime with microseconds ---- */

enum { KUBE_TIME_BYTES = 32 };

/* "2026-11-21T06:23:01Z", or "2026-11-21T06:23:01.042000Z" */
void kube_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
void kube_micro_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
/* Reads either form to whole seconds; 0 for NULL and for anything else. */
unix_ms kube_time_parse(const char *text);

/* ---- Conditions: metav1.Condition ---- */

struct kube_condition {
    const char *type, *status, *reason, *message; /* status: "True", "False" or "Unknown" */
    int64_t generation;                           /* observedGeneration; 0 leaves it out */
};

/* The condition of that type in a status, or in any object with a list `conditions`; NULL without. */
json_t *kube_condition(const json_t *status, const char *type);
/* Whether the condition has that status ("True", ...). NULL has none. */
bool kube_condition_is(const json_t *condition, const char *status);
/* The message, or else the reason, as one line; empty without either. */
void kube_condition_why(const json_t *condition, char *ret, size_t size);
/* The lastTransitionTime that c keeps from its last one in `status`; NULL if its own status has changed. */
const char *kube_condition_since(const json_t *status, const struct kube_condition *c);
/* The condition as JSON; since NULL: now. A new reference. */
json_t *kube_condition_value(const struct kube_condition *c, const char *since, unix_ms now);
