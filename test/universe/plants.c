/* Planted bugs in functions that are called across files. Others are in the models of disk, network, API
 * server and receiver: look for PLANT_. */
#include "controller/hub/observed/decisions.h"
#include "controller/kube/client.h"
#include "controller/kube/lease.h"
#include "controller/kube/reach.h"
#include "controller/placement/slot.h"
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/metric/page.h"
#include "remotewrite/queue.h"
#include "remotewrite/sender.h"
#include "remotewrite/spool.h"
#include "remotewrite/timestamp.h"
#include "remotewrite/transport.h"
#include "test/universe/sim.h"
#include "test/universe/world.h"

/* A failed invariant of the product is a violation like any other. */
_Noreturn void __wrap_invariant_failed(const char *file, int line, const char *words);
_Noreturn void __wrap_invariant_failed(const char *file, int line, const char *words)
{
    violated(ORACLE_INVARIANT, "%s (%s:%d)", words, file, line);
}

int __real_folder_append(const struct folder *f, const char *name, size_t at, struct str bytes);
int __wrap_folder_append(const struct folder *f, const char *name, size_t at, struct str bytes);
int __wrap_folder_append(const struct folder *f, const char *name, size_t at, struct str bytes)
{
    return planted == PLANT_NO_ACTIVE_SET ? 0 : __real_folder_append(f, name, at, bytes);
}

int __real_spool_put_position(struct spool *s, uint64_t generation, struct str bytes, bool wait_for_disk);
int __wrap_spool_put_position(struct spool *s, uint64_t generation, struct str bytes, bool wait_for_disk);
int __wrap_spool_put_position(struct spool *s, uint64_t generation, struct str bytes, bool wait_for_disk)
{
    if (planted == PLANT_LOST_POSITION)
        return 0;
    return __real_spool_put_position(s, generation, bytes, wait_for_disk);
}

bool __real_queue_open(struct queue *q, mono_ms now);
bool __wrap_queue_open(struct queue *q, mono_ms now);
bool __wrap_queue_open(struct queue *q, mono_ms now)
{
    size_t in_flight = queue_in_flight(q);
    bool opened = __real_queue_open(q, now);

    reached[REACHED_OPENED_IN_FLIGHT] += opened && in_flight > 1;
    if (opened && planted == PLANT_NO_COMPANIONS)
        queue_send_alone(q);
    return opened;
}

/* The lane of a scorer: score names are s0 to s2. That of the own metrics has the empty name. */
static bool is_scorer_lane(struct str lane)
{
    return lane.n == 2;
}

int64_t __real_queue_next_ms(struct queue *q, struct str lane, int64_t at_ms);
int64_t __wrap_queue_next_ms(struct queue *q, struct str lane, int64_t at_ms);
int64_t __wrap_queue_next_ms(struct queue *q, struct str lane, int64_t at_ms)
{
    static int64_t highest[AGENTS][SCORERS]; /* by agent and scorer */
    int64_t *one, next;

    if (planted != PLANT_HIGHEST || !is_scorer_lane(lane) || sim_process->dead)
        return __real_queue_next_ms(q, lane, at_ms);
    one = &highest[sim_process->node][lane.p[1] - '0'];
    next = is_behind(*one, at_ms) ? *one + 1 : at_ms;
    *one = later_ms(*one, next);
    return next;
}

int64_t __real_backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);
int64_t __wrap_backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms);
int64_t __wrap_backoff_ms(const struct backoff *b, unsigned nth, int64_t retry_after_ms)
{
    if (planted == PLANT_NO_BACKOFF)
        return retry_after_ms > 0 ? retry_after_ms : 0;
    return __real_backoff_ms(b, nth, retry_after_ms);
}

enum rw_verdict __real_transport_verdict(const struct transport_answer *a, enum rw_form form);
enum rw_verdict __wrap_transport_verdict(const struct transport_answer *a, enum rw_form form);
enum rw_verdict __wrap_transport_verdict(const struct transport_answer *a, enum rw_form form)
{
    static const enum reached of_verdict[] = {
        [VERDICT_RETRY] = REACHED_VERDICT_RETRY,         [VERDICT_BISECT] = REACHED_VERDICT_BISECT,
        [VERDICT_SHRINK] = REACHED_VERDICT_SHRINK,       [VERDICT_DROP] = REACHED_VERDICT_DROP,
        [VERDICT_STEP_DOWN] = REACHED_VERDICT_STEP_DOWN, [VERDICT_PARTIAL] = 0,
    };
    enum rw_verdict v = __real_transport_verdict(a, form);

