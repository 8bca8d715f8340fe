/* The hub's state: what it knows of scorers, clusters and configurations, and pure questions about it.
 *
 * The room's files, bottom to top; each calls only those before it, so there is no circle:
 *   writes, state               the rule about other writers; data
 *   hub_schedule, hub_counters  what is to be planned, counted or looked at soon; counters
 *   hub_pair, hub_tally         the state of a scorer on a cluster; counts over the fleet
 *   hub_masks                   what each mask matches
 *   status_*                    statuses, conditions and Events, computed from the state
 *   hub_works                   writes ManifestWorks, and reports each outcome by on_work_written()
 *   hub_clusters                decides what each ManifestWork needs
 *   hub_plan                    assigns a group of summaries to each cluster
 *   hub_scorers, hub_configs    own the objects
 *   hub_statuses                writes statuses and finalizers
 *   hub_watches, hub_gauges     the table of watches; gauges
 *   hub_strays                  objects in namespaces that nobody watches
 *   hub                         wires all of it
 *
 * Everything runs on the loop. Pages may read all of it, and change nothing. */
#ifndef DS_HUB_STATE_H
#define DS_HUB_STATE_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/pair.h"
#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/work.h"
#include "controller/hub/state/hub.h"
#include "controller/hub/state/writes.h"
#include "controller/kube/event.h"
#include "controller/kube/queue.h"
#include "controller/kube/watch.h"
#include "controller/placement/name.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/web/access.h"

#define HUB_API       "dynamic-scoring.open-cluster-management.io/v1alpha1"
#define HUB_CONFIG    "dynamic-scoring-config" /* the only DynamicScoringConfig that is used */
#define HUB_FINALIZER "dynamic-scoring.open-cluster-management.io/manifestworks"
/* The reference implementation's: it promises that ManifestWorks go before the DynamicScoringConfig does. */
#define REFERENCE_FINALIZER "dynamic-scoring.open-cluster-management.io/dynamic-scoring-config-finalizer"

enum { HUB_NAMED_CLUSTERS = 10 }; /* clusters named in a status */

enum { HUB_SCORERS, HUB_CONFIGS, HUB_CLUSTERS, HUB_WORKS, HUB_ADDONS, HUB_KINDS };

/* The kinds of objects that the hub watches. */
extern const struct hub_kind {
    const struct kube_resource *resource;
    const char *plural; /* for people: "ManagedClusters" */
} hub_kinds[HUB_KINDS];

/* Clusters with the same kind of error. */
struct cluster_errors {
    size_t n;
    const struct hub_cluster *first; /* by name; NULL: none, or freed since they were counted */
};

/* Counts of the clusters selected for one scorer. */
struct tally {
    size_t selected;
    size_t up_to_date;                        /* ManifestWork holds the newest summary */
    size_t applied;                           /* of up_to_date: applied by the work agent */
    size_t scoring, failing, waiting, silent; /* by class of pair_state; they add up to selected */
    size_t unwritten, unapplied;              /* of failing: ManifestWork not written, not applied */
    size_t stuck;                             /* of up_to_date: the work agent cannot apply it */
    size_t unavailable;                       /* of silent: the cluster or the add-on is not available */
    size_t no_room;                           /* not selected: its ManifestWork is full */
    size_t api_healthy;                  /* its agent got an answer of the scoring API in the last round */
    struct cluster_errors api_unhealthy; /* its agent failed on the scoring API */
    struct cluster_errors write_errors, apply_errors;
    struct cluster_errors unconfirmed; /* of up_to_date: neither applied nor an error yet */
    size_t n_named; /* clusters that do not score: failing ones first, pending ones last, then by name */
    struct {
        const struct hub_cluster *cluster;
        const struct report_cell *cell; /* NULL: the report does not name the scorer */
        enum pair_state pair;
    } named[HUB_NAMED_CLUSTERS];
};

