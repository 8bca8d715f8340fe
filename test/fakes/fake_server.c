/* One thread and poll(2). Only the script, the requests and the counters are shared, behind `lock`. */
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { MAX_CONNECTIONS = 1024, MAX_ANSWERS = 16384, MAX_ASIDES = 8 };

static atomic_size_t hanging; /* connections of all servers in this state */

enum state { READING, DELAYED, WRITING, DRAINING, HANGING, CLOSED };

struct connection {
    int fd;
    unsigned number;
    enum state state;
    char *in; /* what has come and was not used up */
    size_t in_n, in_cap;
    size_t head_n, body_n; /* of the request at its start, once known */
    struct fake_answer answer;
    bool aside; /* the answer */
    int64_t at; /* DELAYED: until then */
    char *out;  /* headers and body, or the headers and the body once */
    size_t out_n, sent, head_out, total;
};

struct fake_server {
    int fd, wake[2];
    unsigned port;
    pthread_t thread;
    pthread_mutex_t lock;
    bool stop;
    unsigned released; /* held answers that may go and have not yet */
    struct fake_answer answers[MAX_ANSWERS], otherwise;
    struct fake_answer asides[MAX_ASIDES];
    bool used[MAX_ANSWERS];
    size_t n_answers, n_asides, n_aside_requests;
    struct fake_request **requests;
    size_t n_requests;
    char *urls[256];
    size_t n_urls;
    size_t n_taken;
    struct connection *connections[MAX_CONNECTIONS];
    size_t n_connections;
};

static void *must(void *p)
{
    if (!p) {
        perror("fake_server");
        abort();
    }
    return p;
}

/* reallocarray(), because tests that let allocations of the code under test fail replace malloc() and its
 * like. */
static void *grow(void *p, size_t n)
{
    return must(reallocarray(p, n, 1));
}

static void *zeroed(size_t n)
{
    return memset(grow(NULL, n), 0, n);
}

static char *copy(const char *p, size_t n)
{
    char *to = memcpy(grow(NULL, n + 1), p, n);

    to[n] = '\0';
    return to;
}

static void check(bool ok)
{
    if (!ok)
        (void)must(NULL);
}

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static bool is_for(const struct fake_answer *a, const char *target)
{
    return !a->only_path || strncmp(target, a->only_path, strlen(a->only_path)) == 0;
}

/* The answer for a request: the first that is unused and fits. Lock held. */
static struct fake_answer next_answer(struct fake_server *s, const char *target, bool *ret_aside)
{
    *ret_aside = true;
    for (size_t i = 0; i < s->n_asides; i++)
        if (is_for(&s->asides[i], target))
            return s->asides[i];
    *ret_aside = false;
    for (size_t i = 0; i < s->n_answers; i++) {
        if (s->used[i] || !is_for(&s->answers[i], target))
            continue;
        s->used[i] = true;
        return s->answers[i];
    }
    return s->otherwise;
}

bool fake_header(const struct fake_request *rq, const char *name, char *out, size_t n)
{
    size_t len = strlen(name);

    for (const char *line = rq->headers; line && *line;
         line = strstr(line, "\r\n") ? strstr(line, "\r\n") + 2 : NULL) {
        if (strncasecmp(line, name, len) != 0 || line[len] != ':')
            continue;
        line += len + 1;
        line += strspn(line, " ");
        (void)snprintf(out, n, "%.*s", (int)strcspn(line, "\r"), line);
        return true;
    }
    return false;
}