    if ((planted == PLANT_DROP_5XX && a->status >= 500) || (planted == PLANT_DROP_400 && a->status == 400) ||
        (planted == PLANT_DROP_413 && a->status == 413))
        return VERDICT_DROP;
    if (of_verdict[v])
        reached[of_verdict[v]]++;
    return v;
}

void __real_page_withdraw(struct page *p, const char *score_name);
void __wrap_page_withdraw(struct page *p, const char *score_name);
void __wrap_page_withdraw(struct page *p, const char *score_name)
{
    if (planted != PLANT_OLD_SCORES)
        __real_page_withdraw(p, score_name);
}

size_t __real_secret_hide(char *text, size_t n);
size_t __wrap_secret_hide(char *text, size_t n);
size_t __wrap_secret_hide(char *text, size_t n)
{
    return planted == PLANT_SHOWN_SECRET ? n : __real_secret_hide(text, n);
}

json_t *__real_slot_status_body(const struct slot *s, const struct placement_options *o);
json_t *__wrap_slot_status_body(const struct slot *s, const struct placement_options *o);
json_t *__wrap_slot_status_body(const struct slot *s, const struct placement_options *o)
{
    static json_t *first;
    json_t *body = __real_slot_status_body(s, o), *status = json_object_get(body, "status");

    if (planted != PLANT_SAME_VALIDITY || !json_is_string(json_object_get(status, "validUntil")))
        return body;
    if (!first)
        first = json_incref(json_object_get(status, "validUntil"));
    (void)json_object_set(status, "validUntil", first);
    return body;
}

bool __real_object_is_ours(const json_t *object, const char *owner);
bool __wrap_object_is_ours(const json_t *object, const char *owner);
bool __wrap_object_is_ours(const json_t *object, const char *owner)
{
    return planted == PLANT_EVERYONES_OBJECT || __real_object_is_ours(object, owner);
}

/* Of this bug, the answer to the look at the version is a part, in kube.c. A list after a long absence would
 * mend it. */
int64_t __real_kube_absence_ms(const struct kube *k);
int64_t __wrap_kube_absence_ms(const struct kube *k);
int64_t __wrap_kube_absence_ms(const struct kube *k)
{
    return planted == PLANT_FUTURE_WATCH ? 0 : __real_kube_absence_ms(k);
}

void __real_decisions_review(struct decisions *d, const struct scorers *scorers,
                             const struct clusters *clusters, mono_ms listed, mono_ms now);
void __wrap_decisions_review(struct decisions *d, const struct scorers *scorers,
                             const struct clusters *clusters, mono_ms listed, mono_ms now);
void __wrap_decisions_review(struct decisions *d, const struct scorers *scorers,
                             const struct clusters *clusters, mono_ms listed, mono_ms now)
{
    enum { GRACE_MS = 10 * 1000 };

    __real_decisions_review(d, scorers, clusters, listed, now);
    if (planted != PLANT_SHORT_DECISIONS)
        return;
    d->changed = true; /* a second review, as if the time had passed, and a list had come */
    __real_decisions_review(d, scorers, clusters, mono_add(now, GRACE_MS), mono_add(now, GRACE_MS));
}

/* A leader that does not notice that it no longer is: one for each lease that is made, since all nodes are in
 * this process. The oldest is taken again after MAX_LIVES of them. */
struct endless {
    struct kube_lease_options real;
};

static void endless_on_change(void *arg, bool leading)
{
    const struct endless *e = arg;

    if (leading)
        e->real.on_change(e->real.arg, leading);
}

static void endless_on_error_changed(void *arg)
{
    const struct endless *e = arg;

    if (e->real.on_error_changed)
        e->real.on_error_changed(e->real.arg);
}

struct kube_lease *__real_kube_lease_new(struct kube *k, const struct kube_lease_options *o);
struct kube_lease *__wrap_kube_lease_new(struct kube *k, const struct kube_lease_options *o);
struct kube_lease *__wrap_kube_lease_new(struct kube *k, const struct kube_lease_options *o)
{
    static struct endless kept[MAX_LIVES];
    static size_t n;
    struct kube_lease_options other = *o;
    struct endless *e = &kept[n++ % MAX_LIVES];

    if (planted != PLANT_ENDLESS_LEADER)
        return __real_kube_lease_new(k, o);
    *e = (struct endless){.real = *o};
    other.on_change = endless_on_change;
    other.on_error_changed = endless_on_error_changed;
    other.arg = e;
    return __real_kube_lease_new(k, &other);
}
