/* The universe: the agent's and the controller's own code in one process and virtual time, driven by a seed.
 *
 * sim.c    time, randomness, threads as strands that take turns: `--wrap` puts them in the place of the C
 *          library's functions, so that the product runs as it is, loop and HTTP client included
 * net.c    the same for libcurl's
 * httpd.c  the same for the HTTP server's
 * disk.c   a disk that forgets at a power cut what was not synced, tears it, fills up, and fails
 * world.c  agents, Prometheus and scoring APIs, faults, and a run
 * tsdb.c   the ledger of samples, and a TSDB that compares with it what arrives
 * kube.c   model API servers: the hub's, and one of each cluster
 * etcd.c   what they store, and what each of two behind one address knows of that
 * fleet.c  Open Cluster Management and its users: clusters, work agents, scorers, controllers; and what must
 *          hold there
 * past.c   what makes a view one of the past: decisions half written, objects made anew, older words
 * plants.c bugs that the oracles must catch
 * main.c   runs seeds, each in a process of its own
 *
 * Not simulated: connections to the program's own HTTP server, and upgrades, as there is one program. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct disk;
struct loop;

/* ---- Randomness: each kind of fault has a stream of its own, so that one does not shift another ---- */

struct stream {
    uint64_t state;
};

void stream_init(struct stream *s, uint64_t seed, const char *name);
uint64_t stream_u64(struct stream *s);
/* Uniform in [0, n). */
uint64_t stream_below(struct stream *s, uint64_t n);
bool stream_chance(struct stream *s, unsigned per_mille);
uint64_t fnv(uint64_t hash, const void *p, size_t n);
enum { FNV_START = 1469598103 };

/* ---- What happened: everything goes into a hash, the last lines are kept for the story ---- */

void trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void trace_init(bool show);
void trace_story(void);
/* 64 hexadecimal digits. */
void trace_sha256(char ret[65]);
/* What sees that something is wrong. */
enum oracle {
    ORACLE_NONE,
    ORACLE_INVARIANT, /* one of the product's own, invariant(): its words and its place */
    ORACLE_LEDGER, /* of samples: what was taken arrives, once and in order, and what ended has its marker */
    ORACLE_WIRE,   /* each request to the TSDB: its bytes, its credentials, and when it comes */
    ORACLE_PAGES,  /* what an agent shows on its pages and in its log */
    ORACLE_FLEET,  /* what API servers are asked, and what they hold in the end */
    ORACLE_MODEL,  /* a limit of the simulation, which is to be raised */
    ORACLES
};
extern const char *const oracle_names[ORACLES];

/* Where violated() leaves what it was told. */
enum { VIOLATION_BYTES = 256 };
struct violation {
    enum oracle oracle;
    char text[VIOLATION_BYTES];
};
extern struct violation *violation;

