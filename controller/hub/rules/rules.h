/* Pure rules: which summaries each cluster gets, the ManifestWork that carries them, and what comes back. */
#pragma once

#include "controller/hub/rules/adjustments.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"
#include "exporter/score/feature.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/summary.h"

/* ---- spec.c: the spec of a DynamicScorer and the /config of a scoring API, parsed into one struct ----
 *
 * Both have a source and a scoring endpoint; a DynamicScorer has more. All strings point into a JSON
 * document that is owned here. A value that is absent, null or empty reads as NULL (0 for numbers): the
 * effective configuration adds the defaults. controller/README.md has the aliases. */

enum { SPEC_MAX_SOURCES = 16, SPEC_WHY_BYTES = 512, API_CONFIG_MAX_BYTES = 128 << 10 };

enum sync_mode { SYNC_NONE, SYNC_FULL };

/* Who finds out whether the scoring API is healthy. */
enum health_check { HEALTH_CHECK_HUB, HEALTH_CHECK_AGENTS, HEALTH_CHECK_NONE };
/* "Hub", "Agents", "None". */
const char *health_check_word(enum health_check c);

/* A Secret, and the key of its bearer token. name is NULL for none; key, for its other credentials alone. */
struct token_ref {
    const char *name, *key;
};

/* Credentials, and the hosts that they may be sent to. Never set in /config. */
struct auth {
    struct token_ref token;
    const char *hosts[2];        /* in the DynamicScorer, the field's own first; NULL for none */
    const json_t *allowed_hosts; /* strings such as "https://prometheus.example:9090", or "*"; NULL: none */
};

struct source_spec {
    enum source_type type;
    const char *host, *path, *query;
    int64_t range_s, step_s;
    struct auth auth;
};

struct scoring_spec {
    const char *host, *path, *score_name;
    int64_t interval_s;
    const json_t *params; /* query parameters: strings, numbers, booleans; NULL: none */
    struct auth auth;
};

/* The fields that both documents have. */
struct api_config {
    json_t *owner; /* a reference; NULL: nothing read */
    const char *name, *description;
    struct source_spec sources[SPEC_MAX_SOURCES];
    size_t n_sources;
    struct scoring_spec scoring;
};

struct scorer_spec {
    enum sync_mode mode;
    enum health_check health_check;
    const char *config_url;
    struct token_ref config_token;      /* of configAuth; the Secret is in the controller's namespace */
    const char *location, *destination; /* canonical spellings */
    const char *dimension_format, *aggregation;
    const json_t *score_items, *score_range, *score_tolerance, *fallback_score, *timeout; /* as written */
    const json_t *placements; /* names of Placements whose clusters get it; NULL: all clusters do */
    struct api_config own;
};

/* object: the whole DynamicScorer, of which a reference is kept. Unknown fields are ignored. -EINVAL with all
 * errors in `why`, each with its field ("spec.configURL: expected ..."); then only health_check is set. */
MUST_USE int scorer_spec_read(struct scorer_spec *ret, json_t *object, char why[SPEC_WHY_BYTES]);
void scorer_spec_done(struct scorer_spec *s);

/* Parses the body of a /config response. All is optional, but an error document has neither `source` nor
 * `scoring`. -EINVAL with all errors in `why`, each with its field; -EBADMSG, with its position: not JSON. */
MUST_USE int api_config_parse(struct api_config *ret, struct str body, char why[SPEC_WHY_BYTES]);
/* Like api_config_parse(), of status.lastSyncedConfig, where "" and 0 are absent. Keeps a reference. */
MUST_USE int api_config_read(struct api_config *ret, json_t *value, char why[SPEC_WHY_BYTES]);
/* status.lastSyncedConfig, a new reference, with "" and 0 for absent members that its schema requires. */
json_t *api_config_value(const struct api_config *c);
void api_config_done(struct api_config *c);

/* ---- effective.c: the summary that agents receive ----
 *
 * In Full mode a field comes from /config, else from the DynamicScorer, else from the default; in None
 * mode /config is ignored. scoring.host defaults to the host of configURL. */

