/* What the masks of the plan match: asked by the DynamicScoringConfig's status and by the pages. Owns
 * nothing, changes nothing; loop thread. */
#include "controller/hub/follows/masks.h"

#include "controller/hub/rules/plan.h"
#include "exporter/base/buf.h"

enum { MASK_PATTERN_BYTES = 80 }; /* of a pattern in a warning */

bool masks_are_counted(const struct fleet *f)
{
    return f->plan && f->plan->masks.owner == f->seen->configs.used.masks.owner;
}

bool mask_is_idle(const struct plan *plan, size_t i)
{
    return !plan->of_masks[i].clusters || !plan->of_masks[i].scores;
}

/* One of its two patterns, of which nothing matches. */
static void mask_put_idle(struct buf *b, const char *what, const char *field, const char *pattern)
{
    buf_printf(b, "no %s matches %s \"%.*s\"", what, field, MASK_PATTERN_BYTES, pattern);
    if (strpbrk(pattern, "[]{}()|"))
        buf_puts(b, ": only * and ? are wildcards");
}

void mask_warning(struct buf *b, const struct plan *plan, size_t i)
{
    const struct mask *m = &plan->masks.list[i];
    const struct plan_mask *counts = &plan->of_masks[i];

    if (!counts->clusters)
        mask_put_idle(b, "cluster", "clusterName", m->cluster);
    if (!counts->clusters && !counts->scores)
        buf_puts(b, ", ");
    if (!counts->scores)
        mask_put_idle(b, "score", "scoreName", m->score);
}
