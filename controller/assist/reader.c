/* Owns the reads under way, each with its one call and its snapshot until that is handed over, and what is
 * known of each kind. On the loop. Each read ends with `done`, by a deadline at the latest. */
#include "controller/assist/reader.h"

#include "controller/assist/api_error.h"
#include "controller/assist/snapshot.h"
#include "controller/hub/rules/work.h"
#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

enum {
    READ_MS = 60 * 1000,
    WORK_TIMEOUT_MS = 5000,
    PROBE_MS = 30 * 1000,
    RETRY_MS = 5 * 1000, /* while a kind cannot be listed */
    PAGE_OBJECTS = 100,  /* at first; fewer if they are too large */
    PAGE_MAX_BYTES = 16 << 20,
    LIST_MAX_BYTES = 512 << 20,
    LIST_MAX_OBJECTS = 400 * 1000,
};

/* One read, or the probe: its steps are the kinds in order, then the ManifestWork. */
struct read {
    struct snapshot_reader *reader;
    struct reader_query query;
    struct snapshot *snapshot; /* NULL: a probe, which reads one object of each kind */
    unsigned step;             /* a kind; KINDS: the ManifestWork */
    struct kube_call *call;
    char *next;                      /* continue token of the page that is asked for; NULL: the first */
    size_t page, n_objects, n_bytes; /* of the list */
    struct timer deadline;
    reader_done_fn done;
    void *arg;
    LIST_ENTRY(read) entry;
};

struct reader_kind {
    char last_error[768];      /* "": none */
    enum kube_verdict verdict; /* of the last list */
    unix_ms heard;             /* when it was last listed, or not installed; 0: never */
};

struct snapshot_reader {
    struct loop *loop;
    struct kube *kube;
    struct reader_kind kinds[KINDS];
    LIST_HEAD(, read) reads;
    unsigned n_reads;
    struct read probe;
    struct timer next_probe;
};

unsigned reader_status(enum kube_verdict verdict)
{
    static const unsigned statuses[KUBE_VERDICTS] = {
        [KUBE_FORBIDDEN] = 403, [KUBE_NOT_FOUND] = 409, [KUBE_EXISTS] = 409,
        [KUBE_CONFLICT] = 409,  [KUBE_INVALID] = 422,   [KUBE_TOO_LARGE] = 422,
    };

    return statuses[verdict] ?: 503;
}

/* ---- What is known of each kind ---- */

static void reader_note(struct snapshot_reader *r, enum kind kind, enum kube_verdict verdict, const char *why)
{
    struct reader_kind *k = &r->kinds[kind];
    bool is_news = k->verdict != verdict; /* the text may differ each time */

    k->verdict = verdict;
    if (verdict == KUBE_OK || verdict == KUBE_NO_KIND)
        k->heard = loop_wall(r->loop);
    (void)snprintf(k->last_error, sizeof(k->last_error), "%s", why);
    if (!is_news)
        return;
    if (verdict == KUBE_NO_KIND)
        log_info("kind not installed", L_STR("objects", kind_info[kind].plural));
    else if (*why)
        log_warn("cannot list objects", L_STR("objects", kind_info[kind].plural), L_STR("err", why));
    else
        log_info("objects can be listed again", L_STR("objects", kind_info[kind].plural));
}

bool reader_is_synced(const struct snapshot_reader *r)
{
    for (size_t i = 0; i < KINDS; i++)
        if (!r->kinds[i].heard.ms)
            return false;
    return true;
}

const char *reader_error(const struct snapshot_reader *r, enum kind kind)
{
    const struct reader_kind *k = &r->kinds[kind];

    if (*k->last_error)
        return k->last_error;
    return k->heard.ms ? NULL : "not listed yet";
}

void reader_set_metrics(const struct snapshot_reader *r, struct metrics *m)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct reader_kind *k = &r->kinds[i];
        const char *const *of = LV(kind_info[i].resource->plural, "hub");

        if (kind_info[i].is_optional && k->verdict == KUBE_NO_KIND) {
            metric_remove(m, METRIC_KUBE_UP, of);
            metric_remove(m, METRIC_KUBE_LAST_ANSWER, of);
            continue;
        }
        metric_set(m, METRIC_KUBE_UP, of, !reader_error(r, (enum kind)i));
        if (k->heard.ms)
            metric_set(m, METRIC_KUBE_LAST_ANSWER, of, (double)k->heard.ms / 1000);
    }
}

