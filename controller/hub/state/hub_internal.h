/* What the files of the hub share; nothing else includes it. Everything runs on the loop. */
#ifndef DS_HUB_INTERNAL_H
#define DS_HUB_INTERNAL_H

#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/hub.h"
#include "controller/kube/event.h"
#include "controller/kube/lease.h"
#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "controller/placement/name.h"
#include "exporter/base/map.h"

#define HUB_API       "dynamic-scoring.open-cluster-management.io/v1alpha1"
#define HUB_CONFIG    "dynamic-scoring-config" /* the one DynamicScoringConfig that counts */
#define HUB_FINALIZER "dynamic-scoring.open-cluster-management.io/manifestworks"

enum { HUB_NAMED_CLUSTERS = 10 }; /* so many failing clusters are named in a status */

/* A status that was written: what was sent, and what the server made of it (a CRD of another make may prune members), so that nothing is
 * written twice. */
struct written {
    json_t *sent, *result;
    char version[128]; /* that the last write led to, of the status or of the finalizers */
    mono_ms at;
    unsigned again; /* how often it was the same as the one before, soon after that: another writes it, too */
    mono_ms held_at;
    unsigned held; /* the same of our finalizer */
};

/* A scorer's clusters, counted. */
struct tally {
    size_t selected;                          /* clusters that are to have it */
    size_t up_to_date;                        /* whose ManifestWork has it as it is now */
    size_t applied;                           /* where the work agent has applied that */
    size_t scoring, failing, waiting, silent; /* by class of pair_state: together all that are selected */
    size_t unwritten, unapplied; /* of failing: where the newest summary is not, or not in force */
    size_t stuck;                /* of up_to_date: where the work agent could not apply it */
    size_t away;                 /* of silent: the cluster is not available */
    size_t no_room;              /* where the summaries grew past what a ManifestWork may hold */
    size_t n_named; /* those with a trouble: first where it fails, then the others, in order of their names */
    struct {
        const struct hub_cluster *cluster;
        const struct report_cell *cell; /* NULL: the agent does not name it */
        enum pair_state pair;
    } named[HUB_NAMED_CLUSTERS];
};

/* A patch that several clusters of one group are sent. */
struct hub_body {
    unsigned refs;
    const struct plan_group *group; /* NULL: it is of a plan that is gone, or of one cluster alone */
    struct buf text;
};

struct hub_scorer {
    struct hub *hub;
    json_t *object;          /* as last seen */
    char *name;              /* metadata.name */
    int64_t created;         /* Unix time, seconds */
    struct scorer_spec spec; /* the last good one */
    bool has_spec;
    char spec_why[SPEC_WHY_BYTES]; /* why the newest spec cannot be used; empty when it can */
    struct probe *probe;
    enum probe_health health; /* as the last plan knew it */
    uint64_t told;            /* hash of what the last look at the status was for */
    struct effective effective;
    char object_name[OBJECT_NAME_MAX +
                     1]; /* the AddOnPlacementScore that the score name leads to; empty without */
    const struct hub_scorer
        *older; /* has the same score name or object and came first; NULL when there is none */
    const struct hub_scorer *younger; /* one of those that came later */
    bool same_object;                 /* older has another score name, and the same object */
    size_t entry;                     /* in the plan; SIZE_MAX: it is in no summary */
    struct tally tally;
    struct written written;
    char write_why[768]; /* why its status could not be written; empty when it could */
};

struct hub_cluster {
    struct hub *hub;
    char *name;
    bool managed; /* there is a ManagedCluster, it is accepted, and it is not being deleted */
    bool leaving; /* it is being deleted */
    char *away;   /* why it is not available, one line; NULL: it is, or no one says */
    bool old;     /* when counted last, a score of its was too old */
    struct work_found found;
    struct report report;
    uint64_t unread;                /* report_hash() of the last one that could not be read: told once */
    const struct plan_group *group; /* what it is to have; NULL: nothing */
    uint64_t wanted;                /* the group's hash */
    struct kube_call *call;         /* of its ManifestWork */
    struct hub_body *body;          /* of that call */
    struct kube_queue *queue;       /* that the call is for */
    uint64_t sent;                  /* hash of the summaries that the call sends */
    uint64_t seen, wrote; /* the object's version: last told by the watch, and last made by a write of ours */
    uint64_t kept;        /* hash of the summaries that were written well last, */
    mono_ms kept_at;      /* when, */
    unsigned rewrites;    /* and how often before that, one soon after the other */
    unsigned lies;        /* writes in a row that the watch showed otherwise */
    mono_ms behind_since; /* while it is not as it should be */
    bool behind;
    unsigned failures; /* of writes, in a row */
    char why[512];     /* the last one's; empty when it went well */
};

