/* The HTTP side of a sample scorer. See serve.h. */
#include "test/scorers/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    BODY_MAX = 64 << 20,
    TOKEN_MAX = 4096,
    WHY_MAX = 512,
    CONNECTIONS = 512,
    CONNECTION_BYTES = 256 << 10, /* one read; the default of 32 KiB costs time with large bodies */
    IDLE_SECONDS = 30,
    STOP_MS = 5000
};

static atomic_int calls_under_way;

struct answer answer_json(unsigned status, json_t *body)
{
    json_auto_t *owned = body;
    struct answer a = {.status = status};
    char *text = json_dumps(owned, JSON_COMPACT);

    if (text)
        a.response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (!a.response) {
        free(text);
        return (struct answer){0};
    }
    (void)MHD_add_response_header(a.response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    return a;
}

struct answer answer_error(unsigned status, const char *fmt, ...)
{
    char why[WHY_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    json_t *body = json_pack("{s:s}", "error", why);
    /* The text may quote a body that is no UTF-8, which jansson refuses to write. */
    return answer_json(status, body ? body : json_pack("{s:s}", "error", "the body is not valid JSON"));
}

/* Opened by path at each call, so that a new token counts at once. The length, without white space at its
 * end; -1 when there is no token to compare with. */
static ssize_t read_token(const char *path, char token[TOKEN_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, token, TOKEN_MAX);

    if (fd >= 0)
        (void)close(fd);
    while (n > 0 && strchr(" \t\r\n", token[n - 1]))
        n--;
    return n > 0 && n < TOKEN_MAX ? n : -1;
}

/* The time it takes depends on what the caller sent, not on how much of it is right. */
static bool same_secret(const char *given, const char *secret, size_t n)
{
    size_t n_given = strlen(given);
    unsigned differ = n_given != n;

    for (size_t i = 0; i < n_given; i++)
        differ |= (unsigned)((unsigned char)given[i] ^ (unsigned char)secret[i % n]);
    return differ == 0;
}

static struct answer unauthorized(const char *why)
{
    struct answer a = answer_error(MHD_HTTP_UNAUTHORIZED, "%s", why);

    if (a.response)
        (void)MHD_add_response_header(a.response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    return a;
}

/* True when the call may go on; otherwise *ret refuses it. */
static bool check_token(const struct server *s, struct MHD_Connection *c, struct answer *ret)
{
    const char *given = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    char token[TOKEN_MAX];
    ssize_t n = read_token(s->token_file, token);

    if (n < 0) {
        (void)fprintf(stderr, "%s: no token in %s: refusing calls\n", s->program, s->token_file);
        *ret = answer_error(MHD_HTTP_SERVICE_UNAVAILABLE, "this scorer's token cannot be read");
        return false;
    }
    bool bearer = given && strncasecmp(given, "Bearer ", 7) == 0;
    bool good = bearer && same_secret(given + 7, token, (size_t)n);
    explicit_bzero(token, sizeof(token));
    if (!good)
        *ret = unauthorized(bearer ? "wrong bearer token" : "expected a bearer token");
    return good;
}

/* One call, from its headers to its answer; libmicrohttpd keeps the pointer. */
struct call {
    const struct route *route;
    bool answered; /* also before the body was read whole; what then comes of it is dropped */
    struct answer answer;
    char *body;
    size_t n, cap;
};

static struct answer not_allowed(const struct route *r)
{
    struct answer a = answer_error(MHD_HTTP_METHOD_NOT_ALLOWED, "%s takes %s only", r->path, r->method);

    if (a.response)
        (void)MHD_add_response_header(a.response, MHD_HTTP_HEADER_ALLOW,
                                      strcmp(r->method, "GET") == 0 ? "GET, HEAD" : r->method);
    return a;
}

static const struct route *find_route(const struct server *s, const char *method, const char *path,
                                      struct answer *refusal)
{
    const struct route *r = s->routes, *end = s->routes + s->n_routes;

