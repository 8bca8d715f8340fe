/* Owns the transfers. One arrives at its server, and later its answer at the client. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/metric/metrics.h"
#include "test/universe/sim.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>

struct transfer {
    struct poller *poller;
    char *url, *body, *token;
    size_t body_n;
    struct curl_slist *headers;
    char method[8];
    size_t (*on_header)(char *, size_t, size_t, void *), (*on_body)(char *, size_t, size_t, void *);
    size_t (*on_read)(char *, size_t, size_t, void *);
    void *header_arg, *body_arg, *read_arg, *private;
    int64_t timeout_ms, began, at;        /* `at`: when the next thing happens */
    int64_t served_at;                    /* when the server made its answer */
    bool arrived, answered, paused, done; /* answered: all but a feed is passed on */
    struct response answer;
    size_t passed_on; /* of its body */
    CURLcode code;
    CURLMsg message;
    struct transfer *next;
};

/* The multi handle is the poller itself. */
struct poller {
    struct strand *waits;
    bool woken;
    struct transfer *first;
};

CURL *__wrap_curl_easy_init(void);
CURL *__wrap_curl_easy_init(void)
{
    return (CURL *)xcalloc(1, sizeof(struct transfer));
}

void __wrap_curl_easy_cleanup(CURL *easy);
void __wrap_curl_easy_cleanup(CURL *easy)
{
    struct transfer *t = (struct transfer *)easy;

    if (!t)
        return;
    if (t->arrived && !t->answered)
        world_note_abandoned(sim_process->node, t->url);
    free(t->url);
    free(t->body);
    free(t->token);
    free(t->answer.body);
    if (t->answer.feed) {
        t->answer.feed->gone = true;
        t->answer.feed->to = NULL;
    }
    free(t);
}

static void transfer_set(struct transfer *t, CURLoption option, void *p)
{
    if (option == CURLOPT_URL) {
        free(t->url);
        t->url = xstrdup(p);
    } else if (option == CURLOPT_CUSTOMREQUEST) {
        (void)snprintf(t->method, sizeof(t->method), "%s", (char *)p);
    } else if (option == CURLOPT_XOAUTH2_BEARER) {
        t->token = xasprintf("Bearer %s", (char *)p);
    } else if (option == CURLOPT_COPYPOSTFIELDS) {
        t->body = xmalloc(t->body_n + 1);
        memcpy(t->body, p, t->body_n);
    } else if (option == CURLOPT_HTTPHEADER) {
        t->headers = p;
    } else if (option == CURLOPT_PRIVATE) {
        t->private = p;
    } else if (option == CURLOPT_HEADERDATA) {
        t->header_arg = p;
    } else if (option == CURLOPT_WRITEDATA) {
        t->body_arg = p;
    } else if (option == CURLOPT_READDATA) {
        t->read_arg = p;
    }
}

#undef curl_easy_setopt
#undef curl_easy_getinfo
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    struct transfer *t = (struct transfer *)easy;
    va_list ap;

    va_start(ap, option);
    if (option == CURLOPT_HEADERFUNCTION)
        t->on_header = va_arg(ap, size_t(*)(char *, size_t, size_t, void *));
    else if (option == CURLOPT_WRITEFUNCTION)
        t->on_body = va_arg(ap, size_t(*)(char *, size_t, size_t, void *));
    else if (option == CURLOPT_READFUNCTION)
        t->on_read = va_arg(ap, size_t(*)(char *, size_t, size_t, void *));
    else if (option == CURLOPT_POSTFIELDSIZE_LARGE)
        t->body_n = (size_t)va_arg(ap, curl_off_t);
    else if (option == CURLOPT_TIMEOUT_MS)
        t->timeout_ms = va_arg(ap, long);
    else if (option >= CURLOPTTYPE_OBJECTPOINT && option < CURLOPTTYPE_FUNCTIONPOINT)
        transfer_set(t, option, va_arg(ap, void *));
    va_end(ap);
    return CURLE_OK;
}

