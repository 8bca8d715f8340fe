/* The hub's controller: distributes DynamicScorers to managed clusters by ManifestWorks, as the
 * DynamicScoringConfig says, and writes the outcome into their statuses. Level-based: a change only says
 * what to look at again, and a relist repairs what was missed. Only the leader probes, writes and sends
 * Events; a standby watches the objects, so that it can take over at once.
 *
 * The room's files, bottom to top, each using those before it only:
 *   state      questions about the state, and what to look at soon: many changes become one look
 *   tally      the state of each scorer on each cluster, and counts over the fleet
 *   status     the statuses of DynamicScorers and DynamicScoringConfigs
 *   statuses   writes statuses, finalizers and Events
 *   decisions  the clusters of each Placement, and those that have only just left it
 *   addons     the clusters that have the agent's add-on, and what is left of an agent where it has gone
 *   clusters   what each ManifestWork should be, and writing it
 *   configs    the DynamicScoringConfigs, and the plan made from them: a group of summaries for each cluster
 *   scorers    the DynamicScorers, their probes and effective configurations
 *   hub        watches, leader election, timers, metrics
 *
 * Everything runs on the loop. Pages may read all of it, and change nothing. */
#pragma once

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/rules.h"
#include "controller/hub/state/reason.h"
#include "controller/kube/json.h"
#include "controller/kube/kube.h"
#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/map.h"
#include "exporter/metric/metrics.h"
#include "exporter/ui/out.h"

#define HUB_API       "dynamic-scoring.open-cluster-management.io/v1alpha1"
#define HUB_CONFIG    "dynamic-scoring-config" /* the only DynamicScoringConfig that is used */
#define HUB_FINALIZER "dynamic-scoring.open-cluster-management.io/manifestworks"
/* The reference implementation's: it promises that ManifestWorks go before the DynamicScoringConfig does. */
#define REFERENCE_FINALIZER "dynamic-scoring.open-cluster-management.io/dynamic-scoring-config-finalizer"

enum { HUB_NAMED_CLUSTERS = 10 }; /* clusters named in a status */
enum { RANK_FAILING, RANK_SILENT, RANK_PENDING };

struct hub_options {
    struct loop *loop;
    struct http *http;
    struct kube *kube;
    struct metrics *metrics;     /* of METRIC_OWNER_LOOP */
    const char *namespace;       /* of the objects, the Lease and the Secrets */
    const char *agent_namespace; /* on managed clusters */
    const char *addon_name;      /* of the ManagedClusterAddOns that tell whether agents run */
    const char *identity;        /* of this process, for the Lease and Events */
    struct probe_settings probe;
    bool leader_elect, keep_unhealthy;
    unsigned api_qps, api_burst; /* write requests per second, and in a burst */
};

/* HUB_CLUSTERS to HUB_ADDONS are watched in all namespaces, the others in the controller's own. */
enum {
    HUB_SCORERS,
    HUB_CONFIGS,
    HUB_CLUSTERS,
    HUB_WORKS,
    HUB_ADDONS,
    HUB_PLACEMENTS,
    HUB_DECISIONS,
    HUB_KINDS
};

/* Clusters of a kind, and the first few of them, by rank, then by name. */
struct named_clusters {
    size_t total, n;
    const struct hub_cluster *list[HUB_NAMED_CLUSTERS];
    unsigned ranks[HUB_NAMED_CLUSTERS];
};
struct counted_clusters {
    size_t total;
    const struct hub_cluster *first; /* by name; NULL: none */
};

