/* universe SEED...: replays seeds, and shows all that happens. --swarm N [FIRST]: N seeds. --for SECONDS
 * [FIRST]: as many as that takes. --twice SEED: the same seed must give the same bytes. --plants N: each
 * planted bug is caught within N seeds, and it says by which oracle; the first seed is good without one. */
#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const reached_names[REACHED_COUNT] = {
    [REACHED_KILL] = "kill",
    [REACHED_KILL_IN_CALL] = "kill in a call",
    [REACHED_POWER_CUT] = "power cut",
    [REACHED_TORN] = "torn write",
    [REACHED_STOP] = "stop",
    [REACHED_RELOAD] = "reload",
    [REACHED_REMOVED] = "removed scorer",
    [REACHED_MOVED] = "remote write to another tenant",
    [REACHED_SERIES_ENDED] = "series ended",
    [REACHED_CLOCK_JUMP] = "clock jump",
    [REACHED_CLOCK_AHEAD] = "clock a day ahead",
    [REACHED_CLOCK_BACK] = "timestamps of a day before",
    [REACHED_PARTITION] = "partition",
    [REACHED_HANG] = "hang",
    [REACHED_ANSWER_LOST] = "answer lost",
    [REACHED_503] = "503",
    [REACHED_429] = "429",
    [REACHED_400] = "400",
    [REACHED_413] = "413",
    [REACHED_404] = "404",
    [REACHED_415] = "415",
    [REACHED_V1] = "remote write 1.0",
    [REACHED_V2] = "remote write 2.0",
    [REACHED_ZSTD] = "zstd",
    [REACHED_REPEAT] = "repeated request",
    [REACHED_MARKER] = "stale marker",
    [REACHED_DISK_FULL] = "disk full",
    [REACHED_SYNC_FAILED] = "failed sync",
    [REACHED_READ_FAILED] = "failed read",
    [REACHED_LOCKED] = "locked folder",
    [REACHED_OPENED_IN_FLIGHT] = "spool opened while several scorers' samples were in flight",
    [REACHED_BAD_ANSWER] = "bad answer",
    [REACHED_ECHOED_SECRET] = "echoed secret",
    [REACHED_EXPIRED] = "expired scores",
    [REACHED_VERDICT_RETRY] = "verdict: retry",
    [REACHED_VERDICT_BISECT] = "verdict: bisect",
    [REACHED_VERDICT_SHRINK] = "verdict: shrink",
    [REACHED_VERDICT_DROP] = "verdict: drop",
    [REACHED_VERDICT_STEP_DOWN] = "verdict: step down",
    [REACHED_STANDSTILL] = "standstill",
    [REACHED_KUBE_AWAY] = "API server away",
    [REACHED_KUBE_429] = "API server's 429",
    [REACHED_KUBE_401] = "rotated token",
    [REACHED_KUBE_409] = "conflict",
    [REACHED_KUBE_410] = "expired watch",
    [REACHED_KUBE_CUT] = "watch that ends",
    [REACHED_KUBE_SILENT] = "watch that falls silent",
    [REACHED_KUBE_LOST] = "API server's answer lost",
    [REACHED_BOOKMARK] = "bookmark",
    [REACHED_NEW_LEADER] = "new leader",
    [REACHED_CLUSTER_GONE] = "cluster that leaves",
    [REACHED_CONFIG_GONE] = "deleted configuration",
    [REACHED_SUSPENDED] = "suspended scorer",
    [REACHED_PLACED] = "placed scores",
    [REACHED_FALLBACK] = "fallback",
    [REACHED_FOREIGN] = "object of another owner",
    [REACHED_REPLICA] = "another replica scores",
    [REACHED_RESTORED] = "a store restored from a backup",
    [REACHED_RESTORED_BUMPED] = "a store restored with new versions",
    [REACHED_FUTURE_WATCH] = "a watch from a version of the future",
    [REACHED_OPTIMIZER] = "the optimizer makes a Placement anew",
    [REACHED_OLD_AGENT] = "a report of an older agent",
    [REACHED_OLD_HUB] = "a list of an older hub",
    [REACHED_PAST + 0] = "stale view: an agent's watches",
    [REACHED_PAST + 1] = "stale view: the hub's watches",
    [REACHED_PAST + 2] = "stale view: Leases",
    [REACHED_PAST + 3] = "stale view: PlacementDecisions",
    [REACHED_PAST + 4] = "stale view: ManagedClusterAddOns",
    [REACHED_PAST + 5] = "back in time: an agent's watches",
    [REACHED_PAST + 6] = "back in time: the hub's watches",
    [REACHED_PAST + 7] = "back in time: Leases",
    [REACHED_PAST + 8] = "back in time: PlacementDecisions",
    [REACHED_PAST + 9] = "back in time: ManagedClusterAddOns",
    [REACHED_PAST + 10] = "missed state: an agent's watches",
    [REACHED_PAST + 11] = "missed state: the hub's watches",
    [REACHED_PAST + 12] = "missed state: Leases",
    [REACHED_PAST + 13] = "missed state: PlacementDecisions",
    [REACHED_PAST + 14] = "missed state: ManagedClusterAddOns",
};
const char *const plant_names[PLANTS] = {
    [PLANT_NONE] = "none",
    [PLANT_NO_SYNC] = "a sync is forgotten",
    [PLANT_EARLY_ACK] = "a failed request is taken for a 2xx",
    [PLANT_EARLY_MARKER] = "a stale marker comes before the last value",
    [PLANT_OTHER_BYTES] = "a repeated request has other bytes",
    [PLANT_NO_ACTIVE_SET] = "the active series are not stored",
    [PLANT_NO_RETRY_AFTER] = "Retry-After is ignored",
    [PLANT_LOST_POSITION] = "the position is not stored",
    [PLANT_NO_BACKOFF] = "retries do not wait",
    [PLANT_NO_MARKER] = "a scorer that ends leaves no stale marker",
    [PLANT_DROP_5XX] = "a 5xx drops samples",
    [PLANT_DROP_400] = "a 400 drops what it does not mean",
    [PLANT_DROP_413] = "a 413 drops samples",
    [PLANT_OLD_SCORES] = "expired scores stay on /metrics",
    [PLANT_SHOWN_SECRET] = "a secret is shown",
    [PLANT_NO_COMPANIONS] = "what shares a request in flight is forgotten when the spool opens",
    [PLANT_UNSYNCED] = "the position is not on disk when a segment goes",
    [PLANT_HIGHEST] = "the highest timestamp is taken for the last",
    [PLANT_SAME_VALIDITY] = "validUntil is never renewed",
    [PLANT_NEWEST_WATCH] = "a watch resumes from the newest version",
    [PLANT_ENDLESS_LEADER] = "a leader does not notice that it no longer is",
    [PLANT_EVERYONES_OBJECT] = "objects of other owners are taken",
    [PLANT_FUTURE_WATCH] = "a watch resumes from a version of the future",
    [PLANT_SHORT_DECISIONS] = "a decision set that is momentarily short is acted on",
};

