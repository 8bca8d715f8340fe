/* A placement problem as an integer program, combination by combination, for problems that have too many
 * patterns.
 *
 * A column z for each item of the prices (a workload runs with a setting), and where a site has more than one
 * setting, a column y for each setting in force. Rows: replicas of a workload; settings of a site; each
 * resource of a setting; z <= y, which makes the linear relaxation tight; limits; moves. */
#ifndef DS_OPTIMIZE_CBC_MODEL_H
#define DS_OPTIMIZE_CBC_MODEL_H

#include "controller/optimize/cbc/mip.h"
#include "controller/optimize/cbc/price.h"
#include "controller/optimize/wire.h"
#include "exporter/base/def.h"

struct model {
    struct mip mip;
    const struct price *x; /* borrowed */
    int *first_z;          /* [n_settings + 1]: columns of the setting's items */
    int *y;                /* [n_settings]: -1 for none */
};

/* -ENOMEM; -EFBIG for too many entries. */
MUST_USE int model_new(struct model **ret, const struct price *x);
struct model *model_free(struct model *m);
DEFINE_CLEANUP(struct model, model_free)
/* The choices of a solution, in the order of columns; returns their number. */
uint32_t model_choices(const struct model *m, const double *solution, struct wire_choice *choices);

#endif
