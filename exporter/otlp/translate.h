/* Names and values as Prometheus 3 makes them of OTLP by default (UnderscoreEscapingWithSuffixes). They are
 * appended to buffers without a ceiling: callers bound what comes in. Pure; any thread. */
#pragma once

#include "exporter/base/buf.h"

enum otlp_type {
    OTLP_GAUGE,
    OTLP_COUNTER,
    OTLP_UP_DOWN_COUNTER,
    OTLP_HISTOGRAM,
    OTLP_EXPONENTIAL,
    OTLP_SUMMARY
};

void put_str(struct buf *into, struct str s);

/* The metric's name: characters other than letters, digits and colons become underscores, each run of them
 * one; the unit is appended in words, and `total` or `ratio` where the type asks for it. */
void put_metric_name(struct buf *into, struct str name, struct str unit, enum otlp_type type);
/* The label's name: characters other than letters and digits become an underscore each, and a name that
 * starts with a digit or with one underscore gets the prefix `key`. */
void put_label_name(struct buf *into, struct str name);
/* The text of an attribute's value, the bytes of an AnyValue; in JSON, or as a label has it. */
void put_any_value(struct buf *into, struct str any_value, bool in_json);

struct attribute {
    struct str key, value; /* value: an AnyValue */
};

/* The attributes of a message, which are its fields with this number, sorted by key; equal keys stay in their
 * order. *ret is from malloc, and NULL if there are more than `max`, or none. Returns how many. */
size_t read_attributes(struct attribute **ret, struct str message, unsigned number, size_t max);

/* Writes v without an exponent, as `le` and `quantile` have it: "0.005", "10", "+Inf". Returns the length. */
enum { DECIMAL_MAX = 360 };
size_t translate_decimal(double v, char to[DECIMAL_MAX]);
/* As JavaScript prints it: with an exponent below 1e-6 and from 1e21. */
size_t translate_number(double v, char to[DECIMAL_MAX]);