enum effective_reason {
    EFFECTIVE_OK,
    EFFECTIVE_INCOMPLETE, /* a field is missing or invalid: agents would reject the summary */
    EFFECTIVE_TOKEN_HOST, /* /config would send a token to a host that the DynamicScorer does not allow */
    EFFECTIVE_WAITING, /* Full mode, nothing synced yet, and the DynamicScorer's own fields are incomplete */
};

enum config_source { CONFIG_FROM_SPEC, CONFIG_FROM_API };

struct effective {
    enum effective_reason reason;
    char error[SPEC_WHY_BYTES]; /* names the fields as the DynamicScorer spells them; empty on EFFECTIVE_OK */
    char warning[SPEC_WHY_BYTES]; /* on EFFECTIVE_OK: what may be a mistake; usually empty */
    bool unknown_placeholder;     /* it is about one, in a format of items or in the URL of the scoring API */
    enum sync_mode mode;
    enum config_source source;
    char *score_name; /* also set on errors in other fields; NULL when unknown */
    struct buf text;  /* the summary, a compact JSON object; empty unless EFFECTIVE_OK or kept */
    int64_t interval_ms;
    unsigned needs;          /* features of agents (exporter/score/feature.h) that do all it says */
    bool only_spec_is_wrong; /* on EFFECTIVE_INCOMPLETE: no /config would help */
    bool kept; /* the last good summary stays active: only reason and error are about the newest */
};

/* Whether there is a summary to distribute. */
static inline bool effective_usable(const struct effective *e)
{
    return e->text.n > 0;
}

/* name: metadata.name. synced: the last good /config; NULL or an empty one without. A summary that is
 * EFFECTIVE_OK passes summary_parse() and is the same, byte for byte, for the same input. */
void effective_make(struct effective *ret, const char *name, const struct scorer_spec *spec,
                    const struct api_config *synced);
void effective_done(struct effective *e);
/* A previous controller's summary, from the status, as after effective_keep(). False if agents reject it. */
bool effective_resume(struct effective *ret, struct str text, enum config_source source);
/* Keeps the last good summary active while the newest spec is incomplete, or its new configURL `unread`:
 * moves *last into *now, with now->kept set, and returns true. Not after a change of the mode or of the score
 * name, nor when the newest spec no longer allows where its tokens go. */
bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest,
                    bool unread);

/* Appends the fields of the DynamicScorer that the /config of mode Full replaces by other values, such as
 * "spec.source.params.query, spec.scoring.params.interval"; nothing if there are none. */
void effective_overrides(const struct scorer_spec *spec, const struct api_config *synced, struct buf *into);

/* ---- report.c: what a cluster's agent reports about its scorers ----
 *
 * The ConfigMap dynamic-scoring-status, see agent_report.c, read into few bytes, as they are kept for all
 * clusters times all scorers. */

struct report_cell {
    uint64_t score;     /* report_score() of the score name */
    uint32_t succeeded; /* lastSuccess, Unix time in seconds; 0: never or unknown */
    uint32_t life : 19; /* seconds from then until its scores expire; 0: unknown */
    uint32_t error : 7; /* 1 + index in errors; 0: none kept */
    enum scorer_state state : 3;
    bool placement : 1;  /* the AddOnPlacementScore cannot be written; state may still be ok */
    bool api_failed : 1; /* the scoring API made the last round fail */
    bool no_items : 1;   /* the last round succeeded, and led to no item of the AddOnPlacementScore */
};
_Static_assert(SCORER_STATES <= 1 << 3, "a state fits its bits");

enum { REPORT_MAX_ERRORS = 64, REPORT_ERROR_BYTES = 416, REPORT_MAX_CELLS = 4096 };

