#include "controller/assist/state/reader.h"

#include "controller/assist/state/lister.h"
#include "controller/hub/rules/rules.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/queue.h>

#define PLACEMENT_SCHEMA "/openapi/v3/apis/cluster.open-cluster-management.io/v1beta1"
#define CEL_MEMBER       "\"celSelector\""

enum {
    READ_MS = 60 * 1000,
    WORK_TIMEOUT_MS = 5000,
    PROBE_MS = 30 * 1000,
    RETRY_MS = 5 * 1000, /* while a kind cannot be listed */
    SCHEMA_MAX_BYTES = 16 << 20,
    SELECTOR_BYTES = 300,
};

/* One read, or the probe: its steps are the kinds in order, then the single objects. */
struct read {
    struct reader *reader;
    struct reader_query query;
    struct snapshot *snapshot; /* NULL: a probe */
    unsigned step;             /* a kind; KINDS: the ManifestWork; one more: the schema */
    struct lister *lister;
    struct kube_call *call;
    char selector[SELECTOR_BYTES];
    struct buf schema; /* so far */
    struct timer deadline;
    reader_done_fn done;
    void *arg;
    LIST_ENTRY(read) entry;
};

struct reader_kind {
    char trouble[768];         /* "": none */
    enum kube_verdict verdict; /* of the last list */
    bool is_known, lacks_kind;
    unix_ms heard;
};

struct reader {
    struct loop *loop;
    struct kube *kube;
    struct reader_kind kinds[KINDS];
    bool has_cel;
    LIST_HEAD(, read) reads;
    unsigned n_reads;
    struct read probe;
    struct timer next_probe;
};

unsigned outcome_status(enum kube_verdict verdict)
{
    static const unsigned statuses[KUBE_VERDICTS] = {
        [KUBE_OK] = 200,       [KUBE_RETRY] = 503,   [KUBE_UNAUTHORIZED] = 503, [KUBE_FORBIDDEN] = 403,
        [KUBE_NO_KIND] = 503,  [KUBE_GONE] = 503,    [KUBE_NOT_FOUND] = 409,    [KUBE_EXISTS] = 409,
        [KUBE_CONFLICT] = 409, [KUBE_INVALID] = 422, [KUBE_TOO_LARGE] = 422,
    };

    return statuses[verdict];
}

/* ---- What is known of each kind ---- */

static void reader_note(struct reader *r, enum kind kind, enum kube_verdict verdict, const char *why)
{
    struct reader_kind *k = &r->kinds[kind];
    bool is_news = k->verdict != verdict; /* the text may differ each time */

    k->verdict = verdict;
    k->lacks_kind = verdict == KUBE_NO_KIND;
    if (verdict == KUBE_OK || k->lacks_kind) {
        k->is_known = true;
        k->heard = loop_wall(r->loop);
    }
    (void)snprintf(k->trouble, sizeof(k->trouble), "%s", why);
    if (!is_news)
        return;
    if (k->lacks_kind)
        log_info("kind not installed", L_STR("objects", kind_info[kind].plural));
    else if (*why)
        log_warn("cannot list objects", L_STR("objects", kind_info[kind].plural), L_STR("err", why));
    else
        log_info("objects can be listed again", L_STR("objects", kind_info[kind].plural));
}

bool reader_is_synced(const struct reader *r)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!r->kinds[i].is_known)
            return false;
    return true;
}

const char *reader_trouble(const struct reader *r, enum kind kind)
{
    if (*r->kinds[kind].trouble)
        return r->kinds[kind].trouble;
    return r->kinds[kind].is_known ? NULL : "not listed yet";
}

static void reader_set_gauge(struct metrics *m, enum metric id, const char *plural, bool known, double v)
{
    if (known)
        metric_set(m, id, LV(plural, "hub"), v);
    else
        metric_remove(m, id, LV(plural, "hub"));
}

void reader_set_metrics(const struct reader *r, struct metrics *m)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct reader_kind *k = &r->kinds[i];
        const char *plural = kind_info[i].resource->plural;
        bool needed = !kind_info[i].is_optional || !k->lacks_kind;

        reader_set_gauge(m, METRIC_KUBE_UP, plural, needed, !reader_trouble(r, (enum kind)i));
        reader_set_gauge(m, METRIC_KUBE_LAST_ANSWER, plural, needed && k->heard.ms > 0,
                         (double)k->heard.ms / 1000);
    }
}

/* ---- One read ---- */