/* A request body, shared by the clusters of one group. */
struct hub_body {
    unsigned refs;
    const struct plan_group *group; /* NULL: for one cluster only, or of an earlier plan */
    struct buf text;
};

struct hub_scorer {
    struct hub *hub;
    json_t *object; /* as last seen */
    char *name;
    int64_t created;         /* Unix time, seconds */
    struct scorer_spec spec; /* the last valid one */
    bool has_spec;
    char spec_error[SPEC_WHY_BYTES]; /* why the newest spec is invalid; empty when it is valid */
    struct probe *probe;
    enum probe_health health; /* as last logged */
    bool eligible;            /* as of the last plan scheduled for that */
    uint64_t probe_hash;      /* the last probe outcome that a status was scheduled for */
    struct effective effective;
    char object_name[OBJECT_NAME_MAX + 1]; /* of its AddOnPlacementScore; empty without */
    const struct hub_scorer *older;        /* owns the same score name or object; NULL when unique */
    const struct hub_scorer *younger;      /* the last of those that are left out in favour of this one */
    bool same_object;                      /* older shares the object only, not the score name */
    size_t entry;                          /* in the plan; SIZE_MAX: not in any summary */
    struct tally tally;
    struct last_status last_status;
    char write_error[768]; /* why its status was not written; empty when it was */
};

struct hub_cluster {
    struct hub *hub;
    char *name;
    bool managed;            /* its ManagedCluster is accepted and not being deleted */
    bool leaving;            /* its ManagedCluster is being deleted, or is gone */
    char *unavailable;       /* why it is not available, one line; NULL: available, or unknown */
    char *addon_unavailable; /* likewise for the agent's add-on on it; NULL also without one */
    bool has_expired_score;  /* as of the last tally */
    struct work_found work;  /* its ManifestWork, as last seen or written */
    struct report report;
    uint64_t bad_report_hash;       /* the last report that could not be read: logged once */
    const struct plan_group *group; /* its summaries; NULL: none planned */
    uint64_t wanted_hash;           /* the group's hash */
    struct kube_call *call;         /* writes its ManifestWork */
    struct hub_body *body;          /* of that call */
    uint64_t call_hash;             /* of the summaries that the call sends */
    uint64_t watched_version;       /* resourceVersion last seen by the watch */
    uint64_t written_version;       /* resourceVersion after our last write */
    uint64_t written_hash;          /* of the summaries last written */
    struct last_write last_write;
    bool behind; /* its ManifestWork is not up to date */
    mono_ms behind_since;
    unsigned failures;     /* of writes, in a row */
    char write_error[512]; /* of the last write; empty when up to date */
};

struct hub_config {
    json_t *object;     /* NULL: does not exist */
    struct masks masks; /* the last valid ones */
    bool has_masks;
    char masks_error[256]; /* why the newest are invalid */
    struct last_status last_status;
    char write_error[768];
};

/* Counts of all clusters. */
struct hub_totals {
    size_t managed;
    size_t up_to_date, behind; /* add up to managed */
    size_t failing;            /* of behind: the last write failed */
    size_t works;              /* ManifestWorks that exist */
    size_t leaving;            /* ManifestWorks still to be deleted */
    size_t applied, unapplied; /* of up_to_date: applied; reported as not applicable */
    size_t reporting, scoring_all, with_failures;
    size_t largest;  /* bytes of the largest summaries */
    size_t left_out; /* scorers without room on some cluster */
    double lag_s;    /* of the cluster that has been behind longest */
    size_t n_named;
    /* Not written or not applied: those with an error first, then by name. */
    const struct hub_cluster *named[HUB_NAMED_CLUSTERS];
};

