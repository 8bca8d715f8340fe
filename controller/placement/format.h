/* Names of items: a text whose ${node}, ${namespace} and so on are replaced by a series' labels, in one
 * pass. */
#ifndef DS_PLACEMENT_FORMAT_H
#define DS_PLACEMENT_FORMAT_H

#include "exporter/base/buf.h"
#include "exporter/metric/series.h"

/* A format split into literal texts and placeholders. */
struct dimension_format {
    struct dimension_part {
        struct str text; /* a slice of the format; empty: a placeholder for */
        enum ds_label label;
    } * parts;
    size_t n;
    bool per_series; /* a placeholder differs from series to series */
    unsigned labels; /* bit 1 << i: there is a placeholder for label i */
};

/* Knows ${cluster} ${node} ${device} ${namespace} ${app} ${pod} ${container} ${meta} ${scoreName}; any
 * other placeholder stays as it is, as does an unterminated one. `format` must outlive *ret. -ENOMEM. */
MUST_USE int dimension_format_parse(struct dimension_format *ret, struct str format);
void dimension_format_done(struct dimension_format *f);
/* Appends the item name of a series with these label values, which are not expanded again. -ENOMEM,
 * -EFBIG. */
MUST_USE int dimension_format_render(const struct dimension_format *f, const struct str labels[DS_LABELS],
                                     struct buf *into);

#endif
