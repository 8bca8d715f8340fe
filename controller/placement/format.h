/* Names of items: a text with ${node}, ${namespace} and so on, which a series' labels replace in one pass. */
#ifndef DS_PLACEMENT_FORMAT_H
#define DS_PLACEMENT_FORMAT_H

#include "exporter/metric/series.h"

/* A format cut into what stands still and what labels replace. */
struct dimension_format {
    struct dimension_part {
        struct str text; /* a slice of the format; where it is empty: */
        enum ds_label label;
    } * parts;
    size_t n;
    bool per_series; /* some label that differs from series to series is named */
};

/* ${cluster} ${node} ${device} ${namespace} ${app} ${pod} ${container} ${meta} ${scoreName} are known; any other placeholder stays as it
 * is, as does one without its end. `format` must outlive *ret. -ENOMEM. */
MUST_USE int dimension_format_parse(struct dimension_format *ret, struct str format);
void dimension_format_done(struct dimension_format *f);
/* Appends the name for a series with these label values, which are not expanded again. -ENOMEM, -EFBIG. */
MUST_USE int dimension_format_render(const struct dimension_format *f, const struct str labels[DS_LABELS],
                                     struct buf *into);

#endif