CURLcode __wrap_curl_easy_getinfo(CURL *easy, CURLINFO what, ...);
CURLcode __wrap_curl_easy_getinfo(CURL *easy, CURLINFO what, ...)
{
    struct transfer *t = (struct transfer *)easy;
    void *to;
    va_list ap;

    va_start(ap, what);
    to = va_arg(ap, void *);
    va_end(ap);
    if (what == CURLINFO_PRIVATE)
        *(void **)to = t->private;
    else if (what == CURLINFO_EFFECTIVE_URL)
        *(char **)to = t->url;
    else if (what == CURLINFO_CONTENT_TYPE)
        *(char **)to = NULL;
    else if (what == CURLINFO_RESPONSE_CODE)
        *(long *)to = t->arrived ? t->answer.status : 0;
    else if (what == CURLINFO_OS_ERRNO)
        *(long *)to = t->answer.refused ? ECONNREFUSED : 0;
    else if (what == CURLINFO_TOTAL_TIME_T)
        *(curl_off_t *)to = (sim_process_now() - t->began) * 1000;
    else if (what == CURLINFO_RETRY_AFTER)
        *(curl_off_t *)to = planted == PLANT_NO_RETRY_AFTER ? 0 : t->answer.retry_after_s;
    else if (what == CURLINFO_SIZE_UPLOAD_T)
        *(curl_off_t *)to = (curl_off_t)t->body_n;
    else if (what == CURLINFO_SIZE_DOWNLOAD_T || what == CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        *(curl_off_t *)to = (curl_off_t)t->answer.body_n;
    else
        return CURLE_UNKNOWN_OPTION;
    return CURLE_OK;
}

#undef curl_multi_setopt
CURLMcode __wrap_curl_multi_setopt(CURLM *m, CURLMoption option, ...);
CURLMcode __wrap_curl_multi_setopt(CURLM *m, CURLMoption option, ...)
{
    (void)m;
    (void)option;
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_add_handle(CURLM *multi, CURL *easy);
CURLMcode __wrap_curl_multi_add_handle(CURLM *multi, CURL *easy)
{
    struct transfer *t = (struct transfer *)easy, **end = &((struct poller *)multi)->first;

    while (*end)
        end = &(*end)->next;
    *end = t;
    t->poller = (struct poller *)multi;
    t->began = sim_process_now();
    t->at = t->began + 1;
    sim_process->departing++;
    if (!t->body && t->body_n) {
        t->body = xmalloc(t->body_n);
        for (size_t n = 0, got; n < t->body_n; n += got)
            got = t->on_read(t->body + n, 1, t->body_n - n, t->read_arg);
    }
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_remove_handle(CURLM *multi, CURL *easy);
CURLMcode __wrap_curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
    for (struct transfer **at = &((struct poller *)multi)->first; *at; at = &(*at)->next)
        if (*at == (struct transfer *)easy) {
            if (!(*at)->arrived)
                sim_process->departing--;
            *at = (*at)->next;
            break;
        }
    return CURLM_OK;
}

/* When something happens to it. */
static int64_t transfer_next(const struct transfer *t)
{
    const struct feed *f = t->answered && !t->paused ? t->answer.feed : NULL;

    return f && (f->text.n || f->ended) && f->at < t->at ? f->at : t->at;
}

/* ---- The poller (exporter/base/poller.h). No loop here watches a descriptor ---- */

int __wrap_poller_new(struct poller **ret);
int __wrap_poller_new(struct poller **ret)
{
    *ret = xcalloc(1, sizeof(**ret));
    return 0;
}

struct poller *__wrap_poller_free(struct poller *p);
struct poller *__wrap_poller_free(struct poller *p)
{
    free(p);
    return NULL;
}

CURLM *__wrap_poller_multi(struct poller *p);
CURLM *__wrap_poller_multi(struct poller *p)
{
    return (CURLM *)p;
}

void __wrap_poller_wake(struct poller *p);
void __wrap_poller_wake(struct poller *p)
{
    p->woken = true;
    sim_wake(p->waits, 0);
}

int __wrap_poller_wait(struct poller *p, int ms, bool *ret_readable);
int __wrap_poller_wait(struct poller *p, int ms, bool *ret_readable)
{
    *ret_readable = false;
    if (ms && sim_running()) {
        int64_t until = p->woken ? 0 : sim_process_now() + ms;

        for (const struct transfer *t = p->first; t; t = t->next)
            if (!t->done && transfer_next(t) < until)
                until = transfer_next(t);
        p->waits = sim_running();
        sim_wait(until);
        p->waits = NULL;
    }
    p->woken = false;
    return 0;
}

/* name: with ": ". NULL without it. */
static const char *transfer_header(const struct transfer *t, const char *name)
{
    for (const struct curl_slist *h = t->headers; h; h = h->next)
        if (strncmp(h->data, name, strlen(name)) == 0)
            return h->data + strlen(name);
    return NULL;
}

static void transfer_arrive(struct transfer *t)
{
    const struct request rq = {.node = sim_process->node,
                               .method = t->method[0] ? t->method
                                         : t->body_n  ? "POST"
                                                      : "GET",
                               .url = t->url,
                               .accept = cstr(transfer_header(t, "Accept: ")),
                               .authorization = transfer_header(t, "Authorization: ") ?: cstr(t->token),
                               .content_type = cstr(transfer_header(t, "Content-Type: ")),
                               .content_encoding = cstr(transfer_header(t, "Content-Encoding: ")),
                               .tenant = cstr(transfer_header(t, "X-Tenant: ")),
                               .body = {t->body, t->body_n}};
    int64_t deadline = t->began + t->timeout_ms;

    if (sim_process->dead)
        t->answer.refused = true;
    else
        world_serve(&rq, &t->answer);
    t->served_at = sim_now_ms;
    if (t->answer.feed)
        t->answer.feed->to = t;
    t->arrived = true;
    sim_process->departing--;
    if (planted == PLANT_EARLY_ACK && strstr(t->url, "//tsdb/") && t->answer.status != 204 &&
        (t->answer.refused || t->answer.hangs || t->answer.status >= 500))
        t->answer = (struct response){.status = 204, .body = t->answer.body, .body_n = t->answer.body_n};
    t->at = t->answer.hangs ? deadline : t->at + t->answer.delay_ms;
    t->code = t->answer.refused ? CURLE_COULDNT_CONNECT : CURLE_OK;
    if (t->at >= deadline) {
        t->at = deadline;
        t->code = CURLE_OPERATION_TIMEDOUT;
    }
}

static void transfer_fail(struct transfer *t)
{
    t->code = CURLE_WRITE_ERROR;
    t->done = true;
}

/* Passes the body on in pieces, as libcurl does, until the client pauses. */
static void transfer_pass_on(struct transfer *t)
{
    struct response *a = &t->answer;

    while (t->passed_on < a->body_n) {
        size_t n = size_min(a->body_n - t->passed_on, CURL_MAX_WRITE_SIZE),
               took = t->on_body(a->body + t->passed_on, 1, n, t->body_arg);

        t->paused = took == CURL_WRITEFUNC_PAUSE;
        if (t->paused)
            return;
        if (took != n) {
            transfer_fail(t);
            return;
        }
        t->passed_on += n;
    }
    t->done = !a->feed;
}

/* As all servers of the universe send it: their clocks are right. */
static int put_date(char *ret, size_t size, int64_t ms)
{
    time_t seconds = (time_t)((SIM_BEGAN_MS + ms) / 1000);
    struct tm tm;

    return (int)strftime(ret, size, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", gmtime_r(&seconds, &tm));
}

static void transfer_answer(struct transfer *t)
{
    char head[96], written[96], date[64];
    int d = put_date(date, sizeof(date), t->served_at);
    int n = snprintf(head, sizeof(head), "HTTP/1.1 %ld Status\r\n", t->answer.status);
    int w = snprintf(written, sizeof(written), "X-Prometheus-Remote-Write-Samples-Written: %lld\r\n",
                     (long long)t->answer.written);

    t->done = t->code != CURLE_OK;
    t->answered = true;
    t->at = t->began + t->timeout_ms;
    if (t->code != CURLE_OK)
        return;
    if (t->on_header(head, 1, (size_t)n, t->header_arg) != (size_t)n ||
        t->on_header(date, 1, (size_t)d, t->header_arg) != (size_t)d ||
        (t->answer.written && t->on_header(written, 1, (size_t)w, t->header_arg) != (size_t)w) ||
        t->on_header(head + n - 2, 1, 2, t->header_arg) != 2)
        transfer_fail(t);
    else
        transfer_pass_on(t);
}

static void transfer_feed(struct transfer *t)
{
    struct feed *f = t->answer.feed;
    size_t n = f->text.n, took = n ? t->on_body(f->text.p, 1, n, t->body_arg) : 0;

    t->paused = n && took == CURL_WRITEFUNC_PAUSE;
    if (t->paused)
        return;
    buf_truncate(&f->text, 0);
    if (took != n)
        t->code = CURLE_WRITE_ERROR;
    t->done = f->ended || took != n;
}

static void transfer_go_on(struct transfer *t)
{
    int64_t now = sim_process_now(), deadline = t->began + t->timeout_ms;

    if (t->done)
        return;
    if (!t->arrived && t->at <= now)
        transfer_arrive(t);
    /* As in libcurl: for a process that stood still, the deadline comes before what has arrived. */
    if (t->arrived && now > deadline) {
        t->code = CURLE_OPERATION_TIMEDOUT;
        t->answered = t->done = true;
        return;
    }
    if (t->arrived && !t->answered && t->at <= now)
        transfer_answer(t);
    if (t->answered && !t->done && !t->paused && transfer_next(t) <= now && t->answer.feed->at <= now)
        transfer_feed(t);
    if (t->answered && !t->done && now >= deadline) {
        t->code = CURLE_OPERATION_TIMEDOUT;
        t->done = true;
    }
}

void feed_put(struct feed *f, struct str text)
{
    buf_put_str(&f->text, text);
    if (buf_failed(&f->text) < 0)
        violated(ORACLE_WIRE, "a stream is not read");
    if (f->to && f->to->poller)
        sim_wake(f->to->poller->waits, f->at);
}

void feed_end(struct feed *f)
{
    f->ended = true;
    feed_put(f, STR(""));
}

/* A transfer goes on that was paused. */
CURLcode __wrap_curl_easy_pause(CURL *easy, int what);
CURLcode __wrap_curl_easy_pause(CURL *easy, int what)
{
    struct transfer *t = (struct transfer *)easy;

    t->paused = what & CURLPAUSE_RECV;
    if (t->paused || !t->answered || t->done)
        return CURLE_OK;
    if (t->passed_on < t->answer.body_n)
        transfer_pass_on(t);
    else
        transfer_feed(t);
    return CURLE_OK;
}

int __wrap_poller_run_transfers(struct poller *p);
int __wrap_poller_run_transfers(struct poller *p)
{
    for (struct transfer *t = p->first; t; t = t->next)
        transfer_go_on(t);
    return 0;
}

CURLMsg *__wrap_curl_multi_info_read(CURLM *multi, int *ret);
CURLMsg *__wrap_curl_multi_info_read(CURLM *multi, int *ret)
{
    *ret = 0;
    for (struct transfer *t = ((struct poller *)multi)->first; t; t = t->next)
        if (t->done) {
            t->message = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = (CURL *)t, .data.result = t->code};
            return &t->message;
        }
    return NULL;
}

/* ---- Compression: nobody here reads it, and it was a third of a run's time ---- */

int __wrap_isal_deflate(struct isal_zstream *z);
int __wrap_isal_deflate(struct isal_zstream *z)
{
    z->next_in += z->avail_in;
    z->avail_in = 0;
    *z->next_out++ = 0;
    z->avail_out--;
    return COMP_OK;
}

/* The same of the program's own metrics, which was half of it: now and then they are shown. */
void __real_metrics_render(const struct metrics *m, struct buf *b);
void __wrap_metrics_render(const struct metrics *m, struct buf *b);
void __wrap_metrics_render(const struct metrics *m, struct buf *b)
{
    static unsigned calls;

    if (calls++ % 16 == 0)
        __real_metrics_render(m, b);
}
