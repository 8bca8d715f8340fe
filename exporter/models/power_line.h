/* Power by minute, of a node or of several. */
#ifndef DS_MODELS_POWER_LINE_H
#define DS_MODELS_POWER_LINE_H

#include "exporter/base/def.h"
#include "exporter/models/request.h"

enum { POWER_MAX_MINUTES = 20000 }; /* that the values of one line may span */

struct power_point {
    int64_t minute; /* Unix time / 60 */
    double sum;
    unsigned nodes; /* that have a value */
};

/* Points in the order of their minutes. Zeroed: empty. Lines are added to a long one in parts, each more
 * than twice as long as the one before it, so that thousands of short ones cost no copy of all each. */
struct power_line {
    struct power_point *points; /* owned */
    size_t n;
    struct power_line *rest; /* owned: the next part; NULL in lines that were read or merged */
};

void power_line_done(struct power_line *l);
/* The line of one series: its last finite value in each minute. -EINVAL if timestamps do not increase;
 * -ENOMEM. */
MUST_USE int power_line_read(struct power_line *ret, const struct input_series *series);
/* Adds the values of a merged line of the same node, or of another one, minute by minute. -ENOMEM. */
MUST_USE int power_line_add(struct power_line *into, const struct power_line *from, bool same_node);
/* Adds the parts of a line, which the functions below need. -ENOMEM. */
MUST_USE int power_line_merge(struct power_line *l, bool same_node);
/* The highest mean of all nodes that have a value in a minute. The line is not empty. */
double power_line_highest_mean(const struct power_line *l);
/* The sums of all minutes from the first to the last; minutes without a value repeat the one before. *ret
 * is to be freed. -ERANGE if they are more than POWER_MAX_MINUTES; -ENOMEM. The line is not empty. */
MUST_USE int power_line_fill(const struct power_line *l, double **ret, size_t *ret_n);

#endif