static void read_next(struct read *rd);

static void read_stop(struct read *rd)
{
    rd->lister = lister_free(rd->lister);
    rd->call = kube_cancel(rd->call);
    loop_timer_clear(rd->reader->loop, &rd->deadline);
    buf_done(&rd->schema);
}

/* Either the snapshot or the failure is handed over. */
static void read_end(struct read *rd, const struct outcome *failure)
{
    struct snapshot *s = TAKE_PTR(rd->snapshot);

    read_stop(rd);
    LIST_REMOVE(rd, entry);
    rd->reader->n_reads--;
    if (failure)
        s = snapshot_free(s);
    rd->done(rd->arg, s, failure);
    free(rd);
}

static void PRINTF_LIKE(3, 4) read_fail(struct read *rd, unsigned status, const char *fmt, ...)
{
    struct outcome o = {.status = status};
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(o.detail, sizeof(o.detail), fmt, args);
    va_end(args);
    read_end(rd, &o);
}

static void read_on_deadline(struct timer *t)
{
    read_fail(CONTAINER_OF(t, struct read, deadline), 504, "the hub's API server did not answer in time");
}

/* ---- Lists ---- */

static void read_on_object(void *arg, json_t *object)
{
    struct read *rd = arg;

    if (rd->snapshot)
        snapshot_add(rd->snapshot, (enum kind)rd->step, object);
}

static void read_on_list(void *arg, enum kube_verdict verdict, const char *why)
{
    struct read *rd = arg;
    CLEANUP(cleanup_lister_free) struct lister *lister = TAKE_PTR(rd->lister);
    enum kind kind = (enum kind)rd->step;

    (void)lister;
    reader_note(rd->reader, kind, verdict, why);
    if (rd->snapshot && verdict != KUBE_OK && verdict != KUBE_NO_KIND) {
        read_fail(rd, outcome_status(verdict), "%s cannot be listed: %s", kind_info[kind].plural, why);
        return;
    }
    if (rd->snapshot) {
        rd->snapshot->lists[kind].lacks_kind = verdict == KUBE_NO_KIND;
        snapshot_sort(rd->snapshot, kind);
    }
    rd->step++;
    read_next(rd);
}

static int read_start_list(struct read *rd)
{
    enum kind kind = (enum kind)rd->step;
    const struct reader_query *q = &rd->query;
    const char *only = kind == KIND_CLUSTERS ? q->cluster : kind == KIND_SCORES ? q->score : NULL;
    const struct lister_options o = {
        .kube = rd->reader->kube,
        .resource = kind_info[kind].resource,
        .namespace = kind == KIND_CLUSTERS ? NULL
                     : kind == KIND_SCORES ? q->cluster
                                           : q->namespace,
        .label_selector = kind_info[kind].label_selector,
        .field_selector = only ? rd->selector : NULL,
        .first_only = !rd->snapshot,
        .on_object = read_on_object,
        .done = read_on_list,
        .arg = rd,
    };

    if (only && !str_has_only(str_of(only), "-."))
        return -EINVAL;
    (void)snprintf(rd->selector, sizeof(rd->selector), "metadata.name=%.253s", cstr(only));
    return lister_start(&rd->lister, &o);
}

/* ---- Single objects ---- */

static void read_on_work(void *arg, struct kube_answer *a)
{
    struct read *rd = arg;

    rd->call = NULL;
    if (a->verdict == KUBE_OK)
        rd->snapshot->work = json_incref(a->object);
    else if (a->verdict != KUBE_NOT_FOUND && a->verdict != KUBE_NO_KIND)
        rd->snapshot->work_trouble = str_dup(str_of(a->why));
    rd->step++;
    read_next(rd);
}

static int read_start_work(struct read *rd)
{
    const struct kube_request rq = {.method = KUBE_GET,
                                    .resource = &kube_manifestworks,
                                    .namespace = rd->query.cluster,
                                    .name = WORK_NAME,
                                    .timeout_ms = WORK_TIMEOUT_MS};

    rd->call = kube_start(rd->reader->kube, &rq, read_on_work, rd);
    return 0;
}

static void read_on_piece(void *arg, struct str piece)
{
    (void)buf_put_str(&((struct read *)arg)->schema, piece);
}