struct hub {
    struct hub_options o;
    struct hub_watch {
        struct hub *hub;
        struct kube_watch *watch;
    } watches[HUB_KINDS];
    void (*on_synced)(struct hub *h);
    struct hub_strays *strays;
    struct kube_lease *lease; /* NULL without election */
    struct kube_events *events;
    bool leading, stopping;
    bool planned; /* since it leads: a status written before the first plan would lose counts */
    bool active;  /* leads, has listed all objects, and is not stopping: may probe and write */
    mono_ms active_since;
    struct map scorers, clusters; /* by name */
    struct hub_scorer **by_age;   /* all scorers, oldest first */
    size_t n_scorers;
    struct hub_config config;
    bool config_gone;         /* it existed, and was deleted */
    struct map other_configs; /* DynamicScoringConfigs of other names: name → struct hub_config * */
    struct plan *plan;        /* NULL: nothing to distribute */
    struct plan_entry *entries;
    struct hub_scorer **entry_scorers; /* the scorer of each entry */
    size_t n_entries;
    struct buf entry_texts;   /* storage of entries' texts */
    uint64_t *entry_scores;   /* report_score() of each entry */
    size_t *entries_by_score; /* sorted by entry_scores */
    struct masks plan_masks;  /* the plan's own copy */
    struct hub_mask_counts {
        size_t clusters, scores;
    } * mask_counts;           /* of each of these; NULL: not counted */
    struct hub_body *body;     /* the last one made */
    struct kube_queue *works;  /* keys: cluster names */
    struct kube_queue *status; /* keys: "scorer/<name>", "config/<name>" */
    struct hub_write *writes;  /* of statuses, under way */
    void (*on_work_written)(struct hub *h, struct hub_cluster *c);
    struct timer replan, retally;
    bool tallied;    /* totals and tallies are up to date */
    bool was_behind; /* at the last tally */
    struct hub_totals totals;
    int64_t started_ms;
    const struct access *access; /* of the HTTP server, for the status page; NULL before it serves */
};

/* Whether the DynamicScoringConfig exists and is not being deleted. */
bool hub_is_distributing(const struct hub *h);
/* Whether a kind's objects have been listed, or need not be: add-ons only if they can be. */
bool hub_watch_listed(const struct hub *h, size_t kind);
/* Why a kind of objects cannot be watched; NULL when it can, need not be, or nothing is known yet. */
const char *hub_watch_trouble(const struct hub *h, size_t kind);
/* No ManifestWork is created before our finalizer is set: the config could go, and leave the works behind. */
bool hub_config_has_finalizer(const struct hub *h);
/* NULL when there is none of that name. */
struct hub_config *hub_config_find(struct hub *h, const char *name);
struct hub_scorer *hub_scorer_find(const struct hub *h, const char *name);
/* By probes or by agents' reports, as its spec says. Unknown if it is not checked, and on a standby unless
 * the hub probes it. */
enum probe_health hub_scorer_health(const struct hub_scorer *s);
/* "Unknown", "Active", "Inactive" or "Degraded". */
const char *health_word(enum probe_health health);
/* Whether it is still to be seen if /config can be read. Until then the DynamicScorer's own fields, which the
 * next moment may replace, are sent to no cluster that does not have them. */
bool hub_scorer_awaits_config(const struct hub_scorer *s);
/* Whether its health allows it in summaries. A scorer that agents check is always allowed, as nobody could
 * report on it otherwise. */
bool hub_scorer_is_eligible(const struct hub_scorer *s);
/* Whether it shares the AddOnPlacementScore, but not the score name, with its older or younger one. */
bool hub_scorer_shares_object(const struct hub_scorer *s);

enum hub_target { TARGET_UNCHANGED, TARGET_WORK, TARGET_NO_WORK };

/* What its ManifestWork should become. */
enum hub_target hub_cluster_target(const struct hub *h, const struct hub_cluster *c);
/* Whether its ManifestWork has become that. */
bool hub_cluster_in_sync(const struct hub *h, const struct hub_cluster *c);

bool object_is_deleting(const json_t *object);
bool object_has_finalizer(const json_t *object, const char *finalizer);
/* Whether a ManifestWork goes with the DynamicScoringConfig: ours, or one of the reference implementation
 * that we have not written yet. */
bool hub_work_is_ours(const struct hub *h, const struct work_found *w);

#endif