/* Counts of the clusters selected for one scorer. */
struct tally {
    size_t selected;
    size_t up_to_date;                     /* ManifestWork holds the newest summary */
    size_t applied;                        /* of up_to_date: applied by the work agent */
    size_t of_class[PAIR_CLASSES];         /* they add up to selected */
    size_t not_applied;                    /* of those that fail: ManifestWork not written or not applied */
    size_t stuck;                          /* of up_to_date: the work agent cannot apply it */
    size_t no_items;                       /* of empty: there were results, but none led to an item */
    size_t unavailable;                    /* of silent: the cluster or the add-on is not, or is elsewhere */
    size_t reporting;                      /* an agent has reported */
    size_t scored_meanwhile;               /* of suspended: its agent scored after probes had failed */
    size_t no_room;                        /* not selected: its ManifestWork is full */
    size_t api_healthy;                    /* its agent got an answer of the scoring API in the last round */
    struct counted_clusters api_unhealthy; /* its agent failed on the scoring API */
    struct counted_clusters write_errors, apply_errors;
    struct counted_clusters unconfirmed; /* of up_to_date: neither applied nor an error yet */
    struct named_clusters one_item;      /* their agents use the first of scoreItems only */
    struct named_clusters named;         /* that do not score: failing ones first, pending ones last */
};

/* The last status written, kept so that nothing is written twice. */
struct last_status {
    json_t *sent;
    json_t *result; /* what the server stored: a CRD of another make may prune members */
    char *key;      /* in the queue; NULL: nothing was written yet */
    struct kube_object status, finalizer;
    bool event_sent; /* of a fight that is on over either */
    json_t *sending; /* the status under way */
    json_t *before;  /* the object's status until then */
};

/* Which list of the ManifestWorks has it: the one that agents work on, or the suspended one. */
enum hub_place { PLACE_NONE, PLACE_SUMMARIES, PLACE_SUSPENDED };

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
    enum hub_place place;     /* as of the last plan scheduled for that */
    int64_t suspended_ms;     /* Unix time at which it became unhealthy, in whole seconds; 0: it is not */
    int64_t distributed_ms;   /* Unix time at which a first cluster had it in its summaries; 0: none has */
    uint64_t probe_hash;      /* the last probe outcome that a status was scheduled for */
    struct effective effective;
    char object_name[OBJECT_NAME_MAX + 1]; /* of its AddOnPlacementScore; empty without */
    const struct hub_scorer *older;        /* owns the same score name or object; NULL when unique */
    const struct hub_scorer *younger;      /* the last of those that are left out in favour of this one */
    bool same_object;                      /* older shares the object only, not the score name */
    size_t n_without_addon;                /* clusters that would be selected, as of the last plan */
    char *first_without_addon;             /* one of them */
    struct map held;                       /* clusters whose ManifestWork had it at the start: decisions.c */
    size_t entry;                          /* in the plan; SIZE_MAX: not in any summary */
    struct tally tally;
    struct last_status last_status;
};

/* The agent's add-on on a cluster, as it counts. */
enum hub_addon {
    ADDON_PRESENT, /* or absent for less than ten minutes, or unknown, or on no cluster */
    ADDON_NEVER,   /* it never had one: nothing is created there */
    ADDON_GONE,    /* absent for too long: what is there goes */
};

struct hub_cluster {
    struct hub *hub;
    char *name;
    bool managed;            /* its ManagedCluster is accepted and not being deleted */
    bool leaving;            /* its ManagedCluster is being deleted, or is gone */
    char *unavailable;       /* why it is not available, one line; NULL: available, or unknown */
    char *addon_unavailable; /* likewise for the agent's add-on on it; NULL also without one */
    char *addon_namespace;  /* where it is, if its agent looks for the ConfigMap in another place than ours */
    bool has_expired_score; /* as of the last tally */
    struct work_found work; /* its ManifestWork, as last seen or written */
    char *unapplied;        /* the work agent's error about it; NULL: none */
    char *contested;        /* that another writer undoes ours, and what to do; NULL: none does */
    /* The scorers of its two lists at the start. Private to decisions.c */
    const struct held_text *held[2];
    struct report report;
    const struct plan_group *group; /* its summaries; NULL: none planned */
    struct kube_object write;       /* of its ManifestWork; its state is the summaries' hash */
    json_t *text;                   /* of the call: a string that its group shares */
    bool behind;                    /* its ManifestWork is not up to date */
    mono_ms behind_since;
    struct hub_cluster *next_gone;
    /* addons.c: the agent's add-on on it. */
    enum hub_addon addon;
    bool had_addon;        /* ever */
    bool is_swept;         /* what its agent has left is deleted, or about to be */
    mono_ms addon_gone_at; /* since when it is absent; 0: it is there, or unknown */
};