struct report {
    bool exists;          /* an agent has reported */
    bool config_ok;       /* configurationInForce */
    bool config_rejected; /* the agent's scorers are those of an older configuration, or none */
    unsigned features;    /* that the agent names (exporter/score/feature.h) */
    /* How far the clock of the hub's API server is ahead of the agent's; 0 below 30 s, and if unknown. The
     * agent's times are corrected by it. */
    int32_t clock_offset_s;
    uint64_t hash; /* hash_bytes() of the text, so that the same text is not read again */
    char *problem; /* configurationProblems or hubError, one line; NULL for none */
    struct report_cell *cells;
    uint32_t n, not_shown; /* not_shown: the agent's scorers without a cell */
    uint32_t n_errors;
    char **errors; /* one line each, all different; of the first cells that have one */
};

/* Unknown members are ignored, as are cells without a name or with an unknown state. An empty text is an
 * absent report. -EINVAL if the text is not a report. */
MUST_USE int report_parse(struct report *ret, struct str text);
void report_done(struct report *r);
/* Whether both are equal except for the times of the last successes. */
bool report_same(const struct report *a, const struct report *b);
/* NULL when the report does not name the score. */
const struct report_cell *report_find(const struct report *r, uint64_t score);
/* The cell's error; "" when none was kept. */
const char *report_error(const struct report *r, const struct report_cell *c);
uint64_t report_score(struct str score_name);
/* Whether its state is failing or stale, or it has no placement score. */
bool report_cell_fails(const struct report_cell *c);

/* ---- pair.c: the state of one scorer on one cluster, and the words for it ---- */

