/* Rows that become one row per group: sum by (namespace) (...). */
#ifndef DS_PROMQL_AGGREGATE_H
#define DS_PROMQL_AGGREGATE_H

#include "exporter/promql/plan.h"
#include "exporter/promql/row.h"

struct aggregate;

/* For rows of n_points values. max_bytes limits the memory of the groups. -ENOMEM. */
MUST_USE int aggregate_new(struct aggregate **ret, const struct aggregation *rule, size_t n_points,
                           uint64_t max_bytes);
struct aggregate *aggregate_free(struct aggregate *a);
DEFINE_CLEANUP(struct aggregate, aggregate_free)

/* Adds a row to its group. The texts of its labels must live as long as the aggregate. -EFBIG, -ENOMEM. */
MUST_USE int aggregate_add(struct aggregate *a, const struct row *row);
size_t aggregate_groups(const struct aggregate *a);
/* Sorts the groups by their labels; until then they are in the order in which they came up. After the last
 * aggregate_add(). */
void aggregate_sort(struct aggregate *a);
/* The result of a group; `values` has room for n_points. */
struct row aggregate_row(const struct aggregate *a, size_t group, double *values);

#endif
