/* What the files of the world share: the shape of a seed, its nodes, and who serves what. sim.h has a line on
 * each of the files. */
#pragma once

#include "exporter/agent/agent.h"
#include "exporter/base/loop.h"
#include "exporter/ui/site.h"
#include "remotewrite/sink.h"
#include "test/universe/sim.h"

#include <jansson.h>

struct agent_kube;
struct hub;

#define KUBE_TOKEN "kube-token-" /* the beginning of tokens for API servers */

enum {
    AGENTS = 5, /* at most, and so on: each seed has a shape */
    CONTROLLERS = 2,
    NODES = AGENTS + CONTROLLERS,
    SCORERS = 3,
    FAULTS_MS = 20 * 60 * 1000,
    HEAL_MS =
        15 * 60 * 1000, /* longer than all back-off, and the grace period for series of an earlier life */
    RUN_MS = FAULTS_MS + HEAL_MS,
    LOOP_MS = 10 * 1000, /* what holds the loop */
    FLUSH_MS = 3000,
    MAX_LIVES = 256,
    MAX_SCORES = 1 << 16,
    TOKEN_BYTES = 40,
};

/* An agent, or behind them a controller. */
struct sim_node {
    int id, cluster;         /* an agent's; two of them may be replicas on one */
    struct process *process; /* NULL: down */
    struct disk *disk;       /* while it is down */
    struct disk *left;       /* by a process that was killed within a call */
    struct timer poll;
    bool wants_reload, wants_stop;
    int64_t up_at, since, partition_until;
    unsigned life, cut_life,
        stood_life; /* its number; the last one that a power cut ended, that stood still */
    int64_t died_at[MAX_LIVES];
    int64_t locked_until; /* its folder, by another process at its start */
    bool was_killed, disk_failed, unreadable;
    bool forgot;                   /* ended while nothing that it had sent was known on disk */
    int64_t ahead_until, right_ms; /* it is now, and its error after that */
    unsigned times_ahead;          /* how often the clock went a day ahead */
    /* An agent */
    struct agent *agent;
    struct agent_options options;
    struct rw_sink *remote_write;
    struct site *site;
    unsigned looks; /* of the client that asks for its pages */
    int64_t look_at;
    struct agent_kube *kube; /* with API servers only */
    int64_t not_before, minute;
    unsigned long told_tenant; /* whose requests may not come before */
    unsigned requests;         /* in this minute, to a TSDB in trouble */
    unsigned scorers;          /* a bit for each */
    unsigned reloads;          /* each changes the timeout of remote write, and some the tenant */
    char token[TOKEN_BYTES];
    /* A controller */
    struct hub *hub;
    int64_t leads_since; /* and a replica */
    /* For API servers: the token in the kubeconfig, and the one before until it ends. */
    unsigned kube_token;
    int64_t old_token_until, kube_minute;
    unsigned kube_requests; /* in this minute */
};

extern struct world {
    int n_clusters, n_agents, n_nodes;
    unsigned n_scorers, more_series, interval_s, n_scores;
    const char *protocol;
    bool has_kube;        /* scorers come from the hub */
    bool has_replicas;    /* on cluster 0 */
    bool has_two_servers; /* behind the address of each API server, of which one lags at times */
    bool has_placements;  /* one of the scorers is for the clusters of a Placement */
    struct sim_node nodes[NODES];
    struct stream faults, network, disk, answers, locks, clocks, past;
    int64_t score_at[MAX_SCORES]; /* when a scoring API last gave this score */
    unsigned n_given;
    bool healed, answer_is_lost;
} universe;

/* Runs a universe: faults, then a time in which everything heals, and what must hold after it. Returns the
 * virtual milliseconds. */
int64_t world_run(uint64_t seed);

/* The node's process reloads and stops as faults have it. */
void node_poll(struct sim_node *n);
/* Ends its standstill, as of now. */
void node_wake(struct sim_node *n);
/* The text is copied. */
void respond(struct response *r, long status, const char *text, enum reached what);
/* No secret is in the text, which is shown at this place. */
void check_secrets(struct str text, const char *where);

