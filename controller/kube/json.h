/* Reading Kubernetes documents: jansson values by path. Absent members, nulls and values of another type all
 * read as absent, so that a document from a server of another version never surprises a caller.
 *
 *     const char *name = kube_str(o, "metadata", "name", NULL);
 *     if (kube_int(o, &n, "status", "observedGeneration", NULL)) ...
 */
#ifndef DS_KUBE_JSON_H
#define DS_KUBE_JSON_H

#include "exporter/base/buf.h"

#include <jansson.h>

#define KUBE_PATH __attribute__((sentinel))

/* The member at the end of a NULL-terminated path of names, borrowed; NULL when any is missing. */
json_t *kube_get(const json_t *o, ...) KUBE_PATH;
/* A string without a NUL inside; NULL when there is none. */
const char *kube_str(const json_t *o, ...) KUBE_PATH;
/* A string of any bytes; absent: an empty slice with p = NULL. */
struct str kube_text(const json_t *o, ...) KUBE_PATH;
/* True, and sets *ret, for an integer; 12.0 is one. */
bool kube_int(const json_t *o, int64_t *ret, ...) KUBE_PATH;
bool kube_bool(const json_t *o, bool *ret, ...) KUBE_PATH;
/* An array; NULL when there is none. For json_array_foreach(). */
json_t *kube_list(const json_t *o, ...) KUBE_PATH;
/* An object; NULL when there is none. For json_object_foreach(). */
json_t *kube_map(const json_t *o, ...) KUBE_PATH;

/* Whether the string is an element of the array. */
bool kube_list_has(const json_t *list, const char *text);

/* metadata.name, .namespace ("" without one) and so on; "" when absent. */
const char *kube_name(const json_t *o);
const char *kube_namespace(const json_t *o);
const char *kube_uid(const json_t *o);
const char *kube_version(const json_t *o); /* metadata.resourceVersion */
/* metadata.labels[key], metadata.annotations[key]; NULL when absent. */
const char *kube_label(const json_t *o, const char *key);
const char *kube_annotation(const json_t *o, const char *key);

/* Parses a document of at most 2048 levels. -EINVAL with a sentence in `why` (may be NULL); -ENOMEM, which
 * jansson sometimes reports as -EINVAL. */
MUST_USE int kube_json_parse(json_t **ret, struct str text, char why[256]);
struct kube_cut;
/* Like kube_json_parse(), after kube_cut(); cut may be NULL. */
MUST_USE int kube_json_parse_cut(json_t **ret, struct str text, const struct kube_cut *cut, char why[256]);
/* Appends o as compact JSON. -ENOMEM, -EFBIG. */
MUST_USE int kube_json_print(const json_t *o, struct buf *into);
/* Wipes the string members of an object: a Secret's data, before its memory is given back. Takes NULL. */
void kube_wipe_strings(json_t *object);

#endif
