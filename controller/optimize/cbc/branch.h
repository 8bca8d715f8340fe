/* Branch and bound over the settings of sites. With prices alone, a site may have several settings in parts;
 * each branch has one setting less, or one only. Where all sites have one setting, the bound is close to what
 * a solution reaches. */
#ifndef DS_OPTIMIZE_CBC_BRANCH_H
#define DS_OPTIMIZE_CBC_BRANCH_H

#include "controller/optimize/cbc/price.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"

#include <stdint.h>

enum { BRANCH_TRIES = 3 };

struct branch_hooks {
    price_look *look; /* at the best sets of each branch */
    /* Solves what is open, or lowers its bound; up to BRANCH_TRIES times, each with more effort. */
    int (*leaf)(void *arg, int64_t *objective, int64_t *bound, uint32_t n_tries);
    int (*bound)(void *arg, int64_t bound); /* takes the bound of all branches */
    void *arg;
};

/* Branches until the bound shows that nothing is better than `objective`, or until then. Starts from the best
 * prices; in the end all settings are open and the prices are as before. -ENOMEM, or what a hook returned. */
MUST_USE int branch(struct price *x, int64_t *objective, mono_ms until, const struct branch_hooks *hooks);

#endif
