/* Formats of the names of an AddOnPlacementScore's items: text with placeholders such as ${node}, which stand
 * for labels of the result that becomes the item. Any thread. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"

/* The length of the placeholder at the start of s, such as `${node}`, and its label; 0 if there is none. */
size_t format_placeholder_at(struct str s, enum ds_label *ret);
/* The first `${...}` of the format that is no placeholder, and stays as it is; empty if there is none. */
struct str format_unknown_placeholder(const char *format);
/* The same, or the first placeholder in the spelling of another program, such as `$node`, `$(node)`,
 * `{{node}}` and `%node%`, which stays as it is, too. */
struct str format_mistake(const char *format);
/* Appends what to write instead, if that is known: ours for the spelling of another program; for another
 * label, such as `${instance}`, the query that copies its values into one that has a placeholder. */
void format_put_advice(struct buf *into, struct str mistake);
/* Appends the placeholders: "${cluster}, ${node}, ...". */
void format_put_placeholders(struct buf *into);
