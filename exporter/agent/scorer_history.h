/* A scorer's last rounds, for the plots of its page. */
#ifndef DS_AGENT_SCORER_HISTORY_H
#define DS_AGENT_SCORER_HISTORY_H

#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/score/round.h"
#include "exporter/ui/history.h"

/* Records a round that has ended, before its batch is taken out of the result. */
void scorer_history_add(struct history **h, const struct summary *s, const struct round_result *r,
                        unix_ms now);
/* The names of the columns, for member_history(). */
extern const char *const scorer_history_names[];

#endif
