/* What the tests of the optimiser share: a world whose kinds are listed from texts. */
#ifndef DS_TEST_KNOWN_WORLD_H
#define DS_TEST_KNOWN_WORLD_H

#include "controller/assist/state/world.h"
#include "exporter/base/loop.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOT_INSTALLED NULL

struct known {
    struct fake_kube *f;
    struct world *w;
    const char *items[WORLD_KINDS]; /* JSON objects separated by commas; NOT_INSTALLED */
    const char *lines[WORLD_KINDS]; /* the watch's; NULL: none */
    unsigned synced;
};

/* "/apis/group/version/plural?": what requests of all its objects begin with. */
static inline const char *known_path(struct known *k, enum world_kind kind)
{
    const struct kube_resource *r = world_resource(kind);

    return fake_kube_text(k->f, "/apis/%s/%s/%s?", r->group, r->version, r->plural);
}

static inline void known_push_list(struct known *k, enum world_kind kind, const char *items)
{
    fake_push(k->f->server,
              (struct fake_answer){
                  .only_path = known_path(k, kind),
                  .body = fake_kube_text(
                      k->f, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"100\"},\"items\":[%s]}",
                      items)});
}

/* A watch's answer that sends the lines and stays open. */
static inline void known_push_watch(struct known *k, enum world_kind kind, const char *lines)
{
    size_t n = strlen(lines);

    fake_push(k->f->server,
              (struct fake_answer){.only_path = known_path(k, kind),
                                   .mode = FAKE_HANG_LATE,
                                   .body = fake_kube_text(k->f, "%s%*s", lines, (int)n + 1, "")});
}

static inline void known_on_synced(void *arg)
{
    ((struct known *)arg)->synced++;
}

/* Empty lists for all kinds; change `items` and `lines`, then known_begin(). */
static inline void known_init(struct known *k)
{
    *k = (struct known){.f = fake_kube_new()};
    for (size_t i = 0; i < WORLD_KINDS; i++)
        k->items[i] = "";
}

static inline void known_push_all(struct known *k)
{
    for (size_t i = 0; i < WORLD_KINDS; i++) {
        enum world_kind kind = (enum world_kind)i;

        if (k->items[i]) {
            known_push_list(k, kind, k->items[i]);
            known_push_watch(k, kind, k->lines[i] ? k->lines[i] : fake_kube_bookmark(k->f, "101"));
        } else {
            fake_push(k->f->server, (struct fake_answer){.only_path = known_path(k, kind),
                                                         .status = 404,
                                                         .body = "404 page not found\n"});
        }
    }
}

static inline void known_begin(struct known *k)
{
    const struct world_options o = {k->f->loop, k->f->kube, known_on_synced, k};

    known_push_all(k);
    assert_int_equal(world_new(&k->w, &o), 0);
    fake_kube_turn(k->f, &k->synced, 1);
}

static inline void known_end(struct known *k)
{
    k->w = world_free(k->w);
    k->f = fake_kube_free(k->f);
}

#endif