struct outcome {
    int64_t ms;
    bool is_plain; /* five agents with one scorer each, ten series and a round a minute */
    uint64_t reached[REACHED_COUNT];
    char sha256[65];
    struct violation violation;
};

enum {
    COMPLETE = 200,    /* seeds that reach everything */
    BY_INVARIANTS = 2, /* planted bugs that an invariant sees first */
};

static struct outcome *shared;

/* Runs one seed in a process of its own: the product's static variables know nothing of other seeds. */
static bool run_seed(uint64_t seed, bool show, bool quiet)
{
    int status;
    pid_t child;

    (void)fflush(stdout);
    memset(shared, 0, sizeof(*shared));
    child = fork();
    if (child == 0) {
        if (quiet)
            (void)!freopen("/dev/null", "w", stdout);
        violation = &shared->violation;
        trace_init(show);
        shared->ms = world_run(seed);
        shared->is_plain = universe.n_agents == AGENTS;
        memcpy(shared->reached, reached, sizeof(reached));
        trace_sha256(shared->sha256);
        (void)fflush(stdout);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child)
        return false;
    if (status && !quiet)
        (void)printf("seed %llu failed: test/universe/run %llu\n", (unsigned long long)seed,
                     (unsigned long long)seed);
    return status == 0;
}

static double seconds(void)
{
    struct timespec t;

    (void)timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The processor's time of all seeds that this process has run. */
static double seconds_used(void)
{
    struct tms t;

    (void)times(&t);
    return (double)(t.tms_cutime + t.tms_cstime) / (double)sysconf(_SC_CLK_TCK);
}

static void *shared_memory(size_t n)
{
    return mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

struct tally {
    uint64_t reached[REACHED_COUNT], seeds, failed;
    double hours, plain_hours, plain_seconds;
};

/* Every `step`th seed from `first` on that can begin before so much of the processor's time is used. */
static void swarm_part(struct tally *t, uint64_t first, uint64_t end, uint64_t step, double most)
{
    shared = shared_memory(sizeof(*shared));
    for (uint64_t seed = first; seed < end && seconds_used() < most; seed += step) {
        double began = seconds(), hours;

        t->failed += !run_seed(seed, false, false);
        hours = (double)shared->ms / 3600000;
        t->hours += hours;
        t->plain_hours += shared->is_plain ? hours : 0;
        t->plain_seconds += shared->is_plain ? seconds() - began : 0;
        t->seeds++;
        for (size_t i = 0; i < REACHED_COUNT; i++)
            t->reached[i] += shared->reached[i];
    }
}

/* Runs n seeds, or as many as can begin within so much of each core's time, on all cores. */
static int swarm(uint64_t n, double most, uint64_t first)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct tally *parts = shared_memory((size_t)cores * sizeof(*parts)), sum = {0};
    double began = seconds();
    int status = 0;

    (void)fflush(stdout);
    for (long i = 0; i < cores; i++)
        if (fork() == 0) {
            swarm_part(&parts[i], first + (uint64_t)i, first + n, (uint64_t)cores, most);
            (void)fflush(stdout);
            _exit(0);
        }
    for (long i = 0; i < cores; i++)
        if (wait(&status) < 0 || status)
            sum.failed++;
    for (long i = 0; i < cores; i++) {
        sum.seeds += parts[i].seeds;
        sum.failed += parts[i].failed;
        sum.hours += parts[i].hours;
        sum.plain_hours += parts[i].plain_hours;
        sum.plain_seconds += parts[i].plain_seconds;
        for (size_t k = 0; k < REACHED_COUNT; k++)
            sum.reached[k] += parts[i].reached[k];
    }
    status = sum.failed > 0;
    for (size_t i = REACHED_PAST; i <= REACHED_PAST_LAST && sum.seeds >= COMPLETE; i++)
        (void)printf("%s: %llu times\n", reached_names[i], (unsigned long long)sum.reached[i]);
    for (size_t i = 0; i < REACHED_COUNT; i++)
        if (sum.reached[i] == 0 && sum.seeds >= COMPLETE) {
            (void)printf("never reached: %s\n", reached_names[i]);
            status = 1;
        }
    (void)printf(
        "%llu seeds from %llu, %llu failed, %.0f virtual hours a minute; of five agents alone %.0f\n",
        (unsigned long long)sum.seeds, (unsigned long long)first, (unsigned long long)sum.failed,
        sum.hours / (seconds() - began) * 60,
        sum.plain_hours / fmax(sum.plain_seconds, 1e-3) * 60 * (double)cores);
    return status;
}

static int twice(uint64_t seed)
{
    char first[65];

    if (!run_seed(seed, false, false))
        return 1;
    memcpy(first, shared->sha256, sizeof(first));
    if (!run_seed(seed, false, false) || strcmp(first, shared->sha256) != 0) {
        (void)printf("seed %llu: %s, then %s\n", (unsigned long long)seed, first, shared->sha256);
        return 1;
    }
    (void)printf("seed %llu: %s, twice\n", (unsigned long long)seed, first);
    return 0;
}

/* Says which oracle has seen the planted bug first. */
static bool plant_is_caught(uint64_t n)
{
    const struct violation *seen = &shared->violation;
    uint64_t seed = 1;

    while (seed <= n && run_seed(seed, false, true))
        seed++;
    if (seed > n) {
        (void)printf("%s: NOT CAUGHT in %llu seeds\n", plant_names[planted], (unsigned long long)n);
        return false;
    }
    (void)printf("%s: caught in %llu seeds by %s: %s\n", plant_names[planted], (unsigned long long)seed,
                 oracle_names[seen->oracle], seen->text);
    return true;
}

static int plants(uint64_t n)
{
    size_t by[ORACLES] = {0};
    int status = !run_seed(1, false, true);

    if (status)
        (void)printf("seed 1 fails without a planted bug: %s: %s\n", oracle_names[shared->violation.oracle],
                     shared->violation.text);
    for (planted = PLANT_NONE + 1; planted < PLANTS; planted++) {
        if (plant_is_caught(n))
            by[shared->violation.oracle]++;
        else
            status = 1;
    }
    for (size_t i = 0; i < ORACLES; i++)
        if (by[i])
            (void)printf("caught by %s: %zu\n", oracle_names[i], by[i]);
    if (by[ORACLE_INVARIANT] < BY_INVARIANTS) {
        (void)printf("fewer than %d are caught by an invariant\n", BY_INVARIANTS);
        status = 1;
    }
    return status;
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 100;
    uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int status = 0;

    /* A seed is the same everywhere, also where SSL_CERT_FILE costs the agent a look for a file. */
    (void)clearenv();
    shared = shared_memory(sizeof(*shared));
    if (argc > 1 && strcmp(argv[1], "--swarm") == 0)
        return swarm(n, INFINITY, first);
    if (argc > 1 && strcmp(argv[1], "--for") == 0)
        return swarm(UINT64_MAX - first, (double)n, first);
    if (argc > 1 && strcmp(argv[1], "--twice") == 0)
        return twice(n);
    if (argc > 1 && strcmp(argv[1], "--plants") == 0)
        return plants(n);
    for (int i = 1; i < argc; i++)
        status |= !run_seed(strtoull(argv[i], NULL, 10), true, false);
    return status;
}
