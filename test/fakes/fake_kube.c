#include "test/fakes/fake_kube.h"
#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "exporter/http/http_internal.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { PATIENCE_S = 60, MAX_TEXTS = 65536 };

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "fake_kube: %s\n", what);
    abort();
}

static mono_ms fake_mono(const struct clock *c)
{
    return CONTAINER_OF(c, struct fake_clock, clock)->mono;
}

static unix_ms fake_wall(const struct clock *c)
{
    return CONTAINER_OF(c, struct fake_clock, clock)->wall;
}

const char *fake_kube_text(struct fake_kube *f, const char *fmt, ...)
{
    va_list args;
    char *text;

    va_start(args, fmt);
    check(vasprintf(&text, fmt, args) >= 0 && f->n_texts < MAX_TEXTS, "out of memory");
    va_end(args);
    return f->texts[f->n_texts++] = text;
}

void fake_kube_file(struct fake_kube *f, const char *name, const char *text)
{
    const char *path = fake_kube_text(f, "%s/%s", f->dir, name), *next = fake_kube_text(f, "%s.new", path);
    FILE *file = fopen(next, "w");

    check(file && fputs(text, file) >= 0 && fclose(file) == 0 && rename(next, path) == 0,
          "a file cannot be written");
}

struct fake_kube *fake_kube_new(void)
{
    struct fake_kube *f = reallocarray(NULL, 1, sizeof(*f));

    check(f, "out of memory");
    *f = (struct fake_kube){.clock = {.clock = {.mono = fake_mono, .wall = fake_wall},
                                      .mono = {1000000},
                                      .wall = {1795242181000}}}; /* 2026-11-21T06:23:01Z */
    f->texts = reallocarray(NULL, MAX_TEXTS, sizeof(char *));
    check(f->texts, "out of memory");
    (void)strcpy(f->dir, "/tmp/fake_kube.XXXXXX");
    check(mkdtemp(f->dir), "no folder");
    f->server = fake_new();
    fake_default(f->server, (struct fake_answer){.status = 500, .body = "out of answers"});
    fake_kube_health(f, "/readyz", (struct fake_answer){.body = "ok"});
    fake_kube_health(f, "/version", (struct fake_answer){.body = "{}"});
    fake_kube_file(f, "kubeconfig",
                   fake_kube_text(f,
                                  "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                                  "contexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n"
                                  "clusters: [{name: k, cluster: {server: '%s'}}]\n"
                                  "users: [{name: u, user: {tokenFile: token}}]\n",
                                  fake_url(f->server, "")));
    fake_kube_file(f, "token", "first\n");
    check(loop_new(&f->loop, &f->clock.clock) == 0, "no loop");
    f->http = http_new(f->loop, "dynamic-scoring/test");
    f->kube = kube_new(f->loop, f->http, "hub", fake_kube_text(f, "%s/kubeconfig", f->dir));
    check(!kube_credentials_error(f->kube), "no client");
    return f;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    char at[512];

