/* A scorer's last rounds, for the plots of its page. */
#ifndef DS_AGENT_SCORER_HISTORY_H
#define DS_AGENT_SCORER_HISTORY_H

/* The names of the columns, for member_history(). */
extern const char *const scorer_history_names[];

#endif