/* Private to decisions.c, but for the cut. */
struct hub_decisions {
    struct map objects;       /* PlacementDecisions of the hub's namespace: name → json_t * */
    struct map decided;       /* struct decided, by Placement */
    bool changed;             /* since the last review */
    size_t reviews;           /* so far */
    mono_ms due;              /* when a cluster that has left ceases to count; 0: none has */
    bool is_starting;         /* not all objects have been listed yet */
    struct map texts;         /* struct held_text, while it starts */
    mono_ms held_at;          /* since when the scorers' `held` count; 0: they do not */
    struct kube_cut work_cut; /* of the watch of the ManifestWorks */
};

/* Private to addons.c. */
struct hub_addons {
    struct map present;       /* the names of clusters with the agent's add-on */
    mono_ms since;            /* absences before this do not count */
    mono_ms due;              /* when the next absence has lasted too long; 0: none will */
    struct kube_queue *queue; /* of clusters that are swept */
    struct kube_call *call;   /* for one of them */
    char *cluster;            /* which */
    json_t *left;             /* the list of its scores; NULL: not read yet */
};

struct hub_config {
    json_t *object;        /* NULL: does not exist */
    struct masks masks;    /* the last valid ones; owner is NULL without any */
    char masks_error[256]; /* why the newest are invalid */
    struct last_status last_status;
};

/* Counts of all clusters. */
struct hub_totals {
    size_t managed;
    size_t up_to_date, behind; /* add up to managed */
    size_t failing;            /* of behind: the last write failed */
    size_t leaving;            /* ManifestWorks still to be deleted */
    size_t applied, unapplied; /* of up_to_date: applied; reported as not applicable */
    size_t reporting, scoring_all, with_failures;
    size_t largest;                        /* bytes of the largest summaries */
    size_t left_out;                       /* scorers without room on some cluster */
    double lag_s;                          /* of the cluster that has been behind longest */
    int64_t look_ms;                       /* Unix time of the next change by time alone; INT64_MAX: none */
    struct named_clusters named;           /* not written or not applied: those with an error first */
    struct counted_clusters works;         /* ManifestWorks that exist */
    struct counted_clusters without_addon; /* accepted, but not managed: they lack the agent's add-on */
};

struct hub {
    struct hub_options o;
    struct hub_watch {
        struct hub *hub;
        struct kube_watch *watch;
    } watches[HUB_KINDS];
    struct stray_watch { /* of objects in namespaces that nobody watches */
        struct hub *hub;
        const struct kube_resource *resource;
        struct kube_queue *queue; /* keys: "<namespace>/<name>/<uid>" */
        struct kube_watch *watch;
    } strays[2];
    bool strays_unseen;       /* logged that some of them cannot be watched */
    struct kube_lease *lease; /* NULL without election */
    struct kube_events *events;
    bool leading, stopping;
    bool planned; /* since it leads: a status written before the first plan would lose counts */
    bool active;  /* leads, has listed all objects, and is not stopping: may probe and write */
    mono_ms active_since;
    struct map clusters;        /* by name */
    struct hub_cluster *gone;   /* no longer in the map, but perhaps in tallies: freed with the next one */
    struct hub_scorer **by_age; /* all scorers, oldest first */
    size_t n_scorers;
    struct hub_config config;
    bool config_gone;         /* it existed, and was deleted */
    struct map other_configs; /* DynamicScoringConfigs of other names: name → struct hub_config * */
    struct map placements;    /* Placements of its namespace: name → json_t * */
    struct hub_decisions decisions;
    struct hub_addons addons;
    struct plan *plan;                /* NULL: nothing to distribute */
    json_t *text;                     /* of the ManifestWorks of a group of the plan: the last one made */
    const struct plan_group *text_of; /* NULL: none */
    json_t *frame;                    /* work_frame() */
    struct kube_writer works;         /* its keys: names of clusters */
    struct kube_writer status;        /* "scorer/<name>", "config/<name>" */
    struct timer replan, retally;
    mono_ms looked_at; /* when all statuses were looked at the last time */
    mono_ms tallied_at;
    bool tallied;    /* totals and tallies are up to date */
    bool tally_fits; /* only clusters have changed since */
    struct hub_totals totals;
    int64_t started_ms;
    const struct access *access; /* of the HTTP server, for the status page; NULL before it serves */
};

