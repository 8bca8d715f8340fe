/* The state of one scorer on one cluster, and the words for it. Pure; any thread. */
#pragma once

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
    PAIR_UNREADABLE,  /* no news, as ManifestWorks cannot be read, which bring the agents' reports */
    PAIR_ELSEWHERE,   /* no news, and the add-on is in another namespace than its ConfigMap */
    PAIR_EXPIRED,     /* its scores have expired, and its agent does not say why */
    PAIR_EMPTY,       /* rounds succeed, but there is nothing to score, or there are no results */
    PAIR_NO_ITEMS,    /* rounds succeed, but no result leads to an item of its AddOnPlacementScore */
    PAIR_SUSPENDED,   /* not called, as the hub finds its scoring API unhealthy */
    PAIR_REPORT_FULL, /* the agent's report has no room for this scorer */
    PAIR_NO_REPORT,
    PAIR_BEHIND,   /* the newest configuration has not reached the cluster */
    PAIR_WAITING,  /* no round has finished yet */
    PAIR_NO_ROOM,  /* the cluster's ManifestWork has no room for this scorer */
    PAIR_OUTDATED, /* the cluster's agent is too old for this scorer: it would refuse the whole list */
    PAIR_MASKED,
    PAIR_NOT_SENT,   /* the scorer is in no summary, or the cluster is not managed */
    PAIR_OLD_CONFIG, /* scores by an older configuration, as the agent rejects the newest */
    PAIR_OK,
    PAIR_STATES
};

/* In the order of a condition's message. */
enum pair_class {
    PAIR_CLASS_FAILING,
    PAIR_CLASS_SUSPENDED,
    PAIR_CLASS_EMPTY,
    PAIR_CLASS_SILENT,
    PAIR_CLASS_WAITING,
    PAIR_CLASS_SCORING,
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
    bool suspended;
    bool in_sync;                    /* the ManifestWork holds the newest summaries */
    bool applied;                    /* and the work agent has applied it */
    int64_t sent_ms_ago;             /* since the summaries last changed; INT64_MAX: not since the start */
    const char *unavailable_because; /* NULL when the cluster is available */
    const char *addon_unavailable_because; /* NULL when the agent's add-on is, or there is none */
    unix_ms addon_unavailable_since;       /* 0: unknown */
    const char *unreadable_because;        /* why ManifestWorks cannot be read; NULL when they can */
    const char *addon_namespace;           /* where the add-on is; NULL in agent_namespace, or if unknown */
    const char *agent_namespace;           /* where the ConfigMap with the summaries is */
    const char *write_error, *apply_error;
    const struct report *report;
    const struct report_cell *cell; /* NULL when the report does not name the scorer */
    int64_t interval_ms;            /* the scorer's */
    unix_ms now;
};

enum { PAIR_REASON_BYTES = 640 };

/* When the cell's scores count as expired, unless a newer report comes; INT64_MAX: by other facts. */
int64_t pair_expires_ms(const struct report_cell *c);

/* When an add-on that is not available counts, although the scores of its agent are still valid. */
int64_t pair_addon_counts_ms(const struct pair_facts *f);

/* Of a cluster that is selected. Never PAIR_BEHIND, so that tallies count what the agent does meanwhile. */
enum pair_state pair_state(const struct pair_facts *f);

/* Whether it does not score only because something has yet to happen: no news, but no error either. */
bool pair_is_pending(enum pair_state s);

/* What people see: PAIR_BEHIND instead of a pending or a good state while the cluster is behind. */
enum pair_state pair_state_shown(enum pair_state s, bool behind);

/* One line; empty for states without a reason. Needs only texts, report, cell, `in_sync` and `applied`. */
void pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state s, const struct pair_facts *f);