struct hub_config {
    json_t *object;     /* NULL: there is none */
    struct masks masks; /* the last good ones */
    bool has_masks;
    char why[256]; /* why the newest cannot be used */
    struct written written;
    char write_why[768];
};

/* Clusters, counted. */
struct hub_totals {
    size_t managed, up_to_date, behind,
        failing; /* up_to_date + behind = managed; failing: of behind, those whose last write failed */
    size_t works, leaving; /* ManifestWorks there are; those that are still to go */
    size_t applied,
        unapplied; /* of up_to_date: what the work agent has done, and what it says that it cannot do */
    size_t reporting, scoring_all, with_failures;
    size_t largest, left_out; /* bytes of the largest summaries; scorers that found no room somewhere */
    double lag_s;             /* how long the longest behind has been so */
    size_t n_named;
    const struct hub_cluster *named[HUB_NAMED_CLUSTERS]; /* of those failing or unapplied, by name */
};

struct hub {
    struct hub_options o;
    struct kube_watch *scorers_watch, *configs_watch, *clusters_watch, *works_watch;
    struct kube_lease *lease; /* NULL without election */
    struct kube_events *events;
    bool leading, stopping;
    bool planned; /* since it leads: before the first plan statuses would take back what stands there */
    void (*stopped)(void *arg); /* called when the Lease has been given back */
    void *stopped_arg;
    bool active; /* leads, has seen all objects, and is not stopping: may probe and write */
    mono_ms active_since;
    struct map scorers, clusters; /* by name */
    struct hub_scorer **by_age;   /* all scorers, the oldest first */
    size_t n_scorers;
    struct hub_config config;
    bool config_gone;         /* it was there, and has been deleted */
    struct map other_configs; /* DynamicScoringConfigs of other names: name → struct hub_config * */
    struct plan *plan;        /* NULL: no one is to have anything */
    struct plan_entry *entries;
    struct hub_scorer **entry_scorers; /* the scorer of each entry */
    size_t n_entries;
    struct buf entry_texts;    /* what entries point into */
    uint64_t *entry_scores;    /* report_score() of each */
    size_t *entries_by_score;  /* in the order of those */
    struct masks plan_masks;   /* the plan's own */
    struct hub_body *body;     /* the last one made */
    struct kube_queue *works;  /* keys: clusters */
    struct kube_queue *joins;  /* the same, for those that have no work yet: a roll-out does not delay them */
    struct kube_queue *status; /* keys: "scorer/<name>", "config/<name>" */
    struct hub_write *writes;  /* of statuses, under way */
    struct timer replan, retally;
    bool tallied;
    bool was_behind; /* when counted last */
    struct hub_totals totals;
    int64_t started_ms;
};

/* ---- hub.c ---- */

/* Whether this controller may probe and write now has changed, or may have. */
void hub_look(struct hub *h);

/* The plan must be made anew, soon. */
void hub_replan(struct hub *h);
/* Something that statuses tell has changed: they are counted and looked at again within a second. */
void hub_touch(struct hub *h);
/* Whether DynamicScoringConfig asks for works now. */
bool hub_wanted(const struct hub *h);

/* ---- hub_scorers.c ---- */

struct hub_scorer *hub_scorer_find(const struct hub *h, const char *name);
/* Whether the scorer is (to be) in summaries as far as its health goes. */
bool hub_scorer_healthy(const struct hub_scorer *s);
/* Starts, or stops, all probes. */
void hub_probe_all(struct hub *h);
/* What the watch of DynamicScorers tells. */
void hub_scorer_set(void *hub, json_t *object);
void hub_scorer_delete(void *hub, const char *namespace, const char *name);
struct hub_scorer *hub_scorer_free(struct hub_scorer *s);

/* ---- hub_configs.c ---- */

void hub_config_set(void *hub, json_t *object);
void hub_config_delete(void *hub, const char *namespace, const char *name);
void hub_config_done(struct hub_config *c);
/* The one of that name, or NULL. */
struct hub_config *hub_config_find(struct hub *h, const char *name);
/* Whether the config that counts has our finalizer. No work is made before: the config could go, and its works be left behind. */
bool hub_config_held(const struct hub *h);
/* What has to become of its finalizers: a merge patch, or NULL when they are as they should be. *ret_error when memory is out. */
json_t *hub_config_finalizers(const struct hub *h, const struct hub_config *c, int *ret_error);

