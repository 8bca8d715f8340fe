/* Owns the strands and the virtual time. One thread: a strand runs until it waits. */
#undef _FORTIFY_SOURCE /* which takes a jump to another stack for a mistake */
#include "test/universe/sim.h"
#include "exporter/base/alloc.h"
#include "exporter/base/random.h"

#include <gnutls/crypto.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 512 << 10, MAX_STRANDS = 128, STORY_LINES = 60, LINE_BYTES = 400 };

int64_t sim_now_ms;
struct process *sim_process;
uint64_t reached[REACHED_COUNT];
enum plant planted;
struct violation *violation;

/* ---- Randomness ---- */

uint64_t fnv(uint64_t hash, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)p)[i]) * 1099511628211ull;
    return hash;
}

void stream_init(struct stream *s, uint64_t seed, const char *name)
{
    s->state = fnv(fnv(FNV_START, &seed, sizeof(seed)), name, strlen(name)) | 1;
    for (int i = 0; i < 8; i++)
        (void)stream_u64(s);
}

uint64_t stream_u64(struct stream *s)
{
    s->state ^= s->state >> 12;
    s->state ^= s->state << 25;
    s->state ^= s->state >> 27;
    return s->state * 0x2545f4914f6cdd1dull;
}

uint64_t stream_below(struct stream *s, uint64_t n)
{
    return n ? (uint64_t)(((unsigned __int128)stream_u64(s) * n) >> 64) : 0;
}

bool stream_chance(struct stream *s, unsigned per_mille)
{
    return stream_below(s, 1000) < per_mille;
}

/* The product's, which seeds itself from the kernel. */
static struct stream product = {88172645463325252ull};

uint64_t rand_u64(void)
{
    return stream_u64(&product);
}

uint64_t rand_below(uint64_t n)
{
    return stream_below(&product, n);
}

ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned flags)
{
    (void)flags;
    memset(to, 0x5a, n);
    return (ssize_t)n;
}

/* An identity is made of it, and a seed is to be the same on each machine. */
int __wrap_gethostname(char *to, size_t n);
int __wrap_gethostname(char *to, size_t n)
{
    (void)snprintf(to, n, "universe");
    return 0;
}

/* ---- The trace ---- */

static struct {
    gnutls_hash_hd_t hash;
    char lines[STORY_LINES][LINE_BYTES];
    size_t n;
    bool show;
} story;

void trace_init(bool show)
{
    story.show = show;
    if (gnutls_hash_init(&story.hash, GNUTLS_DIG_SHA256) < 0)
        abort();
}

void trace(const char *fmt, ...)
{
    char *line = story.lines[story.n++ % STORY_LINES];
    int n = snprintf(line, LINE_BYTES, "%9.3f ", (double)sim_now_ms / 1000);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line + n, LINE_BYTES - (size_t)n, fmt, ap);
    va_end(ap);
    (void)gnutls_hash(story.hash, line, strlen(line));
    if (story.show)
        (void)printf("%s\n", line);
}

void trace_story(void)
{
    for (size_t i = story.n > STORY_LINES ? story.n - STORY_LINES : 0; i < story.n && !story.show; i++)
        (void)printf("  %s\n", story.lines[i % STORY_LINES]);
}