/* An oracle is violated: tells the story and ends the process. */
_Noreturn void violated(enum oracle oracle, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What must have happened in some seed of a swarm. */
enum reached {
    REACHED_KILL,
    REACHED_KILL_IN_CALL,
    REACHED_POWER_CUT,
    REACHED_TORN,
    REACHED_STOP,
    REACHED_RELOAD,
    REACHED_REMOVED,
    REACHED_MOVED,
    REACHED_SERIES_ENDED,
    REACHED_CLOCK_JUMP,
    REACHED_CLOCK_AHEAD,
    REACHED_CLOCK_BACK,
    REACHED_PARTITION,
    REACHED_HANG,
    REACHED_ANSWER_LOST,
    REACHED_503,
    REACHED_429,
    REACHED_400,
    REACHED_413,
    REACHED_404,
    REACHED_415,
    REACHED_V1,
    REACHED_V2,
    REACHED_ZSTD,
    REACHED_REPEAT,
    REACHED_MARKER,
    REACHED_DISK_FULL,
    REACHED_SYNC_FAILED,
    REACHED_READ_FAILED,
    REACHED_LOCKED,
    REACHED_OPENED_IN_FLIGHT,
    REACHED_BAD_ANSWER,
    REACHED_ECHOED_SECRET,
    REACHED_EXPIRED,
    REACHED_VERDICT_RETRY,
    REACHED_VERDICT_BISECT,
    REACHED_VERDICT_SHRINK,
    REACHED_VERDICT_DROP,
    REACHED_VERDICT_STEP_DOWN,
    REACHED_STANDSTILL,
    REACHED_KUBE_AWAY,
    REACHED_KUBE_429,
    REACHED_KUBE_401,
    REACHED_KUBE_409,
    REACHED_KUBE_410,
    REACHED_KUBE_CUT,
    REACHED_KUBE_SILENT,
    REACHED_KUBE_LOST,
    REACHED_BOOKMARK,
    REACHED_NEW_LEADER,
    REACHED_CLUSTER_GONE,
    REACHED_CONFIG_GONE,
    REACHED_SUSPENDED,
    REACHED_PLACED,
    REACHED_FALLBACK,
    REACHED_FOREIGN,
    REACHED_REPLICA,
    REACHED_RESTORED,
    REACHED_RESTORED_BUMPED,
    REACHED_FUTURE_WATCH,
    REACHED_OPTIMIZER,
    REACHED_OLD_AGENT,
    REACHED_OLD_HUB,
    /* Views of the past: patterns by kinds, as world.h has them. See reached_past(). */
    REACHED_PAST,
    REACHED_PAST_LAST = REACHED_PAST + 14,
    REACHED_COUNT
};
extern const char *const reached_names[REACHED_COUNT];
extern uint64_t reached[REACHED_COUNT];

/* Bugs that the runner must catch: what each breaks, and who sees it first. At least two must be seen by an
 * invariant() of the product before any oracle: see main.c. */
enum plant {
    PLANT_NONE,
    PLANT_NO_SYNC,        /* fsync() does nothing. The ledger: samples or markers are lost at a power cut */
    PLANT_EARLY_ACK,      /* a request that failed counts as a 2xx. The ledger: samples never arrive */
    PLANT_EARLY_MARKER,   /* a stale marker has a time of two hours ago. The ledger: it is out of order */
    PLANT_OTHER_BYTES,    /* a request that is sent again is encoded anew. The wire: its bytes differ */
    PLANT_NO_ACTIVE_SET,  /* the file of active series stays empty. The ledger: no marker after a crash */
    PLANT_NO_RETRY_AFTER, /* the header is not seen. The wire: a request comes too early */
    PLANT_LOST_POSITION,  /* the read position is not stored. An invariant of queue_spool.c */
    PLANT_NO_BACKOFF,     /* a retry is at once. An invariant of sender.c */
    PLANT_NO_MARKER,      /* a scorer that ends is not withdrawn. The ledger: its series have no marker */
    PLANT_DROP_5XX,       /* a 5xx is final. The ledger: samples never arrive */
    PLANT_DROP_400,       /* a 400 is final for the whole request. The ledger: good samples never arrive */
    PLANT_DROP_413,       /* a 413 is final. The ledger: samples never arrive */
    PLANT_OLD_SCORES,     /* expired scores stay on /metrics. The pages: they show an old score */
    PLANT_SHOWN_SECRET,   /* secrets in texts are not hidden. The pages: one is in the log */
    PLANT_NO_COMPANIONS,  /* what shares a request is forgotten at a late open. An invariant of sender.c */
    PLANT_UNSYNCED,       /* a segment goes before the position is on disk. The ledger: out of order */
    PLANT_HIGHEST,        /* a lane's highest time counts as its last. The ledger: out of order later on */
    /* These are seen by the fleet, which seeds with API servers have. */
    PLANT_SAME_VALIDITY, /* validUntil stays as first written. Scores have ended without a fallback */
    PLANT_FIRST_WITH_KUBE = PLANT_SAME_VALIDITY,
    PLANT_NEWEST_WATCH,     /* a watch resumes from the newest version. A ManifestWork lacks scorers */
    PLANT_ENDLESS_LEADER,   /* a leader does not hear that it is one no longer. It writes all the same */
    PLANT_EVERYONES_OBJECT, /* each object counts as ours. An object of another owner is written */
    PLANT_FUTURE_WATCH, /* a watch resumes from a version of the future. What changed until then is missed */
    PLANT_SHORT_DECISIONS, /* a cluster in no decision is withdrawn at once. It was in them a moment ago */
    PLANTS
};
extern const char *const plant_names[PLANTS];
extern enum plant planted;

/* ---- Processes and strands ---- */

/* One life of a node. A process that is killed goes on as a ghost until it has freed its memory: nothing
 * that it does has an effect any more. */
struct process {
    int node;
    struct disk *disk;
    bool dead;
    unsigned die_in;      /* calls on files until a kill; 0: none */
    unsigned departing;   /* requests that have not arrived */
    int64_t stands_until; /* as after SIGSTOP */
    unsigned strands;
    int64_t ahead_ms; /* a ghost's time runs ahead */
    int64_t wall_ms;  /* the wall clock's error */
    struct loop *loop;
};

/* The wall clock when virtual time begins: 2026-01-01T01:00:00Z. */
#define SIM_BEGAN_MS 1767229200000

extern int64_t sim_now_ms;
/* The process of the strand that runs, or NULL. */
extern struct process *sim_process;

/* Called on the process' first strand. */
void process_start(struct process *p, void *(*run)(void *), void *arg);
/* Runs all strands until this time. `between` is called after each step. */
void sim_run(int64_t until_ms, void (*between)(void));
/* Runs the strands of one process until they have ended. */
void sim_finish(struct process *p);

/* The running strand waits until then, or until it is woken. */
struct strand *sim_running(void);
void sim_wait(int64_t until_ms);
void sim_wake(struct strand *s, int64_t at_ms);
/* The time of the process, which is ahead for a ghost. */
int64_t sim_process_now(void);

/* ---- The network ---- */

struct request {
    int node;
    const char *method, *url, *authorization, *accept, *content_type, *content_encoding,
        *tenant; /* "" for none */
    struct str body;
};

struct response {
    bool refused, hangs; /* no answer at all; or none, though the request arrived */
    long status;
    int64_t retry_after_s; /* 0: none */
    int64_t written;       /* samples, as remote write 2.0 has it; 0: not said */
    int64_t delay_ms;
    char *body; /* from malloc */
    size_t body_n;
    struct feed *feed; /* goes on with what is put there; NULL: the body is all */
};

/* The rest of an answer that goes on. Belongs to the server, which frees it once it is gone. */
struct feed {
    struct buf text;
    int64_t at;       /* when the text arrives */
    bool ended, gone; /* by the server; by the client */
    struct transfer *to;
};

void feed_put(struct feed *f, struct str text);
void feed_end(struct feed *f);

/* What a server does with a request (world.c). */
void world_serve(const struct request *rq, struct response *ret);
/* The client has closed the connection before the answer to a request for that URL has come. */
void world_note_abandoned(int node, const char *url);
/* A line on standard error. */
void world_on_log(struct str line);
/* The process that runs is killed within a call on a file. */
void world_on_kill_in_call(void);

/* What the HTTP server of the running strand's process answers, its body in *ret. On its loop. */
unsigned sim_ask(const char *method, const char *path, struct buf *ret);

/* ---- The disk ---- */

struct disk *disk_new(void);
struct disk *disk_free(struct disk *d);
/* What the next process finds: everything, or after a power cut at least what was synced. */
struct disk *disk_after(const struct disk *d, bool power_cut, struct stream *s);
void disk_put(struct disk *d, const char *path, const char *text);
/* Chances in a thousand of a write, a sync and a read of the spool that fail. */
void disk_set_faults(struct disk *d, struct stream *s, unsigned per_mille);
/* Another process, such as the one before in a rolling update, holds all locks until then. */
void disk_lock(struct disk *d, int64_t until_ms);
/* When a process of ours first locked a file, to open its spool; INT64_MAX: never. */
int64_t disk_locked_at(const struct disk *d);
bool disk_has_failed(const struct disk *d);
/* A read failed: newer samples may have overtaken those in the spool. */
bool disk_was_unreadable(const struct disk *d);
