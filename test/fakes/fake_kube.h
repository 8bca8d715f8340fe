/* A scripted API server: a fake_server in terms of Kubernetes, and a clock that the test advances. It is
 * ready, apart from the script, until fake_kube_health().
 *
 *     struct fake_kube *f = fake_kube_new();
 *     fake_kube_list(f, "10", NULL, fake_kube_object(f, "ns", "a", "9"));
 *     fake_kube_watch(f, FAKE_WATCH_STAYS,
 *                     fake_kube_event(f, "MODIFIED", fake_kube_object(f, "ns", "a", "11")));
 *     ... kube_watch_new(f->kube, ...), fake_kube_turn(f, ...) ...
 *     fake_kube_free(f);
 *
 * Responses are sent in the order they were pushed, then 500. All strings live until fake_kube_free(). */
#pragma once

#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "test/fakes/fake_server.h"

struct fake_clock {
    struct clock clock;
    mono_ms mono;
    unix_ms wall;
};

struct fake_kube {
    struct fake_server *server;
    struct fake_clock clock;
    struct loop *loop;
    struct http *http;
    struct kube *kube; /* its kubeconfig: <dir>/kubeconfig, with the token "first" */
    char dir[64];      /* made for this test, removed with it */
    char **texts;
    size_t n_texts;
};

enum fake_watch_end {
    FAKE_WATCH_ENDS,  /* cleanly, as at timeoutSeconds */
    FAKE_WATCH_CUT,   /* the connection is closed in the middle */
    FAKE_WATCH_STAYS, /* open, and silent */
};

/* Never NULL: a test that cannot have its server is aborted. */
struct fake_kube *fake_kube_new(void);
struct fake_kube *fake_kube_free(struct fake_kube *f);

/* A text that lives as long as the fake. */
const char *fake_kube_text(struct fake_kube *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Writes <dir>/<name>; the file is replaced, not rewritten. */
void fake_kube_file(struct fake_kube *f, const char *name, const char *text);
/* {"metadata":{"namespace":..., "name":..., "resourceVersion":...}} */
const char *fake_kube_object(struct fake_kube *f, const char *namespace, const char *name,
                             const char *version);
/* A line of a watch, with its end. */
const char *fake_kube_event(struct fake_kube *f, const char *type, const char *object);
const char *fake_kube_bookmark(struct fake_kube *f, const char *version);

/* A list, or one page of it with a continue token; items are objects separated by commas. */
void fake_kube_list(struct fake_kube *f, const char *version, const char *next_page, const char *items);
/* The list of one object that a watch asks for before it resumes. */
void fake_kube_check(struct fake_kube *f, const char *version);
void fake_kube_watch(struct fake_kube *f, enum fake_watch_end end, const char *lines);
/* A Status object. */
void fake_kube_status(struct fake_kube *f, int code, const char *reason, const char *message);

/* The answer to /readyz or /version from now on. */
void fake_kube_health(struct fake_kube *f, const char *path, struct fake_answer a);

/* The ith request as "METHOD target". */
const char *fake_kube_asked(struct fake_kube *f, size_t i);

/* Turns the loop until *count is at least `want`, or aborts the test after 20 s of real time. */
void fake_kube_turn(struct fake_kube *f, const unsigned *count, unsigned want);
/* The same until so many requests have come. */
void fake_kube_requests(struct fake_kube *f, size_t want);
/* The client's calls under way. */
size_t fake_kube_calls(const struct fake_kube *f);
/* Turns the loop until requests in flight are answered, but for those that hang, for at most two seconds. */
void fake_kube_settle(const struct fake_kube *f);
/* Moves both clocks and turns the loop a few times. */
void fake_kube_advance(struct fake_kube *f, int64_t ms);
/* Turns the loop for a moment, for what must not happen. */
void fake_kube_idle(struct fake_kube *f);