/* A hub that does not say so has no celSelector until it does: the next plan asks again. */
static void read_on_schema(void *arg, struct kube_answer *a)
{
    struct read *rd = arg;
    struct str text = buf_str(&rd->schema);

    rd->call = NULL;
    rd->reader->has_cel =
        a->verdict == KUBE_OK && text.n && memmem(text.p, text.n, CEL_MEMBER, strlen(CEL_MEMBER));
    rd->step++;
    read_next(rd);
}

static int read_start_schema(struct read *rd)
{
    const struct kube_request rq = {.method = KUBE_GET, .path = PLACEMENT_SCHEMA, .on_data = read_on_piece};

    buf_init(&rd->schema, SCHEMA_MAX_BYTES);
    rd->call = kube_start(rd->reader->kube, &rq, read_on_schema, rd);
    return 0;
}

/* ---- The steps ---- */

static bool read_wants(const struct read *rd)
{
    if (rd->step == KINDS)
        return rd->query.wants_work;
    if (rd->step > KINDS)
        return rd->query.wants_cel && !rd->reader->has_cel;
    return rd->query.kinds & KIND_BIT(rd->step);
}

static void reader_end_probe(struct reader *r);

/* Starts the next step, or ends. */
static void read_next(struct read *rd)
{
    int r = 0;

    while (rd->step <= KINDS + 1 && !read_wants(rd))
        rd->step++;
    if (rd->step < KINDS)
        r = read_start_list(rd);
    else if (rd->step == KINDS)
        r = read_start_work(rd);
    else if (rd->step == KINDS + 1)
        r = read_start_schema(rd);
    else if (!rd->snapshot)
        reader_end_probe(rd->reader);
    else {
        rd->snapshot->has_cel = rd->reader->has_cel;
        read_end(rd, NULL);
    }
    if (r < 0 && !rd->snapshot)
        reader_end_probe(rd->reader);
    else if (r < 0)
        read_fail(rd, 422, "a namespace or a name is not that of a Kubernetes object");
}

void reader_read(struct reader *r, const struct reader_query *q, reader_done_fn done, void *arg)
{
    struct outcome refusal = {.status = 503};
    struct read *rd;

    if (r->n_reads == READER_MAX_READS) {
        (void)snprintf(refusal.detail, sizeof(refusal.detail), "%u requests are reading the hub; try again",
                       r->n_reads);
        done(arg, NULL, &refusal);
        return;
    }
    rd = xcalloc(1, sizeof(*rd));
    rd->snapshot = snapshot_new(loop_wall(r->loop));
    rd->reader = r;
    rd->query = *q;
    rd->deadline.fn = read_on_deadline;
    rd->done = done;
    rd->arg = arg;
    loop_timer_set(r->loop, &rd->deadline, mono_add(loop_now(r->loop), READ_MS));
    LIST_INSERT_HEAD(&r->reads, rd, entry);
    r->n_reads++;
    read_next(rd);
}

/* ---- The probe ---- */

static void reader_probe_in(struct reader *r, int64_t ms)
{
    loop_timer_set(r->loop, &r->next_probe, mono_add(loop_now(r->loop), ms));
}

static void reader_end_probe(struct reader *r)
{
    bool troubled = false;

    for (size_t i = 0; i < KINDS; i++)
        troubled = troubled || (reader_trouble(r, (enum kind)i) && !r->kinds[i].lacks_kind);
    reader_probe_in(r, troubled ? RETRY_MS : PROBE_MS);
}

static void reader_on_probe(struct timer *t)
{
    struct reader *r = CONTAINER_OF(t, struct reader, next_probe);

    reader_probe_in(r, READ_MS);
    if (r->probe.lister) /* a server that hangs: the last one has not ended */
        return;
    r->probe.step = 0;
    read_next(&r->probe);
}

struct reader *reader_new(struct loop *loop, struct kube *k)
{
    struct reader *r = xcalloc(1, sizeof(*r));

    r->loop = loop;
    r->kube = k;
    LIST_INIT(&r->reads);
    r->probe = (struct read){.reader = r, .query = {.kinds = KIND_BIT(KINDS) - 1}};
    r->next_probe.fn = reader_on_probe;
    loop_timer_set(loop, &r->next_probe, loop_now(loop));
    return r;
}

struct reader *reader_free(struct reader *r)
{
    if (!r)
        return NULL;
    while (!LIST_EMPTY(&r->reads))
        read_fail(LIST_FIRST(&r->reads), 503, "the optimizer is shutting down");
    read_stop(&r->probe);
    loop_timer_clear(r->loop, &r->next_probe);
    free(r);
    return NULL;
}
