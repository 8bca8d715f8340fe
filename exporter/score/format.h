/* Formats of the names of an AddOnPlacementScore's items: text with placeholders such as ${node}, which stand
 * for labels of the result that becomes the item. Any thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"

/* The length of the placeholder at the start of s, such as `${node}`, and its label; 0 if there is none. */
size_t format_placeholder_at(struct str s, enum ds_label *ret);
/* The first `${...}` of the format that is no placeholder, and stays as it is; empty if there is none. */
struct str format_unknown_placeholder(const char *format);
/* Appends the placeholders: "${cluster}, ${node}, ...". */
MUST_USE int format_put_placeholders(struct buf *into);
