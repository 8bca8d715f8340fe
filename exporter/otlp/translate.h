/* Names and labels as Prometheus 3 makes them of OTLP by default (UnderscoreEscapingWithSuffixes). */
#ifndef DS_OTLP_TRANSLATE_H
#define DS_OTLP_TRANSLATE_H

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

enum otlp_type {
    OTLP_GAUGE,
    OTLP_COUNTER,
    OTLP_UP_DOWN_COUNTER,
    OTLP_HISTOGRAM,
    OTLP_EXPONENTIAL,
    OTLP_SUMMARY
};

/* Appends the metric's name: characters other than letters, digits and colons become underscores, each run
 * of them one; the unit is appended in words, and `total` or `ratio` where the type asks for it. -EFBIG,
 * -ENOMEM. */
MUST_USE int translate_metric_name(struct str name, struct str unit, enum otlp_type type, struct buf *into);
/* Appends the label's name: characters other than letters and digits become an underscore each, and a name
 * that starts with a digit or with one underscore gets the prefix `key`. -EFBIG, -ENOMEM. */
MUST_USE int translate_label_name(struct str name, struct buf *into);
/* Appends the text of an attribute's value: the bytes of an AnyValue, checked by schema_check(). Arrays
 * and maps become JSON, bytes base64. -EFBIG, -ENOMEM. */
MUST_USE int translate_value(struct str any_value, struct buf *into);
/* The parts of a KeyValue. */
void translate_key_value(struct str key_value, struct str *ret_key, struct str *ret_value);
/* Appends v in decimal notation without an exponent, as `le` and `quantile` have it: "0.005", "10",
 * "+Inf". */
MUST_USE int translate_bound(double v, struct buf *into);

#endif