/* The kinds of objects that the hub watches. */
extern const struct hub_kind {
    const char *plural; /* for people: "ManagedClusters" */
    /* name: of the object, or of its cluster. object: NULL when it is gone. */
    void (*seen)(struct hub *h, const char *name, json_t *object);
    struct kube_watch_options options;
} hub_kinds[HUB_KINDS];

/* ---- state.c ---- */

/* Makes a new plan within 20 ms. */
void hub_schedule_plan(struct hub *h);
/* Counts clusters again, and then looks at all statuses: within a second, or at most 10 ms for each cluster
 * or 10 s after the last time. */
void hub_schedule_tally(struct hub *h);
/* Likewise when only a cluster has changed. */
void hub_schedule_recount(struct hub *h);
/* Likewise when time alone changes a state: scores expire, or a scorer has waited long enough. */
void hub_schedule_look(struct hub *h);
/* Looks at the status of a "scorer" or "config". hurry: a user has changed the object, so ends a back-off. */
void hub_schedule_status(struct hub *h, const char *kind, const char *name, bool hurry);

void hub_count_reconcile(struct hub *h, const char *controller, bool ok);

/* Whether a kind's objects have been listed, or need not be: add-ons only if they can be. */
bool hub_watch_listed(const struct hub *h, size_t kind);
/* Why a kind of objects cannot be watched; NULL when it can, need not be, or nothing is known yet. */
const char *hub_watch_trouble(const struct hub *h, size_t kind);

bool object_is_deleting(const json_t *object);
bool object_has_finalizer(const json_t *object, const char *finalizer);
/* By content, too: after a restore from a backup, another spec may have the same generation. */
bool object_has_same_spec(const json_t *a, const json_t *b);
/* metadata.generation; 0 without. */
int64_t object_generation(const json_t *object);
/* Whether the DynamicScoringConfig exists and is not being deleted. */
bool hub_is_distributing(const struct hub *h);
/* Whether a scorer names Placements. */
bool hub_uses_placements(const struct hub *h);
/* NULL when there is none of that name. */
struct hub_scorer *hub_scorer_find(const struct hub *h, const char *name);
/* By probes or agents' reports. Unknown if it is not checked, and on a standby unless the hub probes it. */
enum probe_health hub_scorer_health(const struct hub_scorer *s);
/* "Unknown", "Active", "Inactive" or "Degraded". */
const char *health_word(enum probe_health health);
/* Whether it is still to be seen if /config can be read: until then its own fields go to no new cluster. */
bool hub_scorer_awaits_config(const struct hub_scorer *s);
/* What its health allows. One that agents check is always in the summaries: nobody else reports on it. */
enum hub_place hub_scorer_place(const struct hub_scorer *s);
/* The first of its Placements that gives it no cluster, with a condition's reason, and `why`; or NULL. */
const char *hub_scorer_bad_placement(const struct hub_scorer *s, enum hub_reason *reason, char why[256]);
/* Whether it shares the AddOnPlacementScore, but not the score name, with its older or younger one. */
bool hub_scorer_shares_object(const struct hub_scorer *s);
/* Whether it goes with the DynamicScoringConfig: ours, or the reference's that we have not written yet. */
bool hub_work_is_ours(const struct hub *h, const struct work_found *w);