void trace_sha256(char ret[65])
{
    unsigned char digest[32];

    gnutls_hash_deinit(story.hash, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

const char *const oracle_names[ORACLES] = {
    [ORACLE_NONE] = "a crash",
    [ORACLE_INVARIANT] = "an invariant",
    [ORACLE_LEDGER] = "the ledger of samples",
    [ORACLE_WIRE] = "the rules of the wire",
    [ORACLE_PAGES] = "the rules of pages and log",
    [ORACLE_FLEET] = "the rules of the fleet",
    [ORACLE_MODEL] = "a limit of the model",
};

void violated(enum oracle oracle, const char *fmt, ...)
{
    va_list ap;

    violation->oracle = oracle;
    va_start(ap, fmt);
    (void)vsnprintf(violation->text, sizeof(violation->text), fmt, ap);
    va_end(ap);
    trace_story();
    (void)printf("VIOLATED at %.3f s: %s: %s\n", (double)sim_now_ms / 1000, oracle_names[oracle],
                 violation->text);
    (void)fflush(stdout);
    _exit(1);
}

/* ---- Strands ---- */

struct strand {
    ucontext_t context;
    jmp_buf place; /* once it runs */
    bool runs;
    char *stack;
    void *(*run)(void *);
    void *arg;
    struct process *process;
    int64_t wake_at; /* INT64_MAX: waits for something else */
    const struct strand *joins;
    const pthread_cond_t *condition;
    bool ended, joined;
    void *fake_stack;
};

static struct strand *strands[MAX_STRANDS], *running;
static size_t n_strands;
#ifdef __SANITIZE_ADDRESS__
static ucontext_t scheduler;
#else
static jmp_buf scheduler;
#endif
static struct stream turns = {1181783497276652981ull};

static void switch_to(struct strand *to)
{
#ifdef __SANITIZE_ADDRESS__
    static const void *bottom;
    static size_t size;
    static void *fake;

    if (to) {
        __sanitizer_start_switch_fiber(&fake, to->stack, STACK_BYTES);
        (void)swapcontext(&scheduler, &to->context);
        __sanitizer_finish_switch_fiber(fake, NULL, NULL);
    } else {
        struct strand *me = running;

        if (!bottom) {
            pthread_attr_t a;
            void *low;

            (void)pthread_getattr_np(pthread_self(), &a);
            (void)pthread_attr_getstack(&a, &low, &size);
            bottom = low;
        }
        __sanitizer_start_switch_fiber(me->ended ? NULL : &me->fake_stack, bottom, size);
        (void)swapcontext(&me->context, &scheduler);
        __sanitizer_finish_switch_fiber(me->fake_stack, NULL, NULL);
    }
#else
    if (_setjmp(to ? scheduler : running->place)) /* unlike swapcontext(), without a call of the kernel */
        return;
    if (!to)
        _longjmp(scheduler, 1);
    if (to->runs)
        _longjmp(to->place, 1);
    to->runs = true;
    (void)setcontext(&to->context);
#endif
}

static void strand_main(void)
{
    struct strand *me = running;

#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
    (void)me->run(me->arg);
    me->ended = true;
    me->process->strands--;
    switch_to(NULL);
}

static struct strand *strand_new(struct process *p, void *(*run)(void *), void *arg)
{
    struct strand *s = xcalloc(1, sizeof(*s));

    if (n_strands == MAX_STRANDS)
        violated(ORACLE_MODEL, "more than %d threads", MAX_STRANDS);
    s->stack = xmalloc(STACK_BYTES);
    s->run = run;
    s->arg = arg;
    s->process = p;
    p->strands++;
    (void)getcontext(&s->context);
    s->context.uc_stack.ss_sp = s->stack;
    s->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&s->context, strand_main, 0);
    strands[n_strands++] = s;
    return s;
}

void process_start(struct process *p, void *(*run)(void *), void *arg)
{
    strand_new(p, run, arg)->joined = true;
}

static int64_t now_of(const struct process *p)
{
    return sim_now_ms + (p ? p->ahead_ms : 0);
}

static bool strand_can_run(const struct strand *s)
{
    if (s->process->stands_until > sim_now_ms && !s->process->dead)
        return false;
    if (s->joins)
        return s->joins->ended;
    return !s->ended && !s->condition && s->wake_at <= now_of(s->process);
}

static void strand_run(struct strand *s)
{
    s->joins = NULL;
    running = s;
    sim_process = s->process;
    switch_to(s);
    running = NULL;
    sim_process = NULL;
}

static void strands_sweep(void)
{
    size_t n = 0;

    for (size_t i = 0; i < n_strands; i++) {
        struct strand *s = strands[i];

        if (s->ended && s->joined) {
            free(s->stack);
            free(s);
        } else {
            strands[n++] = s;
        }
    }
    n_strands = n;
}

/* One of those that can run, of this process or any (NULL). */
static struct strand *strand_pick(const struct process *p)
{
    struct strand *can[MAX_STRANDS];
    size_t n = 0;

    for (size_t i = 0; i < n_strands; i++)
        if ((!p || strands[i]->process == p) && strand_can_run(strands[i]))
            can[n++] = strands[i];
    return n ? can[stream_below(&turns, n)] : NULL;
}

static int64_t next_wake(const struct process *p)
{
    int64_t at = INT64_MAX;

    for (size_t i = 0; i < n_strands; i++) {
        const struct strand *s = strands[i];
        int64_t wake = s->wake_at;

        if (!s->process->dead && s->process->stands_until > wake)
            wake = s->process->stands_until;
        if ((!p || s->process == p) && !s->ended && wake < at && !s->condition && !s->joins)
            at = wake;
    }
    return at;
}

void sim_run(int64_t until_ms, void (*between)(void))
{
    while (sim_now_ms < until_ms) {
        struct strand *s = strand_pick(NULL);

        if (s) {
            strand_run(s);
            strands_sweep();
            between();
        } else {
            int64_t at = next_wake(NULL);

            sim_now_ms = at < until_ms ? at : until_ms;
        }
    }
}

void sim_finish(struct process *p)
{
    while (p->strands) {
        struct strand *s = strand_pick(p);

        if (!s)
            p->ahead_ms = next_wake(p) - sim_now_ms;
        else
            strand_run(s);
    }
    strands_sweep();
}

struct strand *sim_running(void)
{
    return running;
}

void sim_wait(int64_t until_ms)
{
    running->wake_at = until_ms;
    switch_to(NULL);
}

void sim_wake(struct strand *s, int64_t at_ms)
{
    if (s && at_ms < s->wake_at)
        s->wake_at = at_ms;
}

int64_t sim_process_now(void)
{
    return now_of(sim_process);
}

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *a, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
    (void)a;
    *ret = (pthread_t)(uintptr_t)strand_new(sim_process, run, arg);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret)
{
    struct strand *s = (struct strand *)(uintptr_t)thread; /* NOLINT: as pthread_create() gave it */

    (void)ret;
    running->joins = s;
    if (!s->ended)
        switch_to(NULL);
    running->joins = NULL;
    s->joined = true;
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    running->condition = c;
    (void)pthread_mutex_unlock(m);
    switch_to(NULL);
    return pthread_mutex_lock(m);
}

int __wrap_pthread_cond_signal(pthread_cond_t *c);
int __wrap_pthread_cond_signal(pthread_cond_t *c)
{
    for (size_t i = 0; i < n_strands; i++)
        if (strands[i]->condition == c)
            strands[i]->condition = NULL;
    return 0;
}

/* ---- Time: on a machine that started an hour before ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    int64_t ms = now_of(sim_process);

    ms += id == CLOCK_REALTIME ? SIM_BEGAN_MS + (sim_process ? sim_process->wall_ms : 0) : 3600000;
    *ret = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    return 0;
}

int __wrap_madvise(void *p, size_t n, int advice);
int __wrap_madvise(void *p, size_t n, int advice)
{
    (void)p;
    (void)n;
    (void)advice;
    return 0;
}

int __wrap_getrusage(int who, struct rusage *ret);
int __wrap_getrusage(int who, struct rusage *ret)
{
    (void)who;
    memset(ret, 0, sizeof(*ret));
    return 0;
}