/* ---- tsdb.c ---- */

void tsdb_serve(const struct request *rq, struct sim_node *a, struct response *r);
void tsdb_give_up(const struct sim_node *a); /* it did not wait for the answer to a request */
void tsdb_turn(void);                        /* into a trouble, or out of it */
void tsdb_tick(void);
void tsdb_heal(void);
void tsdb_check_end(void);

/* ---- kube.c ---- */

/* Cluster i has API server i. */
enum { HUB_SERVER = AGENTS, KUBE_SERVERS };

/* One call, and what it is about. */
struct kube_ask {
    const struct sim_node *from;
    int server;
    const char *method;
    char resource[96], namespace[64], name[160], subresource[16]; /* "apps/v1/deployments"; "" for none */
};

void kube_serve(int server, const struct request *rq, struct sim_node *from, struct response *r);
/* Ends old streams and sends bookmarks. */
void kube_tick(void);
/* The server is away, overloaded, slow, forgets its history, or its streams end or fall silent. */
void kube_turn(void);
void kube_heal(void);
/* One of two API servers lags, or a store is restored from a backup. */
void kube_past_turn(void);
/* A store went back, and who does not look at it now cannot see so later: its versions would have passed. */
bool kube_must_be_seen(void);
/* The store went back, and does not answer yet. */
bool kube_is_restoring(int server);
/* Since when the server has no trouble; INT64_MAX while it has. */
int64_t kube_calm_since(int server);

/* What is stored; borrowed, NULL for none. */
json_t *kube_object_at(int server, const char *resource, const char *namespace, const char *name);
/* The nth object of a resource, in all namespaces. */
json_t *kube_nth(int server, const char *resource, size_t nth);
/* Creates or replaces; takes the reference. `status` is kept unless the object has one. */
void kube_put(int server, const char *resource, json_t *object);
/* As a user's delete: waits for finalizers. */
void kube_delete(int server, const char *resource, const char *namespace, const char *name);

/* ---- past.c: views of the past ---- */

enum past_pattern { PAST_STALE, PAST_BACK, PAST_MISSED, PAST_PATTERNS };
/* What is looked at. PAST_OF_AGENT and PAST_OF_HUB: all but the kinds below, by who asks. */
enum past_kind { PAST_OF_AGENT, PAST_OF_HUB, PAST_LEASES, PAST_DECISIONS, PAST_ADDONS, PAST_KINDS };

enum past_kind past_kind(const struct sim_node *from, const char *resource);
/* Notes that it happened to what this node asked. */
void reached_past(enum past_pattern pattern, const struct sim_node *from, const char *resource);

/* ---- fleet.c ---- */

void fleet_set_up(uint64_t seed);
/* Work agents and users. */
void fleet_tick(void);
void fleet_turn(void); /* a user changes something */
void fleet_rotate(struct sim_node *n);
void fleet_heal(void);
/* The store of that API server was restored from a backup, and answers again. */
void fleet_restored(int server);
void fleet_check_end(void);
/* What an agent has to run when all has healed. */
unsigned fleet_scorers(const struct sim_node *a);
/* Of the wall clock, while the process runs. */
int64_t fleet_clock_error_ms(const struct sim_node *n);
void fleet_write_kubeconfigs(struct sim_node *n);
/* Whether the token is the node's; violated() if it is another's. */
bool fleet_knows_token(struct sim_node *n, const char *authorization);
/* May the node ask this? `after`: the object that a write leads to; NULL for a delete or a read. */
void fleet_check_ask(const struct kube_ask *a, const json_t *before, const json_t *after);
/* What the controller's part of the scoring APIs is asked for; false if it is not. */
bool fleet_serve_api(const struct request *rq, struct response *r);
/* Of nodes that elect a leader, at most one leads. */
bool fleet_elects(const struct sim_node *n);
bool fleet_leads(const struct sim_node *n);
void *controller_main(void *arg);