enum hub_target { TARGET_UNCHANGED, TARGET_WORK, TARGET_NO_WORK };

/* What a cluster's ManifestWork should become, and whether it has become that. */
enum hub_target hub_cluster_target(const struct hub *h, const struct hub_cluster *c);
bool hub_cluster_in_sync(const struct hub *h, const struct hub_cluster *c);

/* Why the cluster's ManifestWork is not as it should be, or does not stay so; NULL: it is and does. */
const char *hub_cluster_write_error(const struct hub_cluster *c);

/* Frees h->gone. */
void hub_clusters_free_gone(struct hub *h);

/* Whether the counts of the plan's masks are those of the newest masks. */
bool hub_masks_counted(const struct hub *h);

enum { MASK_WARNING_BYTES = 800 };

/* Why mask i matches nothing; empty when it matches. */
void hub_mask_warning(char ret[MASK_WARNING_BYTES], const struct hub *h, size_t i);

/* ---- tally.c ---- */

enum { TALLY_FIELDS = 10 };

/* Counts of a tally that are told: the member of statuses and of JSON, and the state of the metric. */
extern const struct tally_field {
    const char *member, *state;
    size_t offset;
} tally_fields[TALLY_FIELDS];

static inline size_t tally_count(const struct tally *t, size_t field)
{
    return *(const size_t *)(const void *)((const char *)t + tally_fields[field].offset);
}

/* The scorer in the cluster's report; NULL when it is not there, or not selected. */
const struct report_cell *hub_pair_cell(const struct hub_scorer *s, const struct hub_cluster *c);
/* pair_state() now. *ret: what decides it, for pair_reason(). */
enum pair_state hub_pair_state(const struct hub_scorer *s, const struct hub_cluster *c,
                               struct pair_facts *ret);
/* Until when (Unix time) a scorer without any score counts as starting: twice its interval after the first
 * distribution, or twice the time between reports if that is longer. INT64_MAX before the first one. */
int64_t hub_scorer_patience_ms(const struct hub_scorer *s);
/* Brings h->totals and each scorer's tally up to date, unless h->tallied. */
void hub_tally(struct hub *h);

/* ---- status.c ---- */

/* The complete status as a merge patch: null for members to remove. A new reference. */
json_t *status_of_scorer(const struct hub_scorer *s);
json_t *status_of_config(const struct hub *h, const struct hub_config *c);
/* The condition of an object that another writer keeps changing, while it does. */
#define HUB_CONTESTED "Contested"
/* A sentence about the fight over a status or a finalizer of that object, on the heap. */
char *status_fight_text(const struct last_status *l, const struct kube_object *fought, const char *kind,
                        const char *name);
/* Whether condition Ready is true. */
bool status_scorer_ready(const struct hub_scorer *s);

/* ---- statuses.c ---- */

/* Cancels what is under way. */
void last_status_done(struct last_status *s);
/* The work of the queue h->status. hub: a struct hub. */
void hub_status_write(void *hub, const char *key);
/* Likewise of its writer. */
void hub_status_on_fight(void *hub, struct kube_object *o);
/* An Event about a fight that has begun. about: the object that it appears with; NULL: none. */
void hub_event_of_fight(struct hub *h, const json_t *about, const struct kube_resource *resource,
                        const char *text);
/* Cancels the writes under way. */
void hub_statuses_cancel(struct hub *h);

/* ---- decisions.c ---- */