static void compress_gzip(const char *p, size_t n, size_t repeat, char **out, size_t *out_n)
{
    z_stream z = {0};
    size_t cap = compressBound(n) * repeat + 64;

    check(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    *out = grow(NULL, cap);
    z.next_out = (Bytef *)*out;
    z.avail_out = (uInt)cap;
    for (size_t i = 0; i < repeat; i++) {
        z.next_in = (Bytef *)(uintptr_t)p;
        z.avail_in = (uInt)n;
        check(deflate(&z, i + 1 == repeat ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
    }
    *out_n = z.total_out;
    (void)deflateEnd(&z);
}

static void set_out(struct connection *c, const char *head, const char *body, size_t n)
{
    c->head_out = strlen(head);
    c->out_n = c->head_out + n;
    c->out = grow(NULL, c->out_n + 1);
    memcpy(c->out, head, c->head_out);
    if (n)
        memcpy(c->out + c->head_out, body, n);
    c->total = c->out_n;
}

static void prepare_chunked(struct connection *c, const char *head, const char *body, size_t n)
{
    char *all = grow(NULL, n * 6 + 6), *at = all;

    for (size_t i = 0; i < n; i++)
        at += sprintf(at, "1\r\n%c\r\n", body[i]);
    at += sprintf(at, "0\r\n\r\n");
    set_out(c, head, all, (size_t)(at - all));
    free(all);
}

static void prepare(struct connection *c)
{
    const struct fake_answer *a = &c->answer;
    const char *body = a->body ? a->body : "";
    size_t n = a->body_len ? a->body_len : strlen(body), repeat = a->repeat ? a->repeat : 1;
    char head[4096], *zipped = NULL, length[64];
    char *big = grow(NULL, sizeof(head) + (a->headers ? strlen(a->headers) : 0));

    if (a->mode == FAKE_GZIP) {
        compress_gzip(body, n, repeat, &zipped, &n);
        body = zipped;
        repeat = 1;
    }
    (void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", n * repeat);
    (void)snprintf(head, sizeof(head), "%s%s%s%s%s%s", a->location ? "Location: " : "",
                   a->location ? a->location : "", a->location ? "\r\n" : "",
                   a->mode == FAKE_GZIP ? "Content-Encoding: gzip\r\n" : "",
                   a->mode == FAKE_CHUNKED ? "Transfer-Encoding: chunked\r\n" : length,
                   a->close ? "Connection: close\r\n" : "");
    (void)sprintf(big, "HTTP/1.1 %d Said\r\n%s%s\r\n", a->status ? a->status : 200,
                  a->headers ? a->headers : "", head);
    if (a->mode == FAKE_RAW)
        set_out(c, "", body, n);
    else if (a->mode == FAKE_CHUNKED)
        prepare_chunked(c, big, body, n);
    else
        set_out(c, big, body, n);
    c->total += n * (repeat - 1);
    if (a->mode == FAKE_HANG_LATE)
        c->total = c->head_out + n / 2;
    if (a->close_after && a->close_after < c->total)
        c->total = a->close_after;
    free(big);
    free(zipped);
    c->sent = 0;
    c->state = WRITING;
}

static void close_connection(struct connection *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
    if (c->state == HANGING)
        hanging--;
    c->state = CLOSED;
}

static void hang(struct connection *c)
{
    c->state = HANGING;
    hanging++;
}

/* Whether the bytes that have come hold whole headers; finds the body's length. */
static bool parse_head(struct connection *c)
{
    char *end = c->in_n ? memmem(c->in, c->in_n, "\r\n\r\n", 4) : NULL;
    struct fake_request rq = {.headers = c->in};
    char value[32];

    if (!end)
        return false;
    c->head_n = (size_t)(end - c->in) + 4;
    end[2] = '\0';
    c->body_n = fake_header(&rq, "Content-Length", value, sizeof(value)) ? strtoul(value, NULL, 10) : 0;
    return true;
}

static struct fake_request *keep_request(const struct connection *c)
{
    struct fake_request *rq = zeroed(sizeof(*rq));
    size_t have = c->in_n - c->head_n < c->body_n ? c->in_n - c->head_n : c->body_n;
    const char *line_end = strstr(c->in, "\r\n"), *space = strchr(c->in, ' ');
    const char *target = space ? space + 1 : "";

    rq->method = copy(c->in, space ? (size_t)(space - c->in) : 0);
    rq->target = copy(target, strcspn(target, " \r"));
    rq->headers = copy(line_end ? line_end + 2 : "", line_end ? strlen(line_end + 2) : 0);
    rq->body = grow(NULL, have + 1);
    memcpy(rq->body, c->in + c->head_n, have);
    rq->body[have] = '\0';
    rq->body_len = have;
    rq->connection = c->number;
    return rq;
}

static void begin_answer(struct connection *c)
{
    switch (c->answer.mode) {
    case FAKE_HANG:
        hang(c);
        return;
    case FAKE_CLOSE:
        close_connection(c);
        return;
    default:
        prepare(c);
    }
}

/* The headers are in: the answer is chosen now, since it may not want to wait for the body. */
static bool read_head(struct fake_server *s, struct connection *c)
{
    const char *space;

    if (c->head_n)
        return true;
    if (!parse_head(c))
        return false;
    space = strchr(c->in, ' ');
    (void)pthread_mutex_lock(&s->lock);
    c->answer = next_answer(s, space ? space + 1 : "", &c->aside);
    (void)pthread_mutex_unlock(&s->lock);
    return true;
}

static void free_request(struct fake_request *rq)
{
    free(rq->method);
    free(rq->target);
    free(rq->headers);
    free(rq->body);
    free(rq);
}

static void record(struct fake_server *s, struct fake_request *rq, bool aside)
{
    (void)pthread_mutex_lock(&s->lock);
    if (aside) {
        s->n_aside_requests++;
        (void)pthread_mutex_unlock(&s->lock);
        free_request(rq);
        return;
    }
    if ((s->n_requests & (s->n_requests - 1)) == 0)
        s->requests = grow(s->requests, (s->n_requests * 2 + 1) * sizeof(struct fake_request *));
    s->requests[s->n_requests++] = rq;
    (void)pthread_mutex_unlock(&s->lock);
}

/* A TLS client's first byte. It gets the answer that a plain server would give it, out of turn. */
static bool refuse_tls(struct connection *c)
{
    if (c->state != READING || c->in_n == 0 || c->in[0] != 0x16)
        return false;
    c->answer = (struct fake_answer){.mode = FAKE_RAW, .body = "HTTP/1.1 400 Bad Request\r\n\r\n"};
    prepare(c);
    return true;
}

/* Starts on an answer once the request is in. */
static void maybe_answer(struct fake_server *s, struct connection *c)
{
    struct fake_request *rq;
    size_t used;

    if (c->state != READING || refuse_tls(c) || !read_head(s, c))
        return;
    if (c->in_n < c->head_n + c->body_n && !c->answer.early)
        return;
    rq = keep_request(c);
    used = c->head_n + rq->body_len;
    memmove(c->in, c->in + used, c->in_n - used);
    c->in_n -= used;
    c->head_n = 0;
    record(s, rq, c->aside);
    c->state = DELAYED;
    c->at = now_ms() + c->answer.delay_ms;
}

static void on_written(struct fake_server *s, struct connection *c)
{
    free(c->out);
    c->out = NULL;
    if (c->answer.early) {
        /* Closing now would reset the connection and might take the answer away from the client. */
        (void)shutdown(c->fd, SHUT_WR);
        c->state = DRAINING;
    } else if (c->answer.mode == FAKE_HANG_LATE) {
        hang(c);
    } else if (c->answer.close || c->answer.close_after || c->answer.mode == FAKE_RAW) {
        close_connection(c);
    } else {
        c->state = READING;
        maybe_answer(s, c);
    }
}

/* Sends from the headers and the body's one copy, which stands for all its repetitions. */
static void write_some(struct fake_server *s, struct connection *c)
{
    size_t once = c->out_n - c->head_out, at = c->sent, n;
    ssize_t r;

    if (at >= c->out_n && once)
        at = c->head_out + (at - c->head_out) % once;
    n = c->out_n - at < c->total - c->sent ? c->out_n - at : c->total - c->sent;
    if (c->answer.mode == FAKE_CHUNKED && n > 1)
        n = 1;
    r = n ? send(c->fd, c->out + at, n, MSG_NOSIGNAL) : 0;
    if (r < 0 && errno != EAGAIN)
        close_connection(c);
    else if (r > 0)
        c->sent += (size_t)r;
    if (c->state == WRITING && c->sent == c->total)
        on_written(s, c);
}

static void read_some(struct fake_server *s, struct connection *c)
{
    ssize_t r;

    if (c->state == DRAINING)
        c->in_n = 0;
    if (c->in_cap - c->in_n < (256 << 10)) {
        c->in_cap = c->in_cap * 2 + (1 << 20);
        c->in = grow(c->in, c->in_cap + 1);
    }
    r = recv(c->fd, c->in + c->in_n, c->in_cap - c->in_n, 0);
    if (r == 0 || (r < 0 && errno != EAGAIN)) {
        close_connection(c);
        return;
    }
    if (r > 0)
        c->in_n += (size_t)r;
    c->in[c->in_n] = '\0';
    maybe_answer(s, c);
}

static void take_connection(struct fake_server *s)
{
    int one = 1, fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct connection *c;

    if (fd < 0)
        return;
    check(s->n_connections < MAX_CONNECTIONS);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c = zeroed(sizeof(*c));
    c->fd = fd;
    s->connections[s->n_connections++] = c;
    (void)pthread_mutex_lock(&s->lock);
    c->number = (unsigned)s->n_taken++;
    (void)pthread_mutex_unlock(&s->lock);
}

static void drop_closed(struct fake_server *s)
{
    for (size_t i = 0; i < s->n_connections;) {
        struct connection *c = s->connections[i];
        if (c->state != CLOSED) {
            i++;
            continue;
        }
        s->connections[i] = s->connections[--s->n_connections];
        free(c->in);
        free(c->out);
        free(c);
    }
}

static short wanted(const struct connection *c)
{
    switch (c->state) {
    case WRITING:
        return POLLOUT;
    case DELAYED:
    case CLOSED:
        return 0;
    default:
        return POLLIN;
    }
}

/* Whether a held answer may go: also one whose request came after fake_release(), of which nothing else
 * tells. */
static bool may_let_go(struct fake_server *s)
{
    bool may;

    (void)pthread_mutex_lock(&s->lock);
    may = s->released > 0;
    (void)pthread_mutex_unlock(&s->lock);
    return may;
}

/* Milliseconds until a delayed answer is due, -1 for none. */
static int next_due(struct fake_server *s)
{
    int64_t now = now_ms(), least = -1;

    for (size_t i = 0; i < s->n_connections; i++) {
        const struct connection *c = s->connections[i];
        int64_t left = c->at - now;

        if (c->state != DELAYED || (c->answer.held && !may_let_go(s)))
            continue;
        if (least < 0 || left < least)
            least = left > 0 ? left : 0;
    }
    return (int)least;
}

static void let_go(struct fake_server *s, struct connection *c)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->released) {
        s->released--;
        c->answer.held = false;
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static void serve(struct fake_server *s, struct connection *c, short got)
{
    if (c->state == DELAYED && c->answer.held)
        let_go(s, c);
    if (c->state == DELAYED && c->answer.held)
        return;
    if (c->state == DELAYED && c->at <= now_ms())
        begin_answer(c);
    else if (c->state == WRITING && got)
        write_some(s, c);
    else if (got)
        read_some(s, c);
}

static bool stopped(struct fake_server *s)
{
    bool stop;

    (void)pthread_mutex_lock(&s->lock);
    stop = s->stop;
    (void)pthread_mutex_unlock(&s->lock);
    return stop;
}

static void *run(void *arg)
{
    struct fake_server *s = arg;
    struct pollfd *fds = zeroed((MAX_CONNECTIONS + 2) * sizeof(*fds));

    while (!stopped(s)) {
        size_t n = s->n_connections;
        fds[0] = (struct pollfd){.fd = s->fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = s->wake[0], .events = POLLIN};
        for (size_t i = 0; i < n; i++)
            fds[i + 2] = (struct pollfd){.fd = s->connections[i]->fd, .events = wanted(s->connections[i])};
        check(poll(fds, n + 2, next_due(s)) >= 0 || errno == EINTR);
        for (size_t i = 0; i < n; i++)
            serve(s, s->connections[i], fds[i + 2].revents);
        if (fds[0].revents)
            take_connection(s);
        if (fds[1].revents)
            check(read(s->wake[0], &(char){0}, 1) == 1);
        drop_closed(s);
    }
    for (size_t i = 0; i < s->n_connections; i++)
        close_connection(s->connections[i]);
    drop_closed(s);
    free(fds);
    return NULL;
}

struct fake_server *fake_new(void)
{
    struct fake_server *s = zeroed(sizeof(*s));
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);

    s->otherwise = (struct fake_answer){.body = "{}"};
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(s->fd, 1024) == 0);
    check(getsockname(s->fd, (struct sockaddr *)&a, &n) == 0 && pipe2(s->wake, O_CLOEXEC) == 0);
    s->port = ntohs(a.sin_port);
    check(pthread_mutex_init(&s->lock, NULL) == 0);
    check(pthread_create(&s->thread, NULL, run, s) == 0);
    return s;
}

struct fake_server *fake_free(struct fake_server *s)
{
    if (!s)
        return NULL;
    (void)pthread_mutex_lock(&s->lock);
    s->stop = true;
    (void)pthread_mutex_unlock(&s->lock);
    check(write(s->wake[1], "", 1) == 1 && pthread_join(s->thread, NULL) == 0);
    (void)close(s->fd);
    (void)close(s->wake[0]);
    (void)close(s->wake[1]);
    for (size_t i = 0; i < s->n_requests; i++)
        free_request(s->requests[i]);
    for (size_t i = 0; i < s->n_urls; i++)
        free(s->urls[i]);
    free(s->requests);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

size_t fake_hanging(void)
{
    return hanging;
}

unsigned fake_port(const struct fake_server *s)
{
    return s->port;
}

const char *fake_url(struct fake_server *s, const char *path)
{
    char *url;

    check(s->n_urls < sizeof(s->urls) / sizeof(s->urls[0]));
    check(asprintf(&url, "http://127.0.0.1:%u%s", s->port, path) > 0);
    return s->urls[s->n_urls++] = url;
}

void fake_push(struct fake_server *s, struct fake_answer a)
{
    (void)pthread_mutex_lock(&s->lock);
    check(s->n_answers < MAX_ANSWERS);
    s->answers[s->n_answers++] = a;
    (void)pthread_mutex_unlock(&s->lock);
}

void fake_default(struct fake_server *s, struct fake_answer a)
{
    (void)pthread_mutex_lock(&s->lock);
    s->otherwise = a;
    (void)pthread_mutex_unlock(&s->lock);
}

void fake_aside(struct fake_server *s, struct fake_answer a)
{
    size_t i = 0;

    (void)pthread_mutex_lock(&s->lock);
    while (i < s->n_asides && strcmp(s->asides[i].only_path, a.only_path) != 0)
        i++;
    check(i < MAX_ASIDES);
    s->asides[i] = a;
    s->n_asides += i == s->n_asides;
    (void)pthread_mutex_unlock(&s->lock);
}

void fake_release(struct fake_server *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->released++;
    (void)pthread_mutex_unlock(&s->lock);
    check(write(s->wake[1], "", 1) == 1);
}

size_t fake_asides(struct fake_server *s)
{
    size_t n;

    (void)pthread_mutex_lock(&s->lock);
    n = s->n_aside_requests;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

size_t fake_requests(struct fake_server *s)
{
    size_t n;

    (void)pthread_mutex_lock(&s->lock);
    n = s->n_requests;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

size_t fake_connections(struct fake_server *s)
{
    size_t n;

    (void)pthread_mutex_lock(&s->lock);
    n = s->n_taken;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

const struct fake_request *fake_request(struct fake_server *s, size_t i)
{
    const struct fake_request *rq;

    (void)pthread_mutex_lock(&s->lock);
    rq = i < s->n_requests ? s->requests[i] : NULL;
    (void)pthread_mutex_unlock(&s->lock);
    return rq;
}
