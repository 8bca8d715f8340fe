/* The state of one scorer on one cluster, and the words for it in statuses, in JSON and on pages. Pure. */
#ifndef DS_HUB_PAIR_H
#define DS_HUB_PAIR_H

#include "controller/hub/rules/report.h"
#include "exporter/base/clock.h"

/* In the order in which people see them: failing first, then not scoring, then scoring. */
enum pair_state {
    PAIR_NOT_WRITTEN, /* the hub cannot write the ManifestWork */
    PAIR_NOT_APPLIED, /* the work agent cannot apply the ManifestWork */
    PAIR_REFUSED,     /* the agent rejects its configuration and has no older one with this scorer */
    PAIR_FAILING,
    PAIR_STALE,       /* failing, and its scores have expired */
    PAIR_NOT_PLACED,  /* scores, but its AddOnPlacementScore cannot be written */
    PAIR_UNAVAILABLE, /* the cluster, or the agent's add-on on it, is not available */
    PAIR_EXPIRED,     /* the last success is too old for a running agent */
    PAIR_REPORT_FULL, /* the agent's report has no room for this scorer */
    PAIR_NO_REPORT,
    PAIR_BEHIND,  /* the newest configuration has not reached the cluster */
    PAIR_WAITING, /* no round has finished yet */
    PAIR_NO_ROOM, /* the cluster's ManifestWork has no room for this scorer */
    PAIR_MASKED,
    PAIR_NOT_SENT,   /* the scorer is in no summary, or the cluster is not managed */
    PAIR_OLD_CONFIG, /* scores by an older configuration, as the agent rejects the newest */
    PAIR_EMPTY,      /* scores, but had nothing to score */
    PAIR_OK,
    PAIR_STATES
};

enum pair_class {
    PAIR_CLASS_SCORING,
    PAIR_CLASS_FAILING,
    PAIR_CLASS_WAITING,
    PAIR_CLASS_SILENT,
    PAIR_CLASS_UNSELECTED,
    PAIR_CLASSES
};

struct pair_info {
    const char *word;  /* in statuses and JSON; several states share "silent", "refused" and "ok" */
    const char *label; /* for people */
    enum pair_class class;
    const char *severity; /* "error", "warning", "pending", "none" or "ok" */
    bool has_reason;      /* whether pair_reason() returns text */
};

extern const struct pair_info pair_info[PAIR_STATES];

/* Everything that decides a state. Borrowed; texts may be NULL. */
struct pair_facts {
    bool not_sent, no_room, masked;  /* why the cluster is not selected; all false when it is */
    bool in_sync;                    /* the ManifestWork holds the newest summaries */
    bool applied;                    /* and the work agent has applied it */
    int64_t sent_ms_ago;             /* since the summaries last changed; INT64_MAX: not since the start */
    const char *unavailable_because; /* NULL when the cluster is available */
    const char *addon_unavailable_because; /* NULL when the agent's add-on is, or there is none */
    const char *write_error, *apply_error;
    const struct report *report;
    const struct report_cell *cell; /* NULL when the report does not name the scorer */
    int64_t interval_ms;            /* the scorer's */
    unix_ms now;
};

enum { PAIR_REASON_BYTES = 640 };

/* Never PAIR_BEHIND, so that tallies count what the agent does meanwhile. */
enum pair_state pair_state(const struct pair_facts *f);

/* Whether it does not score only because something has yet to happen: no news, but no error either. */
bool pair_is_pending(enum pair_state s);

/* What people see: PAIR_BEHIND instead of a pending state, or one in which all is well, while the cluster is
 * behind. */
enum pair_state pair_state_shown(enum pair_state s, bool behind);

/* One line; empty for states without a reason. Only the texts, the report, the cell, `in_sync` and `applied`
 * are needed. */
void pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state s, const struct pair_facts *f);

#endif