/* Before the first list: the texts of ManifestWorks are read until hub_decisions_resume(). */
void hub_decisions_begin(struct hub *h);
/* All objects have been listed. Ignored but for the first time. */
void hub_decisions_resume(struct hub *h);
/* A ManifestWork as the watch shows it. */
void hub_decisions_note_work(struct hub *h, struct hub_cluster *c, const json_t *work);
/* Before a plan: brings up to date which clusters count. */
void hub_decisions_review(struct hub *h);
/* Milliseconds until the next review is due; INT64_MAX: not by time alone. */
int64_t hub_decisions_due_ms(const struct hub *h);
/* How many clusters of that Placement count. */
size_t hub_placement_clusters(const struct hub *h, const char *placement);
/* The names of the clusters that the scorer's Placements give it, on the heap; NULL: all clusters. The names
 * live until the next review. */
struct map *hub_scorer_clusters(const struct hub_scorer *s);
/* What its clusters held at the start counts no longer. */
void hub_scorer_drop_held(struct hub_scorer *s);
void hub_decisions_free(struct hub *h);

void hub_placement_seen(struct hub *h, const char *name, json_t *object);
void hub_decision_seen(struct hub *h, const char *name, json_t *object);

/* ---- addons.c ---- */

void hub_addons_begin(struct hub *h);
/* What the watch shows. */
void hub_addons_note(struct hub *h, const char *cluster, bool exists);
/* There was no news for a while: absences count from now. */
void hub_addons_note_gap(struct hub *h);
/* Before a plan: brings up to date which clusters lack the add-on. */
void hub_addons_review(struct hub *h);
/* Milliseconds until the next review is due; INT64_MAX: not by time alone. */
int64_t hub_addons_due_ms(const struct hub *h);
/* Cancels what is under way. */
void hub_addons_cancel(struct hub *h);
void hub_addons_free(struct hub *h);

/* ---- clusters.c: the managed ones, and those that still have a ManifestWork of ours ---- */

/* The work of the queue h->works. hub: a struct hub. */
void hub_work_write(void *hub, const char *cluster);
/* Likewise of its writer. */
void hub_work_on_fight(void *hub, struct kube_object *o);
/* Cancels the writes under way. */
void hub_works_cancel(struct hub *h);
/* Has the ManifestWork written if it is not as it should be. */
void hub_cluster_reconcile(struct hub *h, struct hub_cluster *c);
/* Before a plan: clusters without a ManagedCluster have left, and works that their watch lacks are gone. */
void hub_clusters_review(struct hub *h);
void hub_clusters_free(struct hub *h);

void hub_managed_seen(struct hub *h, const char *cluster, json_t *object);
void hub_addon_seen(struct hub *h, const char *cluster, json_t *object);
void hub_work_seen(struct hub *h, const char *cluster, json_t *object);

/* ---- configs.c ---- */

void hub_config_seen(struct hub *h, const char *name, json_t *object);
void hub_configs_free(struct hub *h);
/* Finds duplicate score names, makes the plan, and assigns a group to each cluster. */
void hub_plan_make(struct hub *h);
void hub_plan_done(struct hub *h);

/* ---- scorers.c ---- */

void hub_scorer_seen(struct hub *h, const char *name, json_t *object);
void hub_scorers_free(struct hub *h);
/* Starts all probes, or stops them, by h->active. */
void hub_update_probes(struct hub *h);

/* ---- hub.c ---- */

/* Starts watching the objects. Everything in the options must outlive the hub. */
struct hub *hub_new(const struct hub_options *o);
/* Stops leading and releases the Lease; then calls `done` (may be NULL), also after a failure. */
void hub_stop(struct hub *h, void (*done)(void *arg), void *arg);
struct hub *hub_free(struct hub *h);

/* Whether all objects have been listed once. */
bool hub_synced(const struct hub *h);
/* Starts or stops probing and writing, after h->leading or the state of the watches has changed. */
void hub_update_active(struct hub *h);
/* Brings the gauges up to date, before they are rendered. hub: a struct hub. */
void hub_set_metrics(void *hub);