    while (r < end && strcmp(r->path, path) != 0)
        r++;
    if (r == end) {
        *refusal = answer_error(MHD_HTTP_NOT_FOUND, "there is nothing at this path");
        return NULL;
    }
    if (strcmp(strcmp(method, "HEAD") == 0 ? "GET" : method, r->method) == 0)
        return r;
    *refusal = not_allowed(r);
    return NULL;
}

static void call_answer(struct call *call, struct answer answer)
{
    call->answered = true;
    call->answer = answer;
    free(call->body);
    call->body = NULL;
    call->n = call->cap = 0;
}

static struct answer too_large(void)
{
    return answer_error(MHD_HTTP_CONTENT_TOO_LARGE, "the body is over %d MiB", BODY_MAX >> 20);
}

static bool call_grow(struct call *call, size_t need)
{
    size_t cap = call->cap < 4096 ? 4096 : call->cap;

    while (cap < need)
        cap *= 2;
    if (cap == call->cap)
        return true;
    char *body = realloc(call->body, cap);
    if (!body)
        return false;
    call->body = body;
    call->cap = cap;
    return true;
}

static void call_take(struct call *call, const char *bytes, size_t n)
{
    if (call->answered)
        return;
    if (n > BODY_MAX - call->n)
        call_answer(call, too_large());
    else if (!call_grow(call, call->n + n))
        call_answer(call, answer_error(MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory"));
    else {
        memcpy(call->body + call->n, bytes, n);
        call->n += n;
    }
}

static enum MHD_Result call_send(const struct call *call, struct MHD_Connection *c)
{
    return call->answer.response ? MHD_queue_response(c, call->answer.status, call->answer.response) : MHD_NO;
}

static bool over_length(const char *length)
{
    return length && strtoull(length, NULL, 10) > BODY_MAX;
}

/* The headers are there, the body is not. */
static enum MHD_Result call_begin(const struct server *s, struct MHD_Connection *c, const char *method,
                                  const char *path, void **state)
{
    struct call *call = calloc(1, sizeof(*call));
    struct answer refusal = {0};

    if (!call)
        return MHD_NO;
    *state = call;
    (void)atomic_fetch_add(&calls_under_way, 1);
    call->route = find_route(s, method, path, &refusal);
    if (!call->route || (call->route->secret && s->token_file && !check_token(s, c, &refusal)))
        call_answer(call, refusal);
    else if (over_length(MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH)))
        call_answer(call, too_large());
    /* A client that asked first need not send the body. Any other is heard out: closed on, it might never
     * read why. */
    if (call->answered && MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT))
        return call_send(call, c);
    return MHD_YES;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *c, const char *path, const char *method,
                              const char *version, const char *bytes, size_t *n, void **state)
{
    struct call *call = *state;

    (void)version;
    if (!call)
        return call_begin(arg, c, method, path, state);
    if (*n) {
        call_take(call, bytes, *n);
        *n = 0;
        return MHD_YES;
    }
    if (!call->answered)
        call_answer(call, call->route->fn(call->body, call->n));
    return call_send(call, c);
}

static void call_end(void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
    struct call *call = *state;

    (void)arg;
    (void)c;
    (void)why;
    if (!call)
        return;
    if (call->answer.response)
        MHD_destroy_response(call->answer.response);
    free(call->body);
    free(call);
    *state = NULL;
    (void)atomic_fetch_sub(&calls_under_way, 1);
}

static int bind_one(const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 128) == 0)
        return fd;
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return -1;
}

/* A listening socket on "host:port", ":port" or "[address]:port"; -1 after saying what is wrong. */
static int listen_on(const struct server *s)
{
    const char *address = s->listen, *colon = strrchr(address, ':');
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *ai;
    char host[256];

    if (!colon || !colon[1] || (size_t)(colon - address) >= sizeof(host)) {
        (void)fprintf(stderr, "%s: --listen %s: expected HOST:PORT\n", s->program, address);
        return -1;
    }
    bool brackets = address[0] == '[' && colon > address + 1 && colon[-1] == ']';
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - address) - 2 * brackets, address + brackets);
    int bad = getaddrinfo(*host ? host : NULL, colon + 1, &hints, &ai);
    if (bad) {
        (void)fprintf(stderr, "%s: --listen %s: %s\n", s->program, address, gai_strerror(bad));
        return -1;
    }
    int fd = bind_one(ai);
    if (fd < 0)
        (void)fprintf(stderr, "%s: cannot listen on %s: %s\n", s->program, address, strerror(errno));
    freeaddrinfo(ai);
    return fd;
}

/* The address in use, which tells the port when --listen left the choice to the kernel. */
static void announce(const struct server *s, int fd)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof(at);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(fd, (struct sockaddr *)&at, &n) < 0 ||
        getnameinfo((struct sockaddr *)&at, n, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    bool v6 = at.ss_family == AF_INET6;
    (void)printf("%s: listening on http://%s%s%s:%s\n", s->program, v6 ? "[" : "", host, v6 ? "]" : "", port);
    (void)fflush(stdout);
}

/* Takes no new connections and lets the calls under way end, up to a deadline. */
static void stop(struct MHD_Daemon *daemon)
{
    int fd = MHD_quiesce_daemon(daemon);

    for (int ms = 0; ms < STOP_MS && atomic_load(&calls_under_way) > 0; ms += 10)
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    MHD_stop_daemon(daemon);
    if (fd >= 0)
        (void)close(fd);
}

static struct MHD_Daemon *start(const struct server *s, int fd)
{
    /* Poll mode: in 0.9.75 the epoll mode stalls with many keep-alive connections that post. */
    return MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_SUPPRESS_DATE_NO_CLOCK, 0,
                            NULL, NULL, handle, (void *)(uintptr_t)s, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_NOTIFY_COMPLETED, call_end, NULL, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
}

int serve(const struct server *s)
{
    sigset_t signals;
    int got, fd = listen_on(s);

    if (fd < 0)
        return 1;
    /* Blocked before the server's thread starts, so that it inherits the mask and sigwait() gets them. */
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    struct MHD_Daemon *daemon = start(s, fd);
    if (!daemon) {
        (void)fprintf(stderr, "%s: cannot start the HTTP server: %s\n", s->program, strerror(errno));
        (void)close(fd);
        return 1;
    }
    announce(s, fd);
    (void)sigwait(&signals, &got);
    stop(daemon);
    return 0;
}
