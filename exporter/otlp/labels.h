/* The labels of a series, made of a resource, a metric and a point's attributes. */
#ifndef DS_OTLP_LABELS_H
#define DS_OTLP_LABELS_H

#include "exporter/base/arena.h"
#include "exporter/base/str.h"
#include "exporter/tsdb/tsdb.h"

enum { OTLP_MAX_PROMOTED = 64 };

/* Resource attributes that become labels of each series. */
struct otlp_promoted {
    struct str attribute; /* "k8s.pod.name" */
    struct str label;     /* "pod"; empty: the attribute's name, translated */
};

struct otlp_promotion {
    struct otlp_promoted list[OTLP_MAX_PROMOTED]; /* where two give the same label, the first wins */
    size_t n;
};

/* Adds node, namespace, pod and container of the k8s attributes. */
void otlp_promote_k8s(struct otlp_promotion *p);
/* Adds attributes by name, separated by commas, which must live as long as p. False if there are too many.
 * */
bool otlp_promote(struct otlp_promotion *p, struct str names);

/* What a resource gives to the labels of its series. */
struct labels_resource {
    struct str message;              /* the bytes of the Resource, which must stay valid */
    struct tsdb_label job, instance; /* empty value: none */
    struct tsdb_label promoted[OTLP_MAX_PROMOTED];
    size_t n_promoted;
};

/* The result's strings are in `arena`. -ENOMEM, -EFBIG. */
MUST_USE int labels_resource_read(struct labels_resource *ret, struct str message,
                                  const struct otlp_promotion *p, struct arena *arena);

/* A label set being built. */
struct labels {
    struct tsdb_label list[TSDB_MAX_LABELS + 8];
    size_t n;
};

struct labels_source {
    const struct labels_resource *resource;
    struct str message;      /* of the point: its bytes */
    unsigned attributes;     /* the number of its field */
    struct str name;         /* of the series */
    struct tsdb_label extra; /* `le` or `quantile`, or an empty name */
};

/* Sorted and without empty values, as tsdb_ref() takes them. The strings are in `arena`. -EFBIG if there
 * are too many or too long ones, -EILSEQ if a value is not UTF-8, -ENOMEM. */
MUST_USE int labels_build(struct labels *ret, const struct labels_source *s, struct arena *arena);
/* Those of target_info: all attributes of a resource but those that make up job and instance. *ret->n is 0
 * if the resource has no other ones, or neither job nor instance. */
MUST_USE int labels_target_info(struct labels *ret, const struct labels_resource *r, struct arena *arena);

#endif
