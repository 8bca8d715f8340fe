/* What the tests of watches share: a watch on a fake API server, and what it told, in order. */
#pragma once

#include "controller/kube/json.h"
#include "controller/kube/resource.h"
#include "controller/kube/watch.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_kube.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* What was told, in order: "+ns/a@1 -ns/a synced error ok". */
struct told {
    struct fake_kube *f;
    struct kube_watch *watch;
    char all[1 << 18]; /* fixed, so that noting takes no memory */
    size_t len;
    unsigned n, synced, errors;
};

static inline void note(struct told *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline void note(struct told *t, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    t->len += (size_t)vsnprintf(t->all + t->len, sizeof(t->all) - t->len, fmt, args);
    va_end(args);
    assert_true(t->len + 2 < sizeof(t->all));
    t->all[t->len++] = ' ';
    t->all[t->len] = '\0';
    t->n++;
}

static inline void on_set(void *arg, json_t *o)
{
    note(arg, "+%s/%s@%s", kube_namespace(o), kube_name(o), kube_version(o));
}

static inline void on_delete(void *arg, const char *namespace, const char *name)
{
    note(arg, "-%s/%s", namespace, name);
}

static inline void on_synced(void *arg)
{
    struct told *t = arg;

    t->synced++;
    note(t, "synced");
}

static inline void on_restored(void *arg)
{
    note(arg, "restored");
}

static inline void on_error(void *arg, const char *error)
{
    struct told *t = arg;

    assert_true(*error != '\0');
    t->errors++;
    note(t, "error");
}

static inline void on_recovered(void *arg)
{
    note(arg, "ok");
}

static inline int setup(void **state)
{
    struct told *t = calloc(1, sizeof(*t));

    t->f = fake_kube_new();
    *state = t;
    return 0;
}

static inline int teardown(void **state)
{
    struct told *t = *state;

    t->watch = kube_watch_free(t->watch);
    (void)fake_kube_free(t->f);
    free(t);
    return 0;
}

static inline struct kube_watch_options options(struct told *t)
{
    return (struct kube_watch_options){.resource = &kube_configmaps,
                                       .namespace = "ns",
                                       .on_set = on_set,
                                       .on_delete = on_delete,
                                       .on_synced = on_synced,
                                       .on_restored = on_restored,
                                       .on_error = on_error,
                                       .on_recovered = on_recovered,
                                       .arg = t};
}

static inline void begin(struct told *t)
{
    const struct kube_watch_options o = options(t);

    t->watch = kube_watch_new(t->f->kube, &o);
}

static inline void clear(struct told *t)
{
    t->n = 0;
    t->len = 0;
    t->all[0] = '\0';
}

static inline void expect(struct told *t, unsigned n, const char *text)
{
    fake_kube_turn(t->f, &t->n, n);
    fake_kube_idle(t->f);
    assert_string_equal(t->all, text);
    clear(t);
}

static inline const char *obj(struct told *t, const char *name, const char *version)
{
    return fake_kube_object(t->f, "ns", name, version);
}

static inline const char *set(struct told *t, const char *name, const char *version)
{
    return fake_kube_event(t->f, "MODIFIED", obj(t, name, version));
}

/* The watch whose request is the ith resumes from this version, with jittered timeoutSeconds. */
static inline void assert_watches_from(struct told *t, size_t i, const char *version)
{
    const char *asked, *want;

    fake_kube_requests(t->f, i + 1);
    asked = fake_kube_asked(t->f, i);
    want = fake_kube_text(t->f,
                          "GET "
                          "/api/v1/namespaces/ns/"
                          "configmaps?watch=1&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=",
                          version);
    if (strncmp(asked, want, strlen(want)) != 0)
        assert_string_equal(asked, want);
    assert_in_range(atoi(asked + strlen(want)), 300, 600);
}

static inline void assert_lists(struct told *t, size_t i)
{
    fake_kube_requests(t->f, i + 1);
    assert_string_equal(fake_kube_asked(t->f, i), "GET /api/v1/namespaces/ns/configmaps?limit=100");
}

/* The ith request looks whether the store is as new as what the watch knows. */
static inline void assert_checks(struct told *t, size_t i)
{
    fake_kube_requests(t->f, i + 1);
    assert_string_equal(fake_kube_asked(t->f, i), "GET /api/v1/namespaces/ns/configmaps?limit=1");
}

/* So many seconds, in each of which all calls come to their end. */
static inline void live(struct told *t, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        t->f->clock.mono.ms += 1000;
        do
            assert_int_equal(loop_turn(t->f->loop, fake_kube_calls(t->f) ? 5 : 0), 0);
        while (fake_kube_calls(t->f));
    }
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
