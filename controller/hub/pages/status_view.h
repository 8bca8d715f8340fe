/* Inside of the hub's page and JSON: what both show, put in order. */
#ifndef DS_HUB_STATUS_VIEW_H
#define DS_HUB_STATUS_VIEW_H

#include "controller/hub/pages/status_view_pair.h"
#include "exporter/agent/status_page.h"

enum view_ready { VIEW_NOT_READY, VIEW_UNKNOWN, VIEW_READY };

struct view_scorer {
    const struct hub_scorer *s;
    const struct probe_status *probe; /* never NULL */
    json_t *status;                   /* a reference: as it should be; on a standby, as the leader wrote it */
    enum view_ready ready;            /* by its condition Ready */
    bool troubled;                    /* not ready, or something about it fails */
};

struct view {
    struct hub *h;
    int64_t now_ms;
    struct view_scorer *scorers;
    size_t n_scorers;
    const struct hub_cluster **clusters; /* all, by name */
    size_t n_clusters;
};

/* Counts the hub first. Scorers come by their names, or those in trouble first. -ENOMEM. */
MUST_USE int view_make(struct view *ret, struct hub *h, bool troubled_first);
void view_done(struct view *v);

/* NULL when there is none of that name. */
const struct view_scorer *view_scorer_find(const struct view *v, const char *name);

/* What is wrong with a cluster: the worst of it. */
enum view_trouble {
    TROUBLE_WRITE,
    TROUBLE_APPLY,
    TROUBLE_AWAY,
    TROUBLE_SCORING,
    TROUBLE_REPORT,
    TROUBLE_BEHIND,
    TROUBLE_NONE
};
enum view_trouble view_cluster_trouble(const struct hub_cluster *c);
/* Scorers that fail there, by its agent's report. */
size_t view_cluster_failing(const struct hub_cluster *c);
/* How long the cluster has been behind, in milliseconds; 0 when it is not. */
int64_t view_behind_ms(const struct view *v, const struct hub_cluster *c);

/* The watches by the names of their kinds: for i from 0; false after the last. */
bool view_watch(const struct hub *h, size_t i, const char **ret_kind, const struct kube_watch **ret);
/* "healthy", "unhealthy", "unknown". */
const char *view_health_word(enum probe_health health);

/* ---- Links ---- */

#define VIEW_SCORER  "/scorer"
#define VIEW_CLUSTER "/cluster"

/* <path>?name=<name>, fit for a URL and for an attribute. */
void view_put_url(struct out *o, const char *path, const char *name);
/* The name, as a link to the page of what has it. */
void view_html_link(struct out *o, const char *path, const char *name);

/* ---- Parts of the pages ---- */

/* What concerns all of the hub. */
void view_html_notes(struct out *o, const struct hub *h);
void view_html_note(struct out *o, bool bad, const char *what, const char *text);
void view_html_scorers(struct out *o, const struct view *v);
void view_html_details(struct out *o, const struct view *v);
bool view_matrix_fits(const struct view *v);
void view_html_matrix(struct out *o, const struct view *v);
void view_html_clusters(struct out *o, const struct view *v);
void view_html_config(struct out *o, const struct view *v);
/* "ready", "not ready", "unknown", coloured. */
void view_html_ready(struct out *o, enum view_ready ready);
/* The worst of what is wrong with a cluster, coloured. */
void view_html_trouble(struct out *o, enum view_trouble t);
/* One scorer's card. */
void view_html_scorer(struct out *o, const struct view *v, const struct view_scorer *s, bool unfolded);
/* The same on the scorer's own page, with all its clusters and conditions. */
void view_html_scorer_in_full(struct out *o, const struct view *v, const struct view_scorer *s);
/* Where its configuration comes from. */
const char *view_source_words(const struct view_scorer *s);

/* ---- Pairs ---- */

struct view_look {
    const char *sign, *class, *word;
};
extern const struct view_look view_looks[PAIR_STATES];

/* Clusters where the scorer has a trouble, the first of them. */
void view_html_failing(struct out *o, const struct view *v, const struct view_scorer *s);
/* All clusters of a scorer, all scorers of a cluster; those that do not score first. */
void view_html_scorer_pairs(struct out *o, const struct view *v, const struct view_scorer *s);
void view_html_cluster_pairs(struct out *o, const struct view *v, const struct hub_cluster *c);

#endif
