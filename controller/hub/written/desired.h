/* What each cluster should get: the plan, made from what was observed, and the text of its ManifestWork.
 * Loop thread. */
#pragma once

#include "controller/hub/observed/observed.h"
#include "controller/hub/observed/options.h"
#include "controller/hub/observed/scorer.h"
#include "controller/hub/rules/plan.h"

struct desired {
    struct plan *plan; /* NULL: nothing to distribute, or not yet */
    /* Private */
    json_t *text;                     /* of the ManifestWorks of a group of the plan: the last one made */
    const struct plan_group *text_of; /* NULL: none */
};

/* Makes the plan, and notes with each cluster its group, and with each scorer its share. */
void desired_make(struct desired *d, const struct hub_options *o, struct observed *seen);
/* Another controller leads: by the time that this one leads again, the plan would be out of date. */
void desired_done(struct desired *d, struct observed *seen);
/* Before the scorer is freed: nothing names it any more. */
void desired_forget_scorer(struct desired *d, struct observed *seen, struct hub_scorer *s);
/* The text of a group's ManifestWorks, all but the beginning, as a string that its clusters share. A new
 * reference. -EFBIG. */
MUST_USE int desired_text(struct desired *d, const struct plan_group *group, const char *agent_namespace,
                          json_t **ret);
