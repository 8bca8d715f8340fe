/* Names, labels and values as Prometheus 3 makes them of OTLP by default (UnderscoreEscapingWithSuffixes). */
#ifndef DS_OTLP_TRANSLATE_H
#define DS_OTLP_TRANSLATE_H

#include "exporter/base/arena.h"
#include "exporter/otlp/series.h"

enum otlp_type {
    OTLP_GAUGE,
    OTLP_COUNTER,
    OTLP_UP_DOWN_COUNTER,
    OTLP_HISTOGRAM,
    OTLP_EXPONENTIAL,
    OTLP_SUMMARY
};

/* Appends the metric's name: characters other than letters, digits and colons become underscores, each run
 * of them one; the unit is appended in words, and `total` or `ratio` where the type asks for it. -EFBIG. */
MUST_USE int translate_metric_name(struct str name, struct str unit, enum otlp_type type, struct buf *into);
/* Appends the label's name: characters other than letters and digits become an underscore each, and a name
 * that starts with a digit or with one underscore gets the prefix `key`. -EFBIG. */
MUST_USE int translate_label_name(struct str name, struct buf *into);

/* Writes v in decimal notation without an exponent, as `le` and `quantile` have it ("0.005", "10", "+Inf"),
 * and returns the length. */
enum { DECIMAL_MAX = 360 };
size_t translate_decimal(double v, char to[DECIMAL_MAX]);

/* ---- Labels ---- */

enum { OTLP_MAX_PROMOTED = 64 };

/* Resource attributes that become labels of each series. */
struct otlp_promotion {
    struct {
        struct str attribute;  /* "k8s.pod.name" */
        struct str label;      /* "pod"; empty: the attribute's name, translated */
    } list[OTLP_MAX_PROMOTED]; /* where two give the same label, the first wins */
    size_t n;
};

/* Adds node, namespace, pod and container of the k8s attributes. */
void otlp_promote_k8s(struct otlp_promotion *p);
/* Adds attributes by name, separated by commas, which must live as long as p. False if there are too many. */
bool otlp_promote(struct otlp_promotion *p, struct str names);

/* Text being written; the first error is kept. */
struct text {
    struct buf *buf;
    int error;
};

/* A label set: sorted and without empty values, as store_enter() takes it. Before first use zeroed. */
struct labels {
    struct series_label list[SERIES_MAX_LABELS + 8];
    size_t n;
    struct arena arena; /* of the strings */
    struct buf buf;     /* of the text */
    struct text text;   /* of the label being built */
};

struct labels_source {
    struct str resource; /* the bytes of the Resource */
    const struct otlp_promotion *promotion;
    struct str point;          /* its bytes */
    unsigned attributes;       /* the number of its field */
    struct str name;           /* of the series */
    struct series_label extra; /* `le` or `quantile`, or an empty name */
};

/* -EFBIG if there are too many labels or too long ones, -EILSEQ if a value is not UTF-8. */
MUST_USE int labels_build(struct labels *ret, const struct labels_source *s);
/* Those of target_info: all attributes of a resource but those that make up job and instance. ret->n is 0 if
 * the resource has no other ones, or neither job nor instance. */
MUST_USE int labels_target_info(struct labels *ret, struct str resource);
void labels_done(struct labels *l);

#endif