/* ---- The probe ---- */

static void reader_probe_in(struct snapshot_reader *r, int64_t ms)
{
    loop_timer_set(r->loop, &r->next_probe, mono_add(loop_now(r->loop), ms));
}

static void reader_end_probe(struct snapshot_reader *r)
{
    bool has_error = false;

    for (enum kind k = 0; k < KINDS; k++)
        has_error = has_error || (reader_error(r, k) && r->kinds[k].verdict != KUBE_NO_KIND);
    reader_probe_in(r, has_error ? RETRY_MS : PROBE_MS);
}

/* ---- One read ---- */

static void read_next(struct read *rd);

static void read_stop(struct read *rd)
{
    rd->call = kube_cancel(rd->call);
    loop_timer_clear(rd->reader->loop, &rd->deadline);
    free(TAKE_PTR(rd->next));
}

/* Either the snapshot or the failure is handed over. */
static void read_end(struct read *rd, const struct api_error *failure)
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

static void read_fail(struct read *rd, unsigned status, const char *why)
{
    struct api_error error = {0};

    (void)api_error_set(&error, status, "%s", why);
    read_end(rd, &error);
}

static void read_fail_list(struct read *rd, enum kube_verdict verdict, enum kind kind, const char *why)
{
    CLEANUP(cleanup_free) char *text = xasprintf("%s cannot be listed: %s", kind_info[kind].plural, why);

    read_fail(rd, reader_status(verdict), text);
}

static void read_on_deadline(struct timer *t)
{
    read_fail(CONTAINER_OF(t, struct read, deadline), 504, "the hub's API server did not answer in time");
}

/* ---- Lists ---- */

static void read_end_list(struct read *rd, enum kube_verdict verdict, const char *why)
{
    enum kind kind = (enum kind)rd->step;

    free(TAKE_PTR(rd->next));
    if (verdict != KUBE_INVALID) /* of a namespace, which says nothing about the kind */
        reader_note(rd->reader, kind, verdict, why);
    if (rd->snapshot && verdict != KUBE_OK && verdict != KUBE_NO_KIND) {
        read_fail_list(rd, verdict, kind, why);
        return;
    }
    if (rd->snapshot) {
        rd->snapshot->lists[kind].lacks_kind = verdict == KUBE_NO_KIND;
        snapshot_sort(rd->snapshot, kind);
    }
    rd->step++;
    read_next(rd);
}

static void read_ask_page(struct read *rd);

static void read_on_item(void *arg, json_t *object)
{
    struct read *rd = arg;

    rd->n_objects++;
    if (rd->snapshot && rd->n_objects <= LIST_MAX_OBJECTS)
        snapshot_add(rd->snapshot, (enum kind)rd->step, object);
}

static void read_on_page(void *arg, struct kube_answer *a)
{
    struct read *rd = arg;
    const char *next = kube_str(a->object, "metadata", "continue", NULL);

    rd->call = NULL;
    if (a->verdict == KUBE_TOO_LARGE && rd->page > 1) {
        rd->page /= 2;
        read_ask_page(rd);
        return;
    }
    rd->n_bytes += a->bytes;
    if (rd->n_objects > LIST_MAX_OBJECTS || rd->n_bytes > LIST_MAX_BYTES) {
        read_end_list(rd, KUBE_TOO_LARGE, "the list has more than 400,000 objects or 512 MiB");
        return;
    }
    free(rd->next);
    rd->next = next && *next ? xstrdup(next) : NULL;
    if (rd->next && rd->snapshot)
        read_ask_page(rd);
    else
        read_end_list(rd, a->verdict, a->why);
}

/* The only object that is wanted of a kind; NULL: all. */
static const char *query_name(const struct reader_query *q, enum kind kind)
{
    if (kind == KIND_CLUSTERS)
        return q->cluster;
    return kind == KIND_SCORES ? q->score : NULL;
}