    for (struct dirent *e; d && (e = readdir(d));) {
        (void)snprintf(at, sizeof(at), "%s/%s", path, e->d_name);
        (void)unlink(at);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(path);
}

struct fake_kube *fake_kube_free(struct fake_kube *f)
{
    f->kube = kube_free(f->kube);
    f->http = http_free(f->http);
    f->loop = loop_free(f->loop);
    f->server = fake_free(f->server);
    remove_folder(f->dir);
    for (size_t i = 0; i < f->n_texts; i++)
        free(f->texts[i]);
    free(f->texts);
    free(f);
    return NULL;
}

const char *fake_kube_object(struct fake_kube *f, const char *namespace, const char *name,
                             const char *version)
{
    return fake_kube_text(f,
                          "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"resourceVersion\":\"%s\"}}",
                          namespace, name, version);
}

const char *fake_kube_event(struct fake_kube *f, const char *type, const char *object)
{
    return fake_kube_text(f, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
}

const char *fake_kube_bookmark(struct fake_kube *f, const char *version)
{
    return fake_kube_event(f, "BOOKMARK",
                           fake_kube_text(f, "{\"metadata\":{\"resourceVersion\":\"%s\"}}", version));
}

void fake_kube_list(struct fake_kube *f, const char *version, const char *next_page, const char *items)
{
    const char *body = fake_kube_text(
        f, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%s\",\"continue\":\"%s\"},\"items\":[%s]}",
        version, cstr(next_page), items);

    fake_push(f->server, (struct fake_answer){.headers = "Content-Type: application/json\r\n", .body = body});
}

void fake_kube_check(struct fake_kube *f, const char *version)
{
    fake_kube_list(f, version, NULL, "");
}

void fake_kube_watch(struct fake_kube *f, enum fake_watch_end end, const char *lines)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    size_t n = strlen(lines);

    if (end == FAKE_WATCH_STAYS)
        fake_push(f->server, (struct fake_answer){.mode = FAKE_HANG_LATE,
                                                  .body = fake_kube_text(f, "%s%*s", lines, (int)n, "")});
    else
        fake_push(f->server, (struct fake_answer){
                                 .mode = FAKE_RAW,
                                 .body = n ? fake_kube_text(f, "%s%zx\r\n%s\r\n%s", head, n, lines,
                                                            end == FAKE_WATCH_ENDS ? "0\r\n\r\n" : "")
                                           : fake_kube_text(f, "%s%s", head,
                                                            end == FAKE_WATCH_ENDS ? "0\r\n\r\n" : "")});
}

void fake_kube_status(struct fake_kube *f, int code, const char *reason, const char *message)
{
    fake_push(f->server,
              (struct fake_answer){
                  .status = code,
                  .headers = "Content-Type: application/json\r\n",
                  .body = fake_kube_text(f,
                                         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                                         "\"message\":\"%s\",\"reason\":\"%s\",\"details\":{\"name\":\"x\"},"
                                         "\"code\":%d}",
                                         message, reason, code)});
}

void fake_kube_health(struct fake_kube *f, const char *path, struct fake_answer a)
{
    a.only_path = path;
    fake_aside(f->server, a);
}

const char *fake_kube_asked(struct fake_kube *f, size_t i)
{
    const struct fake_request *rq = fake_request(f->server, i);

    return rq ? fake_kube_text(f, "%s %s", rq->method, rq->target) : "(nothing)";
}

void fake_kube_turn(struct fake_kube *f, const unsigned *count, unsigned want)
{
    time_t end = time(NULL) + PATIENCE_S;

    while (*count < want && time(NULL) < end)
        check(loop_turn(f->loop, 5) == 0, "the loop has failed");
    check(*count >= want, "waited in vain");
}

void fake_kube_requests(struct fake_kube *f, size_t want)
{
    time_t end = time(NULL) + PATIENCE_S;

    while (fake_requests(f->server) < want && time(NULL) < end)
        check(loop_turn(f->loop, 5) == 0, "the loop has failed");
    check(fake_requests(f->server) >= want, "waited for a request in vain");
}

size_t fake_kube_calls(const struct fake_kube *f)
{
    const struct http_call *c;
    size_t n = 0;

    LIST_FOREACH (c, &f->http->calls, entry)
        n++;
    return n;
}

/* On a busy machine an answer takes longer than any number of turns. */
void fake_kube_settle(const struct fake_kube *f)
{
    for (unsigned i = 0; i < 400; i++) {
        if (fake_kube_calls(f) <= fake_hanging())
            return;
        check(loop_turn(f->loop, 5) == 0, "the loop has failed");
    }
}

void fake_kube_advance(struct fake_kube *f, int64_t ms)
{
    f->clock.mono.ms += ms;
    f->clock.wall.ms += ms;
    for (unsigned i = 0; i < 4; i++)
        check(loop_turn(f->loop, 0) == 0, "the loop has failed");
}

void fake_kube_idle(struct fake_kube *f)
{
    for (unsigned i = 0; i < 30; i++)
        check(loop_turn(f->loop, 1) == 0, "the loop has failed");
}
