/* A managed cluster, or one that still has a ManifestWork of ours: what the watches show of it, and what
 * is known of our own writes. Each part says who changes it; everyone may read all of it. Loop thread. */
#pragma once

#include "controller/hub/rules/plan.h"
#include "controller/hub/rules/report.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/json.h"
#include "controller/kube/watch.h"
#include "controller/kube/writer.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"

struct start_text;

/* The agent's add-on on a cluster, as it counts. */
enum hub_addon {
    ADDON_PRESENT, /* or absent for less than ten minutes, or unknown, or on no cluster */
    ADDON_NEVER,   /* it never had one: nothing is created there */
    ADDON_GONE,    /* absent for too long: what is there goes */
};

/* Our writes of a cluster's ManifestWork. Only written/ changes it. */
struct work_write {
    struct kube_object object; /* its goal is the summaries' hash */
    char *contested;           /* that another writer undoes ours, and what to do; NULL: none does */
    json_t *text;              /* of the call: a string that its group shares */
    bool is_late;              /* its ManifestWork is not as it should be */
    mono_ms late_since;
    bool is_swept; /* what its agent has left is deleted, or about to be */
};

struct hub_cluster {
    char *name;
    /* Of its ManagedCluster and ManagedClusterAddOn. clusters.c */
    bool managed;            /* its ManagedCluster is accepted and not being deleted */
    bool leaving;            /* its ManagedCluster is being deleted, or is gone */
    char *unavailable;       /* why it is not available, one line; NULL: available, or unknown */
    char *attributes;        /* cluster_attributes(), for the selectors of adjustments; NULL: none seen */
    char *addon_unavailable; /* likewise for the agent's add-on on it; NULL also without one */
    int64_t addon_unavailable_ms; /* since when, Unix time; 0: it is not, or that is unknown */
    char *addon_namespace; /* where it is, if its agent looks for the ConfigMap in another place than ours */
    /* Of its ManifestWork, as last seen, or as an acknowledged write has left it. clusters.c */
    struct work_found work;
    char *work_uid;  /* NULL: not known, or there is none */
    char *unapplied; /* the work agent's error about it; NULL: none */
    struct report report;
    /* addons.c */
    enum hub_addon addon;
    bool had_addon;        /* ever */
    mono_ms addon_gone_at; /* since when it is absent; 0: it is there, or unknown */
    /* The scorers of its two lists at the start. Private to decisions.c */
    const struct start_text *at_start[2];
    /* As of the last plan. Only written/desired.c changes it */
    const struct plan_group *group; /* its summaries; NULL: none planned */
    struct work_write write;
    struct hub_cluster *next_removed;
};

/* All of them. */
struct clusters {
    struct map by_name;
    /* No longer in the map, but counts may still name them: freed when there are new counts. */
    struct hub_cluster *removed;
};

/* NULL when there is none of that name. */
struct hub_cluster *clusters_find(const struct clusters *all, const char *name);
struct hub_cluster *clusters_find_or_new(struct clusters *all, const char *name, struct kube_writer *works);

/* What the watches show; NULL: its end. Return what has to be looked at again. */
unsigned cluster_see_managed(struct hub_cluster *c, const json_t *object);
unsigned cluster_see_addon(struct hub_cluster *c, const char *agent_namespace, const json_t *object);
/* Whether there is anything to note about the add-on of a cluster that is not known otherwise. */
bool cluster_addon_matters(const char *agent_namespace, const json_t *object);

/* Its ManifestWork is as the watch shows it. frame: work_frame(). */
unsigned cluster_see_work(struct hub_cluster *c, const json_t *object, const json_t *frame);
/* Its ManifestWork is as an acknowledged write has left it; uid: what the answer says, or NULL. */
unsigned cluster_take_work(struct hub_cluster *c, struct work_found work, const char *uid);

/* What has changed in its agent's report. */
enum report_news {
    REPORT_UNCHANGED,
    REPORT_TIMES, /* nothing but times */
    REPORT_CHANGED,
    REPORT_OF_OTHER_VERSION, /* the agent knows other features: it may get other summaries */
};
/* Reads the report in the ManifestWork's status. One that cannot be read leaves the last one active. */
enum report_news cluster_see_report(struct hub_cluster *c, const json_t *object);
void cluster_forget_report(struct hub_cluster *c);
/* The features without which its agent would refuse the whole list, and which it does not name: it is of
 * an older version. 0 while nothing is known of the agent. */
unsigned cluster_lacks(const struct hub_cluster *c);

/* Sets a text that may be NULL, and says whether that changes how the cluster counts. */
unsigned cluster_set_text(char **field, const char *text);

/* A cluster with a work only has left: its ManagedCluster would have been listed. While ManagedClusters
 * cannot be watched it may also be new, with a work created by another controller. */
bool cluster_has_left(const struct hub_cluster *c, const struct kube_watch *managed);

/* Nothing is known of it any more, and nothing is under way. */
bool cluster_is_forgotten(const struct hub_cluster *c);
/* Takes it out of the map; counts may still name it. */
void clusters_remove(struct clusters *all, struct hub_cluster *c);
/* Frees what was removed: no counts name it any more. */
void clusters_free_removed(struct clusters *all);
/* Frees all of them, and cancels their writes. */
void clusters_done(struct clusters *all);