static const char *query_namespace(const struct reader_query *q, enum kind kind)
{
    if (kind == KIND_CLUSTERS)
        return NULL;
    return kind == KIND_SCORES ? q->cluster : q->namespace;
}

static void read_ask_page(struct read *rd)
{
    enum kind kind = (enum kind)rd->step;
    const struct reader_query *q = &rd->query;
    const char *only = query_name(q, kind);
    CLEANUP(cleanup_free) char *selector = only ? xasprintf("metadata.name=%s", only) : NULL;
    BUF_AUTO(query, SIZE_MAX);
    struct kube_request rq = {
        .method = KUBE_LIST,
        .resource = kind_info[kind].resource,
        .namespace = query_namespace(q, kind),
        .label_selector = q->label_selector ?: kind_info[kind].label_selector,
        .field_selector = selector,
        .max_answer = PAGE_MAX_BYTES,
        .on_item = read_on_item,
    };

    if (only && !str_has_only(str_of(only), "-.")) {
        read_fail(rd, 422, "a cluster or a score has a name that no Kubernetes object can have");
        return;
    }
    buf_printf(&query, "limit=%zu", rd->page);
    if (rd->next) {
        buf_puts(&query, "&continue=");
        buf_put_url(&query, str_of(rd->next));
    }
    buf_putc(&query, '\0');
    if (buf_failed(&query) < 0)
        memory_exhausted(query.n);
    rq.query = query.p;
    rd->call = kube_start(rd->reader->kube, &rq, read_on_page, rd);
}

/* ---- The ManifestWork ---- */

static void read_on_work(void *arg, struct kube_answer *a)
{
    struct read *rd = arg;

    rd->call = NULL;
    if (a->verdict == KUBE_OK)
        rd->snapshot->work = json_incref(a->object);
    else if (a->verdict != KUBE_NOT_FOUND && a->verdict != KUBE_NO_KIND)
        rd->snapshot->work_error = xstrdup(a->why);
    read_end(rd, NULL);
}

/* ---- The steps ---- */

/* Starts the next step, or ends. */
static void read_next(struct read *rd)
{
    while (rd->step < KINDS && !(rd->query.kinds & KIND_BIT(rd->step)))
        rd->step++;
    rd->page = rd->snapshot ? PAGE_OBJECTS : 1;
    rd->n_objects = rd->n_bytes = 0;
    if (rd->step < KINDS)
        read_ask_page(rd);
    else if (!rd->snapshot)
        reader_end_probe(rd->reader);
    else if (rd->query.kinds & KIND_BIT(KIND_WORK))
        rd->call = kube_start(rd->reader->kube,
                              &(struct kube_request){.method = KUBE_GET,
                                                     .resource = &kube_manifestworks,
                                                     .namespace = rd->query.cluster,
                                                     .name = WORK_NAME,
                                                     .timeout_ms = WORK_TIMEOUT_MS},
                              read_on_work, rd);
    else
        read_end(rd, NULL);
}

void reader_read(struct snapshot_reader *r, const struct reader_query *q, reader_done_fn done, void *arg)
{
    struct api_error refusal = {0};
    struct read *rd;

    if (r->n_reads == READER_MAX_READS) {
        (void)api_error_set(&refusal, 503, "%u requests are reading the hub; try again", r->n_reads);
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

/* ---- Beginning and end ---- */

static void reader_on_probe(struct timer *t)
{
    struct snapshot_reader *r = CONTAINER_OF(t, struct snapshot_reader, next_probe);

    reader_probe_in(r, READ_MS);
    if (r->probe.call) /* a server that hangs: the last one has not ended */
        return;
    r->probe.step = 0;
    read_next(&r->probe);
}

struct snapshot_reader *reader_new(struct loop *loop, struct kube *k)
{
    struct snapshot_reader *r = xcalloc(1, sizeof(*r));

    r->loop = loop;
    r->kube = k;
    LIST_INIT(&r->reads);
    r->probe = (struct read){.reader = r, .query = {.kinds = KIND_BIT(KINDS) - 1}};
    r->next_probe.fn = reader_on_probe;
    loop_timer_set(loop, &r->next_probe, loop_now(loop));
    return r;
}

struct snapshot_reader *reader_free(struct snapshot_reader *r)
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