/* In the order in which people see them: failing first, then not scoring, then scoring. */
enum pair_state {
    PAIR_NOT_WRITTEN, /* the hub cannot write the ManifestWork */
    PAIR_NOT_APPLIED, /* the work agent cannot apply the ManifestWork */
    PAIR_REFUSED,     /* the agent rejects its configuration and has no older one with this scorer */
    PAIR_FAILING,
    PAIR_STALE,       /* failing, and its scores have expired */
    PAIR_NOT_PLACED,  /* scores, but its AddOnPlacementScore cannot be written */
    PAIR_UNAVAILABLE, /* the cluster, or the agent's add-on on it, is not available */
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

/* Of a cluster that is selected. Never PAIR_BEHIND, so that tallies count what the agent does meanwhile. */
enum pair_state pair_state(const struct pair_facts *f);

/* Whether it does not score only because something has yet to happen: no news, but no error either. */
bool pair_is_pending(enum pair_state s);

/* What people see: PAIR_BEHIND instead of a pending or a good state while the cluster is behind. */
enum pair_state pair_state_shown(enum pair_state s, bool behind);

/* One line; empty for states without a reason. Needs only texts, report, cell, `in_sync` and `applied`. */
void pair_reason(char ret[PAIR_REASON_BYTES], enum pair_state s, const struct pair_facts *f);

/* ---- plan.c: which summaries each cluster receives, by all scorers and the masks ----
 *
 * Most clusters receive the same, so they are grouped by their set of scorers. A group keeps only the set
 * and a hash of its text; the text is made when a ManifestWork is written. */

/* Which cluster leaves out which score. `*` matches any characters, `?` one. */
struct mask {
    const char *cluster, *score;
};

struct masks {
    json_t *owner;
    struct mask *list;
    size_t n;
};

/* Parses spec.masks and its alias spec.mask. object: the whole DynamicScoringConfig, of which a reference
 * is kept. -EINVAL with the first error in `why` ("spec.masks[2].scoreName: expected ..."). */
MUST_USE int masks_read(struct masks *ret, json_t *object, char why[256]);
void masks_done(struct masks *m);

struct plan_entry {
    const char *score_name; /* unique among the entries */
    struct str text;        /* the summary */
    bool suspended;         /* agents get it in the list of those that they do not call */
    int64_t suspended_ms;   /* Unix time since when, which plan_new() adds to the text; 0: unknown */
    struct map *clusters;   /* the names of those that get it, for plan_group_of(); NULL: all do */
    void *owner;            /* for the plan's owner */
    unsigned needs;         /* features of agents; those that lack one may be sent the summary or not */
    bool has_object;        /* its scores are written as an AddOnPlacementScore */
    uint64_t score;         /* report_score() of the name */
    size_t escaped;         /* bytes of the text in a ManifestWork. Both are set by plan_new() */
};

/* A mask as the plan looks it up. */
struct plan_mask {
    struct plan_mask *next; /* of the same cluster, a name or a pattern */
    uint64_t *entries;      /* that it matches, a set */
    size_t clusters;        /* that it names, of those for which plan_group_of() was called */
    size_t scores;          /* that it matches, of all scorers: for the plan's owner */
};

/* An adjustment as the plan looks it up. Masked pairs do not count. */
struct plan_adjustment {
    uint64_t *entries; /* whose score names it matches, a set */
    uint64_t *matched; /* of these: on some cluster for which plan_group_of() was called */
    size_t selected;   /* clusters that it is for */
    size_t clusters;   /* of these: those with a score that it changes */
};

/* Read-only, but for the masks' scores. */
struct plan {
    struct plan_entry *entries; /* in the order in which they are given room, the oldest first */
    size_t n, words;            /* words: of a set of entries */
    struct masks masks;
    struct plan_mask *of_masks; /* for each mask */
    struct fleet_adjustments adjustments;
    struct plan_adjustment *of_adjustments; /* for each of them */
    size_t adjustment_words;                /* of a set of adjustments */
    /* For plan.c. */
    uint64_t *mask_sets;       /* the entries of each mask */
    uint64_t *adjustment_sets; /* both sets of each adjustment */
    char *storage;
    size_t max_bytes, *by_name;
    const char **globs; /* the different patterns of clusters */
    size_t n_globs;
    struct map clusters, groups;
};

struct plan_group {
    uint64_t hash; /* plan_hash_lists() of its texts */
    size_t bytes;  /* of all */
    size_t scorers;
    size_t left_out; /* scorers without room under max_bytes */
    unsigned lacks;  /* features that the agents lack, and refuse a summary for */
    char *key;
    uint64_t
        set[]; /* bit i: entry i; behind it the set before entries were left out, and that of adjustments */
};

/* Copies the entries, and keeps references to the documents of masks and adjustments, which may be NULL.
 * max_bytes limits the text as a ManifestWork counts it: escaped as a JSON string, as API servers write
 * it. */
struct plan *plan_new(const struct plan_entry *entries, size_t n, const struct masks *masks,
                      const struct fleet_adjustments *adjustments, size_t max_bytes);
struct plan *plan_free(struct plan *p);
DEFINE_CLEANUP(struct plan, plan_free)

/* What decides which group a cluster is in. */
struct plan_cluster {
    const char *name;
    /* The features without which its agent would refuse the whole list, and which it is known to lack: it
     * gets no entry that needs one of them. */
    unsigned lacks;
    const char *attributes; /* cluster_attributes(), for the selectors of adjustments; NULL: none */
};

/* The group of a cluster; owned by the plan. */
const struct plan_group *plan_group_of(struct plan *p, const struct plan_cluster *c);
/* Whether the group has entry i. */
static inline bool plan_group_has(const struct plan_group *g, size_t i)
{
    return g->set[i / 64] >> (i % 64) & 1;
}
/* Whether the group's clusters get adjustment i. */
static inline bool plan_group_is_adjusted(const struct plan *p, const struct plan_group *g, size_t i)
{
    return g->set[2 * p->words + i / 64] >> (i % 64) & 1;
}
/* Whether entry i is meant for the group's clusters, whether or not it is left out. */
static inline bool plan_group_wants(const struct plan *p, const struct plan_group *g, size_t i)
{
    return g->set[p->words + i / 64] >> (i % 64) & 1;
}
/* Whether entry i is left out because the agents are too old for it. */
static inline bool plan_group_outdates(const struct plan *p, const struct plan_group *g, size_t i)
{
    return plan_group_wants(p, g, i) && p->entries[i].needs & g->lacks;
}
/* Whether entry i is left out for lack of room. */
static inline bool plan_group_lacks(const struct plan *p, const struct plan_group *g, size_t i)
{
    return plan_group_wants(p, g, i) && !plan_group_has(g, i) && !plan_group_outdates(p, g, i);
}
/* Appends the text of those that are suspended, or of the others: a JSON array in byte order of their score
 * names; nothing if none is suspended. -EFBIG. */
void plan_text(const struct plan *p, const struct plan_group *g, bool suspended, struct buf *into);
/* Appends the list of adjustments that the group's clusters get; nothing without any. */
void plan_adjustments_text(const struct plan *p, const struct plan_group *g, struct buf *into);
/* Texts are compared by this hash, which is never 0. */
uint64_t plan_hash(struct str text);
/* Of all lists, by the hash of the summaries; an empty list is as none. */
uint64_t plan_hash_lists(uint64_t summaries, struct str suspended, struct str adjustments);

/* ---- work.c: the ManifestWork with a cluster's summaries ----
 *
 * It has two manifests: the ConfigMap dynamic-scoring-config with the summaries, and the agent's ConfigMap
 * dynamic-scoring-status, ReadOnly with a feedback rule. It is written directly as JSON text, as the
 * summaries of a fleet dominate the hub's memory. */

#define WORK_NAME        "dynamic-scoring-config-manifestwork"
#define WORK_LABEL       "dynamic-scoring.open-cluster-management.io/managed-by"
#define WORK_LABEL_VALUE "controller"
#define WORK_CONFIGMAP   "dynamic-scoring-config"
#define WORK_STATUS      "dynamic-scoring-status"
/* The webhook rejects manifests of more than 500 KiB in total. WORK_FRAME_BYTES: all but the summaries. */
enum { WORK_MAX_BYTES = 500 * 1024, WORK_FRAME_BYTES = 4096 };

/* How a merge patch begins that turns any ManifestWork of this name into ours, apart from fields of others;
 * and how a new one does, whose namespace is the request's. */
#define WORK_PATCH STR("{\"metadata\":{")
#define WORK_NEW                                                                            \
    STR("{\"apiVersion\":\"work.open-cluster-management.io/v1\",\"kind\":\"ManifestWork\"," \
        "\"metadata\":{\"name\":\"" WORK_NAME "\",")
/* The lists of the ConfigMap, JSON arrays; empty ones but the first get no key. */
struct work_lists {
    struct str summaries, suspended, adjustments;
};

/* Appends the rest of either. -EFBIG. */
MUST_USE int work_text(struct buf *into, const char *agent_namespace, const struct work_lists *lists);

struct work_found {
    bool exists, deleting;
    bool ours;     /* has the label */
    bool frame;    /* all but the summaries is as work_text() writes it, apart from additions of servers */
    uint64_t hash; /* plan_hash_lists(); 0 without summaries */
    bool applied;  /* by the work agent, for the newest generation */
};
enum { WORK_WHY_BYTES = 256 };
/* For reading ManifestWorks from the API server: replaces the summaries by their hash. */
extern struct kube_cut work_cut;
/* The text of the suspended scorers, or of the others; borrowed, cut or whole; p is NULL without it. */
struct str work_list(const json_t *object, bool suspended);
/* The report_score() of each scorer in such a text, which is whole: their number. *ret is on the heap, or
 * NULL. Stops at the first error. */
size_t work_scores(struct str list, uint64_t **ret);
/* Our ManifestWork without its data, to compare others with; a new reference, NULL if it is too long. */
json_t *work_frame(const char *agent_namespace);
/* object: from the API server, cut or whole. frame: of work_frame(); NULL: ret->frame is false. ret_why: the
 * work agent's error when it could not apply the ConfigMap; else empty. */
void work_look(struct work_found *ret, const json_t *object, const json_t *frame,
               char ret_why[WORK_WHY_BYTES]);
bool work_found_same(const struct work_found *a, const struct work_found *b);
/* The agent's report in the status feedback, borrowed from object; p is NULL when there is none. */
struct str work_feedback(const json_t *object);
