/* Inside of the hub's page and JSON: what both show, put in order. */
#ifndef DS_HUB_STATUS_VIEW_H
#define DS_HUB_STATUS_VIEW_H

#include "controller/hub/hub_internal.h"
#include "exporter/agent/status_page.h"

enum view_ready { VIEW_NOT_READY, VIEW_UNKNOWN, VIEW_READY };

struct view_scorer {
    const struct hub_scorer *s;
    const struct probe_status *probe; /* never NULL */
    json_t *status;                   /* a reference: as it should be; on a standby, as the leader wrote it */
    enum view_ready ready;            /* by its condition Ready */
    uint64_t score;                   /* report_score() of the score name */
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

/* A scorer on a cluster. */
enum view_cell {
    CELL_OK,
    CELL_FAILING,
    CELL_WAITING, /* for its first round */
    CELL_SILENT,  /* the cluster's agent says nothing of it */
    CELL_BEHIND,  /* the newest summary is still on its way */
    CELL_REFUSED, /* the ManifestWork could not be written */
    CELL_NO_ROOM,
    CELL_NONE, /* masked, or in no summary */
    CELLS
};
/* *ret_cell: what the agent says, NULL without. */
enum view_cell view_cell(const struct view *v, const struct hub_cluster *c, const struct view_scorer *s,
                         const struct report_cell **ret_cell);
/* The agent's words for what fails there, one line; "" without. */
const char *view_cell_error(const struct hub_cluster *c, const struct report_cell *cell);

/* What is wrong with a cluster: the worst of it. */
enum view_trouble {
    TROUBLE_WRITE,
    TROUBLE_APPLY,
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

/* Parts of the page. */
void view_html_note(struct out *o, bool bad, const char *what, const char *text);
void view_html_scorers(struct out *o, const struct view *v);
void view_html_details(struct out *o, const struct view *v);
bool view_matrix_fits(const struct view *v);
void view_html_matrix(struct out *o, const struct view *v);
void view_html_clusters(struct out *o, const struct view *v);
void view_html_config(struct out *o, const struct view *v);
/* "ready", "not ready", "unknown", coloured. */
void view_html_ready(struct out *o, enum view_ready ready);
/* One scorer's card. */
void view_html_scorer(struct out *o, const struct view *v, size_t i, bool unfolded);
/* Where its configuration comes from. */
const char *view_source_words(const struct view_scorer *s);

#endif