/* ---- hub_plan.c ---- */

/* Whether what the scorer shares with its older or younger one is the object alone. */
static inline bool hub_scorer_shares_object(const struct hub_scorer *s)
{
    return s->older ? s->same_object : s->younger && s->younger->same_object;
}

/* Who has a score name, what goes into the plan, and what each cluster is to have. */
int hub_plan_now(struct hub *h);
void hub_plan_done(struct hub *h);

/* ---- hub_pair.c ---- */

/* Whether the cluster's summaries are to contain the scorer. */
bool hub_pair_is_selected(const struct hub_scorer *s, const struct hub_cluster *c);
/* cell: of the cluster's report, NULL when it does not name the scorer. in_sync: the ManifestWork is up to date. */
enum pair_state hub_pair_state(const struct hub_scorer *s, const struct hub_cluster *c,
                               const struct report_cell *cell, bool in_sync);
/* One line; empty for states without a reason. */
void hub_pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state state, const struct hub_cluster *c,
                     const struct report_cell *cell);

/* ---- hub_tally.c ---- */

/* Counts h->totals and each scorer's tally, if hub_touch() was called since: every five minutes it is, for what time alone changes. */
void hub_tally(struct hub *h);
/* Names a cluster that is about to be freed nowhere any more. */
void hub_tally_forget(struct hub *h, const struct hub_cluster *c);

/* ---- hub_clusters.c ---- */

enum hub_want { HUB_WANT_NOTHING, HUB_WANT_WORK, HUB_WANT_NO_WORK };

enum hub_want hub_cluster_wants(const struct hub *h, const struct hub_cluster *c);
/* Whether its ManifestWork is as it should be. */
bool hub_cluster_in_sync(const struct hub *h, const struct hub_cluster *c);
/* Looks at the cluster again, and has its ManifestWork written if need be. */
void hub_cluster_settle(struct hub *h, struct hub_cluster *c);
void hub_managed_set(void *hub, json_t *object);
void hub_managed_delete(void *hub, const char *namespace, const char *name);
void hub_work_set(void *hub, json_t *object);
void hub_work_delete(void *hub, const char *namespace, const char *name);
struct hub_cluster *hub_cluster_free(struct hub_cluster *c);
/* Before a plan: clusters of which only the work is known have left. */
void hub_clusters_sweep(struct hub *h);
/* Frees it when nothing is known of it any more. */
void hub_cluster_forget(struct hub *h, struct hub_cluster *c);

/* ---- hub_works.c ---- */

/* Queues for ManifestWorks. -ENOMEM. */
MUST_USE int hub_works_new(struct hub *h);
/* Ends what is under way. */
void hub_works_cancel(struct hub *h);
void hub_works_free(struct hub *h);
/* What the watch tells of a work: c->found is looked at anew, unless it is older than what was written. */
void hub_work_seen(struct hub *h, struct hub_cluster *c, const json_t *object);
/* Wants the cluster's ManifestWork written. */
void hub_work_wanted(struct hub *h, struct hub_cluster *c);
struct hub_body *hub_body_unref(struct hub_body *b);

/* ---- hub_statuses.c ---- */

/* Wants the status of an object looked at: kind "scorer" or "config". */
void hub_status_wanted(struct hub *h, const char *kind, const char *name);
MUST_USE int hub_statuses_new(struct hub *h);
void hub_statuses_cancel(struct hub *h);
void hub_statuses_free(struct hub *h);
void written_done(struct written *w);

/* ---- status_scorer.c, status_config.c: pure, for any time ---- */

/* The status that the scorer should have, complete (for a merge patch: what is to go is null); `now` is for conditions that change. A new
 * reference, NULL when memory is out. */
json_t *status_of_scorer(const struct hub_scorer *s, unix_ms now);
json_t *status_of_config(const struct hub *h, const struct hub_config *c, unix_ms now);
/* Events for conditions that differ between two statuses (before may be NULL: an object seen first; then only what is wrong). */
void status_events(struct kube_events *e, const json_t *object, const char *kind, const json_t *before,
                   const json_t *after);

/* ---- hub_metrics.c ---- */
void hub_count_probe(struct hub *h, const struct hub_scorer *s, enum probe_what what,
                     const struct probe_part *part);
void hub_count_work(struct hub *h, const char *operation, const struct kube_answer *a);
void hub_count_distributed(struct hub *h, double seconds); /* one cluster, from behind to up to date */
void hub_count_reconcile(struct hub *h, const char *controller, bool ok);
void hub_forget_scorer(struct hub *h, const char *name);

#endif
